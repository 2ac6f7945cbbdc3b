"""The page as a web application; all addresses are relative, on one level.

Looking is GET and changes nothing, every wish is one POST to `do`.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.responses import StreamingResponse as Streaming
from starlette.routing import Route

from ralphloop.errors import LockedError, RalphError
from ralphloop.journal.records import IterationRecord
from ralphloop.night.look import reading
from ralphloop.project import Project
from ralphloop.ui.monitor.moments import Facts
from ralphloop.ui.monitor.pages import Page as Lines
from ralphloop.ui.monitor.pages import iteration_pages, story_pages
from ralphloop.ui.page.devices import DEVICE_S, Devices
from ralphloop.ui.page.guard import COOKIE, Guard, TurnedAway, Visitor
from ralphloop.ui.page.live import Live
from ralphloop.ui.page.parts import NAMES, ROWS, Painter

Steer = Callable[[str, str, str], str]  # kind, story, words → what became of it
KINDS = frozenset({"answer", "note", "pause", "resume", "stop", "retry", "skip"})
_MOST_TEXT = 4_000
_MOST_SAID = 100
_HERE = Path(__file__).parent
_STYLES = (_HERE.parent / "report" / "look.css", _HERE / "page.css")


def guarded(
    project: Project,
    devices: Devices,
    steer: Steer,
    *,
    names: Sequence[str] = (),
    secrets: Sequence[str] = (),
    read_only: bool = False,
) -> Guard:
    site = _Site(project, devices, steer, Painter(secrets, read_only=read_only))
    return Guard(site.app(), devices, names=names, read_only=read_only)


class _Site:
    def __init__(self, project: Project, devices: Devices, steer: Steer, painter: Painter) -> None:
        self._project = project
        self._devices = devices
        self._painter = painter
        self._steer, self._asking = steer, ThreadPoolExecutor(1, "asking")
        self._said: dict[str, str] = {}  # by device, until it was shown
        self._live: Live

    def app(self) -> Starlette:
        look = (self._events, self._stories, self._story, self._iterations, self._iteration)
        routes = [
            Route("/", self._home),
            *(Route(f"/{answer.__name__.removeprefix('_')}", answer) for answer in look),
            Route("/page.css", _file("text/css", *_STYLES)),
            Route("/page.js", _file("text/javascript", _HERE / "page.js")),
            Route("/icon.svg", _file("image/svg+xml", _HERE / "icon.svg")),
            Route("/enter", self._enter, methods=["POST"]),
            Route("/do", self._do, methods=["POST"]),
        ]
        handlers: dict[Any, Any] = {TurnedAway: lambda _request, error: error.answer()}
        app = Starlette(routes=routes, lifespan=self._running, exception_handlers=handlers)
        app.router.redirect_slashes = False
        return app

    @asynccontextmanager
    async def _running(self, _app: Starlette) -> AsyncIterator[None]:
        self._live = Live(self._project, self._painter)
        watching = asyncio.create_task(self._live.watch())
        try:
            yield
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
            self._live.close()
            self._asking.shutdown(wait=False, cancel_futures=True)

    async def _home(self, request: Request) -> Response:
        visitor: Visitor | None = request.scope["visitor"]
        if visitor is None:
            return self._shown(request, token=request.query_params["token"][:200])
        if "token" in request.query_params:
            return RedirectResponse("./", 303)
        board = await self._live.board()
        return self._shown(request, pieces=board.pieces, said=self._said.pop(visitor.cookie, ""))

    async def _enter(self, request: Request) -> Response:
        cookie = self._devices.exchange(request.scope["form"].get("token", "")[:200])
        if cookie is None:
            step = "<code>ralph serve --new-token</code> prints a new one."
            raise TurnedAway(401, "This address was used already, or is too old.", step)
        answer = RedirectResponse("./", 303)
        path = f"/{self._devices.kept.path}/"
        answer.set_cookie(
            COOKIE, cookie, int(DEVICE_S), path=path, httponly=True, samesite="strict"
        )
        return answer

    async def _events(self, request: Request) -> Response:
        visitor: Visitor = request.scope["visitor"]
        has = dict(zip(NAMES, request.query_params.get("has", "")[:300].split("."), strict=False))
        told = self._live.stream(visitor, has, lambda: bool(self._devices.known([visitor.cookie])))
        headers = {"X-Accel-Buffering": "no"}
        return Streaming(told, media_type="text/event-stream", headers=headers)

    async def _stories(self, request: Request) -> Response:
        board = await self._live.board()
        start = _number(request, "from", 0)
        rows = board.facts.stories
        more = f"stories?from={start + ROWS}" if start + ROWS < len(rows) else ""
        shown = ("", "stories", rows[start : start + ROWS], more)
        title = f"{len(rows):,} stories" + (f", from the {start + 1:,}. on" if start else "")
        return self._shown(request, title=title, lists=[shown])

    async def _story(self, request: Request) -> Response:
        facts = (await self._live.board()).facts
        name = request.query_params.get("id", "")
        run = facts.night.run.id if facts.night.run else ""
        look = next((one for one in facts.night.stories if one.story.id == name), None)
        if look is None:
            raise TurnedAway(404, "There is no such story.")
        lists = await self._lines(lambda: story_pages(self._project, run, look))
        return self._shown(request, title=self._painter.say(name, 60), lists=lists)

    async def _iterations(self, request: Request) -> Response:
        run = _run((await self._live.board()).facts)
        before = _number(request, "before", 0)
        found = await self._live.read(lambda: _older(self._project, run, before, ROWS))
        more = f"iterations?before={found[-1].n}" if found and found[-1].n > 1 else ""
        return self._shown(request, title="Iterations", lists=[("", "iterations", found, more)])

    async def _iteration(self, request: Request) -> Response:
        run = _run((await self._live.board()).facts)
        n = _number(request, "n", 0)
        found = await self._live.read(lambda: _older(self._project, run, n + 1, 1))
        lists = await self._lines(lambda: iteration_pages(self._project, run, n))
        lists.sort(key=lambda page: page[0] in ("Verdict", "Prompt"))
        return self._shown(request, title=f"Iteration {n}", lists=[("", "one", found, ""), *lists])

    async def _lines(self, pages: Callable[[], Sequence[Lines]]) -> list[tuple[Any, ...]]:
        told = await self._live.read(lambda: list(self._painter.lines(pages())))
        return [(title, "lines", rows, "") for title, rows in told]

    def _shown(self, request: Request, **what: Any) -> Response:
        visitor: Visitor | None = request.scope["visitor"]
        word = visitor.word if visitor else ""
        return HTMLResponse(self._painter.page(word, self._project.root.name, **what))

    async def _do(self, request: Request) -> Response:
        form: Mapping[str, str] = request.scope["form"]
        kind = form.get("kind", "")
        story = form.get("story", "")
        if kind not in KINDS:
            raise TurnedAway(400, "That cannot be asked from here.")
        text = form.get("text", "")[:_MOST_TEXT].replace("\r\n", "\n")
        loop = asyncio.get_running_loop()
        try:
            words = await loop.run_in_executor(self._asking, self._steer, kind, story, text)
            is_done = True
        except RalphError as error:
            words = f"{error.message}. {error.next_step}"
            is_done = False
        words = self._painter.say(words[:1].upper() + words[1:], 600)
        if request.headers.get("accept") == "application/json":
            return JSONResponse({"words": words, "done": is_done})
        visitor: Visitor = request.scope["visitor"]
        self._said = {**dict(list(self._said.items())[-_MOST_SAID:]), visitor.cookie: words}
        return RedirectResponse("./", 303)


def _file(kind: str, *paths: Path) -> Callable[[Request], Response]:
    content = b"\n".join(path.read_bytes() for path in paths)
    return lambda _request: Response(content, media_type=kind)


def _run(facts: Facts) -> str:
    if facts.night.run is None:
        raise TurnedAway(404, "Nothing has run here yet.")
    return facts.night.run.id


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else default


def _older(project: Project, run: str, before: int, most: int) -> list[IterationRecord]:
    """Iterations below a number, or the newest; newest first."""
    with reading(project) as journal:
        if not before:
            return journal.latest_iterations(run, most)
        first = max(1, before - most)
        return journal.iterations(run, after=first - 1, limit=before - first)[::-1]


def listening(host: str, port: int) -> socket.socket:
    """The door, or why there is none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise LockedError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}",
            "Is the page served already? `ralph serve --new-token` prints an address for it;"
            " `ralph serve --port 0` takes any free port.",
        ) from None


def serve(page: Guard, door: socket.socket) -> None:
    """Until somebody ends it; connections and what they may send are bounded."""
    logging.getLogger("uvicorn").addHandler(logging.NullHandler())  # words of others may be in it
    settings = uvicorn.Config(
        page,
        http="h11",
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=100,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=16 * 1024,
    )
    uvicorn.Server(settings).run(sockets=[door])
