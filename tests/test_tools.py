"""A machine without the programs that only some of the work needs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.loop.projects import sandbox
from tests.test_house import ROOT
from tests.tools import TOOLS, path_without

pytestmark = pytest.mark.tool(*TOOLS, optional=True)

_PROGRAMS = "|".join(program for programs in TOOLS.values() for program in programs)
_LOOKED_FOR = re.compile(
    rf"""which\(\s*["'](?:{_PROGRAMS})["']|run\(\s*\[\s*["'](?:{_PROGRAMS})["']"""
)


def test_whoever_looks_for_such_a_program_carries_the_mark() -> None:
    """So that `make without` meets it where the program is absent."""
    files = (ROOT / "tests").rglob("test_*.py")
    texts = {path: path.read_text("utf-8") for path in files}
    looking = [path for path, text in texts.items() if _LOOKED_FOR.search(text)]
    assert [str(path) for path in looking if "mark.tool(" not in texts[path]] == []
    assert looking


def test_the_path_without_them_has_everything_else(tmp_path: Path) -> None:
    """Git and shells are found, the tools are not."""
    place = path_without(tmp_path / "bin")
    assert shutil.which("git", path=place)
    assert shutil.which("sh", path=place)
    assert [tool for tool in TOOLS if shutil.which(tool, path=place)] == []
    done = subprocess.run(
        [sys.executable, "-m", "tests.tools", "sh", "-c", "command -v bwrap tmux gh || exit 7"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (7, b"")


@pytest.mark.parametrize("mode, level", [("off", "info"), ("auto", "warning"), ("on", "error")])
def test_doctor_names_what_is_missing_and_how_to_get_it(
    tmp_path: Path, mode: str, level: str
) -> None:
    """How bad it is depends on who asked for a sandbox; with `on` a run ends with 66 as well."""
    box = sandbox(tmp_path, "write('a.txt'); done()", checks=[["true"]])
    toml = box.root / "ralph.toml"
    toml.write_text(f'{toml.read_text()}[sandbox]\nmode = "{mode}"\n')
    box.git("commit", "-qam", "sandbox")
    box.env["PATH"] = path_without(tmp_path / "bin")
    doctor = box.ralph("doctor")
    assert "bubblewrap is not installed" in doctor.text
    assert "fix: apt install bubblewrap" in doctor.text
    line = next(line for line in doctor.text.splitlines() if " sandbox" in line)
    assert line.startswith(level)
    done = box.run()
    assert done.code == (66 if mode == "on" else 0), done.text
    assert (doctor.code == 66) is (mode == "on")
    if mode == "on":
        assert "apt install bubblewrap" in done.text
    else:
        assert "No sandbox" in done.text


def test_doctor_ends_as_the_run_would_in_a_machine_that_is_a_sandbox(tmp_path: Path) -> None:
    """`strict` needs no bubblewrap there, and neither of the two asks for it."""
    box = sandbox(tmp_path, "write('a.txt'); done()", checks=[["true"]])
    toml = box.root / "ralph.toml"
    toml.write_text(toml.read_text().replace("[agent]", '[agent]\nsafety = "strict"', 1))
    box.git("commit", "-qam", "strict")
    box.env |= {"PATH": path_without(tmp_path / "bin"), "IS_SANDBOX": "1"}
    assert box.ralph("doctor").code == 0, box.ralph("doctor").text
    assert box.run().code == 0
    box.env["IS_SANDBOX"] = ""
    assert box.ralph("doctor").code == 66
    assert box.run().code == 66
