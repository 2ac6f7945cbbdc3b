"""What agents find in lanes becomes stories of the run where the settings say so, a few of them."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.kill_points import to_be_killed_at
from tests.lanes.test_limits import wait
from tests.lanes.yards import starts, stories_of, yard
from tests.loop.guards import told
from tests.loop.projects import Sandbox

# Every story finds something else.
FINDS = """
write(f"{STORY}.txt", STORY)
EDIT
done(f"Wrote it.\\n\\nFOUND: {STORY} of part{STORY}.py breaks the sums{STORY} of others.")
"""
TOML = "[stories]\naccept_found = true\nmax_found = 2\n"


def landed(box: Sandbox) -> list[str]:
    """The stories whose commits are in the person's branch."""
    return [line.partition(":")[0] for line in box.git("log", "--format=%s", "main").split("\n")]


@pytest.mark.parametrize("commit_list", [True, False], ids=["list in git", "list of the person"])
def test_a_run_takes_in_so_many_and_goes_on_with_them(tmp_path: Path, commit_list: bool) -> None:
    """They land like the others, the next one waits for a person, and the list has them."""
    agent = FINDS.replace("EDIT", "")
    box = yard(tmp_path, agent, stories=stories_of("a", "b"), toml=TOML, commit_list=commit_list)
    done = box.run("--lanes", "2", "--json")
    assert done.code == 0, told(done)
    became = [one["became"] for one in done.events("story_proposed") if one["became"]]
    assert sorted(became) == ["F-1", "F-2"]
    subjects = landed(box)
    for name in ("a", "b", "F-1", "F-2"):
        assert subjects.count(name) == 1
        assert box.git("show", f"main:{name}.txt") == name
    assert box.ralph("replay").code == 0
    assert box.passes() == {"a": True, "b": True, "F-1": True, "F-2": True}
    listed = json.loads((box.root / "prd.json").read_text())["userStories"]
    assert listed[-1]["notes"].startswith("Proposed as F-2: found by command at ")
    waiting = box.ralph("stories", "proposed").out
    assert "F-3" in waiting
    assert waiting.startswith("F-3")
    assert box.run("--lanes", "2").code == 0  # that was of the run before
    assert starts(box, "F-3") == 0


TAKING_IN = ("edited.committed", "edited.landed", "journal.set_meta.uncommitted")


def test_killed_while_it_takes_them_in_it_has_each_once(tmp_path: Path) -> None:
    """Between the list, its commit, the branch and the journal: each is one story and lands once."""
    box = yard(tmp_path, FINDS.replace("EDIT", ""), stories=stories_of("a", "b"), toml=TOML)
    text = ""
    words: tuple[str, ...] = ("--lanes", "2")
    for point in TAKING_IN:
        done = box.run(*words, env=to_be_killed_at(point))
        text += f"\n--- {point}: {done.code}\n{told(done)}"
        assert done.code == -signal.SIGKILL, text
        words = ("--continue",)
    done = box.run(*words)
    text += f"\n--- at last: {done.code}\n{told(done)}"
    assert done.code == 0, text
    subjects = landed(box)
    assert [subjects.count(name) for name in ("a", "b", "F-1", "F-2")] == [1, 1, 1, 1], text
    assert box.passes() == {"a": True, "b": True, "F-1": True, "F-2": True}, text
    listed = json.loads((box.root / "prd.json").read_text())["userStories"]
    assert sorted(one["id"] for one in listed) == ["F-1", "F-2", "a", "b"], text
    assert box.git("log", "--merges", "--format=%h") == "", text
    assert box.ralph("replay").code == 0, text
    assert box.leftovers() == []


def test_a_persons_edit_meanwhile_loses_none_of_them(tmp_path: Path) -> None:
    """Their text knows nothing of what was found; it is added again."""
    toml = TOML.replace("max_found = 2", "max_found = 1")
    agent = FINDS.replace("EDIT", 'if STORY == "F-1": say("at work"); until("edited")')
    box = yard(tmp_path, agent, stories=stories_of("a"), toml=toml)
    with box.start("--lanes", "1") as process:
        wait(box, "at work")
        path = box.root / "prd.json"
        mine = json.loads(path.read_text())
        mine["userStories"].append({**mine["userStories"][0], "id": "c", "title": "Do c"})
        path.write_text(json.dumps(mine, indent=2))
        box.git("commit", "-qam", "one more")
        (box.state / "edited").write_text("")
        out, err = process.communicate(timeout=100)
    assert process.returncode == 0, out + err
    assert {"a", "F-1", "c"} <= set(landed(box)), out + err
    assert box.passes() == {"a": True, "c": True, "F-1": True}


def test_without_the_setting_they_wait(tmp_path: Path) -> None:
    """A person decides."""
    box = yard(tmp_path, FINDS.replace("EDIT", ""), stories=stories_of("a", "b"))
    done = box.run("--lanes", "2")
    assert done.code == 0, told(done)
    assert box.passes() == {"a": True, "b": True}
    assert "F-2" in box.ralph("stories", "proposed").out
