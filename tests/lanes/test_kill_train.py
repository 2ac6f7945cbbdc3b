"""A train killed with SIGKILL at every point of its own, then continued.

Whatever the moment, and while several stories are judged at once, each story lands exactly once, on
a straight line, with its mark, its grade and nothing left behind.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.kill_points import LANE_POINTS, to_be_killed_at
from tests.lanes.yards import stories_of, yard
from tests.loop.projects import CALC, TESTS, UNITTEST
from tests.loop.test_stories import known_grades

NAMES = "abcde"
FILES = {"calc.py": CALC, "tests/__init__.py": "", "tests/test_calc.py": TESTS}
AGENT = """
write(f"{STORY}.py", f"def of_{STORY}(x):\\n    return x + {ord(STORY)}\\n")
write(f"tests/test_{STORY}.py", f"import unittest, {STORY}\\nclass T(unittest.TestCase):\\n"
      f"    def test_{STORY}(self):\\n        self.assertEqual({STORY}.of_{STORY}(3), "
      f"{ord(STORY) + 3})\\n")
done()
"""
NIGHTS = (
    ("train.laid:2", "train.judged"),
    ("train.turn", "train.taken:2"),
    ("experiment.written:2", "experiment.ran"),
)


def test_no_point_of_the_train_is_left_out() -> None:
    """A new one has to be killed at as well."""
    own = {point for point in LANE_POINTS if point.startswith("train.")}
    assert own == {point.partition(":")[0] for night in NIGHTS[:-1] for point in night}


@pytest.mark.parametrize("points", NIGHTS, ids=lambda points: points[0])
def test_a_train_survives_kills(tmp_path: Path, points: tuple[str, ...]) -> None:
    """Killed at each of these points in turn and continued, every story lands exactly once."""
    box = yard(
        tmp_path,
        AGENT,
        stories=stories_of(*NAMES),
        checks=UNITTEST,
        files=FILES,
        toml="[lanes]\ntrain = 3",
    )
    text = ""
    words: tuple[str, ...] = ("--lanes", "3")
    for point in points:
        done = box.run(*words, env=to_be_killed_at(point))
        text += f"\n--- {point}: {done.code}\n{done.text}"
        assert done.code == -signal.SIGKILL, text
        words = ("--continue",)
    done = box.run(*words)
    text += f"\n--- at last: {done.code}\n{done.text}"
    assert done.code == 0, text
    subjects = box.subjects()
    assert sorted(subjects) == [*(f"{name}: Do {name}" for name in NAMES), "start"], text
    assert box.passes() == dict.fromkeys(NAMES, True), text
    assert known_grades(box) == dict.fromkeys(NAMES, "verified"), text
    assert box.git("status", "--porcelain") == "", text
    assert box.git("log", "--merges", "--format=%h") == "", text
    progress = (box.root / "progress.txt").read_text()
    assert progress.count("Outcome: passed") == len(NAMES), progress
    marks = box.git("log", "--format=%(trailers:key=Ralph-Iteration,valueonly)").split()
    assert len(marks) == len(set(marks)) == len(NAMES), text
    assert box.ralph("replay").code == 0, text
    assert box.leftovers() == []
    assert [path.name for path in (box.root / ".git").rglob("*.lock")] == []
