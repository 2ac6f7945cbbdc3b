"""An agent is a tree of processes: who belongs to it, and is anybody left.

Agents start tools in their own sessions, launchers fork and exit, tools leave servers behind,
and a daemon forks twice, starts a session of its own and clears its environment.  Two ways to
find them all:

* **Adoption** (Linux).  The supervisor becomes a child subreaper, so whoever loses its parent
  becomes our own direct child, whatever it did before.  What we started ourselves shares our
  session; the agent and all below it cannot (it was started in a new one, and nobody can join a
  session later).  So *a child of ours in a foreign session that was not there before* is the
  agent's, without exception.
* **Memory and mark** (elsewhere).  The tree is sampled while it runs and everybody seen is
  remembered; at the end those who carry our mark in their environment are added.  Only a daemon
  that forks twice *and* clears its environment *and* does so between two samples escapes.

Dead orphans that we adopted are collected one by one; `waitpid(-1)` would take the exit codes of
other people's children.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache

from ralphloop.proc.table import (
    Proc,
    carries_mark,
    children_of_this_process,
    find_process,
    mark_on,
    process_table,
    reap,
)

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
    chief, proc = find_process(supervisor), find_process(pid or os.getpid())
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


def with_descendants(seeds: Iterable[Proc], table: Mapping[int, Proc]) -> dict[int, Proc]:
    """The processes and everybody below them."""
    below: defaultdict[int, list[Proc]] = defaultdict(list)
    for proc in table.values():
        below[proc.parent].append(proc)
    found: dict[int, Proc] = {}
    waiting = list(seeds)
    while waiting:
        proc = waiting.pop()
        if proc.pid not in found:
            found[proc.pid] = proc
            waiting += below[proc.pid]
    return found


def ancestors(table: Mapping[int, Proc]) -> set[int]:
    """This process and everybody above it: never part of a tree that we stop."""
    line: set[int] = set()
    pid = os.getpid()
    while pid and pid not in line:
        line.add(pid)
        pid = table[pid].parent if pid in table else 0
    return line


class ProcessTree:
    """The processes of one agent that this process started."""

    def __init__(
        self, root: int, mark: str, *, strangers: frozenset[int], adopting: bool = True
    ) -> None:
        self._root = root
        self._mark = mark
        self._strangers = strangers - {root}
        self.adopting = adopting
        self._me = os.getpid()
        self._session = os.getsid(0)
        proc = find_process(root)
        self._since = proc.started if proc else 0.0
        self._known: dict[int, float] = {root: self._since}
        self._sessions: set[int] = {root}
        _running_roots.add(root)

    @property
    def started(self) -> float:
        """When the root was started, in epoch seconds."""
        return self._since

    def close(self) -> None:
        """Forget the tree; call it once nothing of it is left."""
        _running_roots.discard(self._root)

    def members(self, *, thorough: bool = False) -> list[Proc]:
        """Everybody of the tree who lives; `thorough` also looks for the mark."""
        table = process_table()
        family = with_descendants(self._seeds(table, thorough=thorough), table)
        for pid in ancestors(table):
            family.pop(pid, None)
        self._collect(family.values())
        living = [proc for proc in family.values() if proc.alive]
        self._known = {proc.pid: proc.started for proc in living}
        self._sessions = {proc.session for proc in living} - {self._session}
        return living

    def is_empty(self) -> bool:
        """True when nobody of the tree lives; cheap where the kernel lists our children."""
        listed = children_of_this_process() if self.adopting else None
        if listed is None:
            return not self.members(thorough=True)
        if not any(self._may_be_ours(pid) for pid in listed):
            return True
        return not self.members()

    def keep_house(self) -> None:
        """Remember who is there; of adopted orphans, reap those that died, lest zombies pile up."""
        listed = children_of_this_process() if self.adopting else None
        adopted = any(self._may_be_ours(pid) for pid in listed or () if pid != self._root)
        if adopted or not self.adopting:
            self.members()

    def _seeds(self, table: Mapping[int, Proc], *, thorough: bool) -> list[Proc]:
        return [
            proc
            for proc in table.values()
            if self._known.get(proc.pid) == proc.started
            or (self.adopting and self._is_adopted(proc))
            or (not self.adopting and self._is_found(proc, thorough=thorough))
        ]

    def _is_adopted(self, proc: Proc) -> bool:
        if proc.parent != self._me or not self._may_be_ours(proc.pid):
            return False
        # With several agents at once an unmarked orphan is left to the last one that ends.
        alone = _running_roots <= {self._root}
        return alone or proc.pid == self._root or carries_mark(proc.pid, self._mark)

    def _is_found(self, proc: Proc, *, thorough: bool) -> bool:
        if proc.started < self._since - 1:
            return False
        return proc.session in self._sessions or (thorough and carries_mark(proc.pid, self._mark))

    def _may_be_ours(self, pid: int) -> bool:
        if pid in self._strangers or (pid in _running_roots and pid != self._root):
            return False
        try:
            return os.getsid(pid) != self._session
        except OSError:
            return False

    def _collect(self, family: Iterable[Proc]) -> None:
        for proc in family:
            # The root is not ours to collect: its exit code belongs to whoever started it.
            if not proc.alive and proc.parent == self._me and proc.pid != self._root:
                reap(proc.pid)
