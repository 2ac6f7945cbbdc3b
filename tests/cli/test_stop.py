"""`ralph stop` and the other wishes one can have of a run that goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ralphloop.cli.main import run
from ralphloop.cli.shared import steering
from ralphloop.journal.records import Request, Wish
from tests.cli.nights import RUN, Night
from tests.conftest import RunRalph
from tests.loop.projects import Sandbox, sandbox

SLEEPER = """
print("thinking", flush=True)
time.sleep(100)
"""


@contextmanager
def answering(night: Night, answer: str) -> Iterator[list[Request]]:
    """Somebody answers every wish, as a running loop does."""
    asked: list[Request] = []
    over = threading.Event()

    def listen() -> None:
        while not over.wait(0.05):
            for request in night.journal.pending_requests(RUN):
                asked.append(request)
                night.journal.answer_request(request.id, answer, now=time.time())

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        with night.held():
            yield asked
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize(
    "arguments, kind, payload",
    [
        (["pause"], "pause", {}),
        (["resume"], "resume", {}),
        (["skip", "S-1"], "skip", {"story": "S-1"}),
        (["retry", "S 2; rm -rf"], "retry", {"story": "S 2; rm -rf"}),
        (["note", "use", "the v2 API"], "note", {"text": "use the v2 API"}),
        (["budget", "--cost", "5"], "budget", {"cost_usd": 5.0}),
        (
            ["budget", "--time", "1h30m"],
            "budget",
            {"time": 5400.0},
        ),
    ],
)
def test_a_wish_reaches_the_run_and_its_answer_is_printed(
    arguments: list[str], kind: str, payload: dict[str, Any], tmp_path: Path, run_ralph: RunRalph
) -> None:
    """What was asked is in the journal as it was said; the run's own words come back."""
    night = Night(tmp_path).begin()
    with answering(night, "it is \x1b[31mdone") as asked:
        done = run_ralph(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"run {RUN}: it is [31mdone\n")
    assert [r.kind for r in asked] == [kind]
    assert asked[0].payload.by is not None, "it says who asks"
    assert asked[0].payload == Wish(by=asked[0].payload.by, **payload)


def test_a_busy_run_answers_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody has to wait for an iteration to end: the wish stays."""
    night = Night(tmp_path).begin()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(steering, "_PATIENCE_S", 0.2)
    with night.held():
        assert run(["pause"]) == 0
    shown = capsys.readouterr().out
    assert "was asked to pause; it answers when this iteration ends" in shown
    assert [request.kind for request in night.journal.pending_requests(RUN)] == ["pause"]


@pytest.mark.parametrize("arguments", [["skip", "S-1"], ["note", "x"]])
def test_where_nothing_ran_nothing_can_be_changed(
    arguments: list[str], tmp_path: Path, run_ralph: RunRalph
) -> None:
    """What can be asked between two runs needs one to have been."""
    done = run_ralph(*arguments, cwd=tmp_path)
    assert done.returncode == 64
    assert "nothing has run here yet" in done.stderr
    assert not (tmp_path / ".ralph").exists()


def test_without_a_run_a_wish_is_64(tmp_path: Path, run_ralph: RunRalph) -> None:
    """There is nobody to ask, in an empty directory as after a run."""
    done = run_ralph("pause", cwd=tmp_path)
    assert done.returncode == 64
    assert "nothing has run here yet" in done.stderr
    Night(tmp_path).begin().end()
    done = run_ralph("pause", cwd=tmp_path)
    assert done.returncode == 64
    assert "no run is going on here" in done.stderr


def test_a_run_that_gets_ready_reads_no_wishes(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Before its first iteration a run can only be waited for."""
    night = Night(tmp_path).begin().end()
    with night.held("20260118-220000-def456"):
        done = run_ralph("pause", cwd=tmp_path)
    assert done.returncode == 64
    assert "still getting ready" in done.stderr


@pytest.mark.parametrize(
    "arguments", [["budget"], ["budget", "--time", "soon"], ["budget", "--cost", "-1"], ["skip"]]
)
def test_bad_wishes_are_64(arguments: list[str], tmp_path: Path, run_ralph: RunRalph) -> None:
    """A wish that says nothing, or nonsense, is refused before anybody is asked."""
    assert run_ralph(*arguments, cwd=tmp_path).returncode == 64


def test_stop_without_a_run_is_fine(tmp_path: Path, run_ralph: RunRalph) -> None:
    """What was wanted is so already."""
    done = run_ralph("stop", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "No run is going on.\n")
    assert list(tmp_path.iterdir()) == []


def test_stop_after_a_crash_names_the_way_to_recover(tmp_path: Path, run_ralph: RunRalph) -> None:
    """A run whose process is gone cannot be stopped, only recovered."""
    Night(tmp_path).begin().iterate(finished=False)
    done = run_ralph("stop", cwd=tmp_path)
    assert done.returncode == 0
    assert "is gone. `ralph run --continue` recovers it." in done.stdout


def test_a_run_that_does_not_end_in_time_is_75(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Waiting is bounded; the holder is named."""
    night = Night(tmp_path).begin()
    with night.held():
        done = run_ralph("stop", "--timeout", "300ms", cwd=tmp_path)
    assert done.returncode == 75
    assert f"end process {os.getpid()}" in done.stderr
    assert run_ralph("stop", "--timeout", "soon", cwd=tmp_path).returncode == 64


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[Sandbox, subprocess.Popen[str]]]:
    """A real run whose agent is at work."""
    box = sandbox(tmp_path, SLEEPER)
    with box.start() as process:
        try:
            box.wait_for_start()
            yield box, process
        finally:
            process.kill()


def test_stop_ends_a_real_run_gently(running: tuple[Sandbox, subprocess.Popen[str]]) -> None:
    """The agent is stopped, everything is recorded, nothing is left, and it can go on."""
    box, process = running
    done = box.ralph("stop")
    assert done.code == 0, done.err
    assert "has stopped: " in done.out
    assert "`ralph run --continue` goes on with it." in done.out
    assert process.wait(timeout=20) == 130
    assert box.leftovers() == []
    assert box.status()["run"]["can_continue"] is True


def test_stop_ends_a_run_that_still_gets_ready(tmp_path: Path) -> None:
    """Checks that take for ever before the first iteration do not keep it."""
    slow = [[sys.executable, "-c", "import time; time.sleep(60)"]]
    box = sandbox(tmp_path, SLEEPER, checks=slow)
    with box.start() as process:
        try:
            deadline = time.monotonic() + 30
            while not (box.root / ".ralph" / "holder.json").exists():
                assert time.monotonic() < deadline
                time.sleep(0.05)
            time.sleep(0.5)
            done = box.ralph("stop")
            assert done.code == 0, done.err
            assert done.out.startswith("Run ")
            assert process.wait(timeout=20) in (130, 143)
        finally:
            process.kill()
    assert box.starts == 0
