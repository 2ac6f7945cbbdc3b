"""Python runs the source that is there, not bytecode of another text of the same size and second."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ralphloop.repo.bytecode import is_bytecode, outdate_bytecode
from tests.loop.guards import told
from tests.loop.projects import CALC, IGNORED, TESTS, UNITTEST, sandbox


def _said(root: Path) -> str:
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    asked = [sys.executable, "-c", "import code_of_mine; print(code_of_mine.said)"]
    ran = subprocess.run(asked, cwd=root, env=env, text=True, capture_output=True, check=True)
    return ran.stdout.strip()


def _write(root: Path, said: int, second: float) -> None:
    source = root / "code_of_mine.py"
    source.write_text(f"said = {said}\n")
    os.utime(source, (second, second))


def test_a_source_of_the_same_size_and_second_is_compiled_anew(tmp_path: Path) -> None:
    """Without it the old text runs, which is what this is about."""
    _write(tmp_path, 1, 1_700_000_000)
    assert _said(tmp_path) == "1"
    _write(tmp_path, 2, 1_700_000_000)
    assert _said(tmp_path) == "1", "Python looks at the time"
    outdate_bytecode(tmp_path, ["code_of_mine.py"])
    assert _said(tmp_path) == "2"
    _write(tmp_path, 3, 1_700_000_001)  # the second it was given above
    outdate_bytecode(tmp_path, ["code_of_mine.py"])
    assert _said(tmp_path) == "3"


def test_what_was_never_run_keeps_its_time(tmp_path: Path) -> None:
    """No bytecode, no new time; what is gone, no source or behind a link is left alone."""
    _write(tmp_path, 1, 1_700_000_000)
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "__pycache__").mkdir(parents=True)
    (elsewhere / "x.py").write_text("1\n")
    os.utime(elsewhere / "x.py", (0, 0))
    (elsewhere / "__pycache__" / "x.cpython-311.pyc").write_bytes(bytes(16))
    (tmp_path / "link").symlink_to(elsewhere)
    outdate_bytecode(tmp_path, ["code_of_mine.py", "gone.py", "a.txt", "link/x.py"])
    assert (tmp_path / "code_of_mine.py").stat().st_mtime == 1_700_000_000
    assert (elsewhere / "x.py").stat().st_mtime == 0


@pytest.mark.parametrize(
    "path, expected",
    [("a.pyc", True), ("a/__pycache__/b.py", True), ("a/pycache.py", False), ("a.py", False)],
)
def test_bytecode_is_nobodys_work(path: str, expected: bool) -> None:
    """By its name or its directory."""
    assert is_bytecode(path) is expected


SAME_SECOND = """
source = pathlib.Path("calc.py")
was = source.stat()
write("calc.py", source.read_text().replace("2 * x", "5 * x"))
os.utime(source, ns=(was.st_atime_ns, was.st_mtime_ns))
done()
"""


def test_a_broken_source_with_the_old_time_does_not_pass(tmp_path: Path) -> None:
    """An agent's change that Python cannot see by its time is red all the same."""
    files = {"calc.py": CALC, "tests/__init__.py": "", "tests/test_calc.py": TESTS, **IGNORED}
    box = sandbox(tmp_path, SAME_SECOND, checks=UNITTEST, files=files)
    done = box.run("--max-iterations", "1")
    (first,) = box.records()
    assert not first.verdict.passed, told(done)
    assert "failed" in done.text
