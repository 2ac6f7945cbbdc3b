"""Processes as values, and ending a tree whose supervisor is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ralphloop.agents.base import mark_of
from ralphloop.proc.process_table import (
    MARK_VARIABLE,
    _by_psutil,
    find_process,
    name_of,
    send_signal,
)
from ralphloop.proc.tree import gentle, stop_tree
from tests.agents_run.helpers import Stage, is_alive, wait_until

# --- after a crash of the supervisor ---------------------------------------------------------

ORPHANED = """
import os, subprocess, sys, time
child = subprocess.Popen(["sleep", "304"], start_new_session=True)
bare = subprocess.Popen(["sleep", "305"], env={"PATH": os.environ["PATH"]})
open("pids", "w").write(f"{os.getpid()} {child.pid} {bare.pid}")
time.sleep(300)
"""


def _abandon(directory: Path, mark: str) -> tuple[int, float]:
    """Start an agent as a supervisor would, and forget about it."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", ORPHANED],
        cwd=directory,
        env={**os.environ, MARK_VARIABLE: mark},
        start_new_session=True,
    )
    wait_until(lambda: (directory / "pids").exists() and len(Stage(directory).pids()) == 3)
    proc = find_process(process.pid)
    assert proc is not None
    # Nobody may report it as "still running" later: a new supervisor would not know it either.
    process.returncode = 0
    return proc.pid, proc.started


def test_recovery_stops_what_a_dead_supervisor_left(tmp_path: Path) -> None:
    """Pid and start time find the agent and everything below it."""
    pid, started = _abandon(tmp_path, mark_of("run-x", 1))
    stopped = stop_tree(pid, started, "", stages=gentle(0.5))
    assert len(stopped) == 3
    assert not any(is_alive(pid) for pid in Stage(tmp_path).pids())


def test_recovery_finds_the_tree_by_its_mark(tmp_path: Path) -> None:
    """The agent itself is gone; those who carry its mark are stopped, with their children."""
    mark = mark_of("run-y", 7)
    pid, started = _abandon(tmp_path, mark)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(pid))
    stopped = stop_tree(pid, started, mark, stages=gentle(0.5))
    assert any("sleep 304" in name for name in stopped)
    assert any("sleep 305" in name for name in stopped)
    assert not any(is_alive(pid) for pid in Stage(tmp_path).pids())


def test_recovery_does_not_touch_a_recycled_pid(tmp_path: Path) -> None:
    """A process that got the old pid later is a stranger."""
    pid, started = _abandon(tmp_path, "some/other")
    try:
        assert stop_tree(pid, started - 1000, "run-z/1", stages=gentle(0.2)) == ()
        assert stop_tree(pid, started + 1000, "run-z/1", stages=gentle(0.2)) == ()
        assert stop_tree(None, None, "run-z/1", stages=gentle(0.2)) == ()
        assert is_alive(pid)
    finally:
        stop_tree(pid, started, "", stages=gentle(0.2))


def test_recovery_never_stops_itself(tmp_path: Path) -> None:
    """A supervisor that itself runs inside a marked tree survives its own clean-up."""
    code = (
        "from ralphloop.proc.tree import gentle, stop_tree\n"
        "print(stop_tree(None, None, 'outer/1', stages=gentle(0.2)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, MARK_VARIABLE: "outer/1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout.strip() == "()"


# --- processes as values ---------------------------------------------------------------------


def test_a_signal_needs_pid_and_start_time() -> None:
    """A pid that was recycled is not signalled."""
    child = subprocess.Popen(["sleep", "30"])
    try:
        proc = find_process(child.pid)
        assert proc is not None
        send_signal(proc._replace(started=proc.started - 100), signal.SIGKILL)
        time.sleep(0.1)
        assert child.poll() is None
        send_signal(proc, signal.SIGKILL)
        assert child.wait(5) == -signal.SIGKILL
    finally:
        child.kill()
        child.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="compares /proc with psutil")
def test_both_sources_tell_the_same() -> None:
    """`/proc` and psutil agree, so systems without the first are not second class."""
    child = subprocess.Popen(["sleep", "30"], start_new_session=True)
    try:
        one, other = find_process(child.pid), _by_psutil(child.pid)
        assert one is not None
        assert other is not None
        assert one._replace(started=0) == other._replace(started=0)
        assert abs(one.started - other.started) < 2
    finally:
        child.kill()
        child.wait()


def test_names_are_bounded_redacted_and_printable() -> None:
    """A command line may hold anything; what is told of it is one clean line."""
    key = "ghp" + "_1a2B3c4D5e6F7g8H9i0JkLmNoPqRsTuVwXyZ"
    child = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(30)", key, "a\nb\x1b[31m" + "x" * 500]
    )
    try:
        wait_until(lambda: key[:4] not in name_of(child.pid) and "time.sleep" in name_of(child.pid))
        name = name_of(child.pid)
        assert "[redacted]" in name
        assert name.isprintable()
        assert len(name) <= 120
    finally:
        child.kill()
        child.wait()
