"""A story that rightly changes what a test expects, and brings tests of its own that are red without it."""

from __future__ import annotations

from pathlib import Path

from tests.loop.projects import CALC, IGNORED, TESTS, UNITTEST, sandbox, story

AGENT = """
write("calc.py", "def double(x):\\n    return abs(2 * x)\\n\\n\\ndef half(x):\\n    return x / 2\\n")
tests = open("tests/test_calc.py").read().replace("calc.double(-2), -4", "calc.double(-2), 4")
write("tests/test_calc.py", tests +
      "    def test_halves(self):\\n        self.assertEqual(calc.half(4), 2)\\n\\n")
done()
"""
BEFORE = (
    TESTS + "    def test_below_nothing(self):\n        self.assertEqual(calc.double(-2), -4)\n\n"
)
FILES = {"calc.py": CALC, "tests/__init__.py": "", "tests/test_calc.py": BEFORE, **IGNORED}


def test_the_changed_test_is_shown_once_with_both_values(tmp_path: Path) -> None:
    """At most `checked`, without another start; console, report and review say what to look at."""
    asked = ["double(-2) is 4", "half(4) is 2"]
    stories = [story("US-1", "Doubles are never below nothing", acceptanceCriteria=asked)]
    box = sandbox(tmp_path, AGENT, stories=stories, checks=UNITTEST, files=FILES)
    done = box.run()
    assert done.code == 0, done.text
    assert box.starts == 1
    assert "US-1 passed (checked): look at: " in done.text
    assert "none proves" not in done.text
    lines = [line for line in done.out.splitlines() if "test_below_nothing expects" in line]
    assert len(lines) == 1, lines
    for shown in (lines[0], box.ralph("report").out, " ".join(box.ralph("review").out.split())):
        assert "test_below_nothing expects something else now" in shown
        assert "4 != -4" in shown
        assert "-4 != 4" in shown
