"""The journal's writer killed with SIGKILL at every kill point, and started again."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
from pathlib import Path

import pytest

from ralphloop.journal import database
from ralphloop.journal.journal import Journal
from ralphloop.journal.queries import Queries
from ralphloop.journal.records import RunRecord
from tests.journal import kill_scenario
from tests.journal.support import python, saved_state
from tests.kill_points import JOURNAL_POINTS, to_be_killed_at

SCENARIO = ("-m", "tests.journal.kill_scenario")


def assert_sound(journal: Queries) -> None:
    """What must hold after any crash, before anything is repaired."""
    rows = journal.iterations("r")
    totals = journal.totals("r")
    assert totals.starts == len(rows)
    assert totals.iterations == sum(row.counted for row in rows)
    assert totals.cost_usd == pytest.approx(sum(row.cost_usd for row in rows))
    finished = [row.n for row in rows if row.finished_at is not None]
    assert saved_state(journal, "r")[0] == max(finished, default=0)
    assert len(journal.unfinished_iterations()) <= 1
    assert len(journal.owed_effects()) <= 1


def assert_complete(root: Path) -> None:
    """What a run that was never killed leaves behind, give or take one interrupted start."""
    with Journal.open(root / ".ralph" / "journal.db") as journal:
        assert_sound(journal)
        rows = journal.iterations("r")
        totals = journal.totals("r")
        assert not journal.unfinished_iterations()
        assert not journal.owed_effects()
    assert [row.n for row in rows] == list(range(1, len(rows) + 1))
    assert sum(row.outcome == "completed" for row in rows) == kill_scenario.WORK
    assert len(rows) <= kill_scenario.WORK + 1
    assert totals.cost_usd == pytest.approx(kill_scenario.WORK * kill_scenario.COST)
    assert totals.commits == kill_scenario.WORK

    entries = re.findall(r"^## Iteration \S+ \(r/(\d+)\)$", progress(root), re.MULTILINE)
    assert [int(n) for n in entries] == [row.n for row in rows]
    assert (root / "mark.txt").read_text() == f"{len(rows)}\n"
    view = json.loads((root / ".ralph-session.json").read_text())
    assert view["iterations"] == totals.iterations
    assert not list(root.rglob("*.tmp"))
    assert not (root / ".ralph" / "holder.json").exists()


def progress(root: Path) -> str:
    """The progress file as it stands."""
    return (root / "progress.txt").read_text()


def test_the_scenario_alone_is_complete(tmp_path: Path) -> None:
    """Without a kill the scenario does its work, and doing it again changes nothing."""
    kill_scenario.main(tmp_path)
    before = progress(tmp_path)
    kill_scenario.main(tmp_path)
    assert_complete(tmp_path)
    assert progress(tmp_path) == before


# Between runs: by a migration, or by a person who sends a story back or undoes that.
ELSEWHERE = (".migrate.", ".rejected.", ".brought_back.")


@pytest.mark.parametrize(
    "point", [it for it in JOURNAL_POINTS if not any(name in it for name in ELSEWHERE)]
)
def test_S04_AC3_a_kill_at_every_point_loses_and_repeats_nothing(
    tmp_path: Path, point: str
) -> None:
    """Killed there, the journal is sound, and starting again ends as if nothing had happened."""
    prepare(tmp_path, point)
    done = python(*SCENARIO, str(tmp_path), env=to_be_killed_at(point))
    assert done.returncode == -signal.SIGKILL, done.stderr
    if (tmp_path / ".ralph" / "journal.db").exists():
        with Journal.open(tmp_path / ".ralph" / "journal.db") as journal:
            assert_sound(journal)
    kill_scenario.main(tmp_path)
    assert_complete(tmp_path)


@pytest.mark.parametrize("moment", ["uncommitted", "committed"])
def test_a_kill_during_a_migration_leaves_the_old_or_the_new_schema(
    tmp_path: Path, moment: str
) -> None:
    """Killed while it brings an older journal up to date, the next start does it or has it done."""
    prepare(tmp_path, "journal.reopen_run.committed")
    env = {"WITH_EXTRA_MIGRATION": "1"}
    point = f"journal.migrate.{moment}"
    done = python(*SCENARIO, str(tmp_path), env={**env, **to_be_killed_at(point)})
    assert done.returncode == -signal.SIGKILL, done.stderr
    again = python(*SCENARIO, str(tmp_path), env=env)
    assert again.returncode == 0, again.stderr
    assert migrations(tmp_path) == [*database.MIGRATIONS, "m999_extra"]


@pytest.mark.parametrize("turn", [2, 3, 4])
@pytest.mark.parametrize(
    "point",
    [
        "journal.start_iteration.committed",
        "journal.finish_iteration.uncommitted",
        "journal.finish_iteration.committed",
        "append.written",
        "atomic.written",
        "atomic.renamed",
    ],
)
def test_a_kill_in_a_later_iteration_is_no_different(tmp_path: Path, point: str, turn: int) -> None:
    """The second and later passes of a point are as safe as the first."""
    done = python(*SCENARIO, str(tmp_path), env=to_be_killed_at(f"{point}:{turn}"))
    assert done.returncode == -signal.SIGKILL, done.stderr
    kill_scenario.main(tmp_path)
    assert_complete(tmp_path)


def prepare(root: Path, point: str) -> None:
    """Bring about what must be there for the point to be passed."""
    if ".reopen_run." in point:
        with Journal.open(root / ".ralph" / "journal.db") as journal:
            journal.begin_run(RunRecord(id="r", started_at=kill_scenario.NOW))


def migrations(root: Path) -> list[str]:
    """The steps the file has seen, asked past our own code."""
    connection = sqlite3.connect(root / ".ralph" / "journal.db")
    try:
        return [name for (name,) in connection.execute("SELECT name FROM migrations")]
    finally:
        connection.close()
