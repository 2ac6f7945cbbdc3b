"""Stopping a tree of processes: ask, ask firmly, end it.

SIGINT first, because agents then still print their result and its cost; then SIGTERM, then
SIGKILL, each to every process of the tree and to those that turn up meanwhile.  The procedure is
a generator that yields how long to sleep, so that the running supervisor (asyncio) and the
recovery after a crash (plain calls) share one piece of logic.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence

from ralphloop.proc.table import (
    Proc,
    carries_mark,
    find_process,
    name_of,
    process_table,
    send_signal,
)
from ralphloop.proc.tree import ancestors, with_descendants

Stages = Sequence[tuple[signal.Signals, float]]

_KILL_PATIENCE_S = 5.0
# Boot time moves when the clock is set; start times of the same process may differ by this much.
_START_TIME_TOLERANCE_S = 2.0


def gentle(grace_s: float, first_s: float | None = None) -> Stages:
    """SIGINT, SIGTERM, SIGKILL with these waits in between."""
    return (
        (signal.SIGINT, grace_s if first_s is None else first_s),
        (signal.SIGTERM, grace_s),
        (signal.SIGKILL, _KILL_PATIENCE_S),
    )


AT_ONCE: Stages = ((signal.SIGKILL, _KILL_PATIENCE_S),)


def stopping(
    find: Callable[[], Sequence[Proc]],
    stages: Stages,
    hurry: Callable[[], bool] = lambda: False,
) -> Iterator[float]:
    """Signal harder and harder until `find` finds nobody; yields seconds to sleep."""
    for number, patience in stages:
        deadline = time.monotonic() + patience
        told: set[tuple[int, float]] = set()
        pause = 0.01
        while members := find():
            _tell(members, number, told)
            hurried = number != signal.SIGKILL and hurry()
            if hurried or time.monotonic() >= deadline:
                break
            yield pause
            pause = min(pause * 1.5, 0.1)
        else:
            return


def _tell(members: Sequence[Proc], number: signal.Signals, told: set[tuple[int, float]]) -> None:
    for proc in members:
        if number == signal.SIGKILL or proc.identity not in told:
            told.add(proc.identity)
            send_signal(proc, number)
            if number == signal.SIGTERM:
                # A suspended process would sleep through the request.
                send_signal(proc, signal.SIGCONT)


async def run_stopping(steps: Iterator[float]) -> None:
    """Drive `stopping` beside other work."""
    import asyncio

    for pause in steps:
        await asyncio.sleep(pause)


def run_stopping_blocking(steps: Iterator[float]) -> None:
    """Drive `stopping` where nothing else runs."""
    for pause in steps:
        time.sleep(pause)


def end_tree(pid: int, grace_s: float) -> None:
    """End a command of ours with all it started: asked once, then killed."""
    root = find_process(pid)
    left = _LeftBehind(pid, root.started if root else None, "")
    stages = ((signal.SIGTERM, grace_s), *AT_ONCE)
    run_stopping_blocking(stopping(left.members, stages))


def stop_tree(
    pid: int | None, create_time: float | None, mark: str, *, grace_s: float = 5.0
) -> tuple[str, ...]:
    """Stop what a supervisor that died has left running; returns what was found, by name."""
    left = _LeftBehind(pid, create_time, mark)
    names = tuple(f"{name_of(proc.pid)} (pid {proc.pid})" for proc in left.members())
    run_stopping_blocking(stopping(left.members, gentle(grace_s)))
    return names


class _LeftBehind:
    """The tree of a command, or of an agent whose supervisor is gone.

    Its root is known by its pid together with its start time, everything else by the mark, by
    descent and by the root's session.  A pid that was recycled since is nobody we know.
    """

    def __init__(self, pid: int | None, create_time: float | None, mark: str) -> None:
        self._pid = pid
        self._since = create_time
        self._mark = mark
        self._known: dict[int, float] = {}

    def members(self) -> list[Proc]:
        table = process_table()
        root = table.get(self._pid or 0)
        # While a session has members its leader's pid is not given away again.
        session_is_his = root is None or self._is_root(root)
        seeds = [p for p in table.values() if self._is_his(p, session_is_his=session_is_his)]
        spared = ancestors(table)
        family = with_descendants(seeds, table).values()
        living = [p for p in family if p.alive and p.pid not in spared]
        self._known.update((p.pid, p.started) for p in living)
        return living

    def _is_his(self, proc: Proc, *, session_is_his: bool) -> bool:
        if self._known.get(proc.pid) == proc.started or self._is_root(proc):
            return True
        if self._since is not None and proc.started < self._since - _START_TIME_TOLERANCE_S:
            return False  # older than the agent: whatever it is, the agent did not start it
        in_session = self._since is not None and session_is_his and proc.session == self._pid
        return in_session or (bool(self._mark) and carries_mark(proc.pid, self._mark))

    def _is_root(self, proc: Proc) -> bool:
        if self._since is None or proc.pid != self._pid:
            return False
        return abs(proc.started - self._since) <= _START_TIME_TOLERANCE_S
