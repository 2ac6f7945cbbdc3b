"""The page of one project as a web application; all addresses are relative, on one level.

Looking is GET and changes nothing, every wish is one POST to `do`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from ralphloop.errors import RalphError
from ralphloop.journal.records import IterationRecord
from ralphloop.night.look import reading
from ralphloop.night.review import review_list
from ralphloop.project import Project
from ralphloop.ui.monitor.moments import Facts, Source, nothing_known
from ralphloop.ui.monitor.pages import Page as Lines
from ralphloop.ui.monitor.pages import iteration_pages
from ralphloop.ui.page.decisions import (
    CarryOut,
    Job,
    Jobs,
    NeedsChoice,
    PageDecision,
    PageDecisionKind,
)
from ralphloop.ui.page.devices import Devices
from ralphloop.ui.page.front import Front, web_application
from ralphloop.ui.page.guard import Guard, TurnedAway, Visitor
from ralphloop.ui.page.live import Live
from ralphloop.ui.page.parts import NAMES, NOTHING_SAID, ROWS, Painter, ToldOnce, TriedDecision
from ralphloop.ui.page.shown_story import ShownStory, next_of, shown_story

Steer = Callable[[str, str, str], str]  # kind, story, words → what became of it


class Handlers(NamedTuple):
    """What the page asks for, as the commands do it."""

    steer: Steer
    decide: CarryOut


KINDS = frozenset({"answer", "note", "pause", "resume", "stop", "retry", "skip"})
_MOST_TEXT = 4_000
_MOST_SAID = 100
_KEPT = ("follow_up", "keep")  # choices by which a story stays where it is
_LONGEST_ID = 200


def guarded(
    project: Project,
    devices: Devices,
    handlers: Handlers,
    *,
    names: Sequence[str] = (),
    secrets: Sequence[str] = (),
    read_only: bool = False,
) -> Guard:
    site = ProjectSite(project, devices, handlers, Painter(secrets, read_only=read_only))
    return Guard(site.app(), devices, names=names, read_only=read_only)


class ProjectSite(Front[Facts]):
    """The page of one project; `running` is how long it can be asked."""

    names = NAMES

    def __init__(
        self, project: Project, devices: Devices, handlers: Handlers, painter: Painter
    ) -> None:
        super().__init__(devices, painter)
        self._project = project
        self._handlers = handlers
        self._said: dict[str, ToldOnce] = {}  # by device, until it was shown

    def app(self) -> Starlette:
        look = (self._stories, self._review, self._story, self._iterations, self._iteration)
        routes = [
            *self.front_routes(),
            *(Route(f"/{answer.__name__.removeprefix('_')}", answer) for answer in look),
            Route("/do", self._do, methods=["POST"]),
            Route("/decide", self._decide, methods=["POST"]),
        ]
        return web_application(routes, self.running)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self._asking = ThreadPoolExecutor(1, "asking")
        self._jobs = Jobs(self._handlers.decide, self._asking)
        source = Source(self._project)
        nothing = nothing_known(self._project)
        self.live = Live(source, self._painter.pieces, nothing=nothing)
        try:
            async with self.watching():
                yield
        finally:
            self._asking.shutdown(wait=False, cancel_futures=True)

    @property
    def called(self) -> str:
        return self._project.root.name

    def told_once(self, visitor: Visitor) -> ToldOnce:
        return self._said.pop(visitor.cookie, NOTHING_SAID)

    async def _stories(self, request: Request) -> Response:
        board = await self.live.board()
        start = _number(request, "from", 0)
        rows = board.facts.stories
        more = f"stories?from={start + ROWS}" if start + ROWS < len(rows) else ""
        shown = ("", "stories", rows[start : start + ROWS], more)
        title = f"{len(rows):,} stories" + (f", from the {start + 1:,}. on" if start else "")
        return self.shown(request, title=title, lists=[shown])

    async def _review(self, request: Request) -> Response:
        visitor: Visitor = request.scope["visitor"]
        listed = await self.live.read(lambda: review_list(self._project))
        body = self._painter.review_body(visitor.word, listed)
        return self.shown(request, title="Review", body=body, said=self.told_once(visitor))

    async def _story(self, request: Request) -> Response:
        visitor: Visitor = request.scope["visitor"]
        shown = await self._shown_story(request.query_params.get("id", ""))
        job = self._jobs.of(shown.name)
        if job is None:
            return self._story_page(request, shown)
        if not job.is_over:
            return self._story_page(request, shown, TriedDecision(job.decision, is_on_its_way=True))
        self._jobs.told(job)
        tried = self._tried(job)
        if tried.error:
            return self._story_page(request, shown, tried)
        self._tell(visitor, _said_of(job))
        return RedirectResponse(await self._way_on(job.decision), 303)

    async def _shown_story(self, name: str) -> ShownStory:
        night = (await self.live.board()).facts.night
        shown = await self.live.read(lambda: shown_story(self._project, night, name))
        if shown is None:
            raise TurnedAway(404, "There is no such story.")
        return shown

    def _story_page(
        self, request: Request, shown: ShownStory, tried: TriedDecision | None = None
    ) -> Response:
        visitor: Visitor = request.scope["visitor"]
        decision = self._painter.decide_body(visitor.word, shown, tried)
        return self.shown(
            request,
            title=self._painter.say(shown.name, 60),
            body=self._painter.story_body(visitor.word, shown, decision),
            is_headed=True,
            said=self.told_once(visitor),
            again=tried is not None and tried.is_on_its_way,
        )

    async def _decide(self, request: Request) -> Response:
        """Carry a decision out; what it came to is told on the next page, an error in place."""
        visitor: Visitor = request.scope["visitor"]
        decision = _decision(request.scope["form"])
        job = self._jobs.begin(decision)
        await job.wait()
        is_read_by_script = request.headers.get("accept") == "application/json"
        tried = TriedDecision(decision, is_on_its_way=True)
        if job.is_over:
            self._jobs.told(job)
            tried = self._tried(job)
            if not tried.error:
                self._tell(visitor, _said_of(job))
                way_on = await self._way_on(decision)
                if is_read_by_script:
                    return JSONResponse({"done": True, "go": way_on})
                return RedirectResponse(way_on, 303)
        if decision.kind not in (PageDecisionKind.ACCEPT, PageDecisionKind.SEND_BACK):
            if is_read_by_script:
                return JSONResponse({"done": False, "words": tried.error})
            self._tell(visitor, ToldOnce(tried.error))
            return RedirectResponse("review", 303)
        shown = await self._shown_story(decision.what)
        if shown.review is None and not tried.is_on_its_way:
            # It was decided meanwhile: its page says how it stands.
            here = f"story?id={quote(shown.name, safe='')}"
            if is_read_by_script:
                return JSONResponse({"done": True, "go": here})
            return RedirectResponse(here, 303)
        if is_read_by_script:
            html = self._painter.decide_body(visitor.word, shown, tried)
            return JSONResponse({"done": False, "html": str(html)})
        return self._story_page(request, shown, tried)

    def _tried(self, job: Job) -> TriedDecision:
        """How a decision that is over came out."""
        try:
            _ = job.words
        except NeedsChoice as error:
            return TriedDecision(job.decision, self._painter.say_lines(error.message), error.ways)
        except RalphError as error:
            return TriedDecision(
                job.decision, self._painter.say_lines(f"{error.message}. {error.next_step}")
            )
        return TriedDecision(job.decision)

    async def _way_on(self, decision: PageDecision) -> str:
        """The address of the story that waits next; the list where none does."""
        listed = await self.live.read(lambda: review_list(self._project))
        is_about_story = decision.kind in (PageDecisionKind.ACCEPT, PageDecisionKind.SEND_BACK)
        if decision.kind is PageDecisionKind.UNDO:
            return f"story?id={quote(decision.what, safe='')}"
        following = next_of(listed, decision.what) if is_about_story else ""
        return f"story?id={quote(following, safe='')}" if following else "review"

    def _tell(self, visitor: Visitor, said: ToldOnce) -> None:
        """On the next page that this device opens."""
        words = self._painter.say(said.words[:1].upper() + said.words[1:], 600)
        kept = dict(list(self._said.items())[-_MOST_SAID:])
        self._said = {**kept, visitor.cookie: said._replace(words=words)}

    async def _iterations(self, request: Request) -> Response:
        run = _run((await self.live.board()).facts)
        before = _number(request, "before", 0)
        found = await self.live.read(lambda: _older(self._project, run, before, ROWS))
        more = f"iterations?before={found[-1].n}" if found and found[-1].n > 1 else ""
        return self.shown(request, title="Iterations", lists=[("", "iterations", found, more)])

    async def _iteration(self, request: Request) -> Response:
        run = _run((await self.live.board()).facts)
        n = _number(request, "n", 0)
        found = await self.live.read(lambda: _older(self._project, run, n + 1, 1))
        lists = await self._lines(lambda: iteration_pages(self._project, run, n))
        lists.sort(key=lambda page: page[0] in ("Verdict", "Prompt"))
        return self.shown(request, title=f"Iteration {n}", lists=[("", "one", found, ""), *lists])

    async def _lines(self, pages: Callable[[], Sequence[Lines]]) -> list[tuple[Any, ...]]:
        told = await self.live.read(lambda: list(self._painter.lines(pages())))
        return [(title, "lines", rows, "") for title, rows in told]

    async def _do(self, request: Request) -> Response:
        form: Mapping[str, str] = request.scope["form"]
        kind = form.get("kind", "")
        story = form.get("story", "")
        if kind not in KINDS:
            raise TurnedAway(400, "That cannot be asked from here.")
        text = form.get("text", "")[:_MOST_TEXT].replace("\r\n", "\n")
        if about := form.get("about", "")[:_LONGEST_ID]:
            text = f"About {about}: {text}"
        loop = asyncio.get_running_loop()
        try:
            words = await loop.run_in_executor(
                self._asking, self._handlers.steer, kind, story, text
            )
            is_done = True
        except RalphError as error:
            words = f"{error.message}. {error.next_step}"
            is_done = False
        words = self._painter.say(words[:1].upper() + words[1:], 600)
        if request.headers.get("accept") == "application/json":
            return JSONResponse({"words": words, "done": is_done})
        self._tell(request.scope["visitor"], ToldOnce(words))
        back = about or story
        return RedirectResponse(f"story?id={quote(back, safe='')}" if back else "./", 303)


def _decision(form: Mapping[str, str]) -> PageDecision:
    kind = form.get("kind", "")
    if kind not in set(PageDecisionKind):
        raise TurnedAway(400, "That cannot be asked from here.")
    what = form.get("story", "") or form.get("proposal", "")
    text = form.get("text", "")[:_MOST_TEXT].replace("\r\n", "\n").strip()
    if kind == PageDecisionKind.SEND_BACK and not text:
        raise TurnedAway(400, "Say what is wrong with it.")
    return PageDecision(
        PageDecisionKind(kind), what[:_LONGEST_ID], text, form.get("choice", "")[:20]
    )


def _said_of(job: Job) -> ToldOnce:
    """What was done, and whether it can be taken back."""
    decision = job.decision
    kinds = (PageDecisionKind.ACCEPT, PageDecisionKind.SEND_BACK)
    can_be_undone = decision.kind in kinds and decision.choice not in _KEPT
    return ToldOnce(job.words, decision.what if can_be_undone else "")


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
