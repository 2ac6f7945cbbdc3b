"""A night in two lanes as real ones were, replayed: what every prompt of it is about."""

from __future__ import annotations

import pytest

from tests.lanes.yards import prompt, starts, stories_of, yard
from tests.loop.guards import told
from tests.loop.projects import CALC, TESTS, UNITTEST, Sandbox

NAMES = ("a", "b", "c", "d", "e")
# One asks, one breaks a test first, all write into one changelog and say a lot.
AGENT = """
code = pathlib.Path("calc.py").read_text()
log = pathlib.Path("CHANGELOG.md").read_text()
words = f"Made calc.{STORY}_more for story {STORY}, since others will need it. " * 12
if STORY == "b" and "From the person" not in PROMPT:
    write("half.py", "x = 1\\n")
    status("BLOCKED", "Half of it is in half.py; the name is open.", "Which name should it have?")
    raise SystemExit
if STORY == "c" and START == 1:
    write("calc.py", code.replace("2 * x", "3 * x"))
else:
    code = code.replace("3 * x", "2 * x")
    write("calc.py", f"{code}def {STORY}_more(x):\\n    return x + {ord(STORY)}\\n\\n\\n")
    write(f"tests/test_{STORY}.py", f'''import unittest
import calc
class Of{STORY.upper()}(unittest.TestCase):
    def test_{STORY}_more(self):
        self.assertEqual(calc.{STORY}_more(1), {ord(STORY) + 1})
''')
    write("CHANGELOG.md", f"{log}- calc.{STORY}_more is there now, for whoever wants more\\n")
done(f"{words}\\n\\nFOUND: calc.double takes text as well and nobody asked for that of {STORY}."
     f"\\nLEARNED: calc.py ends with two empty lines, keep them for {STORY}.")
"""
FILES = {
    "calc.py": CALC,
    "CHANGELOG.md": "# Changes\n",
    "tests/__init__.py": "",
    "tests/test_calc.py": TESTS,
}
LONG = 40  # characters: what is shorter may well stand twice


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """The whole night with its answer in the middle."""
    listed = [
        {
            **one,
            "description": f"As somebody who uses calc.py I want calc.{one['id']}_more. " * 2,
            "acceptanceCriteria": [
                f"calc.{one['id']}_more adds something (seen: test_{one['id']}_more)",
                f"CHANGELOG.md names calc.{one['id']}_more in a line of its own",
            ],
        }
        for one in stories_of(*NAMES)
    ]
    box = yard(
        tmp_path_factory.mktemp("night"), AGENT, stories=listed, checks=UNITTEST, files=FILES
    )
    first = box.run("--lanes", "2")
    assert first.code == 2, told(first)
    assert box.ralph("answer", "b", "b_more, as the story says.").code == 0
    done = box.run("--continue")
    assert done.code == 0, told(done)
    return box


def prompts(box: Sandbox) -> dict[tuple[str, int], str]:
    """Every prompt of the night, by story and start."""
    return {
        (name, number): prompt(box, name, number)
        for name in NAMES
        for number in range(1, starts(box, name) + 1)
    }


def test_a_first_prompt_is_about_its_story(night: Sandbox) -> None:
    """At least a third of what varies is what is asked; the rest does not grow with the night."""
    for name in NAMES:
        variable = prompt(night, name, 1).partition("# Your story")[2]
        asked = variable.partition("# Worked on beside you")[0]
        asked = asked.partition("# Learned")[0].partition("# Recent progress")[0]
        assert len(asked) >= len(variable) / 3, variable


def test_nothing_is_told_twice(night: Sandbox) -> None:
    """No line of any length stands twice in one prompt, whatever happened before."""
    for which, text in prompts(night).items():
        lines = [line.strip(" -") for line in text.splitlines() if len(line.strip(" -")) >= LONG]
        twice = {line for line in lines if lines.count(line) > 1}
        assert not twice, (which, twice)


def test_what_a_story_left_reaches_its_next_start(night: Sandbox) -> None:
    """After an answer and after a red check: the work, the words, the test."""
    answered = prompt(night, "b", 2)
    assert "half.py" in answered.partition("# What lies in the work tree already")[2]
    assert "Half of it is in half.py; the name is open." in answered
    assert "It was asked: Which name should it have?" in answered
    repaired = prompt(night, "c", 2)
    assert "test_doubles" in repaired.partition("# Tests that failed last time")[2]


def test_appending_to_one_changelog_sends_nobody_back(night: Sandbox) -> None:
    """Every story needed the starts it had reason for; the changelog has a line of each."""
    log = night.git("show", "main:CHANGELOG.md")
    assert all(f"calc.{name}_more is there" in log for name in NAMES)
    assert (starts(night, "b"), starts(night, "c")) == (2, 2)
    proposed = night.ralph("stories", "proposed").out
    assert "calc.double takes text as well" in proposed
