"""The one way to run a command: bounded time, bounded output, ended with everything it started.

Unlike `subprocess.run` it does not wait for a pipe that a background child (a git hook's daemon)
keeps open, and a deadline ends the whole tree, gently first so that git removes its locks.

`ourselves` starts this very program again: Python looks for modules in the user's repository first,
and one with a `ralphloop/` may be a trap.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import IO

import msgspec

from ralphloop.proc.process_table import MARK_VARIABLE, OF_CHECKS, OF_SETUP

MAX_OUTPUT = 256 * 1024 * 1024
MAX_ERRORS = 64 * 1024
_CHUNK = 1024 * 1024
_POLL_S = 0.5
_LOOK_S = 0.02

# Commands of ours that run now, and which of them are checks: agents beside them are looked at by
# other threads, and must not take them, or their exit codes, for their own.
commands: dict[int, bool] = {}
guard = threading.RLock()


class Output(Enum):
    ANSWER = "answer"  # all of it, errors apart; too much is an error (git)
    TOGETHER = "together"  # the same, with the errors in between
    TAIL = "tail"  # a story: the end of both, and nothing of the command is left running (checks)
    NOTHING = "nothing"  # and it stays in our session, as it may run beside an agent


class CommandEnd(msgspec.Struct, frozen=True):
    returncode: int
    stdout: bytes
    stderr: bytes = b""
    timed_out: bool = False
    overflowed: bool = False  # it printed more than allowed and was stopped
    stopped: bool = False  # the caller wanted no more of it
    given_s: float = 0.0  # the time it had

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


def marked(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of what may outlive us if we are killed, so that a successor can end it."""
    kept = os.environ if env is None else env
    if kept.get(MARK_VARIABLE) == OF_SETUP.format(os.getpid()):
        return dict(kept)
    return {**kept, MARK_VARIABLE: OF_CHECKS.format(os.getpid())}


def marked_as_setup() -> dict[str, str]:
    """The same for what may serve a lane until we end, on purpose."""
    return {**os.environ, MARK_VARIABLE: OF_SETUP.format(os.getpid())}


def run_command(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout_s: float = 60.0,
    output: Output = Output.ANSWER,
    keep: int = MAX_OUTPUT,
    stop: Callable[[], bool] = lambda: False,
) -> CommandEnd:
    """Run a command to its end, its deadline or its output limit, whichever comes first."""
    silent = output is Output.NOTHING
    only_tail = output is Output.TAIL
    with guard:
        process = spawn(
            argv,
            cwd=cwd,
            env=marked(env) if only_tail else env,
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if silent else subprocess.PIPE,
            stderr=subprocess.PIPE if output is Output.ANSWER else subprocess.STDOUT,
            own_session=not silent,
        )
        commands[process.pid] = only_tail
    talk = _Conversation(
        process=process,
        pending=memoryview(stdin),
        deadline=time.monotonic() + timeout_s,
        most=keep,
        stop=stop,
        only_tail=only_tail,
    )
    try:
        with process:
            try:
                talk.hold()
            finally:
                if process.poll() is None:
                    from ralphloop.proc.tree import ASKED_ONCE, ProcessTree

                    # A sandbox (`proc.sandbox`) ends with its program.
                    boxed = argv[0].endswith("/bwrap")
                    ProcessTree(process.pid, "", boxed=boxed).stop(ASKED_ONCE)
                    _kill_group(process.pid)  # last: its number is taken till then
    finally:
        with guard:
            commands.pop(process.pid, None)
        if only_tail:
            _kill_group(process.pid)  # what stayed behind after a normal exit
    return CommandEnd(
        process.returncode,
        stdout=bytes(talk.out[-keep:] if only_tail else talk.out),
        stderr=bytes(talk.err),
        timed_out=talk.timed_out,
        overflowed=talk.overflowed,
        stopped=talk.stopped,
        given_s=timeout_s,
    )


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


class _Conversation(msgspec.Struct):
    process: subprocess.Popen[bytes]
    pending: memoryview  # of what it is told
    deadline: float
    most: int
    stop: Callable[[], bool]
    only_tail: bool
    out: bytearray = msgspec.field(default_factory=bytearray)
    err: bytearray = msgspec.field(default_factory=bytearray)
    timed_out: bool = False
    overflowed: bool = False
    stopped: bool = False

    def hold(self) -> None:
        """Talk until the process has ended, its time is up, or enough was said."""
        process = self.process
        with selectors.DefaultSelector() as selector, exit_of(process.pid) as its_exit:
            for source in (process.stdout, process.stderr, its_exit):
                if source is not None:
                    selector.register(source, selectors.EVENT_READ)
            if process.stdin is not None:
                os.set_blocking(process.stdin.fileno(), False)
                selector.register(process.stdin, selectors.EVENT_WRITE)
            while selector.get_map():
                if self._is_over():
                    return
                ready = self._ready(selector)
                if ready is None:
                    return
                for key in ready:
                    if not self._serve(key):
                        selector.unregister(key.fileobj)
        while process.poll() is None and not self._is_over():
            time.sleep(_LOOK_S)  # no such descriptor on this system: look now and then

    def _ready(self, selector: selectors.BaseSelector) -> list[selectors.SelectorKey] | None:
        """What can be read or written now; None: it has ended, a stray child holds the pipes."""
        left = self.deadline - time.monotonic()
        ready = selector.select(max(0.0, min(left, _POLL_S)))
        if not ready and self.process.poll() is not None:
            # It may have said something between the look at the pipes and its end.
            ready = selector.select(0)
            if not ready:
                return None
        return [key for key, _ in ready]

    def _is_over(self) -> bool:
        self.timed_out = time.monotonic() >= self.deadline
        self.stopped = self.stop()
        return self.timed_out or self.stopped or self.overflowed

    def _serve(self, key: selectors.SelectorKey) -> bool:
        """Read or write what is ready; False where that was the last of it."""
        process = self.process
        if key.fileobj is process.stdin:
            try:
                self.pending = self.pending[os.write(key.fd, self.pending[:_CHUNK]) :]
            except BlockingIOError:
                return True
            except BrokenPipeError:
                self.pending = memoryview(b"")
            if not self.pending:
                process.stdin.close()  # nothing is left, or nobody reads: the other side is told
            return bool(self.pending)
        if key.fileobj not in (process.stdout, process.stderr):
            return False  # it has exited
        chunk = os.read(key.fd, _CHUNK)
        if key.fileobj is process.stderr:
            self.err += chunk[: MAX_ERRORS - len(self.err)]
            return bool(chunk)
        self.out += chunk
        if not self.only_tail:
            self.overflowed = len(self.out) > self.most
        elif len(self.out) > 2 * self.most:
            del self.out[: -self.most]
        return bool(chunk)


@contextlib.contextmanager
def exit_of(pid: int) -> Iterator[int | None]:
    """A descriptor that can be read once a child has ended; None where there is no such thing."""
    try:
        descriptor = os.pidfd_open(pid)
    except (AttributeError, OSError):
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def ourselves(module: str = "ralphloop") -> tuple[str, ...]:
    """The command line that runs a module of ours, whatever the directory it runs in holds."""
    return sys.executable, "-P", "-m", module
