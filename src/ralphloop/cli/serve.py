"""`ralph serve`: the run as a page behind a door; it needs the extra `web`."""

import hashlib
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from ralphloop.cli import output
from ralphloop.cli.shared.steering import refuse_agent, who_asks
from ralphloop.errors import AgentUnavailable, UsageError
from ralphloop.journal.known_projects import known_projects
from ralphloop.project import Project, find_project
from ralphloop.redaction import secret_values
from ralphloop.text.plain import counted
from ralphloop.ui.page.devices import Devices

if TYPE_CHECKING:
    from ralphloop.ui.page.guard import Guard
    from ralphloop.ui.page.site import Handlers

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_PORT_OF_ALL = 8399
_FIRST_PORT = 8400
_PORTS = 600


@click.command()
@click.option("--all", "of_all", is_flag=True, help="Every project of yours that had a run.")
@click.option("--host", default=_LOOPBACK[0], show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), help="Default: one for each project.")
@click.option("--name", "names", multiple=True, help="A name it may be asked under; repeatable.")
@click.option("--read-only", is_flag=True, help="Show everything, steer nothing.")
@click.option("--new-token", is_flag=True, help="Print an address for one more device and end.")
@click.option("--revoke", is_flag=True, help="Forget all devices and end.")
def serve(
    of_all: bool,
    host: str,
    port: int | None,
    names: tuple[str, ...],
    read_only: bool,
    new_token: bool,
    revoke: bool,
) -> None:
    """Show how the run stands on a live web page, and steer it from there.

    The printed address lets one device in, once; the device is then known for 30 days.  With --all
    it is let in to all projects, and from any directory; each project's own page stays apart.

    \b
    ralph serve                              for a browser on this machine
    ralph serve --all                        all projects on one screen
    ssh -L PORT:127.0.0.1:PORT you@here      and on another one, through a tunnel
    ralph serve --name here.tailnet.ts.net   behind `tailscale serve PORT`
    """
    project = None if of_all else find_project()
    _refuse_agents(project)
    devices = Devices(project.root if project else None, os.environ)
    if revoke:
        output.emit_lines([f"{counted(devices.forget(), 'device')} forgotten."])
        return
    if new_token:
        _print_address(devices)
        return
    page = _page(project, devices, names=[*names, host], read_only=read_only)
    if port is None:
        port = _usual_port(project)
    from ralphloop.ui.page import listening

    with listening.open_door(host, port) as door:
        shown = f"[{host}]" if ":" in host else host
        here = f"http://{shown}:{door.getsockname()[1]}"
        devices.open_at((here, *(f"https://{name}" for name in names)), who_asks())
        _print_address(devices)
        reach = f"Everybody who reaches {host} can ask for it, and nothing is encrypted on the way"
        reach = "Only this machine reaches it" if host in _LOOPBACK else reach
        what = "it only shows" if read_only else "it shows and steers"
        ends = "the page, not the runs" if of_all else "the page, not the run"
        output.note(f"{reach}; {what}. Ctrl+C ends {ends}.")
        listening.serve(page, door)


def _refuse_agents(project: Project | None) -> None:
    """An agent serves neither the page of its own run nor that of all."""
    if project is not None:
        refuse_agent(project, "serve")
        return
    for known in known_projects(os.environ):
        refuse_agent(known.project, "serve")


def _page(
    project: Project | None, devices: Devices, *, names: Sequence[str], read_only: bool
) -> "Guard":
    """The page of a project, or of all; raises where its packages are missing."""
    try:
        from ralphloop.ui.page.all_projects import guarded_all
        from ralphloop.ui.page.site import guarded
    except ImportError as error:
        raise AgentUnavailable(
            f"the page needs packages that are not installed ({error.name})",
            'pip install "ralphloop[web]"; with pipx: pipx inject ralphloop starlette uvicorn;'
            ' with uv: uv tool install "ralphloop[web]"',
        ) from None
    secrets = secret_values(os.environ)
    if project is None:
        return guarded_all(
            os.environ, devices, _handlers, names=names, secrets=secrets, read_only=read_only
        )
    return guarded(
        project, devices, _handlers(project), names=names, secrets=secrets, read_only=read_only
    )


def _handlers(project: Project) -> "Handlers":
    """What the buttons of a project's page do: the same as the commands."""
    from ralphloop.cli.shared.page_decisions import decisions_about, wishes_about
    from ralphloop.ui.page.site import Handlers

    return Handlers(partial(wishes_about, project), decisions_about(project))


def _usual_port(project: Project | None) -> int:
    """One for each project, so that two of them rarely meet."""
    if project is None:
        return _PORT_OF_ALL
    digest = hashlib.sha256(os.fsencode(project.root.resolve())).digest()
    return _FIRST_PORT + int.from_bytes(digest[:4]) % _PORTS


def _print_address(devices: Devices) -> None:
    """For one more device; raises where nobody would answer it."""
    if not devices.is_served:
        raise UsageError("this page is not being served", "ralph serve")
    end = f"/{devices.kept.path}/?token={devices.issue_ticket()}"
    output.emit_lines(f"{address}{end}" for address in devices.kept.addresses)
    sys.stdout.flush()
    output.note("It lets one device in, once, within 15 minutes.")
