"""Second thoughts about a morning's "no": a story that was sent back stands as it stood."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from ralphloop.core.run_state import StoryState
from ralphloop.night.look import look
from ralphloop.night.reviews import to_review
from ralphloop.project import Project
from tests.kill_points import BRINGING_BACK_POINTS, to_be_killed_at
from tests.loop.guards import told
from tests.loop.projects import Sandbox, sandbox, story

APPENDS = """
path = pathlib.Path("shared.txt")
path.write_text((path.read_text() if path.exists() else "") + f"{STORY}\\n")
write(f"{STORY}.txt", "again" if "too slow" in PROMPT else "once"); done()
"""
ALL = "US-1\nUS-2\nUS-3\n"


def morning(tmp_path: Path) -> Sandbox:
    """Three stories that passed, the third of which stands on the second."""
    stories = [story("US-1"), story("US-2"), story("US-3", dependsOn=["US-2"])]
    box = sandbox(tmp_path, APPENDS, stories=stories, checks=[["true"]])
    assert box.run().code == 0
    return box


def states(box: Sandbox) -> dict[str, StoryState]:
    """How each story stands in the journal."""
    return {one.story.id: one.state for one in look(Project(box.root)).stories}


def waiting(box: Sandbox) -> list[str]:
    """What nobody has looked at."""
    found = to_review(Project(box.root), now=0.0)
    return sorted(one.look.story.id for one in found)


def test_a_rejection_is_undone_whole(tmp_path: Path) -> None:
    """Work, marks, grades and standing are back by one commit; it can be sent back once more."""
    box = morning(tmp_path)
    before = states(box)
    tree = box.git("ls-tree", "-r", "HEAD", "--", "shared.txt", "US-2.txt", "US-3.txt")
    assert box.ralph("reject", "US-2", "too slow", "--with-dependents").code == 0
    assert (box.root / "shared.txt").read_text() == "US-1\n"
    assert waiting(box) == ["US-1"]
    undone = box.ralph("reject", "us-3", "--undo")
    assert undone.code == 0, told(undone)
    assert "US-2, US-3 stand as before" in undone.out
    assert states(box) == before
    assert box.passes() == {"US-1": True, "US-2": True, "US-3": True}
    assert box.git("ls-tree", "-r", "HEAD", "--", "shared.txt", "US-2.txt", "US-3.txt") == tree
    assert box.git("status", "--porcelain") == ""
    assert box.subjects()[-1] == 'Reapply "US-2: Do US-2"'
    assert waiting(box) == ["US-1", "US-2", "US-3"]
    assert "3 passed" in box.ralph("stats").out
    assert "identical" in box.ralph("replay").out
    again = box.ralph("reject", "US-3", "--undo")
    assert (again.code, "was not sent back, or that was undone" in again.err) == (64, True)
    assert box.run().code == 0  # and every pass is upheld: nothing is done again
    assert len(box.worked_on()) == 3
    assert box.ralph("reject", "US-3", "too slow").code == 0
    assert (box.root / "shared.txt").read_text() == "US-1\nUS-2\n"
    assert box.run().code == 0
    assert (box.root / "US-3.txt").read_text() == "again"
    late = box.ralph("reject", "US-3", "--undo")
    assert late.code == 64
    assert "a run has begun since" in late.err
    assert "git revert" in late.err


def test_what_happened_since_is_in_the_way(tmp_path: Path) -> None:
    """Words about the story, changes of the same lines and uncommitted ones: nothing is changed."""
    box = morning(tmp_path)
    assert box.ralph("reject", "US-1", "too slow").code == 0
    (box.root / "US-1.txt").write_text("mine\n")
    uncommitted = box.ralph("reject", "US-1", "--undo")
    assert uncommitted.code == 66
    box.git("add", "-A")
    box.git("commit", "-qm", "Mine")
    clash = box.ralph("reject", "US-1", "--undo")
    assert clash.code == 66
    assert "US-1 cannot be brought back: US-1.txt was changed since" in clash.err
    box.git("revert", "--no-edit", "HEAD")
    assert box.ralph("skip", "US-1").code == 0
    spoken = box.ralph("reject", "US-1", "--undo")
    assert spoken.code == 64
    assert "something was said or done about US-1 since" in spoken.err
    assert box.passes() == {"US-1": False, "US-2": True, "US-3": True}
    assert not (box.root / "US-1.txt").exists()


def test_later_work_stays_and_the_checks_decide(tmp_path: Path) -> None:
    """Two stories were sent back and the first comes back alone; red checks keep it out."""
    box = sandbox(
        tmp_path, APPENDS, stories=3, checks=[["sh", "-c", "! test -e red || test ! -e US-1.txt"]]
    )
    assert box.run().code == 0
    assert box.ralph("reject", "US-1", "too slow").code == 0
    assert box.ralph("reject", "US-2", "too slow").code == 0
    (box.root / "red").touch()
    box.git("add", "red")
    box.git("commit", "-qm", "From now on red with it")
    refused = box.ralph("reject", "US-1", "--undo")
    assert refused.code == 66
    assert "later work does not go with it" in refused.err
    box.git("rm", "-q", "red")
    box.git("commit", "-qm", "And no longer")
    undone = box.ralph("reject", "US-1", "--undo")
    assert undone.code == 0, told(undone)
    assert "running the checks with US-1" in undone.err
    assert (box.root / "shared.txt").read_text() == "US-1\nUS-3\n"
    assert box.passes() == {"US-1": True, "US-2": False, "US-3": True}


@pytest.mark.parametrize("point", BRINGING_BACK_POINTS)
def test_whoever_is_killed_meanwhile_leaves_nothing_half_done(tmp_path: Path, point: str) -> None:
    """The next command does the rest."""
    box = morning(tmp_path)
    before = states(box)
    assert box.ralph("reject", "US-2", "too slow", "--with-dependents").code == 0
    killed = box.ralph("reject", "US-2", "--undo", env=to_be_killed_at(point))
    assert killed.code == -signal.SIGKILL, f"{point} was not passed: {told(killed)}"
    assert box.ralph("note", "Go on").code == 0
    assert states(box) == before
    assert (box.root / "shared.txt").read_text() == ALL
    assert box.subjects().count('Reapply "US-2: Do US-2"') == 1
    assert box.git("status", "--porcelain") == ""
