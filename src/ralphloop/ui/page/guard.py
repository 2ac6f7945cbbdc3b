"""The wall in front of the page: what every request has to pass before anything is done for it.

In this order: a name it may be asked under (a foreign name that leads here is *DNS rebinding*), the
unguessable path, a device, a rate; and where something is changed, an origin that is ours, a
bounded body and the word that only our own forms carry.  Whatever is answered, refusals too,
carries headers that allow the page nothing but itself.  In front of the path stands a door that
tells nothing (`files.DOOR`).
"""

import asyncio
import ipaddress
import re
import time
from collections.abc import Collection, Iterator
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ralphloop.ui.page.devices import Devices, form_word, same
from ralphloop.ui.page.files import DOOR, FILES, FileAnswer

COOKIE = "ralph"
OPEN = frozenset({*FILES, "/enter"})  # they tell nothing
LARGEST_BODY = 16 * 1024
_AT_THE_DOOR = "door"  # no cookie is called so
_MOST_FIELDS = 12
_BODY_S = 10.0
_HOST = re.compile(r"[A-Za-z0-9.:\[\]-]{1,255}")
_FORM = "application/x-www-form-urlencoded"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
        " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with no-referrer browsers would not name our own origin
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "X-Robots-Tag": "noindex",
}
_REFUSED = """<!doctype html><html lang="en"><meta charset="utf-8"><title>ralph</title>
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<link rel="stylesheet" href="page.css"><main><h1>{words}</h1><p>{more}</p></main>"""
_LET_IN = """<code>ralph serve --new-token</code> prints an address that lets it in.
Was it let in before? <a href="./">Open the page again</a>."""


class Visitor(NamedTuple):
    """A known device, and the word its forms carry."""

    cookie: str
    word: str


class TurnedAway(Exception):
    """A request that gets no further, and why."""

    def __init__(self, status: int, words: str, more: str = "") -> None:
        super().__init__(words)
        self.status = status
        self.words = words
        self.more = more

    def answer(self) -> Response:
        """The refusal as a page; nothing of the request is in it."""
        return HTMLResponse(_REFUSED.format(words=self.words, more=self.more), self.status)


class Rate:
    """So many at once, so many a second after that."""

    def __init__(self, burst: float, per_second: float) -> None:
        self._burst = burst
        self._each = per_second
        self._left = burst
        self._at = 0.0

    def take(self, now: float) -> bool:
        """Count one more; False where that is too many."""
        self._left = min(self._burst, self._left + max(0.0, now - self._at) * self._each)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Guard:
    """The page, reachable only through the wall."""

    def __init__(
        self, page: ASGIApp, devices: Devices, *, names: Collection[str], read_only: bool
    ) -> None:
        self._page = page
        self._devices = devices
        self._names = {name.lower() for name in names} | {"localhost"}
        self._read_only = read_only
        self._rates: dict[str | None, Rate] = {None: Rate(30, 2)}  # by device; strangers share one

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._page(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def walled(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        try:
            request = Request(scope, receive)
            door = self._door(request)
            allowed = {} if door else await self._allowed(request)
        except TurnedAway as no:
            await no.answer()(scope, receive, walled)
        except ClientDisconnect:
            return
        else:
            page = door(request) if door else self._page
            await page({**scope, **allowed}, receive, walled)

    def _door(self, request: Request) -> FileAnswer | None:
        """What stands in front of the path and tells nothing; None where more is asked for."""
        found = DOOR.get(request.scope["path"]) if request.method in ("GET", "HEAD") else None
        if found is not None:
            self._host(request)
            self._count(_AT_THE_DOOR)
        return found

    async def _allowed(self, request: Request) -> Scope:
        """What the page is told of a request; raises where it gets no further."""
        host = self._host(request)
        path = self._path(request)
        cookie = self._devices.known(list(_cookies(request))[:10])
        self._count(cookie)
        visitor = Visitor(cookie, form_word(cookie)) if cookie else None
        comes_in = path == "/" and "token" in request.query_params
        if visitor is None and path not in OPEN and not comes_in:
            raise TurnedAway(401, "This device is not known here.", _LET_IN)
        told: Scope = {"path": path, "raw_path": path.encode(), "visitor": visitor, "form": {}}
        if request.method == "POST":
            told["form"] = await self._form(request, host, visitor, path)
        elif request.method not in ("GET", "HEAD"):
            raise TurnedAway(405, "That is not done here.")
        return told

    def _host(self, request: Request) -> str:
        """Addresses and known names only: a name that somebody else owns may lead here as well."""
        hosts = request.headers.getlist("host")
        host = hosts[0] if len(hosts) == 1 else ""
        try:
            name = (urlsplit(f"//{host}").hostname or "") if _HOST.fullmatch(host) else ""
        except ValueError:
            name = ""
        if name not in self._names and not _is_address(name):
            more = "<code>ralph serve --name NAME</code> allows one more name."
            raise TurnedAway(421, "The page is not served under this name.", more)
        return host

    def _path(self, request: Request) -> str:
        first, slash, rest = request.scope["path"].removeprefix("/").partition("/")
        if not slash or not same(first, self._devices.kept.path):
            self._count(None)
            raise TurnedAway(404, "There is nothing here.")
        return f"/{rest}"

    def _count(self, cookie: str | None) -> None:
        if len(self._rates) > 100:  # of devices that are forgotten by now
            self._rates = {None: self._rates[None]}
        rate = self._rates.setdefault(cookie, Rate(60, 10))
        if not rate.take(time.monotonic()):
            raise TurnedAway(429, "Too many requests; try again in a moment.")

    async def _form(
        self, request: Request, host: str, visitor: Visitor | None, path: str
    ) -> dict[str, str]:
        """The fields of a form that a page of ours sent."""
        site = request.headers.get("sec-fetch-site", "same-origin")
        ours = (f"http://{host}", f"https://{host}")
        if request.headers.get("origin") not in ours or site != "same-origin":
            raise TurnedAway(403, "This was not sent by the page itself.")
        if self._read_only and path != "/enter":
            raise TurnedAway(403, "This page only shows: it was started with --read-only.")
        if request.headers.get("content-type", "").partition(";")[0].strip() != _FORM:
            raise TurnedAway(415, "That is not a form of this page.")
        try:
            text = (await _body(request)).decode("utf-8", "replace")
            fields = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS))
        except ValueError:
            raise TurnedAway(413, "That is too much for one form.") from None
        if path != "/enter" and not (visitor and same(fields.get("word", ""), visitor.word)):
            raise TurnedAway(403, "This form is too old.", '<a href="./">Open the page</a>.')
        return fields


async def _body(request: Request) -> bytes:
    """What was sent; ValueError for more than a form holds, or for one that takes for ever."""
    if int(request.headers.get("content-length", "0")) > LARGEST_BODY:
        raise ValueError
    body = b""
    try:
        async with asyncio.timeout(_BODY_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > LARGEST_BODY:
                    raise ValueError
    except TimeoutError:
        raise ValueError from None
    return body


def _cookies(request: Request) -> Iterator[str]:
    """All that are called like ours: another server of this machine may have set one, too."""
    for part in ";".join(request.headers.getlist("cookie")).split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            yield value


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
