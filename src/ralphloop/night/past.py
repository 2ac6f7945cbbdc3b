"""Runs and iterations that are over, found again."""

from __future__ import annotations

from collections.abc import Iterator

from ralphloop.errors import UsageError
from ralphloop.journal.queries import JournalReader, Queries
from ralphloop.journal.records import IterationRecord, RunRecord
from ralphloop.project import Project

_PAGE = 1_000
_SEARCHED_RUNS = 500


def iterations_on(project: Project, run: str, story: str, most: int) -> list[IterationRecord]:
    """The newest iterations on a story, newest first."""
    with JournalReader.open(project.journal) as journal:
        return journal.story_iterations(run, story, most)


def find_iteration(project: Project, run: str, n: int) -> IterationRecord | None:
    """One iteration with everything that was kept of it."""
    with JournalReader.open(project.journal) as journal:
        return journal.iteration(run, n)


def newest(project: Project, run: str, most: int) -> tuple[list[IterationRecord], list[RunRecord]]:
    """The newest iterations of a run, and the newest runs."""
    with JournalReader.open(project.journal) as journal:
        return journal.latest_iterations(run, most), journal.runs(most)


def all_iterations(project: Project, run: str) -> Iterator[IterationRecord]:
    """The iterations of a run in order, without all that was kept of them."""
    with JournalReader.open(project.journal) as journal:
        after = 0
        while page := journal.iterations(run, after=after, limit=_PAGE, brief=True):
            yield from page
            after = page[-1].n


def run_id(project: Project, wanted: str) -> str | None:
    """The id of the run whose id is, begins or ends like that."""
    with JournalReader.open(project.journal) as journal:
        found = find_run(journal, wanted)
    return found.id if found else None


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
