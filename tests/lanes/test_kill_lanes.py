"""A run in lanes killed with SIGKILL at every point of its own, again and again, then continued.

Whatever the moment, each story lands exactly once, on a straight line, nothing of its work is lost
or doubled, the checkout is as its person left it and no process remains.  `make torture` kills at
later passes of every point and at random moments as well.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ralphloop.journal.queries import JournalReader
from tests.kill_points import EFFECT_POINTS, LANE_POINTS, to_be_killed_at
from tests.lanes.yards import stories_of, yard
from tests.loop.projects import Sandbox

TORTURE = int(os.environ.get("TORTURE_KILLS", "0"))
# b and c write the same file, so one of them comes back from landing and is put onto the other.
AGENT = """
text = pathlib.Path("base.txt").read_text()
if STORY in "bc" and f"from {STORY}" not in text:
    kept = [line for line in text.splitlines() if line[:1] not in "<=>|"]
    write("base.txt", "\\n".join(sorted({*kept, f"from {STORY}"} - {"base"})) + "\\n")
elif "<<<<" in text:
    kept = {line for line in text.splitlines() if line[:1] not in "<=>|"} - {"base"}
    write("base.txt", "\\n".join(sorted(kept)) + "\\n")
write(f"{STORY}.txt", STORY)
done()
"""
JOURNAL = [
    "journal.start_iteration.committed",
    "journal.set_agent_pid.committed",
    "journal.agent_ended.committed",
    "journal.finish_iteration.uncommitted",
    "journal.finish_iteration.committed",
    "journal.set_meta.committed",
    "journal.begin_run.committed",
    "journal.mark_applied.committed",
]
EFFECTS = [point for point in EFFECT_POINTS if "set_aside" not in point]
# A night in which nobody edits anything; those of edits are in test_edited, of trains in
# test_kill_train.
LANES = [point for point in LANE_POINTS if not point.startswith(("edited.", "train."))]
FIRST = [*LANES, *EFFECTS, *JOURNAL]
ONCE = ("lane.added", "journal.begin_run.committed")  # passed only before a run goes on
KILLS_A_NIGHT = 3


def nights() -> list[list[str]]:
    """Every point twice, mixed by a fixed seed, a few for each night."""
    later = [f"{point}:{n}" for point in FIRST for n in ((2, 3, 5) if TORTURE else ())]
    points = [*FIRST, *(point for point in FIRST if point not in ONCE), *later]
    random.Random(7).shuffle(points)
    nights = [points[at : at + KILLS_A_NIGHT] for at in range(0, len(points), KILLS_A_NIGHT)]
    return [sorted(night, key=lambda point: point not in ONCE) for night in nights]


def test_there_are_kills_enough() -> None:
    """At least forty in the ordinary profile, over lanes, landing, effects and journal."""
    assert sum(map(len, nights())) >= 40
    assert len(LANE_POINTS) >= 8


def night(tmp_path: Path) -> Sandbox:
    """Three stories, of which two meet and one depends on another."""
    stories = stories_of("a", "b", "c")
    stories[0]["dependsOn"] = ["b"]
    return yard(tmp_path, AGENT, stories=stories)


def assert_all_is_well(box: Sandbox) -> None:
    """As if nobody had ever killed it."""
    assert sorted(box.subjects()) == ["a: Do a", "b: Do b", "c: Do c", "start"]
    assert box.passes() == {"a": True, "b": True, "c": True}
    assert (box.root / "base.txt").read_text() == "from b\nfrom c\n"
    assert [(box.root / f"{name}.txt").read_text() for name in "abc"] == ["a", "b", "c"]
    assert box.git("status", "--porcelain") == ""
    assert box.git("log", "--merges", "--format=%h") == ""
    progress = (box.root / "progress.txt").read_text()
    assert progress.count("Outcome: passed") == 3, progress
    assert box.leftovers() == []
    assert [path.name for path in (box.root / ".git").rglob("*.lock")] == []
    marks = box.git("log", "--format=%(trailers:key=Ralph-Iteration,valueonly)").split()
    assert len(marks) == len(set(marks)) == 3


@pytest.mark.parametrize("points", nights(), ids=lambda points: points[0])
def test_a_night_in_lanes_survives_kills(tmp_path: Path, points: list[str]) -> None:
    """Killed at each of these points in turn and continued, every story lands exactly once."""
    box, text, kills = night(tmp_path), "", 0
    words: tuple[str, ...] = ("--lanes", "2")
    for point in points:
        done = box.run(*words, env=to_be_killed_at(point))
        text += f"\n--- {point}: {done.code}\n{done.text}"
        assert done.code in (-signal.SIGKILL, 0), text
        if done.code == 0:
            break
        kills += 1
        words = ("--continue",) if "continue" in words or begun(box) else ("--lanes", "2")
    else:
        done = box.run(*words)
        text += f"\n--- at last: {done.code}\n{done.text}"
    assert done.code == 0, text
    assert TORTURE or kills == len(points), text
    try:
        assert_all_is_well(box)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{text}") from error


def begun(box: Sandbox) -> bool:
    """Whether there is a run to continue."""
    with JournalReader.open(box.root / ".ralph/journal.db") as journal:
        return journal.latest_run() is not None


def test_an_agent_that_is_killed_is_started_again_in_its_lane(tmp_path: Path) -> None:
    """Somebody ends an agent of a lane: its story goes on, the others never notice."""
    agent = """
import signal
if STORY == "b" and START == 1:
    write("half.txt"); os.kill(os.getpid(), signal.SIGKILL)
write(f"{STORY}.txt", STORY); done()
"""
    box = yard(tmp_path, agent, stories=stories_of("a", "b"))
    done = box.run("--lanes", "2")
    assert done.code == 0, done.text
    assert (box.root / "half.txt").exists()
    assert sorted(box.subjects()) == ["a: Do a", "b: Do b", "start"]


@pytest.mark.skipif(not TORTURE, reason="make torture")
@pytest.mark.parametrize("seed", range(max(1, TORTURE // 10)))
def test_random_kills(tmp_path: Path, seed: int) -> None:
    """The same at any moment."""
    box, chance = night(tmp_path), random.Random(seed)
    words: tuple[str, ...] = ("--lanes", "2")
    for _ in range(10):
        with box.start(*words) as process:
            try:
                process.communicate(timeout=chance.uniform(0.05, 3))
            except subprocess.TimeoutExpired:
                process.kill()
        time.sleep(0.01)
        if process.returncode == 0:
            break
        words = ("--continue",) if begun(box) else words
    else:
        done = box.run(*words)
        assert done.code == 0, done.text
    assert_all_is_well(box)
