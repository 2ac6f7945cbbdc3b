"""Stories are added, moved and removed in the text of their file; everything else stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import RunRalph

JSON = """{
    "project": "Shop",   "x-mine": 1.50,
    "userStories": [
        {"id": "US-001", "title": "One", "passes": true, "mine": "é\\u00e9"},
        {
            "id": "US-002",
            "title": "Two",
            "passes": false
        },
        {"id": "US-010", "title": "Ten", "dependsOn": ["US-002"], "passes": false}
    ],
    "tail": [1,2]
}
"""
YAML = """\
# our tasks
project: Shop
tasks:
  # the first
  - id: 1
    title: One  # why
    passes: true
  - id: 2
    title: "Two"
    passes: false
after: x
"""


def ids(path: Path) -> list[str]:
    """In file order."""
    return [story["id"] for story in json.loads(path.read_text())["userStories"]]


@pytest.fixture
def prd(tmp_path: Path) -> Path:
    """A story file with habits of its own."""
    path = tmp_path / "prd.json"
    path.write_text(JSON)
    return path


def test_a_story_is_added_in_the_style_of_the_file(prd: Path, run_ralph: RunRalph) -> None:
    """It gets the next id, stands at the end, and no other byte changes."""
    done = run_ralph("stories", "add", "Greet", "in", "French", "-c", "`greet fr` prints Bonjour",
                     "--verify", "pytest -q", "-d", "US-002", cwd=prd.parent)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "US-011 was added to prd.json." in done.stdout
    text = prd.read_text()
    added = json.loads(text)["userStories"][-1]
    assert added == {
        "id": "US-011", "title": "Greet in French", "acceptanceCriteria": ["`greet fr` prints Bonjour"],
        "dependsOn": ["US-002"], "verify": "pytest -q", "passes": False,
    }  # fmt: skip
    start = JSON.index("\n    ],\n")
    assert text.startswith(JSON[:start])
    assert text.endswith(JSON[start:])
    assert '\n        {\n            "id": "US-011",' in text


@pytest.mark.parametrize(
    ("arguments", "order"),
    [
        (["move", "US-010", "--before", "US-001"], ["US-010", "US-001", "US-002"]),
        (["move", "US-001", "--after", "US-010"], ["US-002", "US-010", "US-001"]),
        (["move", "US-002", "--after", "US-002"], ["US-001", "US-002", "US-010"]),
        (["rm", "US-010"], ["US-001", "US-002"]),
        (["add", "New", "-c", "`x` is printed", "--after", "US-001"],
         ["US-001", "US-011", "US-002", "US-010"]),
    ],
)  # fmt: skip
def test_stories_move_as_they_are(
    prd: Path, run_ralph: RunRalph, arguments: list[str], order: list[str]
) -> None:
    """Their own text goes with them."""
    done = run_ralph("stories", *arguments, cwd=prd.parent)
    assert done.returncode == 0, done.stderr
    assert ids(prd) == order
    text = prd.read_text()
    assert '{"id": "US-001", "title": "One", "passes": true, "mine": "é\\u00e9"}' in text
    assert '"x-mine": 1.50' in text


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (["rm", "US-002"], "US-010 depends on US-002", 64),
        (["rm", "US-3"], "there is no story US-3", 64),
        (["move", "US-001"], "say where to", 64),
        (["add", "x", "--id", "US-001"], "is already the id of", 65),
        (["add", "x", "-d", "US-099"], 'no story has the id "US-099"', 65),
    ],
)
def test_a_list_that_could_not_be_run_is_not_written(
    prd: Path, run_ralph: RunRalph, arguments: list[str], words: str, code: int
) -> None:
    """The reason is said, and the file is as it was."""
    done = run_ralph("stories", *arguments, cwd=prd.parent)
    assert done.returncode == code
    assert words in done.stderr
    assert prd.read_text() == JSON


def test_yaml_keeps_its_comments(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Whole entries move; comments and quotes stay with them."""
    path = tmp_path / "tasks.yaml"
    path.write_text(YAML)
    done = run_ralph("stories", "add", "Three", "-c", "`x` is printed", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert run_ralph("stories", "move", "1", "--after", "2", cwd=tmp_path).returncode == 0
    text = path.read_text()
    assert "    title: One  # why\n" in text
    assert text.index('"Two"') < text.index("One  # why") < text.index('"Three"')
    assert text.endswith("after: x\n")
    assert text.startswith("# our tasks\n")


def test_a_new_story_that_nobody_can_check_is_remarked_at_once(
    prd: Path, run_ralph: RunRalph
) -> None:
    """It is written, and what it lacks is said."""
    done = run_ralph("stories", "add", "Make it nice", cwd=prd.parent)
    assert done.returncode == 0
    assert "US-011: has no acceptance criteria" in done.stderr
