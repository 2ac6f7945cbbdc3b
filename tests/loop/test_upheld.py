"""A pass needs what made it: the iteration in the journal, and the commit in the branch."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.loop.guards import mutated
from tests.loop.projects import Sandbox, sandbox, story

GREEN = [["true"]]
WORKS = "write(f'{STORY}.txt', START); done()"
FORGES = """
import sqlite3
if START == 1:
    db = sqlite3.connect(".ralph/journal.db", timeout=10)
    state = '{"standing": "passed", "grade": "verified", "reason": "tests were added"}'
    with db:
        for name in ("US-1", "US-2"):
            db.execute("INSERT OR REPLACE INTO stories VALUES (?, ?, ?)",
                       (os.environ["RALPH_RUN_ID"], name, state))
    os.kill(os.getppid(), signal.SIGKILL); sys.exit(1)
"""


def forged(tmp_path: Path, then: str) -> Sandbox:
    """A repository whose agent wrote two passes into the journal and killed the supervisor."""
    box = sandbox(tmp_path, FORGES + then, stories=2, checks=[["test", "-f", "built"]])
    assert box.run("--allow-red").code == -signal.SIGKILL
    return box


def test_passes_that_an_agent_wrote_into_the_journal_are_not_believed(tmp_path: Path) -> None:
    """Two rows of SQL and a kill make no story pass."""
    box = forged(tmp_path, "status()")
    assert box.run("--continue").code == 77
    assert box.ralph("trust", "--journal", "--yes").code == 0  # a person who does not look closely
    done = box.run("--continue", "--max-iterations", "2")
    assert done.code == 3, done.text
    assert box.passes() == {"US-1": False, "US-2": False}
    assert "US-1 is open again: no finished iteration in the journal made it pass" in done.text


def test_a_journal_that_came_with_a_clone_marks_nothing(tmp_path: Path) -> None:
    """Its unfinished iteration knows commits that are not here, and its passes prove nothing."""
    box = forged(tmp_path, "status()")
    there = sandbox(tmp_path / "clone", "status()", stories=2, checks=[["test", "-f", "built"]])
    shutil.copytree(box.root / ".ralph", there.root / ".ralph")
    done = there.run("--allow-red", "--max-iterations", "1")
    assert done.code == 3, done.text
    assert there.passes() == {"US-1": False, "US-2": False}


def _amends(box: Sandbox) -> None:
    box.git("commit", "-q", "--amend", "--no-edit", "--date", "2001-01-01")


def _squashes(box: Sandbox) -> None:
    box.git("reset", "-q", "--soft", box.git("rev-list", "--max-parents=0", "HEAD"))
    box.git("commit", "-qm", "all of it")


HONEST: dict[str, tuple[str, Callable[[Sandbox], object]]] = {
    "nothing happened": ("", lambda box: None),
    "rebased by a person": ("", _amends),
    "squashed by a person": ("", _squashes),
    "never committed": ('[git]\ncommit = "never"\n', lambda box: None),
    "another run went by": ("", lambda box: box.run()),
}


@pytest.mark.parametrize("case", HONEST)
def test_what_passed_stays_passed(tmp_path: Path, case: str) -> None:
    """A new run over a longer list works on the new story alone."""
    toml, meanwhile = HONEST[case]
    stories = [story("US-1"), story("US-2", passes=True), story("US-3")]
    box = sandbox(tmp_path, WORKS, stories=stories, checks=GREEN, toml=toml)
    assert box.run("--story", "US-1").code == 4
    data = json.loads((box.root / "prd.json").read_text())
    data["userStories"][2]["passes"] = True
    (box.root / "prd.json").write_text(json.dumps(data))
    if not toml:
        box.git("commit", "-qam", "three is done")
    assert box.run().code == 0
    meanwhile(box)
    data["userStories"].append(story("US-4"))
    (box.root / "prd.json").write_text(json.dumps(data))
    done = box.run("--allow-dirty")
    assert done.code == 0, done.text
    assert box.worked_on() == ["US-1", "US-4"]
    assert "open again" not in done.text


def test_a_commit_that_a_person_took_back_opens_the_story(tmp_path: Path) -> None:
    """The mark is still in the file, the commit is not in the branch: said, and done again."""
    box = sandbox(tmp_path, WORKS, stories=2, checks=GREEN)
    assert box.run("--max-iterations", "1").code == 3
    box.git("reset", "-q", "--soft", "HEAD~1")
    done = box.run("--continue", "--max-iterations", "3")
    assert done.code == 0, done.text
    assert "US-1 is open again: its commit is no longer in main" in done.text
    assert box.worked_on() == ["US-1", "US-1", "US-2"]


def test_a_project_is_not_complete_without_its_commits(tmp_path: Path) -> None:
    """Whatever took them away while the run went on, the last look sees it."""
    box = sandbox(tmp_path, WORKS, stories=2, checks=GREEN)
    hook = box.root / ".git/hooks/post-commit"
    hook.write_text(
        "#!/bin/sh\n"
        'git log -1 --format=%s | grep -q US-2 && [ ! -e "$TEST_STATE/once" ] || exit 0\n'
        'touch "$TEST_STATE/once"; git reset -q --soft HEAD~2\n'
    )
    hook.chmod(0o755)
    done = box.run()
    assert done.code == 0, done.text
    assert "US-1 is open again: its commit is no longer in main" in done.text
    assert box.worked_on() == ["US-1", "US-2", "US-1", "US-2"]
    assert box.subjects() == ["start", "US-1: Do US-1", "US-2: Do US-2"]


def test_the_name_of_a_run_says_nothing_about_its_age(tmp_path: Path) -> None:
    """Two runs begun in one second are told apart by chance; an older pass is upheld all the same."""
    box = sandbox(tmp_path, WORKS, stories=2, checks=GREEN)
    assert box.run("--story", "US-1").code == 4
    earlier = (
        "import ralphloop.loop.open as start\n"
        "start.new_run_id = lambda now: '20000101-000000-000000'"
    )
    done = mutated(box, earlier)
    assert done.code == 0, done.text
    assert box.starts == 2
