"""The first story of a project that has no test yet."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.loop.projects import Sandbox, sandbox, story

ALWAYS = '[proof]\nexperiments = "always"\n'
RUNNERS = {
    "pytest": [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"],
    "unittest": [sys.executable, "-B", "-m", "unittest", "-q"],
}
CODE = "def double(x):\\n    return 2 * x\\n"
HEAD = "import unittest\\n\\nimport calc\\n\\n\\nclass Calc(unittest.TestCase):\\n    def test_it(self):\\n"
HONEST = f"{HEAD}        self.assertEqual(calc.double(3), 6)\\n"
VACUOUS = f"{HEAD}        self.assertTrue(callable(calc.double))\\n"


def young(tmp_path: Path, runner: str, test: str) -> Sandbox:
    """A project with a check and nothing to check, and the agent that brings code and a test."""
    agent = f'write("calc.py", "{CODE}")\nwrite("test_calc.py", "{test}")\ndone()\n'
    return sandbox(
        tmp_path,
        agent,
        stories=[story("US-1")],
        checks=[RUNNERS[runner]],
        files={"README.md": "Nothing yet.\n", ".gitignore": "__pycache__/\n.ralph*\n"},
        toml=f'{ALWAYS}ask_for_tests = "off"\n',
    )


@pytest.mark.parametrize("runner", RUNNERS)
def test_the_first_test_of_a_project_proves_its_story(tmp_path: Path, runner: str) -> None:
    """Where the check found no test before, all of its tests are new, and they are tried."""
    box = young(tmp_path, runner, HONEST)
    done = box.run()
    assert done.code == 0, done.text
    assert "US-1 passed (verified): proved by test_it" in done.text, done.text


@pytest.mark.parametrize("runner", RUNNERS)
def test_a_first_test_that_looks_at_nothing_proves_nothing(tmp_path: Path, runner: str) -> None:
    """And the reason is said."""
    box = young(tmp_path, runner, VACUOUS)
    done = box.run()
    assert done.code == 0, done.text
    assert "US-1 passed (checked)" in done.text, done.text
    assert "not proven:" in done.text, done.text


def test_a_first_test_may_start_the_program_it_is_about(tmp_path: Path) -> None:
    """It fails without the program, and notices nothing inside of ours: the old state proves it."""
    tool = "import sys\\n\\n\\nprint(2 * int(sys.argv[1]))\\n"
    test = (
        "import subprocess\\nimport sys\\nimport unittest\\n\\n\\n"
        "class Tool(unittest.TestCase):\\n    def test_it(self):\\n"
        "        told = subprocess.run([sys.executable, 'calc.py', '4'], capture_output=True)\\n"
        "        self.assertEqual(told.stdout, b'8\\\\n')\\n"
    )
    box = sandbox(
        tmp_path,
        f'write("calc.py", "{tool}")\nwrite("test_calc.py", "{test}")\ndone()\n',
        stories=[story("US-1")],
        checks=[RUNNERS["pytest"]],
        files={"README.md": "Nothing yet.\n", ".gitignore": "__pycache__/\n.ralph*\n"},
        toml=ALWAYS,
    )
    done = box.run()
    assert done.code == 0, done.text
    assert "US-1 passed (verified): proved by test_it" in done.text, done.text
