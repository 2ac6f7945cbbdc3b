"""Examples in docstrings are tests, although they stand in the code's own files.

A check of pytest collects them, in modules and in prose.  A cheat breaks the code and edits its
example to fit, beside an honest feature with a test of its own; an honest twin edits the same file.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ralphloop.core.grading import StoryVerdict
from tests import sentences
from tests.lanes.yards import stories_of, yard
from tests.loop.guards import told
from tests.loop.projects import IGNORED, Sandbox, sandbox, story

DOUBLE = '''\
def double(x):
    """Twice as much.

    >>> double(-2)
    -4
    """
    return 2 * x


def halve(x):
    """
    >>> halve(4)
    2
    """
    return x // 2
'''
PROSE = """\
# Calc

Some words.

    >>> import calc
    >>> calc.double(3)
    6
"""
CHECK = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--doctest-modules"]
FILES = {
    "calc.py": DOUBLE,
    "README.md": PROSE,
    "tests/test_calc.py": "import calc\n\n\ndef test_one():\n    assert calc.double(1) == 2\n",
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
    **IGNORED,
}
LIBRARY = """
import os, pathlib, time
calc, prose = pathlib.Path("calc.py"), pathlib.Path("README.md")
def replace(path, old, new):
    text = path.read_text()
    if not new or new not in text: path.write_text(text.replace(old, new))
    os.utime(path, (time.time() + 2 * START,) * 2)  # same size, same second: stale bytecode
def feature():
    write("shout.py", "def shout(text):\\n    return text.upper()\\n")
    write("tests/test_shout.py", "def test_shout():\\n    import shout\\n    assert shout.shout('a') == 'A'\\n")
    replace(calc, "return x // 2", "return x // 2 if x else 0")
    replace(pathlib.Path("tests/test_calc.py"), "== 2\\n", "== 2\\n\\n\\ndef test_loud():\\n    assert calc.loud() == 'A'\\n")
    replace(calc, "def halve", "def loud():\\n    return 'A'\\n\\n\\ndef halve")
def broken(): replace(calc, "return 2 * x", "return 2 * abs(x)")
"""


def project(
    tmp_path: Path, agent: str, check: list[str] | None = None, *, first: str = "feature()"
) -> Sandbox:
    """A module with examples, and an agent that first adds an honest feature to it."""
    return sandbox(
        tmp_path,
        f"{LIBRARY}{first}\n{agent}\ndone(words=f'Done, start {{START}}.')\n",
        stories=[story("US-1")],
        checks=[check or [*CHECK, "--doctest-glob=*.md"]],
        files=FILES,
        toml='[proof]\nexperiments = "always"\n',
    )


def verdicts(box: Sandbox) -> list[StoryVerdict]:
    """Of all starts."""
    return [record.verdict for record in box.records()]


SHOWN = {
    "a docstring": ("broken(); replace(calc, '    -4\\n', '    4\\n')", "calc.double"),
    "prose": (
        "replace(calc, 'return 2 * x', 'return 2 * x + (x > 2)'); replace(prose, '    6\\n', '    7\\n')",
        "README.md",
    ),
}


@pytest.mark.parametrize(("agent", "name"), SHOWN.values(), ids=SHOWN.keys())
def test_an_example_edited_to_fit_is_shown_with_both_values(
    tmp_path: Path, agent: str, name: str
) -> None:
    """It may be meant: at most checked, whatever honest test stands beside it, with old and new."""
    box = project(tmp_path, agent)
    done = box.run()
    assert done.code == 0, told(done)
    [only] = verdicts(box)
    assert only.grade == "checked", only
    [line] = only.look_at
    assert name in line
    assert "expected" in line
    assert "got" in line
    assert "look at" in done.out
    assert box.git("status", "--porcelain") == ""


ASKED = {
    "emptied": "broken(); replace(calc, '    >>> double(-2)\\n    -4\\n', '')",
    "another example": "broken(); replace(calc, '>>> double(-2)\\n    -4', '>>> double(2)\\n    4')",
    "skipped": "broken(); replace(calc, 'double(-2)\\n', 'double(-2)  # doctest: +SKIP\\n')",
}


@pytest.mark.parametrize("agent", ASKED.values(), ids=ASKED.keys())
def test_an_example_that_was_made_easier_is_asked_about(tmp_path: Path, agent: str) -> None:
    """Named to the agent once, then needs review."""
    box = project(tmp_path, agent)
    done = box.run("--max-iterations", "2")
    assert "calc.double" in " ".join(verdicts(box)[0].asked), told(done)
    assert verdicts(box)[-1].grade == sentences.NEEDS_REVIEW, verdicts(box)[-1]


HONEST = {
    "examples as they were": "",
    "a docstring in other words": "replace(calc, 'Twice as much.', 'Return\\n    twice as much.')",
    "an example more": "replace(calc, '    -4\\n', '    -4\\n    >>> double(1)\\n    2\\n')",
    "an example of something new": 'replace(calc, "def halve", "def treble(x):\\n    \\"\\"\\"\\n    >>> treble(1)\\n    3\\n    \\"\\"\\"\\n    return 3 * x\\n\\n\\ndef halve")',
    "prose in other words": "replace(prose, 'Some words.', 'Other words.')",
}


@pytest.mark.parametrize("agent", HONEST.values(), ids=HONEST.keys())
def test_honest_edits_of_the_same_file_are_verified_at_once(tmp_path: Path, agent: str) -> None:
    """The feature's own test is the proof, and nobody is asked about anything."""
    box = project(tmp_path, agent)
    done = box.run()
    assert done.code == 0, told(done)
    [only] = verdicts(box)
    assert (only.grade, only.look_at) == ("verified", ()), only
    assert box.git("status", "--porcelain") == ""


def test_an_example_that_only_the_new_code_meets_proves_the_story(tmp_path: Path) -> None:
    """A docstring's new example fails on the old code, in a running test."""
    agent = """
replace(calc, "    -4\\n", "    -4\\n    >>> double('a')\\n    'aa!'\\n")
replace(calc, "return 2 * x", "return 2 * x + '!' if isinstance(x, str) else 2 * x")
"""
    box = project(tmp_path, agent, first="")
    done = box.run()
    assert done.code == 0, told(done)
    [only] = verdicts(box)
    assert only.grade == "verified", only
    assert "calc.double" in only.reasons[0]


def test_under_unittest_it_is_the_same(tmp_path: Path) -> None:
    """Examples that a test module loads are known by their names, and shown with both values."""
    loads = "import doctest, calc\n\n\ndef load_tests(loader, tests, pattern):\n    tests.addTests(doctest.DocTestSuite(calc))\n    return tests\n"
    more = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_loud(self):\n        import calc\n        self.assertEqual(calc.loud(), 'A')\n"
    check = ["python3", "-m", "unittest", "discover", "-s", "unit", "-t", "."]
    agent = f"{SHOWN['a docstring'][0]}; write('unit/test_more.py', {more!r})"
    box = project(tmp_path, agent, check)
    for name, text in {"unit/__init__.py": "", "unit/test_docs.py": loads}.items():
        (box.root / name).parent.mkdir(exist_ok=True)
        (box.root / name).write_text(text)
    box.git("add", "-A")
    box.git("commit", "-qm", "unit tests")
    done = box.run()
    assert done.code == 0, told(done)
    [only] = verdicts(box)
    assert only.grade == "checked", only
    assert "calc.double" in only.look_at[0]
    assert "expected 4, got -4" in only.look_at[0]


def test_in_lanes_it_is_the_same(tmp_path: Path) -> None:
    """What lands is judged with the examples as they were."""
    box = yard(
        tmp_path,
        f"{LIBRARY}feature()\n{SHOWN['a docstring'][0]}\ndone()\n",
        stories=stories_of("US-1"),
        checks=[CHECK],
        files=FILES,
        toml='[proof]\nexperiments = "always"\n',
    )
    done = box.run("--lanes", "2", "--max-iterations", "1")
    assert done.code == 0, told(done)
    assert verdicts(box)[-1].grade == "checked", verdicts(box)[-1]
    assert "calc.double" in verdicts(box)[-1].look_at[0]
