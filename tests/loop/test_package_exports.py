"""A story that has its package hand on one more name, in a project whose tests start a program."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ralphloop.repo.experiment import split
from ralphloop.repo.judges import is_setting
from ralphloop.repo.runners import find_runner
from ralphloop.repo.snapshot import Change
from tests.loop.projects import sandbox, story

RUNNERS = {
    "pytest": [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"],
    "unittest": [sys.executable, "-B", "-m", "unittest", "-q"],
}
TEST = """\
import subprocess
import sys
import unittest


class Tool(unittest.TestCase):
    def test_{name}(self):
        command = [sys.executable, "-B", "tool.py", "3", "{name}"]
        ended = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(ended.returncode, 0)
        self.assertEqual(ended.stdout, "{answer}\\n")
"""
TOOL = """\
import sys

from pack import {names}

number = int(sys.argv[1])
ways = {{{ways}}}
print(ways.get(sys.argv[2], double)(number))
"""
FILES = {
    "tool.py": TOOL.format(names="double", ways='"double": double'),
    "pack/__init__.py": "from pack.numbers import double\n",
    "pack/numbers.py": "def double(x):\n    return 2 * x\n",
    "test_double.py": TEST.format(name="double", answer=6),
    ".gitignore": "__pycache__/\n.ralph*\n",
}
WORK = {
    "tool.py": TOOL.format(names="double, triple", ways='"double": double, "triple": triple'),
    "pack/__init__.py": "from pack.more import triple\nfrom pack.numbers import double\n",
    "pack/more.py": "def triple(x):\n    return 3 * x\n",
    "test_triple.py": TEST.format(name="triple", answer=9),
}


def test_what_a_package_hands_on_is_the_product(tmp_path: Path) -> None:
    """Without the new name of the package the program does not start, which blames no old test."""
    writes = "".join(f"write({path!r}, {text!r})\n" for path, text in WORK.items())
    box = sandbox(
        tmp_path,
        f"{writes}done()\n",
        stories=[story("US-1")],
        checks=[RUNNERS["unittest"]],
        files=FILES,
        toml='[proof]\nexperiments = "always"\n',
    )
    done = box.run()
    assert done.code == 0, done.text
    assert "US-1 passed" in done.text, done.text
    assert "weakened" not in done.text, done.text
    assert "expects something else" not in done.text, done.text


@pytest.mark.parametrize("runner", RUNNERS)
def test_what_says_which_tests_are_loaded_is_no_product(tmp_path: Path, runner: str) -> None:
    """The same file with `load_tests` decides which tests there are, for the runner that reads it."""
    found = find_runner(RUNNERS[runner], tmp_path)
    hiding = Change(path="unit/__init__.py", before="old", after="hiding")
    plain = Change(path="pack/__init__.py", before="old", after="plain")
    contents = {"old": b"", "hiding": b"def load_tests(*_):\n    return 1\n", "plain": b"A = 1\n"}
    sides = split([hiding, plain], contents, found, [])
    settings = [change.path for change in sides.tests]
    assert settings == (["unit/__init__.py"] if runner == "unittest" else [])
    assert "pack/__init__.py" in [change.path for change in sides.code]
    assert not is_setting("pack/__init__.py")
