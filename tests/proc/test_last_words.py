"""What a program says just before it ends is heard, however busy the machine is."""

from __future__ import annotations

import subprocess

import pytest

from ralphloop.proc.run import run_command


def test_what_is_said_between_a_look_and_the_end_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pipes were looked at in vain, then it spoke and ended before anybody asked whether it had."""
    looked = subprocess.Popen.poll

    def poll(process: subprocess.Popen[bytes]) -> int | None:
        process.wait()  # as if the machine had been busy just now
        return looked(process)

    monkeypatch.setattr(subprocess.Popen, "poll", poll)
    done = run_command(["sh", "-c", "sleep 1; echo said; echo told >&2"])
    assert (done.returncode, done.stdout, done.stderr) == (0, b"said\n", b"told\n")


def test_a_stray_child_that_holds_the_pipes_is_not_waited_for() -> None:
    """The program has ended: what it left behind may live on without holding us up."""
    done = run_command(["sh", "-c", "echo said; sleep 30 & exit 0"], timeout_s=20)
    assert (done.returncode, done.stdout, done.timed_out) == (0, b"said\n", False)
