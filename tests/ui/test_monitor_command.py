"""`ralph monitor` and `ralph run --monitor` as programs, the latter in a real tmux."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ralphloop.errors import ExitCode
from tests import sentences
from tests.loop.projects import Sandbox, sandbox
from tests.ui import monitor_nights as nights
from tests.ui.monitor_nights import RUN, Night

RALPH = [sys.executable, "-m", "ralphloop"]
AGENT = """
    write(f"{STORY}.txt", START)
    time.sleep(1.5)
    done(words="It is there.")
"""


def ralph(*arguments: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """One call of the program, without a terminal."""
    return subprocess.run(
        [*RALPH, *arguments],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "100", **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_without_a_terminal_the_screen_is_printed_once(tmp_path: Path) -> None:
    """Pipes and logs get text; the exit code is 0."""
    nights.finished(tmp_path).journal.close()
    done = ralph("monitor", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "✓ COMPLETE" in done.stdout
    assert "US-008" in done.stdout
    assert "\x1b" not in done.stdout


def test_a_dumb_terminal_gets_ascii(tmp_path: Path) -> None:
    """No escape sequence and no sign it may not have."""
    nights.finished(tmp_path).journal.close()
    done = ralph("monitor", cwd=tmp_path, TERM="dumb")
    assert done.stdout.isascii()
    assert "+ COMPLETE" in done.stdout


def test_an_earlier_run_by_its_id(tmp_path: Path) -> None:
    """The id is what `ralph status` and the reports call it."""
    night = nights.finished(tmp_path)
    night.journal.close()
    for name in (RUN, RUN[-6:]):
        assert "COMPLETE" in ralph("monitor", name, "--once", cwd=tmp_path).stdout
    unknown = ralph("monitor", "nosuchrun", "--once", cwd=tmp_path)
    assert unknown.returncode == 64
    assert "there is no run 'nosuchrun'" in unknown.stderr


def test_a_directory_without_anything_is_no_error(tmp_path: Path) -> None:
    """It says how to start, and makes no file."""
    (tmp_path / ".git").mkdir()
    done = ralph("monitor", "--once", cwd=tmp_path)
    assert done.returncode == 0
    assert "NO RUN YET" in done.stdout
    assert "ralph init" in done.stdout
    assert not (tmp_path / ".ralph").exists()


def test_a_damaged_journal_is_told_in_words(tmp_path: Path) -> None:
    """What is wrong and what to do, instead of a traceback."""
    night = Night(tmp_path)
    night.journal.close()
    night.project.journal.write_bytes(b"\0" * 4096)
    done = ralph("monitor", "--once", cwd=tmp_path)
    assert "is damaged" in done.stderr
    assert "Nothing was changed" in done.stderr
    assert done.returncode == ExitCode.INTERNAL


def test_a_locale_without_unicode_gets_ascii(tmp_path: Path) -> None:
    """LC_ALL=C is a wish, even where Python speaks UTF-8 nevertheless."""
    nights.finished(tmp_path)
    done = ralph("monitor", "--once", cwd=tmp_path, LC_ALL="C")
    assert "COMPLETE" in done.stdout
    assert done.stdout.isascii()


def test_the_program_list_names_the_monitor() -> None:
    """`ralph --help` is where people look, and it loads no toolkit for that."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "ralphloop", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "monitor" in done.stdout
    assert "textual" not in done.stderr


# --- ralph run --monitor ---------------------------------------------------------------------


@pytest.fixture
def box(tmp_path: Path) -> Sandbox:
    """A repository whose agent takes a moment for each of two stories."""
    return sandbox(tmp_path, AGENT, stories=2, checks=[["true"]])


class Tmux:
    """A tmux server of the test's own."""

    def __init__(self, name: str, box: Sandbox) -> None:
        self.name = name
        place = box.root.parent / "tmux"
        place.mkdir()
        self.env = {**box.environment(), "TMUX_TMPDIR": str(place)}
        self.env.pop("TMUX", None)

    def do(self, *arguments: str, check: bool = True) -> str:
        """A tmux command and its output."""
        done = subprocess.run(
            ["tmux", "-L", self.name, *arguments],
            env=self.env,
            capture_output=True,
            text=True,
            check=check,
        )
        return done.stdout

    def screen(self, pane: str) -> str:
        """What a pane shows."""
        return self.do("capture-pane", "-p", "-t", pane, check=False)

    def until(self, pane: str, text: str, timeout: float = 40.0) -> str:
        """Wait until a pane shows a text."""
        deadline = time.monotonic() + timeout
        while text not in (shown := self.screen(pane)):
            assert time.monotonic() < deadline, f"{text!r} is not in\n{shown}"
            time.sleep(0.1)
        return shown


def gone(is_there: Callable[[], bool]) -> None:
    """Wait until something is no longer there."""
    deadline = time.monotonic() + 20
    while is_there():
        assert time.monotonic() < deadline, "it does not go away"
        time.sleep(0.1)


@pytest.fixture
def tmux(box: Sandbox) -> Iterator[Tmux]:
    """A server that is gone after the test."""
    server = Tmux("test", box)
    yield server
    for socket in Path(server.env["TMUX_TMPDIR"]).glob("tmux-*/*"):
        subprocess.run(["tmux", "-S", socket, "kill-server"], capture_output=True, check=False)


@pytest.mark.tool("tmux")
def test_inside_tmux_the_window_is_split(box: Sandbox, tmux: Tmux) -> None:
    """The loop stays left, the monitor comes right and shows the run to its end."""
    where = ("-x", "180", "-y", "40", "-c", str(box.root))
    tmux.do("new-session", "-d", "-s", "t", *where, "sh")
    tmux.do("send-keys", "-t", "t", f"'{sys.executable}' -m ralphloop run --monitor", "Enter")
    tmux.until("%1", "RUNNING")
    panes = tmux.do("list-panes", "-t", "t", "-F", "#{pane_id} #{pane_left}").split()
    assert panes[:2] == ["%0", "0"]
    assert int(panes[3]) > 60
    shown = tmux.until("%1", "COMPLETE")
    assert "2/2 passed" in shown
    assert sentences.ALL_DONE in tmux.until("%0", "next:")
    tmux.do("send-keys", "-t", "%1", "q")
    gone(lambda: "%1" in tmux.do("list-panes", "-t", "t", "-F", "#{pane_id}"))


@pytest.mark.tool("tmux")
def test_outside_tmux_both_get_a_session(box: Sandbox, tmux: Tmux) -> None:
    """A session of its own, the loop left and the monitor right; the exit code is the loop's."""
    script = f"unset TMUX TMUX_PANE; '{sys.executable}' -m ralphloop run --monitor; echo code=$?"
    where = ("-x", "180", "-y", "40", "-c", str(box.root))
    tmux.do("new-session", "-d", "-s", "t", *where, "sh", "-c", script + "; sleep 60")
    tmux.until("t", "COMPLETE")
    shown = tmux.until("t", "Enter closes this pane")
    left = [line[:80] for line in shown.splitlines()]
    assert any(sentences.ALL_DONE in line for line in left)
    tmux.do("send-keys", "-t", "t", "q")  # the monitor, which has the focus
    deadline = time.monotonic() + 20
    while "code=" not in tmux.screen("t"):  # Enter counts once the monitor's pane is gone
        assert time.monotonic() < deadline, tmux.screen("t")
        tmux.do("send-keys", "-t", "t", "Enter")
        time.sleep(0.3)
    assert "code=0" in tmux.screen("t")
    assert box.passes() == {"US-1": True, "US-2": True}


@pytest.mark.tool("tmux", optional=True)
def test_without_tmux_the_words_say_what_to_do(box: Sandbox, tmp_path: Path) -> None:
    """How to install it, and that another terminal does as well; nothing is run."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "git").symlink_to(str(shutil.which("git")))
    done = box.run("--monitor", env={"PATH": str(tools)})
    assert done.code == 64
    assert "tmux is not installed" in done.err
    assert "ralph monitor" in done.err
    assert box.starts == 0


@pytest.mark.tool("tmux")
def test_a_mistake_is_told_before_a_session_is_opened(box: Sandbox) -> None:
    """What is wrong with the call is not hidden in a pane."""
    (box.root / "prd.json").write_text(json.dumps({"userStories": [{"id": ""}]}))
    done = box.run("--monitor")
    assert done.code == 65
    assert box.starts == 0


def test_detach_and_monitor_exclude_each_other(box: Sandbox) -> None:
    """A run in the background has no left half."""
    done = box.run("--monitor", "--detach")
    assert done.code == 64
    assert "ralph monitor" in done.err
