"""Whoever is killed while a story is taken out leaves nothing half done."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.kill_points import EXPERIMENT_POINTS, REJECTION_POINTS, to_be_killed_at
from tests.loop.guards import told
from tests.loop.projects import Sandbox, sandbox

APPENDS = """
path = pathlib.Path("shared.txt")
path.write_text((path.read_text() if path.exists() else "") + f"{STORY}\\n")
write(f"{STORY}.txt", "again" if "too slow" in PROMPT else "once"); done()
"""
WHILE_CHECKS_RAN = [point for point in EXPERIMENT_POINTS if point != "experiment.ran"]


def morning(tmp_path: Path) -> Sandbox:
    """Three stories that passed."""
    box = sandbox(tmp_path, APPENDS, stories=3, checks=[["true"]])
    assert box.run().code == 0
    return box


def kill_reject(box: Sandbox, point: str) -> None:
    """Reject the first story, and be killed at a point."""
    done = box.ralph("reject", "US-1", "too", "slow", env=to_be_killed_at(point))
    assert done.code == -signal.SIGKILL, f"{point} was not passed: {told(done)}"


@pytest.mark.parametrize("point", REJECTION_POINTS)
def test_the_next_run_does_the_rest(tmp_path: Path, point: str) -> None:
    """The story is out by one commit, and done again with the person's words."""
    box = morning(tmp_path)
    kill_reject(box, point)
    done = box.run()
    assert done.code == 0, told(done)
    assert "finished what was cut off: US-1 sent back" in done.text
    assert box.subjects().count('Revert "US-1: Do US-1"') == 1
    assert box.prompt(4).count("This story was done and sent back: too slow") == 1
    assert (box.root / "shared.txt").read_text() == "US-2\nUS-3\nUS-1\n"
    assert box.git("status", "--porcelain") == ""


@pytest.mark.parametrize("point", REJECTION_POINTS)
def test_the_next_command_does_the_rest(tmp_path: Path, point: str) -> None:
    """Nobody has to start a run for it."""
    box = morning(tmp_path)
    kill_reject(box, point)
    said = box.ralph("reject", "US-2", "no")
    assert said.code == 0, told(said)
    assert box.passes() == {"US-1": False, "US-2": False, "US-3": True}
    assert (box.root / "shared.txt").read_text() == "US-3\n"
    assert box.git("status", "--porcelain") == ""


@pytest.mark.parametrize("point", WHILE_CHECKS_RAN)
def test_killed_while_the_checks_ran_nothing_is_out(tmp_path: Path, point: str) -> None:
    """The files come back, and the story can be sent back again."""
    box = morning(tmp_path)
    kill_reject(box, point)
    assert box.passes() == {"US-1": True, "US-2": True, "US-3": True}
    said = box.ralph("reject", "US-1", "too", "slow")
    assert said.code == 0, told(said)
    assert (box.root / "shared.txt").read_text() == "US-2\nUS-3\n"
    assert not (box.root / "US-1.txt").exists()
    assert box.git("status", "--porcelain") == ""
