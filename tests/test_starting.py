"""A forked command is what an executed one is; all others rely on it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ralphloop.proc.run import ourselves
from tests import starting
from tests.starting import Started, run_to_end

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only forked on Linux")

COMMANDS = (
    "--version",
    "--help",
    "conifg",
    "config show",
    "status --json",
    "run --no-such-option",
    "analyze -",
    "hook stop",
)


def _ended(words: str, cwd: Path, **env: str) -> tuple[int, bytes, bytes]:
    done = run_to_end(
        [*ourselves(), *words.split()],
        given="fertig: äöü\n".encode(),
        timeout=60,
        cwd=cwd,
        env={**os.environ, **env},
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("words", COMMANDS)
def test_a_forked_command_says_and_returns_what_an_executed_one_does(
    tmp_path: Path, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bytes on both streams and the same exit code."""
    monkeypatch.setattr(starting, "EXECUTE", False)
    forked = _ended(words, tmp_path)
    monkeypatch.setattr(starting, "EXECUTE", True)
    assert _ended(words, tmp_path) == forked


def test_a_forked_command_is_a_child_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its parent, directory, environment, session and descriptors are what was asked, and it can
    be killed."""
    monkeypatch.setattr(starting, "EXECUTE", False)
    env = {**os.environ, "OF_THIS_TEST": str(tmp_path)}
    with Started[bytes](
        [*ourselves(), "analyze", "-"],
        cwd=tmp_path,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        about = Path(f"/proc/{process.pid}")
        while (about / "cwd").readlink() != tmp_path:
            assert process.poll() is None
        while f"OF_THIS_TEST={tmp_path}".encode() not in (about / "environ").read_bytes():
            assert process.poll() is None
        assert b"fork_server.py" in (about / "cmdline").read_bytes()
        assert f"PPid:\t{os.getpid()}\n" in (about / "status").read_text()
        assert os.getsid(process.pid) == process.pid
        assert b"ROOM=" not in (about / "environ").read_bytes()
        while {path.name for path in (about / "fd").iterdir()} != {"0", "1", "2"}:
            assert process.poll() is None
        process.kill()
        assert process.wait() == -signal.SIGKILL


def test_another_start_of_python_is_executed(tmp_path: Path) -> None:
    """What the interpreter itself is told (an encoding, a path) has an effect."""
    _, out, _ = _ended("--version", tmp_path, PYTHONIOENCODING="utf-16")
    assert out.decode("utf-16").startswith("ralph ")
