"""One run in full, for whoever tells all of it: iterations, events, waits, commits, learnings.

The journal is read in short pages.  Git and the learnings may be missing or broken by now; a run
is still told from the rest.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from ralphloop.errors import RalphError
from ralphloop.journal.lock import live_holder
from ralphloop.journal.queries import JournalReader, Queries
from ralphloop.journal.records import Event, IterationRecord, RunRecord, Wait
from ralphloop.night.look import look_at
from ralphloop.night.past import find_run
from ralphloop.night.values import Night
from ralphloop.project import Project
from ralphloop.text.durations import iso

_PAGE = 250
_EVENT_PAGE = 2_000
_MOST_EVENTS = 100_000  # a night of ten thousand iterations; what a person did is early or rare
_MOST_COMMITS = 5_000


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
        after = 0
        while page := self.journal.iterations(self.run.id, after=after, limit=_PAGE):
            yield from page
            after = page[-1].n

    def events(self) -> Iterator[Event]:
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
    with JournalReader.open(project.journal) as journal:
        run = find_run(journal, wanted)
        yield record_of(project, journal, run) if run else None


def record_of(project: Project, journal: Queries, run: RunRecord) -> Record:
    """Everything about a run."""
    now = time.time()
    holder = live_holder(project.directory, now)
    carried = holder if holder is not None and holder.run == run.id else None
    return Record(
        night=look_at(project, journal, run, now=now, holder=carried),
        run=run,
        journal=journal,
        commits=_commits(project, run),
        learnings=_learnings(project, run),
    )


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
