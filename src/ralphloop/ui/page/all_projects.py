"""The page of every project of this user, each with its own page below it (`p/KEY/`).

Whoever was let in here may look at and steer all of them; that is what `ralph serve --all` means.
The page of a project begins to work when somebody first asks for it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from ralphloop.night.every_project import EveryProject, ProjectLook
from ralphloop.project import Project
from ralphloop.ui.page.devices import Devices
from ralphloop.ui.page.front import Front, web_application
from ralphloop.ui.page.guard import Guard, TurnedAway, Visitor
from ralphloop.ui.page.live import Live
from ralphloop.ui.page.parts import NOTHING_SAID, OF_ALL, Painter, ToldOnce
from ralphloop.ui.page.site import Handlers, ProjectSite

_LOOK_S = 2.0


def guarded_all(
    env: Mapping[str, str],
    devices: Devices,
    handlers_of: Callable[[Project], Handlers],
    *,
    names: Sequence[str] = (),
    secrets: Sequence[str] = (),
    read_only: bool = False,
) -> Guard:
    painter = Painter(secrets, read_only=read_only, is_of_all=True)
    site = AllSite(env, devices, handlers_of, painter)
    return Guard(site.app(), devices, names=names, read_only=read_only)


class AllSite(Front[tuple[ProjectLook, ...]]):
    names = OF_ALL

    def __init__(
        self,
        env: Mapping[str, str],
        devices: Devices,
        handlers_of: Callable[[Project], Handlers],
        painter: Painter,
    ) -> None:
        super().__init__(devices, painter)
        self._env = env
        self._handlers_of = handlers_of
        self._open: dict[str, ASGIApp] = {}  # pages of projects by their key
        self._opening = asyncio.Lock()

    @property
    def called(self) -> str:
        return "all projects"

    def told_once(self, visitor: Visitor) -> ToldOnce:
        return NOTHING_SAID  # nothing is asked for here

    def app(self) -> Starlette:
        routes = [*self.front_routes(), Mount("/p/{key}", app=self._project_page)]
        return web_application(routes, self.running)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        every = EveryProject(self._env)
        nothing: tuple[ProjectLook, ...] = ()
        self.live = Live(every, self._painter.pieces_of_all, nothing=nothing, every_s=_LOOK_S)
        async with AsyncExitStack() as self._pages, self.watching():
            yield

    async def _project_page(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = scope["path_params"]["key"]
        async with self._opening:
            page = self._open.get(key) or await self._open_page(key)
        await page(scope, receive, send)

    async def _open_page(self, key: str) -> ASGIApp:
        looks = (await self.live.board()).facts
        found = next((one for one in looks if one.key == key), None)
        if found is None:
            raise TurnedAway(404, "There is no such project.")
        handlers = self._handlers_of(found.project)
        site = ProjectSite(found.project, self._devices, handlers, self._painter)
        await self._pages.enter_async_context(site.running())
        self._open[key] = site.app()
        return self._open[key]
