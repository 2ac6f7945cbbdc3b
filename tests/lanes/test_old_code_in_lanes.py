"""In lanes, too, a story is compared with what has landed without it, and not with its beginning."""

from __future__ import annotations

from pathlib import Path

from tests.lanes.yards import stories_of, yard
from tests.loop.guards import told
from tests.loop.projects import CALC, IGNORED, TESTS, UNITTEST, Sandbox, story
from tests.loop.test_stories import known_grades

ALWAYS = '[proof]\nexperiments = "always"\n'
FILES = {"calc.py": CALC, "tests/__init__.py": "", "tests/test_calc.py": TESTS, **IGNORED}
EDIT = """
calc, tests = pathlib.Path("calc.py"), pathlib.Path("tests/test_calc.py")
def add(path, text): path.write_text(path.read_text() + text)
def asks(): status("BLOCKED", recommendation="Which colour?")
def halves():
    add(calc, "def halve(x):\\n    return x // 2\\n\\n\\n")
    add(tests, "    def test_halves(self):\\n        self.assertEqual(calc.halve(4), 2)\\n\\n")
    done()
"""


def answered(box: Sandbox) -> None:
    """A night with a question of `a`, its answer, and the rest of the night."""
    done = box.run("--lanes", "2")
    assert done.code == 2, told(done)
    assert box.ralph("answer", "a", "blue").code == 0
    done = box.run("--continue")
    assert done.code == 0, told(done)
    assert box.ralph("replay").code == 0


def test_the_test_of_a_story_that_landed_meanwhile_proves_nothing(tmp_path: Path) -> None:
    """`a` asks, `b` lands with a test, `a` writes one wrong file: checked."""
    agent = (
        EDIT
        + """
if STORY == "b": halves()
elif START == 1: write("half.py", "HALF = 1\\n"); asks()
else: write("colour.py", "COLOUR = 'red'\\n"); done()
"""
    )
    box = yard(
        tmp_path, agent, stories=stories_of("a", "b"), checks=UNITTEST, files=FILES, toml=ALWAYS
    )
    answered(box)
    assert known_grades(box) == {"a": "checked", "b": "verified"}


def test_work_before_the_question_is_still_the_storys_own(tmp_path: Path) -> None:
    """The test it wrote in its first start verifies it, although `b` landed in between."""
    agent = (
        EDIT
        + """
if STORY == "b": halves()
elif START == 1:
    calc.write_text("def third(x):\\n    return x // 3\\n\\n\\n" + calc.read_text())
    write("tests/test_third.py", "import unittest, calc\\nclass T(unittest.TestCase):\\n"
          "    def test_thirds(self):\\n        self.assertEqual(calc.third(9), 3)\\n")
    asks()
else: write("notes.md", "blue\\n"); done()
"""
    )
    box = yard(
        tmp_path, agent, stories=stories_of("a", "b"), checks=UNITTEST, files=FILES, toml=ALWAYS
    )
    answered(box)
    assert known_grades(box) == {"a": "verified", "b": "verified"}
    reasons = next(
        it.verdict.reasons
        for it in box.records()
        if it.story and it.story.id == "a" and it.verdict.passed
    )
    assert "test_thirds" in reasons[0]
    assert "test_halves" not in reasons[0]


def test_a_verify_that_turned_green_by_what_landed_proves_nothing(tmp_path: Path) -> None:
    """Red when `a` began, green by `b`, which made the same file: it says nothing about `a`."""
    agent = (
        EDIT
        + """
if STORY == "b": write("made.txt"); done()
elif START == 1: asks()
else: write("made.txt"); write("colour.py", "COLOUR = 'red'\\n"); done()
"""
    )
    stories = [story("a", priority=1, verify="test -f made.txt"), story("b", priority=2)]
    box = yard(tmp_path, agent, stories=stories, checks=UNITTEST, files=FILES, toml=ALWAYS)
    answered(box)
    assert known_grades(box)["a"] == "checked"


def test_a_verify_that_is_the_storys_own_doing_still_proves_it(tmp_path: Path) -> None:
    """Red on everything that landed, green with the story: verified."""
    agent = (
        EDIT
        + """
if STORY == "b": halves()
elif START == 1: write("half.py", "HALF = 1\\n"); asks()
else: write("made.txt"); done()
"""
    )
    stories = [story("a", priority=1, verify="test -f made.txt"), story("b", priority=2)]
    box = yard(tmp_path, agent, stories=stories, checks=UNITTEST, files=FILES, toml=ALWAYS)
    answered(box)
    assert known_grades(box)["a"] == "verified"


def test_after_a_rejection_nobody_is_accused_of_the_test_that_went(tmp_path: Path) -> None:
    """`b` is sent back with its test; `c` is graded at once, without a question."""
    agent = (
        EDIT
        + """
if STORY == "b": halves()
else: write(f"{STORY}.py", "x = 1\\n"); done()
"""
    )
    box = yard(
        tmp_path,
        agent,
        stories=stories_of("a", "b", "c"),
        checks=UNITTEST,
        files=FILES,
        toml=ALWAYS,
    )
    done = box.run("--lanes", "1", "--max-iterations", "2")
    assert done.code == 3, told(done)
    said = box.ralph("reject", "b", "not like that")
    assert said.code == 0, told(said)
    box.ralph("skip", "b")
    done = box.run("--continue", "--max-iterations", "3")
    assert known_grades(box)["c"] == "checked", told(done)
    assert "no longer run" not in done.text
