"""A feature that a story removes goes with its tests; a test that is in the way does not."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.loop.guards import told
from tests.loop.projects import Sandbox, sandbox, story

CODE = """\
def shout(text, loud=True):
    if text is None:
        return ""
    return text.upper()


def total(rows):
    return sum(rows)
"""
TESTS = """\
import words


def test_shouts():
    assert words.shout("a") == "A"


def test_shouts_nothing_for_none():
    assert words.shout(None) == ""


def test_total():
    assert words.total([1, 2]) == 3
"""
EDIT = """
def cut(path, text):
    file = pathlib.Path(path)
    assert text in file.read_text()
    file.write_text(file.read_text().replace(text, ""))
"""
DROP = (
    EDIT
    + """
if START == 1:
    cut("words.py", '    if text is None:\\n        return ""\\n')
    cut("test_words.py", 'def test_shouts_nothing_for_none():\\n    assert words.shout(None) == ""\\n')
done()
"""
)
BREAK = (
    EDIT
    + """
if START == 1:
    cut("words.py", "sum")
    cut("test_words.py", "def test_total():\\n    assert words.total([1, 2]) == 3\\n")
done()
"""
)


def removing(tmp_path: Path, agent: str) -> Sandbox:
    """A project with a story that asks for a removal."""
    return sandbox(
        tmp_path,
        agent,
        stories=[story("US-1", "Drop support for None in shout")],
        checks=[[sys.executable, "-m", "pytest", "-q"]],
        files={"words.py": CODE, "test_words.py": TESTS, ".gitignore": ".ralph/\n__pycache__/\n"},
    )


def test_tests_of_what_was_to_be_removed_go_without_a_question(tmp_path: Path) -> None:
    """One start; it passes as checked, and a person is shown which test is gone."""
    box = removing(tmp_path, DROP)
    done = box.run("--max-iterations", "2")
    (record,) = box.records()
    assert record.verdict.passed, told(done)
    assert str(record.verdict.grade) == "checked"
    trial = record.evidence.trial
    assert trial is not None
    assert any("test_shouts_nothing_for_none" in words for words in trial.look_at)


def test_another_test_that_goes_along_is_asked_about(tmp_path: Path) -> None:
    """A story that asks for a removal is no licence for tests that are in the way."""
    box = removing(tmp_path, BREAK)
    box.run("--max-iterations", "2")
    first, second = box.records()
    assert not first.verdict.passed
    assert str(second.verdict.grade) == "needs review"
