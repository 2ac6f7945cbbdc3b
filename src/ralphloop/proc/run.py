"""Run one command with bounded time and bounded output.

Unlike `subprocess.run` it does not wait for a pipe that a background child of the command (a
daemon started by a git hook) keeps open, it keeps no more output than it was told to, and a
deadline ends the command's whole process group, gently first so that git removes its lock files.

`run_bounded` is for commands whose output is an answer: too much of it is an error.  `run_to_tail`
is for commands whose output is a story: its end is kept, and nothing of the group is left running.
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
from typing import IO, TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    import psutil

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


def run_bounded(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: bytes = b"",
    timeout_s: float = 60.0,
    max_output: int = MAX_OUTPUT,
) -> Ended:
    """Run a command to its end, its deadline or its output limit, whichever comes first."""
    process = _started(argv, cwd, env, stdin=bool(stdin), stderr=subprocess.PIPE)
    talk = _Conversation(process, time.monotonic() + timeout_s, max_output, stdin=stdin)
    return talk.ended()


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
    process = _started(argv, cwd, env, stdin=False, stderr=subprocess.STDOUT)
    talk = _Conversation(process, time.monotonic() + timeout_s, keep, only_tail=True, stop=stop)
    try:
        return talk.ended()
    finally:
        _signal_group(process.pid, signal.SIGKILL)  # what stayed behind after a normal exit


def _started(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], *, stdin: bool, stderr: int
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        argv,
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        bufsize=0,
        start_new_session=True,  # no terminal to prompt on, and a group of its own to stop
    )


class _Conversation:
    """Feeds stdin and collects the outputs of a process, single-threaded."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        deadline: float,
        max_output: int,
        *,
        stdin: bytes = b"",
        only_tail: bool = False,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._process = process
        self._deadline = deadline
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
                    _end_tree(process)
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
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        return
    try:
        ended = select.poll()
        ended.register(descriptor, select.POLLIN)
        ended.poll(seconds * 1000)
    finally:
        os.close(descriptor)


def _end_tree(process: subprocess.Popen[bytes]) -> None:
    """Ask a process, its group and its descendants to end, then make them."""
    strays = _descendants(process.pid)
    for number in (signal.SIGTERM, signal.SIGKILL):
        _signal_group(process.pid, number)
        for stray in strays:
            _signal_stray(stray, number)
        try:
            process.wait(_GENTLE_S)
        except subprocess.TimeoutExpired:
            continue
        break
    for stray in strays:
        _signal_stray(stray, signal.SIGKILL)


def _descendants(pid: int) -> list[psutil.Process]:
    """Children that may have left the process group, remembered before their parent is gone."""
    import psutil

    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _signal_stray(stray: psutil.Process, number: int) -> None:
    import psutil

    # psutil compares start times, so that a recycled pid is never hit
    with contextlib.suppress(psutil.Error):
        stray.send_signal(number)


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _close(selector: selectors.BaseSelector, pipe: IO[bytes]) -> None:
    selector.unregister(pipe)
    with contextlib.suppress(BrokenPipeError):
        pipe.close()
