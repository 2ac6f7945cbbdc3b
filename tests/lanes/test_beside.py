"""Agents in lanes know of each other."""

from __future__ import annotations

from pathlib import Path

from tests.loop.guards import told
from tests.loop.projects import sandbox

SLOW = """
write(f"{STORY}.txt", STORY)
if STORY == "US-1":
    while not os.path.exists(os.environ["TEST_STATE"] + "/prompt-3"): time.sleep(0.05)
elif STORY == "US-2":
    while not os.path.exists(os.environ["TEST_STATE"] + "/prompt-2"): time.sleep(0.05)
done()
"""


def test_a_lane_is_told_what_is_worked_on_beside_it(tmp_path: Path) -> None:
    """The third story begins while the first goes on: its prompt names it, with its files."""
    box = sandbox(tmp_path, SLOW, stories=3, checks=[["true"]])
    done = box.run("--lanes", "2")
    assert done.code == 0, told(done)
    third = next(box.prompt(n) for n in (1, 2, 3) if "# Your story: US-3" in box.prompt(n))
    beside = third.partition("# Worked on beside you")[2]
    assert "- US-1: Do US-1, so far in US-1.txt\n" in beside
    assert "US-2" not in beside
