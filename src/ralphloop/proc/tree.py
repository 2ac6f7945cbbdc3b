"""An agent is a tree of processes: who belongs to it, is anybody left, and how it is ended.

Agents start tools in their own sessions, launchers fork and exit, and a daemon forks twice and
clears its environment.  On Linux the supervisor becomes a child subreaper: whoever loses its parent
becomes our direct child.  What we started ourselves shares our session, so *a child of ours in a
foreign session that was not there before* is the agent's, without exception.  Elsewhere, and for
what a supervisor that died has left, everybody seen is remembered, and at the end those who carry
our mark in their environment are added.

Dead orphans are collected one by one; `waitpid(-1)` would take the exit codes of other people's
children.  SIGINT comes first, because agents then still print their result and its cost.
"""

import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from ralphloop.proc.process_table import (
    OF_SETUP,
    Proc,
    ProcIdentity,
    children_of_this_process,
    find_process,
    mark_on,
    name_of,
    process_table,
    reap,
    send_signal,
    started_at,
)
from ralphloop.proc.run import commands, guard


class Stage(NamedTuple):
    """What a tree is told, and how long it may take to obey."""

    signal: signal.Signals
    patience_s: float


Stages = Sequence[Stage]

_KILL_PATIENCE_S = 5.0
# Boot time moves when the clock is set; start times of the same process may differ by this much.
_START_TIME_TOLERANCE_S = 2.0
_MOST_NAMES = 20
_PR_SET_CHILD_SUBREAPER = 36

# Roots of the agents this very process runs now: no tree may take another one for its own.
_running_roots: set[int] = set()


@lru_cache(maxsize=1)
def become_subreaper() -> bool:
    """Make this process adopt its orphaned descendants; False where that cannot be had."""
    # As process 1 of a container we would adopt everybody's orphans, not only the agent's.
    if sys.platform != "linux" or os.getpid() == 1:
        return False
    import ctypes

    try:
        libc = ctypes.CDLL(None, use_errno=True)
        return bool(libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def is_inside(run: str, supervisor: int, pid: int | None = None) -> bool:
    """True where a process (this very one) was started by an agent of the run, or by a check of it.

    The mark may be taken out of an environment, but not out of those of all ancestors; and who
    loses its parents is adopted by the supervisor, in a session that is not the supervisor's.
    """
    chief = find_process(supervisor)
    proc = find_process(pid or os.getpid())
    while proc is not None and proc.pid > 1:
        if mark_on(proc.pid).partition("/")[0] == run:
            return True
        if chief is not None and proc.parent == chief.pid:
            return proc.session != chief.session
        proc = find_process(proc.parent)
    return False


def children_now() -> frozenset[int]:
    """Our direct children, to be told apart from those who come later."""
    listed = children_of_this_process()
    if listed is None:
        listed = [p.pid for p in process_table().values() if p.parent == os.getpid()]
    return frozenset(listed)


def _family(waiting: list[Proc], table: Mapping[int, Proc]) -> list[Proc]:
    """These and everybody below them; never this process or one above it: trees are stopped."""
    below: defaultdict[int, list[Proc]] = defaultdict(list)
    for proc in table.values():
        below[proc.parent].append(proc)
    found: dict[int, Proc] = {}
    while waiting:
        proc = waiting.pop()
        if proc.pid not in found:
            found[proc.pid] = proc
            waiting += below[proc.pid]
    above: set[int] = set()
    pid = os.getpid()
    while pid and pid not in above:
        above.add(pid)
        pid = table[pid].parent if pid in table else 0
    return [proc for proc in found.values() if proc.pid not in above]


class ProcessTree:
    """The processes of one agent or command: started by this process, or by one that is gone."""

    def __init__(
        self,
        root: int,
        mark: str,
        *,
        since: float | None = None,
        strangers: frozenset[int] = frozenset(),
        adopting: bool = False,
        boxed: bool = False,
    ) -> None:
        """Know a tree by its root and when that began; zero: by its mark alone."""
        self.started = (started_at(root) or 0.0) if since is None else since  # in epoch seconds
        self.adopting = adopting
        self._boxed = boxed  # its root is a sandbox, which ends with what is in it
        self._root = root
        self._mark = mark
        self._strangers = strangers - {root}
        self._me = os.getpid()
        self._session = os.getsid(0)
        self._known: dict[int, float] = {root: self.started}
        self._sessions: set[int] = {root} if self.started else set()
        if adopting:
            _running_roots.add(root)

    def close(self) -> None:
        """Forget the tree; call it once nothing of it is left."""
        _running_roots.discard(self._root)

    def members(self, *, thorough: bool = False) -> list[Proc]:
        """Everybody of the tree who lives; `thorough` also looks for the mark."""
        with guard:
            table = process_table()
            root = table.get(self._root)
            if root is not None and not self._is_known(root):
                # While a session has members its leader's pid is not given away again.
                self._sessions.discard(self._root)
            seeds = [p for p in table.values() if self._is_known(p) or self._is_ours(p, thorough)]
            family = _family(seeds, table)
            for proc in family:
                # The root is not ours to collect: its exit code belongs to whoever started it.
                if not proc.alive and proc.parent == self._me and proc.pid != self._root:
                    reap(proc.pid)
            # Parents first: a shell whose command is ended would go on with its next one.
            living = sorted((p for p in family if p.alive), key=lambda p: (p.started, p.pid))
            self._known = {proc.pid: proc.started for proc in living}
            self._sessions = {proc.session for proc in living} - {self._session}
            return living

    def is_empty(self) -> bool:
        """True when nobody of the tree lives; cheap where the kernel lists our children."""
        listed = children_of_this_process() if self.adopting else None
        if listed is None:
            return not self.members(thorough=True)
        return not any(map(self._may_be_ours, listed)) or not self.members()

    def keep_house(self) -> None:
        """Remember who is there; of adopted orphans, reap those that died, lest zombies pile up."""
        listed = children_of_this_process() if self.adopting else None
        adopted = any(self._may_be_ours(pid) for pid in listed or () if pid != self._root)
        if adopted or not self.adopting:
            self.members()

    def stopping(self, stages: Stages, hurry: Callable[[], bool] = bool) -> Iterator[float]:
        """Signal harder and harder until nobody of it lives; yields seconds to sleep."""
        for stage in stages:
            number = stage.signal
            deadline = time.monotonic() + stage.patience_s
            told: set[ProcIdentity] = set()
            pause = 0.01
            is_last = number == signal.SIGKILL
            while members := self.members(thorough=True):
                for proc in members:
                    # A sandbox that is asked to end cuts off what still wants to say something.
                    if not is_last and self._boxed and proc.pid == self._root:
                        continue
                    if is_last or proc.identity not in told:
                        told.add(proc.identity)
                        send_signal(proc, number)
                        if number == signal.SIGTERM:
                            # A suspended process would sleep through the request.
                            send_signal(proc, signal.SIGCONT)
                if (not is_last and hurry()) or time.monotonic() >= deadline:
                    break
                yield pause
                pause = min(pause * 1.5, 0.1)
            else:
                return

    def stop(self, stages: Stages) -> None:
        for pause in self.stopping(stages):
            time.sleep(pause)

    def _is_known(self, proc: Proc) -> bool:
        return abs(self._known.get(proc.pid, 0.0) - proc.started) <= _START_TIME_TOLERANCE_S

    def _is_ours(self, proc: Proc, thorough: bool) -> bool:
        """Whether a process that nobody has seen yet belongs to the tree."""
        if self.adopting:
            if proc.parent != self._me or not self._may_be_ours(proc.pid):
                return False
            # With several agents, or checks, at once an unmarked orphan is left to the last one.
            alone = _running_roots <= {self._root} and not any(commands.values())
            mark = mark_on(proc.pid)
            if mark == OF_SETUP.format(self._me):
                return False  # it serves a lane until the run ends
            return alone or proc.pid == self._root or mark == self._mark
        if proc.started < self.started - _START_TIME_TOLERANCE_S:
            return False  # older than the root: whatever it is, the root did not start it
        marked = thorough and bool(self._mark) and mark_on(proc.pid) == self._mark
        return proc.session in self._sessions or marked

    def _may_be_ours(self, pid: int) -> bool:
        if pid in self._strangers or pid in commands:
            return False
        if pid in _running_roots and pid != self._root:
            return False
        try:
            return os.getsid(pid) != self._session
        except OSError:
            return False


def gentle(grace_s: float, first_s: float | None = None) -> Stages:
    """Asked twice, with so much time each, then killed; `first_s` is for the first time alone."""
    return (
        Stage(signal.SIGINT, grace_s if first_s is None else first_s),
        Stage(signal.SIGTERM, grace_s),
        *AT_ONCE,
    )


AT_ONCE: Stages = (Stage(signal.SIGKILL, _KILL_PATIENCE_S),)
ASKED_ONCE: Stages = (Stage(signal.SIGTERM, 3.0), *AT_ONCE)
GENTLE = gentle(5.0)


def names_of(members: Iterable[Proc]) -> tuple[str, ...]:
    """Who they are, for people; not everybody of a crowd."""
    named = ((name_of(proc.pid), proc.pid) for proc in members)
    return tuple(f"{name} (pid {pid})" for name, pid in named if name)[:_MOST_NAMES]


def marked_processes(mark: str) -> list[Proc]:
    """Who lives that carries a mark, and everybody below them."""
    return ProcessTree(0, mark, since=0.0).members(thorough=True)


def stop_tree(
    pid: int | None, create_time: float | None, mark: str, *, stages: Stages = GENTLE
) -> tuple[str, ...]:
    """Stop what a supervisor that died has left running; returns what was found, by name."""
    tree = ProcessTree(pid or 0, mark, since=create_time or 0.0)
    names = names_of(tree.members(thorough=True))
    tree.stop(stages)
    return names
