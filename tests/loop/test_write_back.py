"""The list that a story was read from says what ralph saw, where the settings ask for that."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loop.guards import told
from tests.loop.projects import sandbox, story

WRITE_BACK = "[stories]\nwrite_back = true\n"
TASKS = "# Tasks\n\n- [ ] T001 Write one\n- [ ] T002 Write two\n- [ ] T009 Not planned\n"
WORKS = """
write(f"{STORY}.txt", STORY)
done()
"""


def from_list(name: str, line: int, words: str) -> dict[str, object]:
    """A story that came from the list."""
    source = {
        "file": "specs/tasks.md",
        "line": line,
        "format": "spec-kit",
        "item": f"{name} {words}",
    }
    return story(name, words, source=source)


STORIES = [from_list("T001", 3, "Write one"), from_list("T002", 4, "Write two")]


@pytest.mark.parametrize("lanes", [0, 2])
def test_a_box_is_ticked_in_the_commit_of_its_story(tmp_path: Path, lanes: int) -> None:
    """One story a commit, each with the mark of its own; what was not planned stays open."""
    toml = f"{WRITE_BACK}[lanes]\ncount = {lanes}\n"
    box = sandbox(
        tmp_path,
        WORKS,
        stories=STORIES,
        checks=[["true"]],
        toml=toml,
        files={"specs/tasks.md": TASKS},
    )
    done = box.run()
    assert done.code == 0, told(done)
    text = (box.root / "specs/tasks.md").read_text()
    assert text == TASKS.replace("[ ] T001", "[x] T001").replace("[ ] T002", "[x] T002")
    for name in ("T001", "T002"):
        (commit,) = box.git("log", "--format=%H", f"--grep={name}", "--", f"{name}.txt").split()
        changed = box.git("show", "--format=", commit, "--", "specs/tasks.md")
        assert [line for line in changed.splitlines() if line.startswith("+-")] == [
            f"+- [x] {name} Write {'one' if name == 'T001' else 'two'}"
        ]
    assert box.git("status", "--porcelain", "specs") == ""


def test_without_the_setting_the_list_is_left_alone(tmp_path: Path) -> None:
    """It is somebody else's file."""
    box = sandbox(
        tmp_path, WORKS, stories=STORIES, checks=[["true"]], files={"specs/tasks.md": TASKS}
    )
    assert box.run().code == 0
    assert (box.root / "specs/tasks.md").read_text() == TASKS


def test_a_box_that_the_agent_ticks_is_a_claim_and_is_put_back(tmp_path: Path) -> None:
    """It makes no story pass, and is no progress."""
    agent = """
    path = "specs/tasks.md"
    write(path, open(path).read().replace("[ ] T00", "[x] T00"))
    say("I worked.")
    """
    box = sandbox(
        tmp_path,
        agent,
        stories=STORIES[:1],
        checks=[["false"]],
        limits="max_iterations = 2",
        toml=WRITE_BACK,
        files={"specs/tasks.md": TASKS},
    )
    box.run("--allow-red")
    text = (box.root / "specs/tasks.md").read_text()
    assert "[ ] T001" in text
    assert box.passes() == {"T001": False}
    records = box.records()
    assert records
    assert all(one.evidence.files_changed == 0 for one in records)
    assert all(one.evidence.passes_set for one in records)


def test_an_item_that_is_gone_is_said_and_hinders_nothing(tmp_path: Path) -> None:
    """The list is a view: the story passes, and the report names what could not be marked."""
    box = sandbox(
        tmp_path,
        WORKS,
        stories=STORIES[:1],
        checks=[["true"]],
        toml=WRITE_BACK,
        files={"specs/tasks.md": "# Tasks\n\nAll gone.\n"},
    )
    done = box.run()
    assert done.code == 0, told(done)
    assert (box.root / "specs/tasks.md").read_text() == "# Tasks\n\nAll gone.\n"
