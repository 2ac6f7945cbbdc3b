"""The ten-thousandth iteration costs what the tenth does, counted in SQLite's own steps."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ralphloop.journal.journal import Journal
from tests.journal.support import NOON, new_run, run_iterations

LONG = 10_000
Question = Callable[[Journal], object]


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> tuple[Journal, Journal]:
    """A run of ten iterations and one of ten thousand."""
    short = Journal.open(tmp_path_factory.mktemp("short") / "journal.db")
    long = Journal.open(tmp_path_factory.mktemp("long") / "journal.db")
    for journal in (short, long):
        journal.begin_run(new_run())
        run_iterations(journal, 10)
    copy_iterations(long, LONG - 10)
    return short, long


def copy_iterations(journal: Journal, count: int) -> None:
    """Fill in copies of the last iteration in one transaction, faster than the loop would."""
    with journal.write("set_meta") as db:
        row = db.row("SELECT * FROM iterations ORDER BY n DESC LIMIT 1")
        assert row is not None
        slots = ", ".join("?" * len(row.keys()))
        columns = row.keys()
        copies = (
            tuple(
                n if name == "n" else f"tree-{n}" if name == "end_tree" else row[name]
                for name in columns
            )
            for n in range(row["n"] + 1, row["n"] + 1 + count)
        )
        db.connection.executemany(f"INSERT INTO iterations VALUES ({slots})", copies)


def steps(journal: Journal, action: Question) -> int:
    """How many steps of SQLite's machine an action takes."""
    taken = 0

    def count() -> int:
        nonlocal taken
        taken += 1
        return 0

    journal.connection.set_progress_handler(count, 1)
    try:
        action(journal)
    finally:
        journal.connection.set_progress_handler(None, 1)
    return taken


def one_iteration(journal: Journal) -> None:
    """All the writes of one iteration, as the loop makes them."""
    run_iterations(journal, 1)
    journal.heartbeat("r1", now=NOON)


QUESTIONS: dict[str, Question] = {
    "one iteration": one_iteration,
    "totals": lambda journal: journal.totals("r1"),
    "unfinished": lambda journal: journal.unfinished_iterations(),
    "unfinished of a run": lambda journal: journal.unfinished_iterations("r1"),
    "owed": lambda journal: journal.owed_effects(),
    "owed of a run": lambda journal: journal.owed_effects("r1"),
    "resume": lambda journal: journal.resume_candidate(NOON),
    "next number": lambda journal: journal.next_number("r1"),
    "starts in an hour": lambda journal: journal.starts_since(NOON + 10**9),
    "last page": lambda journal: journal.latest_iterations("r1", 5),
    "requests": lambda journal: journal.pending_requests("r1"),
    "events": lambda journal: journal.last_events("r1", 5),
    "state": lambda journal: journal.session("r1"),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_nothing_gets_dearer_with_the_length_of_the_night(
    nights: tuple[Journal, Journal], name: str
) -> None:
    """Each write and question takes at most 1.2 times the steps after 10,000 iterations."""
    short, long = (steps(journal, QUESTIONS[name]) for journal in nights)
    assert short > 0
    assert long <= 1.2 * short


def test_a_page_in_the_middle_costs_what_the_first_costs(nights: tuple[Journal, Journal]) -> None:
    """Paging by number does not walk over what was read before."""
    _, long = nights
    first = steps(long, lambda journal: journal.iterations("r1", after=0, limit=50))
    late = steps(long, lambda journal: journal.iterations("r1", after=9_000, limit=50))
    assert late <= 1.2 * first


def test_the_long_night_is_really_long(nights: tuple[Journal, Journal]) -> None:
    """The comparison above compares what it says."""
    _, long = nights
    assert long.next_number("r1") > LONG
