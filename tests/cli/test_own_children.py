"""What ralph starts of itself is ralph, whatever modules the repository holds."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest

from tests.hook.support import box as session_box
from tests.loop.projects import Sandbox, sandbox
from tests.test_house import ROOT

WORKS = "write(f'{STORY}.txt'); done()"
SHADOWS = ("ralphloop/__init__.py", "ralphloop/__main__.py", "click.py", "msgspec.py", "rich.py")


def shadows(marker: Path) -> dict[str, str]:
    """Modules with the names of ours and of those we use; each says that it was imported."""
    text = f"open({str(marker)!r}, 'a').write(__name__ + ' ')\nraise SystemExit(99)\n"
    return dict.fromkeys(SHADOWS, text)


@pytest.fixture
def shadowed(tmp_path: Path) -> Sandbox:
    """A repository full of such modules."""
    return sandbox(tmp_path, WORKS, files=shadows(tmp_path / "marker"))


def until_passed(box: Sandbox) -> None:
    """Wait for the run in the background."""
    deadline = time.monotonic() + 60
    while not box.passes()["US-1"] or box.leftovers():
        assert time.monotonic() < deadline, (box.root / ".ralph/ralph.log").read_text()
        time.sleep(0.1)


def test_a_detached_run_imports_nothing_of_the_project(shadowed: Sandbox, tmp_path: Path) -> None:
    """The run in the background does the story; no module of the repository was read."""
    done = shadowed.run("--detach")
    assert done.code == 0, done.text
    until_passed(shadowed)
    assert not (tmp_path / "marker").exists()


@pytest.mark.tool("tmux")
def test_the_panes_of_tmux_import_nothing_of_the_project(shadowed: Sandbox, tmp_path: Path) -> None:
    """Loop and monitor are ours; without a terminal the run goes on in tmux."""
    shadowed.env = {"TMUX_TMPDIR": str(tmp_path), "TMUX": "", "TERM": "xterm"}
    done = shadowed.run("--monitor")
    try:
        assert done.code == 0, done.text
        deadline = time.monotonic() + 60
        while not shadowed.passes()["US-1"]:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert not (tmp_path / "marker").exists()
    finally:
        for socket in tmp_path.glob("tmux-*/*"):
            subprocess.run(["tmux", "-S", socket, "kill-server"], capture_output=True, check=False)


def test_overnight_imports_nothing_of_the_project(tmp_path: Path) -> None:
    """`/ralph --overnight` answers with our own words about a project that is not ready."""
    made = session_box(tmp_path / "repo", files=shadows(tmp_path / "marker"))
    made.write("prd.json", "{")
    reply = made.command("ralph", "--overnight")
    assert "prd.json" in reply.reason
    assert not (tmp_path / "marker").exists()


def test_one_place_alone_says_how_we_are_called() -> None:
    """A second `python -m ralphloop` would forget that the working directory comes first."""
    call = re.compile(r"""["']-m["'],\s*["']ralphloop""")
    modules = (ROOT / "src").rglob("*")
    texts = {path: path.read_text("utf-8") for path in modules if path.suffix in (".py", ".json")}
    assert [str(path) for path, text in texts.items() if call.search(text)] == []
