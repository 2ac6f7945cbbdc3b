"""A plan proves its proofs: what a command shows has one name, and what holds already is said."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ralphloop.plan.conversation import read_answer
from tests.conftest import RunRalph
from tests.plan.projects import listed, repository, stories, story

THERE = "def test_old():\n    assert True\n"
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]


def seen(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    """Criteria, each with what will show it."""
    return [{"text": text, "seen": name} for text, name in pairs]


def test_a_test_yet_to_be_written_is_expected_and_not_red(
    tmp_path: Path, run_ralph: RunRalph
) -> None:
    """`verify` that selects no test, or names a file that is not there, is kept as missing; the
    criterion whose test passes before anybody works is named."""
    new = story("A", "Export notes", verify=[*PYTEST, "test_there.py", "-k", "test_export"])
    new["criteria"] = seen(("Notes are exported as CSV", "test_there.py::test_export"))
    file = story("B", "Import notes", verify=[*PYTEST, "tests/test_import.py"])
    old = story("C", "Print notes", verify=[*PYTEST, "test_there.py"])
    old["criteria"] = seen(
        ("`notes print` prints all notes", "test_there.py::test_old passes"),
        ("`notes print 1` prints one", "test_there.py::test_one passes"),
    )
    root = repository(tmp_path, [stories(new, file, old)], **{"test_there.py": THERE})
    done = run_ralph("plan", "Notes", "--yes", "--try", cwd=root)
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 0, said
    tried = [one["verifyTried"] for one in listed(root)]
    assert tried == ["expected red: missing", "expected red: missing", "green: proves nothing yet"]
    assert "holds already, so it proves nothing of this story: `notes print` prints all" in said
    assert "of this story: `notes print 1`" not in said


def test_what_every_story_changes_keeps_none_apart() -> None:
    """A changelog among what a story touches is left out."""
    proposed = story("A", "Export notes", touches=["notes.py", "CHANGELOG.md", "docs/NEWS.rst"])
    _, (entry,), _ = read_answer(json.dumps(stories(proposed)), may_ask=False)
    assert entry["touches"] == ["notes.py"]
