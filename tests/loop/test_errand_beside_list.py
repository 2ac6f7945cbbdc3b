"""After `ralph do` the list of the project is there again, and the errand beside it."""

from __future__ import annotations

import json
from pathlib import Path

from tests import sentences
from tests.loop.guards import told
from tests.loop.projects import Sandbox, sandbox

MAKES = "write('made.txt' if STORY.startswith('DO-') else f'{STORY}.txt', STORY); done()"
IS_MADE = "test -f made.txt"
ASKS = f"""
if STORY.startswith("DO-") and START == 1: status("BLOCKED", recommendation="Which name?")
else: {MAKES}
"""


def errand(box: Sandbox) -> str:
    """Have something done, and its name."""
    done = box.ralph("do", "make the file", "--verify", IS_MADE)
    assert done.code in (0, 2), told(done)
    return box.worked_on()[-1]


def test_the_stories_of_the_project_are_shown_again(tmp_path: Path) -> None:
    """`ralph stories`: three to do, in their order; what was done in between stands below."""
    box = sandbox(tmp_path, MAKES, stories=3)
    name = errand(box)
    shown = box.ralph("stories").out
    for story in ("US-1", "US-2", "US-3"):
        assert f"{story}: Do {story}" in shown
    assert "0 of 3 stories passed" in shown
    assert "from prd.json" in shown
    assert f"{name}: make the file" in shown
    assert sentences.NOT_LISTED not in shown
    found = json.loads(box.ralph("stories", "--json").out)
    assert [one["id"] for one in found["stories"]] == ["US-1", "US-2", "US-3"]
    assert [(one["id"], one["state"], one["grade"]) for one in found["errands"]] == [
        (name, "passed", "verified")
    ]


def test_status_shows_the_list_and_the_errand(tmp_path: Path) -> None:
    """Nothing of the list has run yet; the errand is told with its grade, the next step is a run."""
    box = sandbox(tmp_path, MAKES, stories=3)
    name = errand(box)
    shown = box.ralph("status").out
    assert "0 of 3 passed" in shown
    assert "one-off task" in shown
    assert "errand" not in shown
    assert f"{name} “make the file”: passed (verified)" in shown
    assert "`ralph run`" in shown
    found = box.status()
    assert found["stories"]["total"] == 3
    assert found["state"] == "none"
    assert [one["id"] for one in found["errands"]] == [name]


def test_a_night_and_an_errand_stand_beside_each_other(tmp_path: Path) -> None:
    """The night is shown as ever, and what was done after it."""
    box = sandbox(tmp_path, MAKES, stories=3)
    assert box.run("--max-iterations", "1").code == 3
    name = errand(box)
    shown = box.ralph("status").out
    assert "1 of 3 passed" in shown
    assert f"{name} “make the file”: passed" in shown
    assert "`ralph run --continue" in shown
    assert name in box.ralph("stories").out
    assert box.run("--continue", "--max-iterations", "9").code == 0
    assert box.passes() == {"US-1": True, "US-2": True, "US-3": True}


def test_the_first_night_after_an_errand_knows_nothing_of_it(tmp_path: Path) -> None:
    """What became of it is no story of the list."""
    box = sandbox(tmp_path, MAKES, stories=2)
    name = errand(box)
    assert box.run().code == 0
    shown = box.ralph("stories").out
    assert name not in shown
    assert "2 of 2 stories passed" in shown
    found = box.status()
    assert (found["stories"]["passed"], found["stories"]["total"]) == (2, 2)
    assert found["errands"] == []


def test_an_errand_that_asks_is_not_lost(tmp_path: Path) -> None:
    """Its question stands among what a person can do; answered, it goes on."""
    box = sandbox(tmp_path, ASKS, stories=2)
    name = errand(box)
    shown = box.ralph("status").out
    assert "0 of 2 passed" in shown
    assert "Which name?" in shown
    assert f"ralph answer {name}" in shown
    assert box.ralph("answer", name, "made.txt, please").code == 0
    assert sentences.GO_ON in box.ralph("status").out
    assert box.run("--continue").code == 0
    assert box.passes() == {"US-1": False, "US-2": False}
    assert "passed" in box.ralph("stories").out.partition(name)[2]


def test_an_errand_can_be_reviewed_beside_the_night(tmp_path: Path) -> None:
    """What passed since the night began waits for a person's eyes as well."""
    box = sandbox(tmp_path, MAKES, stories=1)
    assert box.run().code == 0
    name = errand(box)
    shown = box.ralph("review").out
    assert "US-1: Do US-1" in shown
    assert f"{name}: make the file" in shown


def test_a_story_of_the_list_can_be_steered_after_an_errand(tmp_path: Path) -> None:
    """Nothing of the list has run: that is said, and not that there is no such story."""
    box = sandbox(tmp_path, MAKES, stories=1)
    errand(box)
    said = box.ralph("skip", "US-1")
    assert "there is no story" not in said.text
    assert "nothing of the list has run yet" in said.text


def test_without_a_story_list_the_errand_alone_is_shown(tmp_path: Path) -> None:
    """A project may have none."""
    box = sandbox(tmp_path, MAKES, stories=1)
    box.git("rm", "-q", "prd.json")
    box.git("commit", "-qm", "none")
    name = errand(box)
    shown = box.ralph("stories")
    assert shown.code == 0, told(shown)
    assert f"{name}: make the file" in shown.out
    assert f"{name} “make the file”: passed" in box.ralph("status").out


def test_the_monitor_shows_the_list_too(tmp_path: Path) -> None:
    """Screen and page look through the same eyes; the question of an errand is there as well."""
    box = sandbox(tmp_path, ASKS, stories=2)
    name = errand(box)
    shown = box.ralph("monitor", "--once").out
    assert "US-1" in shown
    assert "US-2" in shown
    assert name in shown
    assert "Which name?" in shown
