"""What the page of a project and the page of all projects have in common.

A first page in pieces that a stream keeps new, the way in for a new device, and the few files.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Generic, TypeVar

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.responses import StreamingResponse as Streaming
from starlette.routing import BaseRoute, Route

from ralphloop.ui.page.devices import DEVICE_S, Devices
from ralphloop.ui.page.files import FILES
from ralphloop.ui.page.guard import COOKIE, TurnedAway, Visitor
from ralphloop.ui.page.live import Live
from ralphloop.ui.page.parts import Painter, ToldOnce

_Seen = TypeVar("_Seen")


class Front(ABC, Generic[_Seen]):
    live: Live[_Seen]  # while it runs
    names: Sequence[str]  # of the pieces, in their order on the page

    def __init__(self, devices: Devices, painter: Painter) -> None:
        self._devices = devices
        self._painter = painter

    @property
    @abstractmethod
    def called(self) -> str:
        """What the page is of."""

    @abstractmethod
    def told_once(self, visitor: Visitor) -> ToldOnce:
        """What became of the last wish of a device, where it was not told yet."""

    def front_routes(self) -> list[BaseRoute]:
        return [
            Route("/", self._home),
            Route("/events", self._events),
            *(Route(path, answer) for path, answer in FILES.items()),
            Route("/enter", self._enter, methods=["POST"]),
        ]

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Keep everybody who looks up to date."""
        watching = asyncio.create_task(self.live.watch())
        try:
            yield
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
            self.live.close()

    def shown(self, request: Request, **what: Any) -> Response:
        """A page; `what` says of what."""
        visitor: Visitor | None = request.scope["visitor"]
        word = visitor.word if visitor else ""
        return HTMLResponse(self._painter.page(word, self.called, **what))

    async def _home(self, request: Request) -> Response:
        visitor: Visitor | None = request.scope["visitor"]
        if visitor is None:
            return self.shown(request, token=request.query_params["token"][:200])
        if "token" in request.query_params:
            return RedirectResponse("./", 303)
        board = await self.live.board()
        return self.shown(request, pieces=board.pieces, said=self.told_once(visitor))

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
        digests = request.query_params.get("has", "")[:300].split(".")
        has = dict(zip(self.names, digests, strict=False))
        told = self.live.stream(visitor, has, lambda: bool(self._devices.known([visitor.cookie])))
        headers = {"X-Accel-Buffering": "no"}
        return Streaming(told, media_type="text/event-stream", headers=headers)


def web_application(
    routes: Sequence[BaseRoute], running: Callable[[], AbstractAsyncContextManager[None]]
) -> Starlette:
    """The routes as an application that refuses in our own words."""
    handlers: dict[Any, Any] = {TurnedAway: lambda _request, error: error.answer()}
    app = Starlette(routes=routes, lifespan=lambda _app: running(), exception_handlers=handlers)
    app.router.redirect_slashes = False
    return app
