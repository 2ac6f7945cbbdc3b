"""The one way to run a command: bounded time, bounded output, ended with everything it started.

Unlike `subprocess.run` it does not wait for a pipe that a background child of the command (a
daemon started by a git hook) keeps open, it keeps no more output than it was told to, and a
deadline ends the command's whole tree, gently first so that git removes its lock files.

    run_bounded    its output is an answer: too much of it is an error (git)
    run_to_tail    its output is a story: the end is kept, nothing of it is left running (checks)
    run_silent     nothing it says is wanted (notifications)
    run_in_front   it has our terminal, and talks to the person there
    spawn          it runs on while we do something else

`child` is the same for agents, whose output is read while they work.
"""

from __future__ import annotations

import contextlib
import os
import select
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

import msgspec

MAX_OUTPUT = 256 * 1024 * 1024
MAX_ERRORS = 64 * 1024
_CHUNK = 1024 * 1024
_POLL_S = 0.5
_GENTLE_S = 3.0


class Ended(msgspec.Struct, frozen=True):
    """How a bounded command ended."""

    returncode: int
    stdout: bytes
    stderr: bytes = b""
    timed_out: bool = False
    overflowed: bool = False  # it printed more than allowed and was stopped
    stopped: bool = False  # the caller wanted no more of it

    @property
    def said(self) -> str:
        """What it complained of, or else answered."""
        return (self.stderr or self.stdout).decode("utf-8", "replace").strip()


def spawn(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: int = subprocess.DEVNULL,
    stdout: int | IO[bytes] = subprocess.DEVNULL,
    stderr: int | IO[bytes] = subprocess.DEVNULL,
    own_session: bool = True,
) -> subprocess.Popen[bytes]:
    """Start a program without a terminal to prompt on, in a group of its own that can be ended.

    What runs beside an agent stays in our session: whoever has left it counts as the agent's.
    """
    return subprocess.Popen(
        argv,
        cwd=cwd,
        env=env,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        bufsize=0,
        start_new_session=own_session,
        process_group=None if own_session else 0,
    )


def run_bounded(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout_s: float = 60.0,
    max_output: int = MAX_OUTPUT,
    merged: bool = False,
) -> Ended:
    """Run a command to its end, its deadline or its output limit, whichever comes first."""
    errors = subprocess.STDOUT if merged else subprocess.PIPE
    process = spawn(argv, cwd=cwd, env=env, stdin=_in(stdin), stdout=subprocess.PIPE, stderr=errors)
    return _Conversation(process, timeout_s, max_output, stdin=stdin).ended()


def run_to_tail(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float,
    keep: int,
    stop: Callable[[], bool],
) -> Ended:
    """Run a command, keep the end of both outputs together, and leave nothing of it running."""
    process = spawn(argv, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        return _Conversation(process, timeout_s, keep, only_tail=True, stop=stop).ended()
    finally:
        _kill_group(process.pid)  # what stayed behind after a normal exit


def run_silent(argv: Sequence[str], *, cwd: Path | None, stdin: bytes, timeout_s: float) -> Ended:
    """Run a command whose words nobody wants, in our session."""
    process = spawn(argv, cwd=cwd, stdin=_in(stdin), own_session=False)
    return _Conversation(process, timeout_s, 0, stdin=stdin).ended()


def run_in_front(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    given: bytes | None = None,
    timeout_s: float | None = None,
) -> int:
    """Run a program in our terminal and among our processes; its exit code."""
    try:
        done = subprocess.run(argv, cwd=cwd, env=env, input=given, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        return -signal.SIGKILL
    return done.returncode


def _in(stdin: bytes) -> int:
    return subprocess.PIPE if stdin else subprocess.DEVNULL


class _Conversation:
    """Feeds stdin and collects the outputs of a process, single-threaded."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        timeout_s: float,
        max_output: int,
        *,
        stdin: bytes = b"",
        only_tail: bool = False,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._process = process
        self._deadline = time.monotonic() + timeout_s
        self._max_output = max_output
        self._pending = memoryview(stdin)
        self._only_tail = only_tail
        self._stop = stop
        self._out, self._err = bytearray(), bytearray()
        self._timed_out = self._overflowed = self._stopped = False

    def ended(self) -> Ended:
        """Hold the conversation to its end, by force if it has to be."""
        with self._process as process:
            try:
                self._hold()
            finally:
                if process.poll() is None:
                    _end_tree(process.pid)
        out = self._out[-self._max_output :] if self._only_tail else self._out
        return Ended(
            process.returncode,
            bytes(out),
            bytes(self._err),
            self._timed_out,
            self._overflowed,
            self._stopped,
        )

    def _hold(self) -> None:
        with selectors.DefaultSelector() as selector:
            self._register(selector)
            while selector.get_map():
                if self._is_over():
                    return
                ready = selector.select(max(0.0, min(self._left(), _POLL_S)))
                if not ready and self._process.poll() is not None:
                    return  # ended; only a stray child still holds the pipes
                for key, _ in ready:
                    self._serve(selector, key)
        while self._process.poll() is None and not self._is_over():
            _wait(self._process, max(0.001, min(self._left(), _POLL_S)))

    def _is_over(self) -> bool:
        self._timed_out = self._left() <= 0
        self._stopped = self._stop()
        return self._timed_out or self._stopped or self._overflowed

    def _left(self) -> float:
        return self._deadline - time.monotonic()

    def _register(self, selector: selectors.BaseSelector) -> None:
        process = self._process
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                selector.register(pipe, selectors.EVENT_READ)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            selector.register(process.stdin, selectors.EVENT_WRITE)

    def _serve(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        if key.fileobj is self._process.stdin:
            if not self._feed(key.fd):
                _close(selector, self._process.stdin)
            return
        chunk = os.read(key.fd, _CHUNK)
        if not chunk:
            selector.unregister(key.fileobj)
        elif key.fileobj is self._process.stdout:
            self._keep(chunk)
        elif len(self._err) < MAX_ERRORS:
            self._err += chunk[: MAX_ERRORS - len(self._err)]

    def _keep(self, chunk: bytes) -> None:
        self._out += chunk
        if not self._only_tail:
            self._overflowed = len(self._out) > self._max_output
        elif len(self._out) > 2 * self._max_output:
            del self._out[: -self._max_output]

    def _feed(self, descriptor: int) -> bool:
        """Write what fits; False when nothing is left or nobody reads."""
        try:
            written = os.write(descriptor, self._pending[:_CHUNK])
        except BlockingIOError:
            return True
        except BrokenPipeError:
            return False
        self._pending = self._pending[written:]
        return bool(self._pending)


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Wait for a process to end, at most so long; `Popen.wait` would sleep and look, and sleep."""
    descriptor = pidfd(process.pid)
    if descriptor is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        return
    try:
        ended = select.poll()
        ended.register(descriptor, select.POLLIN)
        ended.poll(seconds * 1000)
    finally:
        os.close(descriptor)


def pidfd(pid: int) -> int | None:
    """A descriptor that can be read once a child has ended; None where there is no such thing."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _end_tree(pid: int) -> None:
    """End a child of ours with all it started, the group last: its number is taken till then."""
    from ralphloop.proc.stopping import end_tree

    end_tree(pid, _GENTLE_S)
    _kill_group(pid)


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _close(selector: selectors.BaseSelector, pipe: IO[bytes]) -> None:
    selector.unregister(pipe)
    with contextlib.suppress(BrokenPipeError):
        pipe.close()
