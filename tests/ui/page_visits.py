"""Visits to the page without a network: requests as a server would hand them to the application."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import urlencode, urlsplit

from ralphloop.cli.shared.page_decisions import decisions_about, wishes_about
from ralphloop.project import Project
from ralphloop.ui.page.all_projects import guarded_all
from ralphloop.ui.page.devices import Devices, form_word
from ralphloop.ui.page.guard import Guard
from ralphloop.ui.page.site import Handlers, guarded

HOST = "127.0.0.1:8400"
ORIGIN = f"http://{HOST}"
_T = TypeVar("_T")


def handlers(project: Project) -> Handlers:
    """What the command hands to the page."""
    return Handlers(partial(wishes_about, project), decisions_about(project))


class Hours:
    """A clock for tickets and devices, moved by hand."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        """Epoch seconds."""
        return self.now


@dataclass
class Answered:
    """What came back."""

    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""

    @property
    def text(self) -> str:
        """The body as words."""
        return self.body.decode()

    def header(self, name: str) -> str:
        """One header; empty where it is missing."""
        return dict(self.headers).get(name, "")


class Visits:
    """The page of a project, and the browsers that ask for it."""

    def __init__(self, project: Project, state: Path, **more: Any) -> None:
        self.project, self.hours = project, Hours()
        self.env = {"XDG_STATE_HOME": str(state)}
        self.devices = self._known_here()
        self.devices.open_at((ORIGIN,), (0, 0.0))
        self.path = self.devices.kept.path
        self.page: Guard = self._made(**more)
        self._loop = asyncio.new_event_loop()

    def _known_here(self) -> Devices:
        return Devices(self.project.root, self.env, self.hours)

    def _made(self, **more: Any) -> Guard:
        return guarded(self.project, self.devices, handlers(self.project), **more)

    def known(self) -> str:
        """The cookie of a new device, let in with a ticket."""
        cookie = self.devices.exchange(self.devices.issue_ticket())
        assert cookie is not None
        return cookie

    def get(self, address: str, cookie: str = "", **more: Any) -> Answered:
        """Look at something below the path."""
        return self.ask("GET", address, cookie, **more)

    def post(self, address: str, cookie: str = "", **fields: str) -> Answered:
        """Send a form as a page of ours would."""
        word = form_word(cookie) if cookie else ""
        return self.send(address, cookie, urlencode({"word": word, **fields}).encode())

    def send(
        self, address: str, cookie: str, body: bytes, headers: Iterable[tuple[str, str]] = ()
    ) -> Answered:
        """Send these bytes as a form; headers given replace ours."""
        own = {
            "origin": ORIGIN,
            "content-type": "application/x-www-form-urlencoded",
            "content-length": str(len(body)),
        } | dict(headers)
        kept = [(name, value) for name, value in own.items() if value]
        return self.ask("POST", address, cookie, headers=kept, chunks=[body])

    def ask(
        self,
        method: str,
        address: str,
        cookie: str = "",
        *,
        headers: Iterable[tuple[str, str]] = (),
        hosts: Sequence[str] = (HOST,),
        chunks: Sequence[bytes] = (b"",),
        path: str | None = None,
    ) -> Answered:
        """One request, to its end."""
        given = [("host", host) for host in hosts] + list(headers)
        given += [("cookie", f"ralph={cookie}")] if cookie else []
        parts = urlsplit(address)
        where = (f"/{self.path}/" if path is None else path) + parts.path
        return self.wait(self._asked(method, where, parts.query, given, list(chunks)))

    async def _asked(
        self,
        method: str,
        path: str,
        query: str,
        headers: list[tuple[str, str]],
        chunks: list[bytes],
    ) -> Answered:
        found = Answered()

        async def receive() -> dict[str, Any]:
            if not chunks:
                await asyncio.sleep(3600)
            body = chunks.pop(0)
            return {"type": "http.request", "body": body, "more_body": bool(chunks)}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                found.status = message["status"]
                found.headers = [(n.decode(), v.decode()) for n, v in message["headers"]]
            else:
                found.body += message.get("body", b"")

        await self.page(_scope(method, path, query, headers), receive, send)
        return found

    @contextmanager
    def stream(self, cookie: str, has: str = "") -> Iterator[Stream]:
        """A window that stays open."""
        with Stream(self, cookie, has) as opened:
            yield opened

    def wait(self, work: Awaitable[_T]) -> _T:
        """Let the server work until this is done."""
        return self._loop.run_until_complete(asyncio.wait_for(work, 20))

    def __enter__(self) -> Self:
        self._from, self._to = asyncio.Queue[Any](), asyncio.Queue[Any]()
        self._life = self._loop.create_task(
            self.page({"type": "lifespan"}, self._to.get, self._from.put)
        )
        self._to.put_nowait({"type": "lifespan.startup"})
        assert self.wait(self._from.get())["type"] == "lifespan.startup.complete"
        return self

    def __exit__(self, *_: object) -> None:
        self._to.put_nowait({"type": "lifespan.shutdown"})
        self.wait(self._from.get())
        self.wait(self._life)
        self._loop.close()


class AllVisits(Visits):
    """The page of all projects that are known in a state directory."""

    def __init__(self, state: Path, **more: Any) -> None:
        super().__init__(Project(state), state, **more)

    def _known_here(self) -> Devices:
        return Devices(None, self.env, self.hours)

    def _made(self, **more: Any) -> Guard:
        return guarded_all(self.env, self.devices, handlers, **more)


class Stream:
    """Server-sent events as they come; closed like a browser's window is."""

    def __init__(self, visits: Visits, cookie: str, has: str) -> None:
        self.visits, self.events = visits, asyncio.Queue[tuple[str, Any]]()
        headers = [("host", HOST), ("cookie", f"ralph={cookie}")]
        self._scope = _scope("GET", f"/{visits.path}/events", f"has={has}", headers)
        self._gone = asyncio.Event()

    async def _receive(self) -> dict[str, Any]:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        for event in message.get("body", b"").decode().split("\n\n"):
            if event:
                name, data = event.split("\n", 1)
                told = name.removeprefix("event: "), json.loads(data.removeprefix("data: "))
                self.events.put_nowait(told)

    def next(self) -> tuple[str, Any]:
        """The next event."""
        return self.visits.wait(self.events.get())

    def parts(self) -> dict[str, str]:
        """The parts of the next event that brings any."""
        while True:
            name, data = self.next()
            if name == "parts" and data:
                return {part: html for part, _digest, html in data}

    def __enter__(self) -> Self:
        page: Any = self.visits.page
        self._task = self.visits._loop.create_task(page(self._scope, self._receive, self._send))
        return self

    def __exit__(self, *_: object) -> None:
        self._gone.set()
        with suppress(asyncio.CancelledError):
            self.visits.wait(self._task)


def _scope(
    method: str, path: str, query: str, headers: Iterable[tuple[str, str]]
) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 8400),
    }


class Elements(HTMLParser):
    """What a browser would make of a text: elements with their attributes, and words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Words between elements."""
        self.words += data

    @property
    def tags(self) -> set[str]:
        """The kinds of elements."""
        return {tag for tag, _ in self.found}


def digests(text: str) -> str:
    """What the script would say that the page has."""
    return ".".join(re.findall(r'data-digest="(\w+)"', text))
