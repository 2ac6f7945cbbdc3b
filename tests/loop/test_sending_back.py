"""The morning "no": one story is taken out again, and done anew with a person's words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loop.guards import told
from tests.loop.projects import Sandbox, sandbox, story

GREEN = [["true"]]
WHY = "The parser must keep comments"
WORKS = """
more = "kept" if "must keep comments" in PROMPT else "first"
write(f"{STORY}.txt", more + "\\n"); done()
"""
SHARED = """
path = pathlib.Path("shared.txt")
path.write_text((path.read_text() if path.exists() else "") + f"{STORY}\\n"); done()
"""
COMMITS = """
write(f"{STORY}-a.txt"); subprocess.run(["git", "add", "-A"]); subprocess.run(["git", "commit", "-qm", "half"])
write(f"{STORY}-b.txt"); done()
"""


def files(box: Sandbox) -> set[str]:
    """The text files of the newest commit."""
    return {
        name for name in box.git("ls-tree", "-r", "--name-only", "HEAD").split() if "US-" in name
    }


def test_a_rejected_story_is_taken_out_alone_and_done_again(tmp_path: Path) -> None:
    """Its change goes by one commit, the others stay; the next prompt has the words."""
    box = sandbox(tmp_path, WORKS, stories=3, checks=GREEN)
    assert box.run().code == 0
    said = box.ralph("reject", "US-2", *WHY.split())
    assert said.code == 0, told(said)
    assert files(box) == {"US-1.txt", "US-3.txt"}
    assert box.passes() == {"US-1": True, "US-2": False, "US-3": True}
    assert box.git("status", "--porcelain") == ""
    assert box.subjects()[-1] == 'Revert "US-2: Do US-2"'
    assert WHY in box.git("log", "-1", "--format=%B")
    ref = said.out.split("git show ")[1].strip().rstrip(".")
    assert "US-2.txt" in box.git("show", "--stat", ref)
    assert "US-2" in box.ralph("stories").out
    done = box.run()
    assert done.code == 0, told(done)
    assert box.worked_on()[3:] == ["US-2"]
    assert "This story was done and sent back: " + WHY in box.prompt(4)
    assert (box.root / "US-2.txt").read_text() == "kept\n"
    assert box.passes() == {"US-1": True, "US-2": True, "US-3": True}


def test_what_the_agent_committed_on_the_way_goes_too(tmp_path: Path) -> None:
    """A story's own commits are its agent's and ours."""
    box = sandbox(tmp_path, COMMITS, stories=2, checks=GREEN)
    assert box.run().code == 0
    assert box.ralph("reject", "US-1", "no").code == 0
    assert files(box) == {"US-2-a.txt", "US-2-b.txt"}


def test_who_wrote_into_a_file_of_the_story_keeps_what_is_theirs(tmp_path: Path) -> None:
    """The file was the story's, the second line is another's: nobody stands on anybody."""
    box = sandbox(tmp_path, SHARED, stories=2, checks=GREEN)
    assert box.run().code == 0
    said = box.ralph("reject", "US-1", "no")
    assert said.code == 0, told(said)
    assert (box.root / "shared.txt").read_text() == "US-2\n"
    assert box.ralph("reject", "US-2", "no").code == 0
    assert not (box.root / "shared.txt").exists()
    assert box.git("status", "--porcelain") == ""


def test_the_newest_story_goes_without_a_check(tmp_path: Path) -> None:
    """What is left was checked when it was all there was."""
    box = sandbox(tmp_path, WORKS, stories=3, checks=GREEN)
    assert box.run().code == 0
    said = box.ralph("reject", "US-3", "no")
    assert said.code == 0, told(said)
    assert "running the checks" not in said.err
    assert "running the checks without US-1: true" in box.ralph("reject", "US-1", "no").err


def test_a_story_that_a_passed_one_depends_on_stays(tmp_path: Path) -> None:
    """The list itself says that the other one stands on it."""
    stories = [story("US-1"), story("US-2", dependsOn=["US-1"])]
    box = sandbox(tmp_path, WORKS, stories=stories, checks=GREEN)
    assert box.run().code == 0
    said = box.ralph("reject", "US-1", "no")
    assert said.code == 2
    assert "US-2 (Do US-2): it depends on US-1" in said.err
    assert box.passes() == {"US-1": True, "US-2": True}
    said = box.ralph("reject", "US-1", "no", "--with-dependents")
    assert said.code == 0, told(said)
    assert box.passes() == {"US-1": False, "US-2": False}


@pytest.mark.parametrize(
    ("name", "words"), [("US-2", "US-2 has not passed"), ("US-9", "there is no story 'US-9'")]
)
def test_only_what_passed_can_be_sent_back(tmp_path: Path, name: str, words: str) -> None:
    """Everything else has commands of its own."""
    box = sandbox(tmp_path, 'write("a"); done() if STORY == "US-1" else status()', stories=2)
    assert box.run("--max-iterations", "2").code == 3
    said = box.ralph("reject", name, "no")
    assert said.code == 64
    assert words in said.err


def test_changes_of_a_person_in_the_same_files_are_not_lost(tmp_path: Path) -> None:
    """What is not committed is theirs; they are asked to see to it first."""
    box = sandbox(tmp_path, WORKS, stories=1, checks=GREEN)
    assert box.run().code == 0
    (box.root / "US-1.txt").write_text("mine\n")
    said = box.ralph("reject", "US-1", "no")
    assert said.code == 66
    assert "US-1.txt has changes of yours" in said.err
    assert (box.root / "US-1.txt").read_text() == "mine\n"
    assert box.passes() == {"US-1": True}


def test_the_list_to_review_shows_what_was_asked_and_where_it_is(tmp_path: Path) -> None:
    """Without a terminal nothing is asked; the most doubtful stand first."""
    box = sandbox(tmp_path, WORKS, stories=2, checks=GREEN)
    assert box.run().code == 0
    shown = box.ralph("review").out
    assert "US-1: Do US-1" in shown
    assert "✗ US-1 works" in shown
    assert "none: no test speaks of it" in shown
    assert "CHANGE · 1 file, +1 −0" in shown
    assert "US-1.txt" in shown
    assert shown.index("US-1") < shown.index("US-2")
