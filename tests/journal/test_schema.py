"""The shape of the journal on disk: what was written once loads for ever."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from ralphloop.core.iteration import CommitStory
from ralphloop.core.run_state import (
    Attempt,
    StoryState,
)
from ralphloop.errors import JournalError
from ralphloop.journal import database
from ralphloop.journal.journal import Journal
from ralphloop.journal.queries import JournalReader
from ralphloop.journal.records import RunStatus

GOLDEN = Path(__file__).parent / "golden"


def described(path: Path) -> str:
    """Every table and index of a database, in a stable order."""
    connection = sqlite3.connect(path)
    try:
        sql = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
        return ";\n".join(row[0] for row in connection.execute(sql + " ORDER BY name")) + ";\n"
    finally:
        connection.close()


def load(path: Path, dump: str) -> None:
    """Make a database file from a dump."""
    path.parent.mkdir(parents=True)
    connection = sqlite3.connect(path)
    connection.executescript(dump)
    connection.execute(f"PRAGMA application_id = {database.APPLICATION_ID}")
    connection.close()


def test_the_schema_is_the_golden_one(journal: Journal, path: Path) -> None:
    """A change of the tables needs a migration; released ones are never edited."""
    assert described(path) == (GOLDEN / "schema-v5.sql").read_text()


def test_a_journal_of_version_1_loads(path: Path) -> None:
    """A journal written by the first version is read and continued."""
    load(path, (GOLDEN / "journal-v1.sql").read_text())
    with Journal.open(path) as journal:
        found = journal.resume_candidate(1_794_744_500)
        assert found is not None
        assert found.run.status is RunStatus.STOPPED
        assert found.run.config == {"agent": {"name": "claude"}}
        assert found.run.totals.iterations == 2
        assert found.run.totals.cost_usd == pytest.approx(0.75)
        assert journal.open_wait("r1") is not None
        assert [i.effects for i in journal.owed_effects()] == [(CommitStory(),)]
        assert journal.meta("circuit") == {"state": "HALF_OPEN"}
        assert journal.story_states("r1") == {"US-1": StoryState(attempt=Attempt(failed=1))}
        assert [event.what.type for event in journal.events_since("r1", 0)] == ["run_started"]
        assert [request.kind for request in journal.pending_requests("r1")] == []
        journal.reopen_run("r1", now=1_794_744_500, pid=1)


def test_a_journal_of_version_1_is_read_before_its_migration(path: Path) -> None:
    """Who only looks changes nothing, and what was not asked then counts as known."""
    load(path, (GOLDEN / "journal-v1.sql").read_text())
    with JournalReader.open(path) as journal:
        [run] = journal.runs()
        assert journal.totals(run.id) == run.totals
        assert run.totals.unpriced == 0
        assert [it.unpriced for it in journal.iterations(run.id, brief=True)] == [0, 0]
    assert "unpriced" not in described(path)


def test_a_migration_runs_once_and_is_recorded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later step is applied to an older file at its next opening, and only then."""
    Journal.open(path).close()
    monkeypatch.setitem(
        database.MIGRATIONS, "m999_add_note", "ALTER TABLE runs ADD COLUMN note TEXT"
    )
    for _ in range(2):
        with Journal.open(path) as journal:
            assert journal.runs() == []
    assert "note TEXT" in described(path)


def test_a_failed_migration_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that fails half way leaves the file as it was."""
    Journal.open(path).close()
    before = described(path)
    with monkeypatch.context() as patch:
        patch.setitem(database.MIGRATIONS, "m999_broken", "CREATE TABLE half (a);\n" * 2)
        with pytest.raises(JournalError):
            Journal.open(path)
    assert described(path) == before
    Journal.open(path).close()


@pytest.mark.parametrize("step", ["m900_future", None])
def test_a_journal_of_a_newer_version_is_left_alone(path: Path, step: str | None) -> None:
    """A file with a step we do not know, or without a name, is named, explained and not touched."""
    Journal.open(path).close()
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO migrations (name) VALUES (?)", (step,))
    connection.commit()
    connection.close()
    before = path.read_bytes()
    for opener in (Journal.open, JournalReader.open):
        with pytest.raises(JournalError, match=f"{path}.*newer.*{step}") as caught:
            opener(path)
        assert "upgrade" in caught.value.next_step
    assert path.read_bytes() == before
