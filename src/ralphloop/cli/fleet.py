"""`ralph fleet`: machines that work for a run elsewhere."""

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from ralphloop.cli import output
from ralphloop.cli.shared.options import DefaultGroup, json_option, number
from ralphloop.core.accounts import Party, account_in, of_any_agent
from ralphloop.errors import ExitCode, UsageError
from ralphloop.text.plain import counted

if TYPE_CHECKING:
    from temporalio.client import Client

    from ralphloop.config.model import FleetSection
    from ralphloop.fleet.carrier import Seat
    from ralphloop.fleet.machine import Machine

_INSTALL = "pip install 'ralphloop[fleet]'"
_KEY_FILE = "fleet.key"
_PORT = 7233
_ASKS_EVERY_S = 75.0  # a machine with a free slot asks for orders each minute
_PORTS = click.IntRange(1, 65535)
_WORKERS = click.IntRange(1, 64)


@click.group(cls=DefaultGroup)
def fleet() -> None:
    """Work for other machines, or have them work for you."""


@fleet.command("status")
@click.option("--server", metavar="HOST:PORT", help="Of Temporal; default: your settings.")
@click.option("--repo", "repository", metavar="NAME", help="Whose workers; default: this one's.")
@json_option("The same as data.")
def status(server: str | None, repository: str | None, as_json: bool) -> int:
    """Show machines, their slots, versions and agents, and what each works on."""
    section = _section()
    seats = asyncio.run(_seats(_server(server, section), section, repository))
    if as_json:
        output.emit_json({"machines": [msgspec.to_builtins(seat) for seat in seats]})
        return ExitCode.COMPLETE
    for seat in seats:
        output.emit_lines(output.row(seat.name, _in_words(seat)))
    if not seats:
        output.note("no worker polls for this repository")
    return ExitCode.COMPLETE


def _in_words(seat: "Seat") -> str:
    parts = [counted(seat.slots, "slot")]
    if seat.version:
        parts.append(f"ralph {seat.version}")
    if seat.labels:
        parts.append(f"labels {', '.join(seat.labels)}")
    if seat.agents:
        named = [Party(it, account_in(seat.accounts, it)).name for it in seat.agents]
        parts.append(f"has {', '.join(named)}")
    if seat.heard is not None:
        parts.append(f"heard of {seat.heard:.0f} s ago")
    if seat.keys:
        parts.append(f"key {seat.keys[0]}")
    if seat.works_on:
        parts.append(f"works on {', '.join(seat.works_on)}")
    elif seat.heard is not None and seat.heard > _ASKS_EVERY_S:
        parts.append("asks for no orders: it is drained, gone, or at work for others")
    elif not seat.apart:
        parts.append("is free")
    if seat.apart:
        parts.append(seat.apart)
    return "; ".join(parts)


@fleet.command("worker")
@click.option("--server", metavar="HOST:PORT", help="Of Temporal; default: your settings.")
@click.option("--repo", "repos", metavar="NAME=URL", multiple=True, help="Work for this one.")
@click.option("--slots", type=number, help="Orders at once.")
@click.option("--labels", metavar="A,B", help="What this machine has, such as gpu.")
@click.option("--account", metavar="LABEL", help="What the account of its agents is called.")
@click.option("--name", default="", help="What it is called; default: its host name.")
@click.option("--trust", "trusted", is_flag=True, help="Run what those repositories' settings say.")
@click.option("--trust-pin", metavar="HASH", default="", help="Only settings with this hash.")
def worker(
    server: str | None,
    repos: tuple[str, ...],
    slots: int | None,
    labels: str | None,
    account: str | None,
    name: str,
    trusted: bool,
    trust_pin: str,
) -> int:
    """Work off orders for these repositories until stopped."""
    from ralphloop.fleet.machine import machine_of, repository_list

    machine = machine_of(dict(os.environ), name)
    given = dict[str, object]()
    if repos:
        given["repos"] = repository_list(repos)
    if slots:
        given["slots"] = slots
    if labels is not None:
        given["labels"] = tuple(word.strip() for word in labels.split(",") if word.strip())
    if account is not None:
        given["accounts"] = of_any_agent(account)
    given["trust"] = trust_pin or ("1" if trusted else "")
    machine = msgspec.structs.replace(machine, **given)
    if not machine.repos:
        raise UsageError(
            "a worker works for repositories that its person names",
            "--repo NAME=URL, or repos under [fleet] in your own settings",
        )
    section = _section(own=True)
    asyncio.run(_serve(machine, _server(server, section), section))
    return ExitCode.COMPLETE


@fleet.command("drain")
@click.argument("name")
@click.option("--server", metavar="HOST:PORT", help="Of Temporal; default: your settings.")
def drain(name: str, server: str | None) -> str:
    """Have a machine take no more orders; it ends with what it works on."""
    section = _section()
    asyncio.run(_drain(name, _server(server, section), section))
    return f"{name} takes no more orders"


@fleet.command("key")
@click.argument("path", metavar="[FILE]", required=False, type=click.Path(path_type=Path))
@click.option("--add", is_flag=True, help="Behind those in it: read by it, written by the first.")
def key(path: Path | None, add: bool) -> int:
    """Make a key that encrypts what goes through the server, in a file that only you can read."""
    from ralphloop.config.load import user_file
    from ralphloop.fleet.keys import make_key

    if path is None:
        own = user_file(dict(os.environ))
        if own is None:
            raise UsageError("there is no directory for your settings", "ralph fleet key FILE")
        path = own.parent / _KEY_FILE
    made, *others = make_key(path.expanduser().absolute(), add=add)
    reads = "".join(f", reads {it.id} as well" for it in others)
    output.emit_lines([f"{path}: writes with {made.id}{reads}"])
    output.note("Bring it to every machine in secret, and name it under [fleet] there and here:")
    output.note(f'    codec_key_file = "{path}"')
    return ExitCode.COMPLETE


@fleet.command("up")
@click.option("--port", type=_PORTS, default=_PORT, show_default=True, help="Of the server.")
@click.option("--workers", type=_WORKERS, default=2, show_default=True, help="On this machine.")
@click.option("--trust", "trusted", is_flag=True, help="Run what the repository's settings say.")
def up(port: int, workers: int, trusted: bool) -> int:
    """Start a server and workers on this machine, to try it; Ctrl+C ends all of them."""
    from ralphloop.fleet.up import start_all

    return asyncio.run(start_all(Path.cwd(), port, workers, trust="1" if trusted else ""))


@fleet.command("hand", hidden=True)
@click.option("--name", default="", help="What this machine is called.")
@click.option("--machine", "given", default="", help="All of it, as JSON; default: your settings.")
def hand(name: str, given: str) -> int:
    """Work off one order, whose ticket comes on standard input."""
    from ralphloop.fleet.hand import work_off_stdin
    from ralphloop.fleet.machine import Machine, machine_of

    env = dict(os.environ)
    machine = msgspec.json.decode(given, type=Machine) if given else machine_of(env, name)
    return asyncio.run(work_off_stdin(machine, env))


def _section(*, own: bool = False) -> "FleetSection":
    """The settings of this project, or only the person's own: their file and their environment."""
    from ralphloop.config.load import load_config, user_file
    from ralphloop.project import find_project

    env = dict(os.environ)
    file = user_file(env)
    root = find_project().root if not own else file.parent if file else Path("/")
    return load_config(root, env=env).config.fleet


def _server(given: str | None, section: "FleetSection") -> str:
    server = given or section.server
    if not server:
        raise UsageError("which server?", "--server HOST:PORT, or server under [fleet]")
    if server.startswith("ssh:"):
        raise UsageError(
            "machines that are reached by ssh have no server to ask", "ralph status shows the run"
        )
    return server


async def _connect(server: str, section: "FleetSection") -> "Client":
    try:
        from ralphloop.fleet.temporal import connect
    except ImportError:
        raise UsageError("a fleet with a server needs Temporal's library", _INSTALL) from None
    return await connect(server, section, dict(os.environ))


async def _seats(server: str, section: "FleetSection", repository: str | None) -> "list[Seat]":
    client = await _connect(server, section)
    from ralphloop.fleet.run_in_fleet import repository_name
    from ralphloop.fleet.temporal import queue_of, seats_at
    from ralphloop.project import find_project
    from ralphloop.repo.work_tree import Repository

    if repository is None:
        repository = repository_name(Repository.open(find_project().root), section)
    return await seats_at(client, queue_of(repository), with_work=True)


async def _drain(name: str, server: str, section: "FleetSection") -> None:
    client = await _connect(server, section)
    from ralphloop.fleet.temporal import ask_to_drain

    await ask_to_drain(client, name)


async def _serve(machine: "Machine", server: str, section: "FleetSection") -> None:
    client = await _connect(server, section)
    import signal

    from ralphloop.fleet.worker import MachineWorker, installed_agents
    from ralphloop.proc.threads import StopSignal

    stop = StopSignal()
    loop = asyncio.get_running_loop()
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(one, stop.request, signal.Signals(one).name)
    ours = {section.api_key, section.codec_key}  # no agent has a use for them
    env = {name: value for name, value in os.environ.items() if name not in ours}
    names = ", ".join(machine.repos)
    output.note(f"{machine.name}: {counted(machine.slots, 'slot')} for {names} at {server}")
    await MachineWorker(client, machine, env, output.note).serve(stop, installed_agents(env))
