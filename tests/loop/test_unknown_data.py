"""Data that nobody names, and that old tests need as a story left it, is shown to a person."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralphloop.core.grading import Grade
from tests.loop.projects import IGNORED, UNITTEST, sandbox

TESTS = """\
import pathlib
import unittest

import calc


class Calc(unittest.TestCase):
    def test_tax(self):
        for one in sorted(pathlib.Path("cases").glob("*.txt")):
            given, expected = map(int, one.read_text().split())
            self.assertEqual(calc.tax(given), expected)
"""
FILES = {
    **IGNORED,
    "tests/__init__.py": "",
    "tests/test_calc.py": TESTS,
    "cases/a.txt": "100 19\n",
    "cases/b.txt": "300 57\n",
    "calc.py": "def tax(x):\n    return 0\n",
}
GREEN = "def tax(x):\n    return x * 19 // 100\n"
REWRITTEN = "write('cases/a.txt', '100 0')\nwrite('cases/b.txt', '300 0')\ndone()"
TAKEN_AWAY = (
    "os.unlink('cases/a.txt')\nos.unlink('cases/b.txt')\nwrite('cases/c.txt', '0 0')\ndone()"
)
FEATURE = """
write("calc.py", "def tax(x):\\n    return x * 20 // 100\\n\\n\\ndef half(x):\\n    return x / 2\\n")
write("cases/a.txt", "100 20")
write("cases/b.txt", "300 60")
write("tests/test_half.py", "import unittest\\n\\nimport calc\\n\\n\\nclass Half(unittest.TestCase):\\n"
      "    def test_half(self):\\n        self.assertEqual(calc.half(3), 1.5)\\n")
done()
"""
WORK = f"write('calc.py', {GREEN!r})\nwrite('cases/c.txt', '500 95')\ndone()"
RESPELT = f"write('calc.py', {GREEN!r})\nwrite('cases/a.txt', '100  19')\ndone()"


@pytest.mark.parametrize(
    ("agent", "code", "grade"),
    [
        (REWRITTEN, FILES["calc.py"], Grade.CHECKED),
        (TAKEN_AWAY, FILES["calc.py"], Grade.CHECKED),
        (FEATURE, GREEN, Grade.CHECKED),
        (WORK, FILES["calc.py"], Grade.VERIFIED),
        (RESPELT, FILES["calc.py"], Grade.VERIFIED),
    ],
)
def test_it_is_taken_back_alone(tmp_path: Path, agent: str, code: str, grade: Grade) -> None:
    """What old tests need may be asked for, and may be what they expect; new data is the story's."""
    box = sandbox(tmp_path, agent, checks=UNITTEST, files={**FILES, "calc.py": code})
    done = box.run("--allow-red")
    (record,) = box.records()
    assert record.verdict.grade is grade, done.text
    words = "cases/b.txt changed, and without that old tests are red"
    assert (words in done.text) is (grade is Grade.CHECKED)
