"""What earlier versions said in words alone is read as the value that says it now."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ralphloop.core.events import LoopEvent, RunFinished
from ralphloop.core.model import ExitDecision, RunLimit
from ralphloop.core.planning import ended
from ralphloop.journal.journal import Journal
from ralphloop.journal.queries import JournalReader
from ralphloop.journal.records import RunStatus
from tests.journal.support import finished, new_iteration, new_run

NIGHT = Path(__file__).parent / "golden" / "nights" / "demo.sql"


@pytest.mark.parametrize(
    "reason, limit, words",
    [
        ("90 of 90 tokens are used (limits.max_tokens)", RunLimit.TOKENS, "out of tokens"),
        ("the run took 1h, as long as it may (limits.max_time)", RunLimit.TIME, "out of time"),
        ("it is 7:00, the run was to end at 7:00 (limits.until)", RunLimit.UNTIL, "out of time"),
        ("$5.00 of $5.00 is spent (limits.max_cost_usd)", RunLimit.COST, "out of budget"),
        ("60 starts in the last hour", None, "out of budget"),
    ],
)
def test_a_run_of_an_earlier_version_ended_by_the_limit_its_reason_names(
    tmp_path: Path, reason: str, limit: RunLimit | None, words: str
) -> None:
    """Also for who only looks, before the journal has the column for it."""
    path = tmp_path / "journal.db"
    with closing(sqlite3.connect(path)) as old:
        old.executescript(NIGHT.read_text())
        old.execute("UPDATE runs SET decision = 'budget_exhausted', reason = ?", (reason,))
        old.commit()
    with JournalReader.open(path) as journal:
        [run] = journal.runs()
    assert run.used_up is limit
    assert ended(run.decision, run.reason, run.used_up) == f"{words}: {reason}"


def test_a_limit_is_kept_beside_the_words(journal: Journal) -> None:
    """Whatever the reason says, the value is what was written; one that goes on has none."""
    journal.begin_run(new_run())
    stopped = {"now": 5.0, "status": RunStatus.STOPPED, "decision": "budget_exhausted"}
    journal.end_run("r1", **stopped, reason="enough", used_up=RunLimit.UNTIL)  # type: ignore[arg-type]
    run = journal.find_run("r1")
    assert run is not None
    assert run.used_up is RunLimit.UNTIL
    journal.reopen_run("r1", now=6.0, pid=1)
    again = journal.find_run("r1")
    assert again is not None
    assert again.used_up is None


def test_an_event_of_an_earlier_version_names_its_limit(journal: Journal) -> None:
    """The log of an old night says what it was out of."""
    journal.begin_run(new_run())
    what = RunFinished(
        decision=ExitDecision.BUDGET_EXHAUSTED, reasons=("90 of 90 (limits.max_tokens)",)
    )
    journal.append_events([LoopEvent(run="r1", at=1.0, what=what)])
    [event] = journal.events_since("r1", 0)
    assert isinstance(event.what, RunFinished)
    assert event.what.limit is RunLimit.TOKENS


def test_a_crash_of_an_earlier_version_is_one(journal: Journal) -> None:
    """It stood in the reason, and nowhere else."""
    journal.begin_run(new_run())
    journal.start_iteration(new_iteration(1))
    journal.finish_iteration(finished(1))
    record = '{"response": {"outcome": "error", "reason": "crashed: exit code 1; Boom"}}'
    with journal.write("as it was") as db:
        db.run("UPDATE iterations SET record = ?", (record,))
    found = journal.iteration("r1", 1)
    assert found is not None
    assert found.record.response.crash == "exit code 1; Boom"
