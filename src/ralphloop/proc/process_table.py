"""What the operating system knows of processes, as plain values.

On Linux `/proc` is read directly: a sweep over all processes, at the end of every iteration, costs
two milliseconds.  A pid alone names nobody: it is recycled.  A process is the pair of pid and start
time, and no signal is sent before both have been compared.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    import psutil

MARK_VARIABLE = "RALPH_AGENT_MARK"
OF_CHECKS = "checks/{}"  # the mark on what a supervisor of this pid runs itself
OF_SETUP = "setup/{}"  # and on what serves its lanes until it ends

_Answer = TypeVar("_Answer")
_HAS_PROC = sys.platform == "linux"
_LONGEST_NAME = 120
_TICKS = os.sysconf("SC_CLK_TCK")  # of a second, in which /proc counts


class ProcIdentity(NamedTuple):
    """By what a process is known: a pid alone is given to another one again."""

    pid: int
    started: float


class Proc(NamedTuple):
    pid: int
    parent: int
    session: int
    started: float  # epoch seconds
    alive: bool  # False: a zombie that waits for its parent
    cpu_s: float  # its own and that of its finished children

    @property
    def identity(self) -> ProcIdentity:
        return ProcIdentity(self.pid, self.started)


def process_table() -> dict[int, Proc]:
    """Every process there is, by its pid."""
    if _HAS_PROC:
        pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]  # noqa: PTH208 hot
    else:
        import psutil

        pids = psutil.pids()
    return {proc.pid: proc for proc in map(find_process, pids) if proc}


def find_process(pid: int) -> Proc | None:
    """What is known of a process now; None where it is gone."""
    if not _HAS_PROC:
        return _by_psutil(pid)
    try:
        line = _whole(f"/proc/{pid}/stat")
    except OSError:
        return None
    # The name may hold blanks and parentheses; everything after its last one is numbers.
    fields = line[line.rfind(b")") + 2 :].split()
    if len(fields) < 20:
        return None
    return Proc(
        pid=pid,
        parent=int(fields[1]),
        session=int(fields[3]),
        started=_boot_time() + int(fields[19]) / _TICKS,
        alive=fields[0] not in {b"Z", b"X"},
        cpu_s=sum(map(int, fields[11:15])) / _TICKS,
    )


def started_at(pid: int) -> float | None:
    """When a process began, in epoch seconds; None where it is gone."""
    proc = find_process(pid)
    return proc.started if proc else None


def children_of_this_process() -> list[int] | None:
    """Pids of our direct children, zombies included; None where the kernel does not list them.

    The list may skip an entry while another child exits, so it is read until two readings agree.
    """
    before: list[int] | None = None
    for _ in range(50):
        now: list[int] = []
        try:
            for thread in os.listdir("/proc/self/task"):  # noqa: PTH208 hot path
                now += map(int, _whole(f"/proc/self/task/{thread}/children").split())
        except OSError:
            return None
        now.sort()
        if now == before:
            return now
        before = now
    return None


def send_signal(proc: Proc, number: signal.Signals) -> None:
    """Signal this process, unless it has gone and its pid belongs to another one."""
    current = find_process(proc.pid)
    if current is None or current.started != proc.started or not current.alive:
        return
    # Gone in this moment, or not ours to signal: the caller looks again and reports it.
    with suppress(ProcessLookupError, PermissionError):
        os.kill(proc.pid, number)


def reap(pid: int) -> None:
    """Collect one dead child by its pid; never any child, which would steal exit codes."""
    with suppress(ChildProcessError):  # collected already
        os.waitpid(pid, os.WNOHANG)


def mark_on(pid: int) -> str:
    """The mark in the environment the process was started with; empty where there is none."""
    if not _HAS_PROC:
        return _asked(pid, lambda process: process.environ().get(MARK_VARIABLE)) or ""
    try:
        entries = _whole(f"/proc/{pid}/environ").split(b"\0")
    except OSError:
        return ""  # gone, or somebody else's
    beginning = f"{MARK_VARIABLE}=".encode()
    return next((os.fsdecode(e[len(beginning) :]) for e in entries if e.startswith(beginning)), "")


def name_of(pid: int) -> str:
    """The command line of a process as one bounded, redacted line."""
    from ralphloop.redaction import redact
    from ralphloop.text.plain import one_line

    line = " ".join(_asked(pid, lambda process: process.cmdline()) or ())[:4096]
    return one_line(redact(line.encode("utf-8", "replace").decode()), _LONGEST_NAME)


@lru_cache(maxsize=1)
def _boot_time() -> float:
    return float(_whole("/proc/stat").partition(b"\nbtime ")[2].split()[0])


def _whole(path: str) -> bytes:
    """A small file of the kernel's, without the buffers and questions of `open`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        content = b""
        while piece := os.read(descriptor, 4096):
            content += piece
        return content
    finally:
        os.close(descriptor)


def _by_psutil(pid: int) -> Proc | None:
    def described(process: psutil.Process) -> Proc:
        with process.oneshot():
            times = process.cpu_times()
            return Proc(
                pid=pid,
                parent=process.ppid(),
                session=os.getsid(pid),
                started=process.create_time(),
                alive=process.status() != "zombie",
                cpu_s=times.user + times.system,
            )

    return _asked(pid, described)


def _asked(pid: int, question: Callable[[psutil.Process], _Answer]) -> _Answer | None:
    """What psutil knows of a process; None where it is gone, or somebody else's."""
    import psutil

    try:
        return question(psutil.Process(pid))
    except (psutil.Error, OSError, OverflowError, ValueError):
        return None
