"""Run one short-lived command with bounded time and bounded output.

Unlike `subprocess.run` it does not wait for a pipe that a background child of the command (a
daemon started by a git hook) keeps open, it reads no more than it was told to, and a timeout ends
the command's whole process group, gently first so that git removes its own lock files.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

MAX_OUTPUT = 256 * 1024 * 1024
MAX_ERRORS = 64 * 1024
_CHUNK = 1024 * 1024
_PIPE_HELD_S = 0.5
_GENTLE_S = 3.0


class Ended(NamedTuple):
    """How a bounded command ended."""

    returncode: int
    stdout: bytes
    stderr: bytes
    timed_out: bool = False
    overflowed: bool = False  # it printed more than allowed and was stopped


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
    with subprocess.Popen(
        argv,
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # no terminal to prompt on, and a group of its own to stop
    ) as process:
        talk = _Conversation(process, stdin, time.monotonic() + timeout_s, max_output)
        try:
            talk.hold()
        finally:
            if process.poll() is None:
                _end_group(process)
    return Ended(
        process.returncode,
        bytes(talk.out),
        bytes(talk.err),
        talk.timed_out,
        talk.overflowed,
    )


class _Conversation:
    """Feeds stdin and collects both outputs of a process, single-threaded."""

    def __init__(
        self, process: subprocess.Popen[bytes], stdin: bytes, deadline: float, max_output: int
    ) -> None:
        self.out, self.err = bytearray(), bytearray()
        self.timed_out = self.overflowed = False
        self._process = process
        self._pending = memoryview(stdin)
        self._deadline = deadline
        self._max_output = max_output

    def hold(self) -> None:
        """Read and write until the process has said everything, or may say no more."""
        with selectors.DefaultSelector() as selector:
            self._register(selector)
            while selector.get_map() and not self.overflowed:
                left = self._deadline - time.monotonic()
                if left <= 0:
                    self.timed_out = True
                    return
                ready = selector.select(min(left, _PIPE_HELD_S))
                if not ready and self._process.poll() is not None:
                    return  # ended; only a stray child still holds the pipes
                for key, _ in ready:
                    self._serve(selector, key)
        if not self.overflowed:
            self._await_exit()

    def _register(self, selector: selectors.BaseSelector) -> None:
        process = self._process
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None  # noqa: S101 - for the type checker: both are PIPE
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
            self.out += chunk
            self.overflowed = len(self.out) > self._max_output
        elif len(self.err) < MAX_ERRORS:
            self.err += chunk[: MAX_ERRORS - len(self.err)]

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

    def _await_exit(self) -> None:
        try:
            self._process.wait(max(self._deadline - time.monotonic(), 0.001))
        except subprocess.TimeoutExpired:
            self.timed_out = True


def _close(selector: selectors.BaseSelector, pipe: IO[bytes]) -> None:
    selector.unregister(pipe)
    with contextlib.suppress(BrokenPipeError):
        pipe.close()


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Ask the whole group to end, then make it."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, sign)
        try:
            process.wait(_GENTLE_S)
        except subprocess.TimeoutExpired:
            continue
        return
