"""Running checks: green, red, flaky, empty, hanging, and what is left of them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from ralphloop.core.model import CheckResult, CheckStatus
from ralphloop.proc.threads import in_thread
from ralphloop.proc.tree import AT_ONCE, Stage
from ralphloop.repo.checks import MAX_TAIL, Check, check_of, run_checks


def _sh(script: str, timeout_s: float = 30.0) -> Check:
    return Check(name="check", argv=("sh", "-c", script), timeout_s=timeout_s)


def _run(check: Check, cwd: Path) -> CheckResult:
    (result,) = run_checks([check], cwd)
    return result


def test_a_check_that_ends_well_is_green(tmp_path: Path) -> None:
    """Exit code 0 is passed, with its output and duration."""
    result = _run(_sh("echo all fine; echo and more >&2"), tmp_path)
    assert result.status is CheckStatus.PASSED
    assert result.output_tail == "all fine\nand more\n"
    assert not result.flaky
    assert 0 < result.duration_s < 10


def test_a_failing_check_is_run_once_more_before_it_counts(tmp_path: Path) -> None:
    """Red twice is red, with the names of the tests that failed."""
    script = "echo run >> runs; echo 'FAILED tests/a.py::test_x - boom'; exit 1"
    result = _run(_sh(script), tmp_path)
    assert result.status is CheckStatus.FAILED
    assert result.failing_tests == ("tests/a.py::test_x",)
    assert (tmp_path / "runs").read_text() == "run\nrun\n"


def test_red_then_green_is_flaky_and_green(tmp_path: Path) -> None:
    """A flaky check passes, is marked, and keeps the output that shows what is flaky."""
    script = "test -e seen && exit 0; touch seen; echo 'FAILED tests/a.py::test_x - boom'; exit 1"
    result = _run(_sh(script), tmp_path)
    assert result.status is CheckStatus.PASSED
    assert result.flaky
    assert "test_x" in result.output_tail
    assert result.failing_tests == ("tests/a.py::test_x",)


def test_no_tests_collected_is_neither_red_nor_green(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real pytest that finds nothing, and a real unittest that finds nothing."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:cacheprovider")
    checks = [
        check_of([sys.executable, "-m", "pytest", "-q"], 60),
        check_of([sys.executable, "-m", "unittest", "discover"], 60),
    ]
    results = run_checks(checks, tmp_path)
    assert [result.status for result in results] == [CheckStatus.NO_TESTS] * 2


def test_a_real_pytest_failure_is_named(tmp_path: Path) -> None:
    """The whole way: a real runner's real output."""
    (tmp_path / "test_calc.py").write_text(
        "def test_add():\n    assert 1 + 1 == 3\ndef test_fine():\n    pass\n"
    )
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    result = _run(check_of(argv, 60), tmp_path)
    assert result.status is CheckStatus.FAILED
    assert result.failing_tests == ("test_calc.py::test_add",)


@pytest.mark.parametrize(
    "argv, words",
    [
        (("./no-such-program",), "command not found"),
        (("./not-executable",), "Permission denied"),
        (("./directory",), "Permission denied"),
    ],
)
def test_a_check_that_cannot_start_is_red_with_the_reason(
    tmp_path: Path, argv: tuple[str, ...], words: str
) -> None:
    """Missing and not executable are failures in words, not crashes of ours."""
    (tmp_path / "not-executable").write_text("#!/bin/sh\n")
    (tmp_path / "directory").mkdir()
    result = _run(Check(name="x", argv=argv), tmp_path)
    assert result.status is CheckStatus.FAILED
    assert words in result.output_tail


def test_arguments_are_never_read_by_a_shell(tmp_path: Path) -> None:
    """A check is an argv list: `;` and `$` are only characters."""
    result = _run(check_of(["echo", "$HOME; touch owned"]), tmp_path)
    assert result.output_tail == "$HOME; touch owned\n"
    assert not (tmp_path / "owned").exists()


def test_a_check_that_failed_silently_keeps_no_output(tmp_path: Path) -> None:
    """Failed without output gives nothing to read an error from."""
    assert _run(_sh("exit 3"), tmp_path).output_tail == ""


def _processes_with(mark: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        alive = process.info["status"] != psutil.STATUS_ZOMBIE
        if alive and mark in (process.info["cmdline"] or []):
            found.append(process)
    return found


def test_a_hanging_check_is_ended_with_everything_it_started(tmp_path: Path) -> None:
    """The deadline ends children in the group and children that left it."""
    mark = f"7{os.getpid()}.25"
    script = f"echo started; sleep {mark} & setsid sleep {mark} & sleep {mark}"
    result = _run(_sh(script, timeout_s=0.5), tmp_path)
    assert result.status is CheckStatus.FAILED
    assert result.output_tail == "started\ntimed out after 0s\n"
    assert _processes_with(mark) == []


def test_a_check_that_ignores_the_gentle_signal_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGTERM may be ignored; the end comes anyway."""
    monkeypatch.setattr("ralphloop.proc.tree.ASKED_ONCE", (Stage(signal.SIGTERM, 0.3), *AT_ONCE))
    script = "trap '' TERM; while :; do sleep 0.2; done"
    assert _run(_sh(script, timeout_s=0.3), tmp_path).status is CheckStatus.FAILED


def test_background_processes_of_a_green_check_are_ended(tmp_path: Path) -> None:
    """A server left behind neither holds up the run nor survives it."""
    mark = f"8{os.getpid()}.25"
    result = _run(_sh(f"sleep {mark} & echo done"), tmp_path)
    assert result.status is CheckStatus.PASSED
    assert result.output_tail == "done\n"
    time.sleep(0.1)
    assert _processes_with(mark) == []


def test_a_check_gets_no_input(tmp_path: Path) -> None:
    """A prompt reads the end of input instead of waiting for a person."""
    assert _run(_sh("read answer || echo nobody there"), tmp_path).output_tail == "nobody there\n"


def test_a_flood_of_output_keeps_its_last_lines(tmp_path: Path) -> None:
    """The tail is bounded and starts at a line."""
    result = _run(_sh("seq 1 1000000"), tmp_path)
    assert len(result.output_tail) <= MAX_TAIL
    lines = result.output_tail.splitlines()
    assert lines[-1] == "1000000"
    assert [int(line) for line in lines] == list(range(int(lines[0]), 1_000_001))


def test_one_endless_line_is_bounded_too(tmp_path: Path) -> None:
    """Output without a line break is cut all the same."""
    result = _run(_sh("head -c 3000000 /dev/zero | tr '\\0' x"), tmp_path)
    assert len(result.output_tail) == MAX_TAIL


def test_secrets_do_not_reach_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Known shapes and values of secret variables are taken out."""
    monkeypatch.setenv("DEPLOY_TOKEN", "hunter2-correct-horse-battery")
    check = _sh("echo key=sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789; echo $DEPLOY_TOKEN")
    (result,) = run_checks([check], tmp_path)
    assert "sk-ant-api03" not in result.output_tail
    assert "hunter2" not in result.output_tail


def test_a_stop_ends_the_running_check_and_returns_the_finished_ones(tmp_path: Path) -> None:
    """Ctrl+C during checks: what is done counts, what runs is ended, what waits never starts."""
    mark = f"9{os.getpid()}.25"
    checks = [_sh("true"), _sh(f"touch begun; sleep {mark}"), _sh("touch never")]
    results = run_checks(checks, tmp_path, stop=(tmp_path / "begun").exists)
    assert [result.status for result in results] == [CheckStatus.PASSED]
    assert not (tmp_path / "never").exists()
    assert _processes_with(mark) == []


def test_cancelling_the_task_ends_the_running_check(tmp_path: Path) -> None:
    """A cancelled run leaves no process behind."""
    mark = f"6{os.getpid()}.25"

    async def cancelled() -> None:
        check = _sh(f"touch begun; sleep {mark}")
        work = in_thread(lambda abandoned: run_checks([check], tmp_path, stop=abandoned))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(work, timeout=1.0)

    asyncio.run(cancelled())
    assert (tmp_path / "begun").exists()
    assert _processes_with(mark) == []
