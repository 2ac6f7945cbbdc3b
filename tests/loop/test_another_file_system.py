"""`.ralph` may lie on another file system than the work tree: nothing is lost or left undone."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.loop.guards import told
from tests.loop.projects import CALC, IGNORED, TESTS, UNITTEST, sandbox, story

AGENT = """
more = open("calc.py").read() + "def half(x):\\n    return x / 2\\n\\n\\n"
write("calc.py", more)
write("tests/test_calc.py", open("tests/test_calc.py").read() +
      "    def test_halves(self):\\n        self.assertEqual(calc.half(4), 2)\\n\\n")
done()
"""
FILES = {"calc.py": CALC, "tests/__init__.py": "", "tests/test_calc.py": TESTS, **IGNORED}


@contextmanager
def mounted(place: Path) -> Iterator[None]:
    """A file system of its own there; whoever may not mount skips."""
    place.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting needs root")
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_experiments_are_made_and_a_rejection_is_undone(tmp_path: Path) -> None:
    """Files are exchanged and put back across file systems: the story is proven, and can go."""
    asked = [story("US-1", "Halve", acceptanceCriteria=["half(4) is 2"])]
    box = sandbox(tmp_path, AGENT, stories=asked, checks=UNITTEST, files=FILES)
    with mounted(box.root / ".ralph"):
        done = box.run()
        assert done.code == 0, told(done)
        assert "passed (verified): proved by test_halves" in done.text
        sent = box.ralph("reject", "US-1", "no")
        assert sent.code == 0, told(sent)
        assert "half" not in (box.root / "calc.py").read_text()
        undone = box.ralph("reject", "US-1", "--undo")
        assert undone.code == 0, told(undone)
        assert "half" in (box.root / "calc.py").read_text()
        assert box.git("status", "--porcelain") == ""
