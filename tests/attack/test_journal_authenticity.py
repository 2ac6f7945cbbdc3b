"""A journal that somebody else wrote, changed or put back is read, and not believed."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.errors import NotTrusted
from ralphloop.journal.authenticity import Belief
from ralphloop.journal.database import belief_in
from ralphloop.journal.journal import Journal
from ralphloop.journal.records import RunStatus
from ralphloop.project import Project
from tests.attack.test_trust import Clone
from tests.journal.support import NOON, finished, new_iteration, new_run, run_iterations

pytestmark = pytest.mark.attack


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key and heads of this test alone."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal with a run of three iterations."""
    path = Project(tmp_path / "project").journal
    with Journal.open(path) as journal:
        journal.begin_run(new_run())
        run_iterations(journal, 3)
    return path


def forge(path: Path, sql: str) -> None:
    """What an agent can do with one line of SQL."""
    with sqlite3.connect(path) as connection:
        connection.execute(sql)
    connection.close()


FORGERIES = [
    "INSERT OR REPLACE INTO stories VALUES ('r1', 'US-1', '{\"standing\":\"passed\"}')",
    "UPDATE runs SET cost_usd = 0",
    "UPDATE runs SET iterations = 0, starts = 0",
    "UPDATE iterations SET applied_at = 1 WHERE n = 2",
    "DELETE FROM iterations WHERE n = 3",
    "INSERT INTO iterations SELECT run, 9, story, attempt, started_at, head, tree, prompt_digest,"
    " prompt_path, pid, pid_started, finished_at, outcome, decision, status, end_tree, counted,"
    " cost_usd, cost_estimated, input_tokens, output_tokens, cache_read_tokens,"
    " cache_write_tokens, tasks_completed, files_modified, commits, applied_at, record, effects,"
    " unpriced FROM iterations WHERE n = 1",
    "UPDATE states SET state = '{}'",
    "INSERT OR REPLACE INTO meta VALUES ('circuit', '{\"state\":\"CLOSED\"}')",
    "UPDATE seal SET seq = seq + 1",
    "DELETE FROM seal",
]


@pytest.mark.parametrize("sql", FORGERIES)
def test_a_row_that_ralph_did_not_write_is_noticed(path: Path, sql: str) -> None:
    """Whatever is believed later is part of what is signed."""
    assert belief_in(path) is Belief.OURS
    forge(path, sql)
    assert belief_in(path) is not Belief.OURS
    with Journal.open(path) as journal, pytest.raises(NotTrusted):
        journal.insist_on_belief(accepts_foreign="DELETE FROM seal" not in sql and "seq" not in sql)


@pytest.mark.parametrize("sql", FORGERIES[:-2])
def test_going_on_writing_does_not_make_a_forgery_true(path: Path, sql: str) -> None:
    """What did not add up before does not afterwards; only a person's word does."""
    forge(path, sql)
    with Journal.open(path, check=False) as journal:
        journal.set_meta("other", 1)
        journal.heartbeat("r1", now=NOON + 900)
    assert belief_in(path) is Belief.CHANGED
    with Journal.open(path) as journal:
        journal.adopt()
    assert belief_in(path) is Belief.OURS


def test_requests_and_events_are_nobodys_secret(path: Path) -> None:
    """Whoever asks something of a run does not make its journal doubtful."""
    with Journal.open(path, check=False) as journal:
        journal.add_request("r1", kind="pause", now=NOON)
        journal.prune_events(keep_runs=1)
    assert belief_in(path) is Belief.OURS


def test_an_older_copy_put_back_is_noticed(path: Path, tmp_path: Path) -> None:
    """It is signed, but more is known outside."""
    shutil.copytree(path.parent, tmp_path / "copy")
    with Journal.open(path) as journal:
        run_iterations(journal, 1)
    shutil.rmtree(path.parent)
    shutil.copytree(tmp_path / "copy", path.parent)
    assert belief_in(path) is Belief.CHANGED


def test_a_journal_of_another_project_is_foreign(path: Path, tmp_path: Path) -> None:
    """The place is part of the signature; moved, it is asked about once."""
    other = tmp_path / "other" / ".ralph"
    shutil.copytree(path.parent, other)
    assert belief_in(other / path.name) is Belief.FOREIGN
    with Journal.open(other / path.name) as journal:
        journal.insist_on_belief(accepts_foreign=True)
    assert belief_in(other / path.name) is Belief.OURS


def test_without_the_key_nothing_is_believed(path: Path, tmp_path: Path) -> None:
    """On another machine, or for another user, it is somebody else's."""
    shutil.rmtree(tmp_path / "state")
    assert belief_in(path) is Belief.FOREIGN


def test_a_new_journal_after_one_was_deleted_is_ours(path: Path) -> None:
    """Who throws `.ralph` away begins anew, and is not suspected."""
    shutil.rmtree(path.parent)
    with Journal.open(path) as journal:
        journal.begin_run(new_run())
    assert belief_in(path) is Belief.OURS


def test_a_journal_from_before_signatures_is_accepted_once(path: Path) -> None:
    """It has no table for them; it is migrated, and waits for a person's word."""
    forge(path, "DROP TABLE seal")
    forge(path, "DELETE FROM migrations WHERE name = 'm004_seal'")
    with Journal.open(path) as journal:
        with pytest.raises(NotTrusted):
            journal.insist_on_belief(accepts_foreign=False)
        journal.adopt()
    assert belief_in(path) is Belief.OURS


STEPS: list[Callable[[Journal, int], object]] = [
    lambda journal, n: journal.heartbeat("r1", now=NOON + n),
    lambda journal, n: journal.put_stories("r1", {"US-1": {"n": n}, "US-2": {"n": n}}),
    lambda journal, n: journal.set_meta(f"key {n % 3}", {"é\udc80": [n, 0.1 * n, None]}),
    lambda journal, n: journal.begin_wait("r1", kind="pause", reason="x", now=n, until=n + 9.5),
    lambda journal, n: journal.end_wait("r1", now=NOON + n),
    lambda journal, n: run_iterations(journal, 1),
    lambda journal, n: journal.add_request("r1", kind="pause", now=NOON),
    lambda journal, n: journal.end_run("r1", now=NOON + n, status=RunStatus.STOPPED),
    lambda journal, n: journal.reopen_run("r1", now=NOON + n, pid=n),
]


@given(chosen=st.lists(st.integers(0, len(STEPS) - 3), max_size=12), two=st.booleans())
def test_whatever_ralph_writes_adds_up(
    chosen: list[int], two: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The running sum is the sum of the rows, with one writer or with two that take turns."""
    path = Project(tmp_path_factory.mktemp("sum")).journal
    with Journal.open(path) as first, Journal.open(path, check=False) as second:
        first.begin_run(new_run())
        for n, step in enumerate(chosen):
            STEPS[step](second if two and n % 2 else first, n)
        first.start_iteration(new_iteration(first.next_number("r1")))
        first.finish_iteration(finished(first.next_number("r1") - 1))
    assert belief_in(path) is Belief.OURS


def forging(clone: Clone) -> None:
    """An agent that calls its story passed in the journal and kills the supervisor."""
    clone.write(
        "agent.py",
        "import os, signal, sqlite3\n"
        "db = sqlite3.connect('.ralph/journal.db')\n"
        "run = db.execute('SELECT id FROM runs ORDER BY seq DESC').fetchone()[0]\n"
        'state = \'{"standing": "passed", "grade": "verified"}\'\n'
        "db.execute('INSERT OR REPLACE INTO stories VALUES (?, ?, ?)', (run, 'US-1', state))\n"
        "db.commit()\n"
        "os.kill(os.getppid(), signal.SIGKILL)\n",
    )
    clone.commit()


def test_a_forged_pass_is_not_continued(tmp_path: Path) -> None:
    """`--continue` and a new run end with 77 and the way out; nothing is marked; --trust is no yes."""
    clone = Clone(tmp_path)
    forging(clone)
    assert clone.ralph("trust", "--yes").returncode == 0
    assert clone.ralph("run").returncode == -9
    for words in (["--continue"], [], ["--continue", "--trust"], ["--detach"]):
        done = clone.ralph("run", *words)
        assert done.returncode == 77, (words, done)
        assert "ralph trust --journal" in done.stderr
    assert '"passes": true' not in (clone.root / "prd.json").read_text()
    shown = clone.ralph("trust", "--journal", "--show")
    assert "US-1: passed (verified)" in shown.stdout
    assert clone.ralph("trust", "--journal", "--yes").returncode == 0
    clone.write("agent.py", "print('still working on it')\n")
    done = clone.ralph("run", "--continue", "--allow-dirty", "--max-iterations", "3")
    assert done.returncode != 77, done
    assert '"passes": true' not in (clone.root / "prd.json").read_text()


def test_a_run_that_was_killed_goes_on_without_a_question(tmp_path: Path) -> None:
    """A kill is no forgery."""
    clone = Clone(tmp_path)
    clone.write("agent.py", "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n")
    clone.commit()
    assert clone.ralph("trust", "--yes").returncode == 0
    assert clone.ralph("run").returncode == -9
    assert clone.ralph("run", "--continue", "--max-iterations", "1").returncode != 77
