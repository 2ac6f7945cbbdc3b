"""A warm interpreter that becomes `ralph …` by forking, for tests alone; see `tests/starting.py`.

Interpreter, imports and regular expressions are most of what a short command costs.  This program
pays them once.  For each request it forks a process that takes over the given descriptors,
directory, environment and session and then runs the module as `python -P -m` would.  Nothing of
ours has run before the fork: modules are imported and patterns compiled, no more.

The process is handed on as an orphan: its first parent ends at once, and whoever asked has made
itself the one who adopts orphans, so that it can wait for the process, signal it and account for
it like for every child.  It begins only when that has happened.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import signal
import socket
import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

_KILLING = Path(__file__).parent / "killing" / "sitecustomize.py"
_LEAVE_OUT = ("ralphloop.ui.monitor", "ralphloop.cli.monitor", "ralphloop.agents.scripted_main")


def warm_up() -> None:
    """Import everything of ours but the screens, and compile the patterns."""
    import ralphloop

    for name in ("jinja2.sandbox", "rich.console"):
        importlib.import_module(name)
    for module in pkgutil.walk_packages(ralphloop.__path__, "ralphloop."):
        if not module.name.endswith("__main__") and not module.name.startswith(_LEAVE_OUT):
            importlib.import_module(module.name)
    from ralphloop.text.plain import LazyRegex

    for thing in gc.get_objects():
        if type(thing) is LazyRegex:
            thing.search("")
    gc.collect()
    gc.freeze()


def serve(asked: socket.socket) -> NoReturn:
    """Fork for every request until nobody asks any more."""
    while True:
        head, descriptors, _, _ = socket.recv_fds(asked, 8, 3)
        if len(head) < 8:
            sys.exit(0)
        request = json.loads(_exactly(asked, struct.unpack("!Q", head)[0]))
        pid = _orphan(request, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        asked.sendall(struct.pack("!Q", pid))


def _exactly(asked: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        chunk = asked.recv(size - len(received))
        if not chunk:
            sys.exit(0)
        received += chunk
    return bytes(received)


def _orphan(request: dict[str, Any], descriptors: list[int]) -> int:
    """The pid of a process without a parent of ours, which is about to do what was asked."""
    told, tell = os.pipe()
    go, say_go = os.pipe()
    between = os.fork()
    if not between:
        child = os.fork()
        if child:
            os.write(tell, struct.pack("!Q", child))
            os._exit(0)
        os.close(say_go)
        os.read(go, 1)
        _become(request, descriptors)
    os.waitpid(between, 0)
    pid: int = struct.unpack("!Q", os.read(told, 8))[0]
    os.write(say_go, b"!")
    for descriptor in (told, tell, go, say_go):
        os.close(descriptor)
    return pid


def _become(request: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """Be the process that was asked for, to its end."""
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        os.closerange(3, 4096)
        if request["session"]:
            os.setsid()
        elif request["group"] is not None:
            os.setpgid(0, request["group"])
        os.chdir(request["cwd"])
        _take_environment(request["env"])
        _take_streams()
        if "RALPH_KILL_AT" in os.environ:
            runpy.run_path(str(_KILLING))
        sys.argv = [request["module"], *request["arguments"]]
        _run(request["module"])
    finally:
        os._exit(70)


def _take_environment(wanted: dict[str, str]) -> None:
    """Have these variables, also for those who look from outside (/proc/…/environ)."""
    os.environ.clear()  # from here on the C library has copies of its own
    os.environ.update(wanted)
    time.tzset()
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    start, end = int(fields[47]), int(fields[48])
    block = b"".join(os.fsencode(f"{k}={v}") + b"\0" for k, v in wanted.items())[: end - start]
    ctypes.memmove(start, block.ljust(end - start, b"\0"), end - start)


def _take_streams() -> None:
    """New streams like those an interpreter starts with: the old ones may know the old files."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        like: io.TextIOWrapper = getattr(sys, f"__{name}__")
        raw: BinaryIO = open(number, "wb" if number else "rb", closefd=False)  # noqa: SIM115
        stream = io.TextIOWrapper(
            raw,
            encoding=like.encoding,
            errors=like.errors,
            newline="\n" if number else None,
            line_buffering=number == 2 or os.isatty(number),
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _run(module: str) -> NoReturn:
    """Run the module and end as an interpreter does, without taking everything apart."""
    code: int | str | None = None
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ending:
        code = ending.code
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        code = 120
    sys.stderr.flush()
    os._exit(code or 0)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asked decides when it is over
    warm_up()
    serve(socket.socket(fileno=int(sys.argv[1])))
