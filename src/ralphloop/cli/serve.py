"""`ralph serve`: the run as a page behind a door; it needs the extra `web`."""

import hashlib
import os
import sys

import click

from ralphloop.cli import output
from ralphloop.cli.steering import asked, refuse_agent, who_asks
from ralphloop.errors import AgentUnavailable, UsageError
from ralphloop.journal.records import Wish
from ralphloop.proc.process_table import started_at
from ralphloop.project import find_project
from ralphloop.redaction import secret_values
from ralphloop.text.plain import counted
from ralphloop.ui.page.devices import Devices

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@click.command()
@click.option("--host", default=_LOOPBACK[0], show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), help="Default: one for each project.")
@click.option("--name", "names", multiple=True, help="A name it may be asked under; repeatable.")
@click.option("--read-only", is_flag=True, help="Show everything, steer nothing.")
@click.option("--new-token", is_flag=True, help="Print an address for one more device and end.")
@click.option("--revoke", is_flag=True, help="Forget all devices and end.")
def serve(
    host: str,
    port: int | None,
    names: tuple[str, ...],
    read_only: bool,
    new_token: bool,
    revoke: bool,
) -> None:
    """Show how the run stands on a live web page, and steer it from there.

    The printed address lets one device in, once; the device is then known for 30 days.

    \b
    ralph serve                              for a browser on this machine
    ssh -L PORT:127.0.0.1:PORT you@here      and on another one, through a tunnel
    ralph serve --name here.tailnet.ts.net   behind `tailscale serve PORT`
    """
    project = find_project()
    refuse_agent(project, "serve")
    devices = Devices(project.root, os.environ)
    if revoke:
        output.emit_lines([f"{counted(devices.forget(), 'device')} forgotten."])
        return
    if new_token:
        _print_address(devices)
        return
    try:
        from ralphloop.ui.page import site
    except ImportError as error:
        raise AgentUnavailable(
            f"the page needs packages that are not installed ({error.name})",
            'pip install "ralphloop[web]"; with pipx: pipx inject ralphloop starlette uvicorn;'
            ' with uv: uv tool install "ralphloop[web]"',
        ) from None
    page = site.guarded(
        project,
        devices,
        lambda kind, story, text: asked(project, kind, Wish(story=story, text=text)),
        names=[*names, host],
        secrets=secret_values(os.environ),
        read_only=read_only,
    )
    if port is None:  # one for each project, so that two of them rarely meet
        digest = hashlib.sha256(os.fsencode(project.root.resolve())).digest()
        port = 8400 + int.from_bytes(digest[:4]) % 600
    with site.listening(host, port) as door:
        shown = f"[{host}]" if ":" in host else host
        here = f"http://{shown}:{door.getsockname()[1]}"
        devices.open_at((here, *(f"https://{name}" for name in names)), who_asks())
        _print_address(devices)
        reach = f"Everybody who reaches {host} can ask for it, and nothing is encrypted on the way"
        reach = "Only this machine reaches it" if host in _LOOPBACK else reach
        what = "it only shows" if read_only else "it shows and steers"
        output.note(f"{reach}; {what}. Ctrl+C ends the page, not the run.")
        site.serve(page, door)


def _print_address(devices: Devices) -> None:
    """For one more device; raises where nobody would answer it."""
    pid, began = devices.kept.server
    if not pid or abs((started_at(pid) or 0.0) - began) > 2:
        raise UsageError("the page of this project is not being served", "ralph serve")
    end = f"/{devices.kept.path}/?token={devices.ticket()}"
    output.emit_lines(f"{address}{end}" for address in devices.kept.addresses)
    sys.stdout.flush()
    output.note("It lets one device in, once, within 15 minutes.")
