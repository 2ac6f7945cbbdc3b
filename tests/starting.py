"""How tests start the real command: as a process of its own, without paying each time for Python.

`Started` is a `Popen` and `run_to_end` is `subprocess.run`.  Where the command line is one of ours
(`ourselves()`), the process is forked from a warm interpreter (`tests/fork_server.py`) instead of
executed anew; everything else about it is the same: its own process, child of this one, with its
own descriptors, directory, environment, session and exit code, and it can be killed.

Executed as ever: what asks for more than the server understands, what starts Python differently
(other PYTHON… or locale variables), every start with RALPH_TEST_EXEC=1, and other systems than
Linux.  Tests of the start itself (imports, installation, detaching) do not come here at all.
"""

from __future__ import annotations

import ctypes
import inspect
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, AnyStr

from ralphloop.proc.run import ourselves

EXECUTE = bool(os.environ.get("RALPH_TEST_EXEC"))  # of the person: tests get none of it
_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37
_ROOM_FOR_ENVIRONMENTS = 48 * 1024
_OF_THE_INTERPRETER = ("PYTHON", "LC_", "LANG", "LD_")
_UNUSUAL = {
    "preexec_fn": None,
    "pass_fds": (),
    "executable": None,
    "shell": False,
    "gid": None,
    "gids": None,
    "uid": None,
    "umask": -1,
}


class Started(subprocess.Popen[AnyStr]):
    """A process of ours, forked where that is the same as executed."""

    def _execute_child(self, *given: Any, **named: Any) -> None:
        execute = super()._execute_child  # type: ignore[misc]
        asked = inspect.signature(execute).bind(*given, **named).arguments
        server = _server_for(asked)
        if server is None:
            execute(*given, **named)
            return
        self.pid = server.fork(asked)
        self._child_created = True
        pipes = "p2cread p2cwrite c2pread c2pwrite errread errwrite"
        self._close_pipe_fds(*(asked[name] for name in pipes.split()))  # type: ignore[attr-defined]


def run_to_end(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], given: bytes = b"", timeout: float
) -> subprocess.CompletedProcess[bytes]:
    """Run a command of ours with this on its stdin, and collect what it says."""
    pipe = subprocess.PIPE
    with Started[bytes](argv, cwd=cwd, env=env, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            out, err = process.communicate(given, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


def _server_for(asked: Mapping[str, Any]) -> _Server | None:
    """Who can fork this; nobody, where it is not the same as executing it."""
    if sys.platform != "linux" or EXECUTE:
        return None
    if tuple(asked["args"][:3]) != ourselves()[:3] or not Path(asked["cwd"] or ".").is_dir():
        return None
    if any(asked.get(name, usual) != usual for name, usual in _UNUSUAL.items()):
        return None
    server = _server(os.getpid())
    env = os.environ if asked["env"] is None else asked["env"]
    return server if _of_the_interpreter(env) == server.starts_like else None


def _of_the_interpreter(env: Mapping[str, str]) -> dict[str, str]:
    """What Python itself reads; the server knows how to be killed without its path."""
    told = {name: env[name] for name in env if name.startswith(_OF_THE_INTERPRETER)}
    if "RALPH_KILL_AT" in env:
        told.pop("PYTHONPATH")
    return told


class _Server:
    """The warm interpreter of this process."""

    def __init__(self) -> None:
        self.starts_like = _of_the_interpreter(os.environ)
        ours, theirs = socket.socketpair()
        self._asking, self._lock = ours, threading.Lock()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-P", str(Path(__file__).with_name("fork_server.py")),
                 str(theirs.fileno())],
                env={**os.environ, "ROOM": "x" * _ROOM_FOR_ENVIRONMENTS},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )  # fmt: skip

    def fork(self, asked: Mapping[str, Any]) -> int:
        """The pid of a child of ours that does what was asked."""
        env = os.environ if asked["env"] is None else asked["env"]
        request = json.dumps(
            {
                "module": asked["args"][3],
                "arguments": list(asked["args"][4:]),
                "cwd": str(Path(asked["cwd"] or ".").absolute()),
                "env": dict(env),
                "session": asked["start_new_session"],
                "group": None if asked["process_group"] == -1 else asked["process_group"],
            },
            default=os.fspath,
        ).encode()
        with self._lock, _adopting_orphans():
            head = struct.pack("!Q", len(request))
            socket.send_fds(self._asking, [head], _descriptors(asked))
            self._asking.sendall(request)
            pid: int = struct.unpack("!Q", self._asking.recv(8, socket.MSG_WAITALL))[0]
        return pid

    def end(self) -> None:
        """Nobody asks any more."""
        self._asking.close()
        self.process.wait()


def _descriptors(asked: Mapping[str, Any]) -> list[int]:
    """What stdin, stdout and stderr are to be; ours, where nothing was asked."""
    wanted = (asked["p2cread"], asked["c2pwrite"], asked["errwrite"])
    return [number if given == -1 else given for number, given in enumerate(wanted)]


@contextmanager
def _adopting_orphans() -> Iterator[None]:
    """For a moment, orphans of our descendants become our children."""
    libc, before = ctypes.CDLL(None, use_errno=True), ctypes.c_int()
    libc.prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, before.value, 0, 0, 0)


@lru_cache(maxsize=1)
def _server(pid: int) -> _Server:
    """The server of this process; `pid` tells it from a process forked off it."""
    return _Server()


def end_server() -> None:
    """At the end of all tests."""
    if _server.cache_info().currsize:
        _server(os.getpid()).end()
        _server.cache_clear()
