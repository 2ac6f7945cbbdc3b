"""What the operating system knows of processes, as plain values.

On Linux `/proc` is read directly: one sweep over all processes costs two milliseconds, and it is
taken at the end of every iteration.  Elsewhere psutil answers the same questions.

A pid alone names nobody: it is recycled.  A process is the pair of pid and start time, and no
signal is sent before both have been compared.
"""

from __future__ import annotations

import os
import signal
import sys
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

MARK_VARIABLE = "RALPH_AGENT_MARK"

_PROC = Path("/proc")
_HAS_PROC = sys.platform == "linux"
_LONGEST_NAME = 120


class Proc(NamedTuple):
    """One process at one moment."""

    pid: int
    parent: int
    session: int
    started: float  # epoch seconds
    alive: bool  # False: a zombie that waits for its parent
    cpu_s: float  # its own and that of its finished children

    @property
    def identity(self) -> tuple[int, float]:
        return self.pid, self.started


def process_table() -> dict[int, Proc]:
    """All processes of this machine."""
    found = map(find_process, _linux_pids()) if _HAS_PROC else map(_by_psutil, _psutil_pids())
    return {proc.pid: proc for proc in found if proc}


def find_process(pid: int) -> Proc | None:
    """The process that has this pid now."""
    return _by_proc(pid) if _HAS_PROC else _by_psutil(pid)


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
        now = _listed_children()
        if now is None or now == before:
            return now
        before = now
    return None


def send_signal(proc: Proc, number: signal.Signals) -> None:
    """Signal this process, unless it has gone and its pid belongs to another one."""
    current = find_process(proc.pid)
    if current is None or current.started != proc.started or not current.alive:
        return
    try:
        os.kill(proc.pid, number)
    except (ProcessLookupError, PermissionError):
        # Gone in this moment, or not ours to signal: the caller looks again and reports it.
        pass


def reap(pid: int) -> None:
    """Collect one dead child by its pid; never any child, which would steal exit codes."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass  # collected already


def carries_mark(pid: int, mark: str) -> bool:
    """True where the process was started with this mark in its environment."""
    return mark_on(pid) == mark


def mark_on(pid: int) -> str:
    """The mark in the environment the process was started with; empty where there is none."""
    beginning = f"{MARK_VARIABLE}="
    if not _HAS_PROC:
        entries = _psutil_environment(pid)
    else:
        try:
            environment = (_PROC / str(pid) / "environ").read_bytes()
        except OSError:
            return ""  # gone, or somebody else's
        entries = [os.fsdecode(e) for e in environment.split(b"\0") if e[:6] == b"RALPH_"]
    return next((e.removeprefix(beginning) for e in entries if e.startswith(beginning)), "")


def name_of(pid: int) -> str:
    """The command line of a process as one bounded, redacted line."""
    from ralphloop.redaction import redact

    try:
        if _HAS_PROC:
            words = (_PROC / str(pid) / "cmdline").read_bytes()[:4096].split(b"\0")
            line = b" ".join(words).decode("utf-8", "replace")
        else:
            line = _psutil_name(pid)
    except OSError:
        line = ""
    shown = "".join(c if c.isprintable() else " " for c in redact(line)).strip()
    return shown if len(shown) <= _LONGEST_NAME else shown[: _LONGEST_NAME - 1] + "…"


# --- Linux -----------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _boot_time() -> float:
    for line in (_PROC / "stat").read_text().splitlines():
        if line.startswith("btime "):
            return float(line.split()[1])
    return 0.0


@lru_cache(maxsize=1)
def _ticks() -> float:
    return float(os.sysconf("SC_CLK_TCK"))


def _linux_pids() -> list[int]:
    return [int(entry) for entry in os.listdir(_PROC) if entry.isdigit()]  # noqa: PTH208 hot path


def _by_proc(pid: int) -> Proc | None:
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
        started=_boot_time() + int(fields[19]) / _ticks(),
        alive=fields[0] not in {b"Z", b"X"},
        cpu_s=sum(map(int, fields[11:15])) / _ticks(),
    )


def _listed_children() -> list[int] | None:
    pids: list[int] = []
    try:
        for thread in os.listdir("/proc/self/task"):  # noqa: PTH208 hot path
            pids += map(int, _whole(f"/proc/self/task/{thread}/children").split())
    except OSError:
        return None
    return sorted(pids)


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


# --- elsewhere -------------------------------------------------------------------------------


def _psutil_pids() -> list[int]:
    import psutil

    return psutil.pids()


def _by_psutil(pid: int) -> Proc | None:
    import psutil

    try:
        process = psutil.Process(pid)
        with process.oneshot():
            times = process.cpu_times()
            return Proc(
                pid=pid,
                parent=process.ppid(),
                session=os.getsid(pid),
                started=process.create_time(),
                alive=process.status() != psutil.STATUS_ZOMBIE,
                cpu_s=times.user + times.system,
            )
    except (psutil.Error, OSError, OverflowError, ValueError):
        return None


def _psutil_environment(pid: int) -> list[str]:
    import psutil

    try:
        return [f"{name}={value}" for name, value in psutil.Process(pid).environ().items()]
    except (psutil.Error, OSError):
        return []


def _psutil_name(pid: int) -> str:
    import psutil

    try:
        return " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:
        return ""
