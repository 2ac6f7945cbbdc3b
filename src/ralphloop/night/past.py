"""Runs and iterations that are over, found again: one by one, or a run in full.

The journal is read in short pages.  Git and the learnings may be missing or broken by now; a run
is still told from the rest.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from ralphloop.core.events import LoopEvent
from ralphloop.errors import RalphError, UsageError
from ralphloop.journal.lock import live_holder
from ralphloop.journal.queries import JournalReader, Queries
from ralphloop.journal.records import IterationRecord, RunRecord, Wait
from ralphloop.night.look import look_at
from ralphloop.night.values import Night
from ralphloop.project import Project
from ralphloop.text.durations import iso

_EVENT_PAGE = 2_000
_MOST_EVENTS = 100_000  # a night of ten thousand iterations; what a person did is early or rare
_MOST_COMMITS = 5_000
_SEARCHED_RUNS = 500


@dataclass(frozen=True)
class Record:
    """A run, and everything that can be found out about it."""

    night: Night
    run: RunRecord
    journal: Queries
    commits: Mapping[int, str] = field(default_factory=dict)  # iteration → the commit it made
    learnings: tuple[str, ...] = ()

    def iterations(self) -> Iterator[IterationRecord]:
        """All of them, in order."""
        return self.journal.every_iteration(self.run.id)

    def events(self) -> Iterator[LoopEvent]:
        """What happened, in order; it may be pruned, then it is missing."""
        seq = seen = 0
        while seen < _MOST_EVENTS:
            page = self.journal.events_since(seq, _EVENT_PAGE, run=self.run.id)
            if not page:
                return
            yield from page
            seq, seen = page[-1].seq, seen + len(page)

    def waits(self, most: int) -> list[Wait]:
        """The newest waits, in order."""
        return self.journal.waits(self.run.id, most)[::-1]


@contextmanager
def recorded(project: Project, wanted: str | None) -> Iterator[Record | None]:
    """The newest run, or the one that is called so; None where there is none."""
    with reading(project) as journal:
        run = find_run(journal, wanted)
        if run is None:
            yield None
            return
        now = time.time()
        holder = live_holder(project.directory, now)
        carried = holder if holder is not None and holder.run == run.id else None
        night = look_at(project, journal, run, now=now, holder=carried)
        yield Record(night, run, journal, _commits(project, run), _learnings(project, run))


def is_live(project: Project, run: str) -> bool:
    """Whether the run is going on at this moment."""
    holder = live_holder(project.directory, time.time())
    return holder is not None and holder.run == run


def reading(project: Project) -> JournalReader:
    """The journal, for one question about what is over."""
    return JournalReader.open(project.journal)


def all_iterations(project: Project, run: str) -> Iterator[IterationRecord]:
    """The iterations of a run in order, without all that was kept of them."""
    with reading(project) as journal:
        yield from journal.every_iteration(run, brief=True)


def find_run(journal: Queries, wanted: str | None) -> RunRecord | None:
    """The newest run, or the one whose id is, begins or ends like that."""
    if wanted is None:
        return journal.latest_run()
    if exact := journal.find_run(wanted):
        return exact
    runs = journal.runs(_SEARCHED_RUNS)
    close = [run for run in runs if run.id.startswith(wanted) or run.id.endswith(wanted)]
    if len(close) == 1:
        return close[0]
    names = ", ".join(run.id for run in (close or runs)[:5])
    what = f"{len(close)} runs are called" if close else "there is no run"
    raise UsageError(f"{what} {wanted[:60]!r}", f"name one of: {names}" if names else "ralph run")


def _learnings(project: Project, run: RunRecord) -> tuple[str, ...]:
    """What stories taught since the run began, as far as it may be repeated."""
    from ralphloop.learning.model import Standing
    from ralphloop.learning.store import load_index

    since, until = iso(run.started_at), iso(run.ended_at or run.last_activity)
    return tuple(
        pattern.sentence
        for pattern in load_index(project).patterns
        if since <= pattern.last_seen <= until and pattern.standing is not Standing.HELD_BACK
    )


def _commits(project: Project, run: RunRecord) -> dict[int, str]:
    """The commits we made for the iterations of a run, found by their trailers."""
    from ralphloop.repo.commit import marked_commits
    from ralphloop.repo.git import Git

    since = (f"^{run.head}",) if run.head else ()
    most = f"--max-count={_MOST_COMMITS}"
    found: dict[int, str] = {}
    with suppress(RalphError):  # no repository, or the branch is gone
        for commit, mark in marked_commits(Git(project.root), most, "HEAD", *since):
            name, _, number = mark.rpartition("/")
            if name == run.id and number.isdigit() and len(number) < 10:
                found.setdefault(int(number), commit)
    return found
