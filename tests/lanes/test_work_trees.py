"""Work trees of lanes among others: two checkouts of one repository, and trees that are gone."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.lanes.test_run_branch import in_a_row
from tests.lanes.yards import landed_once, run_branch, starts, stories_of, yard
from tests.loop.projects import Sandbox

HONEST = 'write(f"{STORY}.txt", STORY)\ndone()\n'
# What an agent that is thorough, or a person, does to a work tree of lanes.
DEEDS = {
    "removed": "subprocess.run(['git', 'worktree', 'remove', '--force', '--force', str(tree)])",
    "deleted": "shutil.rmtree(tree)",
    "pruned": "shutil.rmtree(tree); subprocess.run(['git', '-C', HOME, 'worktree', 'prune'])",
}


def second_checkout(box: Sandbox, tmp_path: Path) -> Sandbox:
    """Another work tree of the same repository, on a branch of its own, with other stories."""
    root, state = box.root.with_name("second"), tmp_path / "second-state"
    box.git("worktree", "add", "-q", "-b", "second", str(root))
    state.mkdir()
    listed = {"project": "p", "userStories": stories_of("x", "y", "z")}
    (root / "prd.json").write_text(json.dumps(listed, indent=2))
    other = Sandbox(root, state)
    other.git("commit", "-qam", "other stories")
    return other


@pytest.mark.parametrize("where", ["", '[lanes]\nwhere = "../lanes"\n'], ids=["beside", "named"])
def test_two_checkouts_of_one_repository_work_at_once(tmp_path: Path, where: str) -> None:
    """Neither sees branches or work of the other: every story starts once and lands once."""
    agent = (
        """
say(STORY)
until({"a": "../second-state/x", "x": "../state/a"}.get(STORY, STORY))
subprocess.run(["git", "commit", "-q", "--allow-empty", "-m", "mine"], check=True)
"""
        + HONEST
    )
    box = yard(tmp_path, agent, stories=stories_of("a", "b", "c"), toml=where)
    other = second_checkout(box, tmp_path)
    with box.start("--lanes", "2") as first:
        theirs = other.run("--lanes", "2")
        out, err = first.communicate(timeout=100)
    assert (first.returncode, theirs.code) == (0, 0), out + err + theirs.text
    assert "rewritten" not in out + err + theirs.text
    assert [starts(box, name) for name in "abc"] == [1, 1, 1]
    assert [starts(other, name) for name in "xyz"] == [1, 1, 1]
    landed_once(box, "main", "a", "b", "c")
    landed_once(other, "second", "x", "y", "z", others=1)
    cleaned = other.ralph("lanes", "clean")
    assert cleaned.code == 0, cleaned.text
    trees = box.git("worktree", "list", "--porcelain").count("worktree ")
    assert trees == 2 + 3  # both checkouts, and what the first one still has


def test_two_projects_of_one_repository_have_lanes_of_their_own(tmp_path: Path) -> None:
    """What one left in a lane is not taken for the work of the other."""
    agent = (
        """
if STORY == "a" and START == 1: write("half.txt"); status(); sys.exit(0)
"""
        + HONEST
    )
    box = yard(tmp_path, agent, stories=stories_of("a"))
    part = box.root / "part"
    part.mkdir()
    for name in ("ralph.toml", ".gitignore"):
        (part / name).write_text((box.root / name).read_text())
    listed = {"project": "p", "userStories": stories_of("p")}
    (part / "prd.json").write_text(json.dumps(listed, indent=2))
    box.git("add", "-A")
    box.git("commit", "-qm", "part")
    assert box.run("--lanes", "1", "--max-iterations", "1").code == 3
    inner = Sandbox(part, box.state)
    done = inner.run("--lanes", "1")
    assert done.code == 0, done.text
    done = box.run("--continue", "--max-iterations", "5")
    assert done.code == 0, done.text
    assert box.subjects() == ["start", "part", "p: Do p"]
    branch = run_branch(box)
    assert box.git("log", "-1", "--format=%s", branch) == "a: Do a"
    assert box.git("show", "--name-only", "--format=", branch).split() == [
        "a.txt",
        "half.txt",
        "prd.json",
        "progress.txt",
    ]


@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.parametrize("which", ["landing", "1", "2"])
def test_a_tree_that_is_gone_is_made_again(tmp_path: Path, which: str, deed: str) -> None:
    """The landing tree, its own lane or another's: said, and no night ends for it."""
    agent = f"""
import shutil
HOME = {str(tmp_path / "box" / "project")!r}
tree = pathlib.Path(HOME + ".lanes", {which!r})
write("half.txt", STORY) if STORY == "c" else None
if STORY in ("b", "c"): say(STORY); until({{"b": "c", "c": "b"}}[STORY])
if STORY == "b" and START == 1:
    {DEEDS[deed]}
    say("gone")
if STORY == "c": until("gone")
os.makedirs(os.getcwd() if os.path.exists(".") else "/", exist_ok=True)
try:
    write(f"{{STORY}}.txt", STORY)
except OSError:
    pass
done()
"""
    stories = [*in_a_row("a", "b"), *in_a_row("a", "c")[1:], *in_a_row("b", "d")[1:]]
    box = yard(tmp_path, agent, stories=stories)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = box.run("--lanes", "2", env={"TMPDIR": str(temporary)})
    assert done.code == 0, done.text
    subjects = box.subjects()
    assert sorted(subjects) == ["a: Do a", "b: Do b", "c: Do c", "d: Do d", "start"]
    assert "half.txt" in box.git("show", "--name-only", "--format=", "HEAD~1", "HEAD", "HEAD~2")
    assert all(box.passes().values())
    assert box.ralph("replay").code == 0
    assert box.leftovers() == []
    assert [it.name for it in temporary.iterdir()] == []
    assert box.ralph("lanes", "clean").code == 0
    assert box.git("fsck", "--no-dangling") == ""


@pytest.mark.parametrize("deed", DEEDS)
def test_all_trees_gone_while_the_run_is_over_are_made_again(tmp_path: Path, deed: str) -> None:
    """`--continue` and a new run begin from what is saved, and say that they do."""
    agent = f"""
if STORY == "a" and START == 1: write("half.txt"); status(); sys.exit(0)
{HONEST}"""
    box = yard(tmp_path, agent, stories=stories_of("a", "b"))
    assert box.run("--lanes", "1", "--max-iterations", "1").code == 3
    lanes = box.root.with_name("project.lanes")
    for tree in sorted(lanes.iterdir()):
        if deed == "removed":
            box.git("worktree", "remove", "--force", "--force", str(tree))
        else:
            subprocess.run(["rm", "-rf", str(tree)], check=True)
    if deed == "pruned":
        box.git("worktree", "prune")
    done = box.run("--continue", "--max-iterations", "9")
    assert done.code == 0, done.text
    assert "were deleted" in done.text
    assert sorted(box.subjects()) == ["a: Do a", "b: Do b", "start"]
    assert box.ralph("replay").code == 0
    assert not list(Path(tempfile.gettempdir()).glob(f"ralph-*/index-{box.root.name}"))
