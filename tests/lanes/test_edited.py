"""The story file in the checkout is edited while lanes work: a person's word, without its marks.

The hand of the person is borrowed from an agent, which says nothing of it: so the edit happens at a
known moment of the run.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kill_points import to_be_killed_at
from tests.lanes.yards import prompt, starts, stories_of, yard
from tests.loop.projects import Done, Sandbox

HONEST = 'write(f"{STORY}.txt", STORY)\ndone()\n'
PERSON = """
ROOT = pathlib.Path({root!r})
def edited(change, name="prd.json"):
    data = json.loads((ROOT / name).read_text())
    change(data["userStories"])
    (ROOT / name).write_text(json.dumps(data, indent=2))

def committed(*paths):
    env = {{k: v for k, v in os.environ.items() if not k.startswith("GIT_")}}
    git = ["git", "-C", str(ROOT), "-c", "user.name=me", "-c", "user.email=me@example.org"]
    subprocess.run([*git, "commit", "-qm", "mine", *paths], check=True, env=env)

def added(stories, name="c"):
    stories.append({{**stories[0], "id": name, "title": f"Do {{name}}", "passes": False}})
"""
ADDS = 'if STORY == "a" and START == 1: edited(added)\n'


def box_of(tmp_path: Path, agent: str, *names: str) -> Sandbox:
    """A repository of these stories whose agents also lend their hand to the person."""
    person = PERSON.format(root=str(tmp_path / "box" / "project"))
    return yard(tmp_path, person + agent + HONEST, stories=stories_of(*(names or ("a", "b"))))


def branch_of(box: Sandbox) -> str:
    """What stories land on."""
    return box.git("branch", "--list", "ralph/2*", "--format=%(refname:short)")


def changes(done: Done) -> list[str]:
    """What was said of edits."""
    return [words for event in done.events("stories_edited") for words in event["changes"]]


@pytest.mark.parametrize("how", ["--continue", "--lanes=1"])
def test_an_edit_between_two_parts_of_a_run_opens_nothing_that_landed(
    tmp_path: Path, how: str
) -> None:
    """The marks in the checkout are as old as the run: what landed stays passed."""
    box = box_of(tmp_path, 'if STORY == "a": edited(lambda it: it[1].update(title="B!"))\n')
    assert box.run("--lanes", "1", "--max-iterations", "1").code == 3
    assert box.passes() == {"a": False, "b": False}
    done = box.run(how, "--max-iterations", "9")
    assert done.code == 0, done.text
    assert starts(box, "a") == starts(box, "b") == 1
    assert box.git("log", "--format=%s", branch_of(box)).split("\n")[0] == "b: B!"


def test_a_story_that_is_added_is_worked_on_and_the_edit_stays(tmp_path: Path) -> None:
    """Not committed: said once everywhere, landed, and the printed command brings all of it."""
    box = box_of(tmp_path, ADDS)
    done = box.run("--lanes", "1", "--json")
    assert done.code == 0, done.text
    assert changes(done) == ["c was added by you; it is worked on as well"]
    assert [starts(box, name) for name in "abc"] == [1, 1, 1]
    assert "c was added by you" in box.ralph("status").out
    assert "c was added by you" in box.ralph("report").out
    mine, branch = (box.root / "prd.json").read_text(), branch_of(box)
    assert box.passes() == {"a": False, "b": False, "c": False}
    command = f"git stash push prd.json && git merge {branch}"
    assert f"to have it: {command} (it has your edit of prd.json)" in done.err
    box.git("stash", "push", "-q", "prd.json")
    assert box.git("show", "stash@{0}:prd.json") == mine
    box.git("merge", "-q", branch)
    assert box.passes() == {"a": True, "b": True, "c": True}


def test_an_edit_that_is_committed_is_part_of_the_branch(tmp_path: Path) -> None:
    """The branch of the checkout is moved forward all the same, and nothing is in conflict."""
    agent = 'if STORY == "b": edited(added)\nif STORY == "c": committed("prd.json")\n'
    box = box_of(tmp_path, agent)
    done = box.run("--lanes", "1", "--json")
    assert done.code == 0, done.text
    assert len(changes(done)) == 1
    assert "main has what landed" in done.err
    assert box.passes() == {"a": True, "b": True, "c": True}
    assert box.git("status", "--porcelain") == ""
    assert "mine" in box.subjects()


def test_an_edit_that_is_committed_first_keeps_the_line_straight(tmp_path: Path) -> None:
    """Nothing had landed: the run goes on from the person's commit."""
    agent = 'if STORY == "a" and START == 1:\n  edited(added)\n  committed("prd.json")\n'
    box = box_of(tmp_path, agent + "  status()\n  sys.exit()\n")
    done = box.run("--lanes", "1", "--json")
    assert done.code == 0, done.text
    assert box.subjects()[:2] == ["start", "mine"]
    assert sorted(box.subjects()[2:]) == ["a: Do a", "b: Do b", "c: Do c"]
    assert box.git("log", "--format=%H", "--merges") == ""


def test_other_work_that_is_committed_with_it_stays_outside(tmp_path: Path) -> None:
    """The story is taken over; the branch waits for the merge that is said."""
    agent = 'if STORY == "a":\n  edited(added)\n  (ROOT / "base.txt").write_text("mine")\n'
    box = box_of(tmp_path, agent + '  committed("prd.json", "base.txt")\n')
    done = box.run("--lanes", "1", "--json")
    assert done.code == 0, done.text
    assert starts(box, "c") == 1
    assert f"to have it: git merge {branch_of(box)}." in done.err
    seen = " ".join(box.ralph("status").out.split())
    assert f"to have it: git merge {branch_of(box)}" in seen
    assert f"`git log --stat {branch_of(box)}`" in seen
    assert box.git("show", f"{branch_of(box)}:base.txt") == "base"


def test_a_commit_of_something_else_is_no_edit_of_the_stories(tmp_path: Path) -> None:
    """A story that an agent added meanwhile, and the checkout has not, is still worked on."""
    agent = """
if STORY == "a": edited(added, str(pathlib.Path("prd.json").resolve()))
if STORY == "b":
    (ROOT / "base.txt").write_text("mine")
    committed("base.txt")
"""
    box = box_of(tmp_path, agent)
    done = box.run("--lanes", "1", "--json")
    assert done.code == 0, done.text
    assert changes(done) == []
    assert starts(box, "c") == 1


def test_a_file_in_the_middle_of_an_edit_holds_nothing(tmp_path: Path) -> None:
    """Said once; the stories stay as they were, until it can be read again."""
    agent = """
if STORY == "a":
    (STATE / "whole").write_text((ROOT / "prd.json").read_text())
    (ROOT / "prd.json").write_text('{"userStories": [')
if STORY == "c":
    (ROOT / "prd.json").write_text((STATE / "whole").read_text())
    edited(lambda it: added(it, "d"))
"""
    box = box_of(tmp_path, agent, "a", "b", "c")
    done = box.run("--lanes", "1", "--json")
    assert done.code == 0, done.text
    broken, added = changes(done)
    assert "prd.json in your checkout cannot be read" in broken
    assert added == "d was added by you; it is worked on as well"
    assert done.events("waiting") == []
    assert [starts(box, name) for name in "abcd"] == [1, 1, 1, 1]


def test_a_file_that_is_still_broken_at_the_end_is_kept(tmp_path: Path) -> None:
    """The printed command puts the edit aside and back."""
    box = box_of(tmp_path, 'if STORY == "b": (ROOT / "prd.json").write_text("{")\n')
    done = box.run("--lanes", "1")
    assert done.code == 0, done.text
    command = f"git stash push prd.json && git merge {branch_of(box)} && git stash pop"
    assert f"to have it: {command}." in done.err
    assert (box.root / "prd.json").read_text() == "{"


def test_changed_and_removed_stories(tmp_path: Path) -> None:
    """What a story asks for now is in its next prompt; one that is gone is not started."""
    agent = """
def change(stories):
    stories[1]["acceptanceCriteria"] = ["it is blue"]
    del stories[2]
if STORY == "a": edited(change)
"""
    box = box_of(tmp_path, agent, "a", "b", "c")
    done = box.run("--lanes", "1", "--json")
    assert done.code == 0, done.text
    assert changes(done) == [
        "b was changed by you; its next start is told so",
        "c was removed by you; it is not started any more",
    ]
    assert "it is blue" in prompt(box, "b", 1)
    assert starts(box, "c") == 0


def test_a_story_that_is_removed_while_it_is_worked_on_lands(tmp_path: Path) -> None:
    """Its work was done; it is not started again."""
    agent = """
if STORY == "a":
    edited(lambda it: it.pop(1))
    say("edited")
if STORY == "b": until("landed")
if STORY == "c": say("landed")
"""
    box = box_of(tmp_path, agent, "a", "b", "c")
    done = box.run("--lanes", "2", "--json")
    assert done.code == 0, done.text
    assert starts(box, "b") == 1
    branch = branch_of(box)
    assert box.git("show", f"{branch}:b.txt") == "b"
    assert '"b"' not in box.git("show", f"{branch}:prd.json")


def test_a_mark_in_the_checkout_is_no_pass(tmp_path: Path) -> None:
    """While agents work only what lands counts; it is said."""
    agent = 'if STORY == "a": edited(lambda it: it[1].update(passes=True))\n'
    box = box_of(tmp_path, agent)
    done = box.run("--lanes", "1", "--json")
    assert done.code == 0, done.text
    (said,) = changes(done)
    assert said.startswith("b was marked as passed by you")
    assert starts(box, "b") == 1


def test_an_agent_does_not_edit_in_the_name_of_a_person(tmp_path: Path) -> None:
    """What it may have written waits for a commit of the person's."""
    agent = """
if STORY == "a":
    print(ROOT / "prd.json")
    edited(added)
if STORY == "b": committed("prd.json")
"""
    box = box_of(tmp_path, agent)
    done = box.run("--lanes", "1", "--json")
    assert done.code == 0, done.text
    waits, added = changes(done)
    assert "once you commit it" in waits
    assert added.startswith("c was added by you")
    order = [event["story"] for event in done.events("iteration_started")]
    assert order == ["a", "b", "c"]


@pytest.mark.parametrize("point", ["edited.committed", "edited.landed", "landing.landed"])
def test_an_edit_and_a_kill(tmp_path: Path, point: str) -> None:
    """The next part of the run has the edit, and each story lands exactly once."""
    box = box_of(tmp_path, ADDS)
    killed = box.run("--lanes", "1", env=to_be_killed_at(point))
    assert killed.code == -9, killed.text
    done = box.run("--continue", "--json")
    assert done.code == 0, done.text
    assert [starts(box, name) for name in "abc"] == [1, 1, 1]
    subjects = box.git("log", "--format=%s", branch_of(box)).split("\n")
    assert sorted(subjects) == sorted(
        ["start", "prd.json as it was edited during the run", "a: Do a", "b: Do b", "c: Do c"]
    )


def test_another_branch_in_the_checkout_is_no_edit(tmp_path: Path) -> None:
    """Its story file is of something else; the run goes on with its own."""
    agent = """
if STORY == "a":
    git = ["git", "-C", str(ROOT)]
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    subprocess.run([*git, "switch", "-qc", "other"], check=True, env=env)
    edited(added)
"""
    box = box_of(tmp_path, agent)
    done = box.run("--lanes", "1", "--json")
    assert done.code == 0, done.text
    assert changes(done) == []
    assert starts(box, "c") == 0


def test_an_edit_is_taken_over_to_the_branch_of_the_stories(tmp_path: Path) -> None:
    """Nobody is switched to it; the command that does puts the edit aside."""
    box = box_of(tmp_path, ADDS)
    data = json.loads((box.root / "prd.json").read_text())
    (box.root / "prd.json").write_text(json.dumps({**data, "branchName": "feature/x"}, indent=2))
    box.git("commit", "-qam", "named")
    done = box.run("--lanes", "1")
    assert done.code == 0, done.text
    assert "to have it: git stash push prd.json && git switch feature/x (it has" in done.err
    box.git("stash", "push", "-q", "prd.json")
    box.git("switch", "-q", "feature/x")
    assert box.passes() == {"a": True, "b": True, "c": True}
