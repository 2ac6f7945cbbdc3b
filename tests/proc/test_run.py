"""Running a command: bounded time, bounded output, nobody who holds its pipes is waited for."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from ralphloop.proc.run import Output, run_command, run_in_front
from tests.agents_run.helpers import is_alive, wait_until
from tests.timing import FOR_EVER_S


def _run(script: str, cwd: Path, **options: object) -> tuple[int, bytes, bool, bool]:
    ended = run_command(["sh", "-c", script], cwd=cwd, env=os.environ, **options)  # type: ignore[arg-type]
    return ended.returncode, ended.stdout, ended.timed_out, ended.overflowed


def test_output_and_exit_code_are_returned(tmp_path: Path) -> None:
    """The plain case: what it printed and how it ended."""
    assert _run("echo out; echo err >&2; exit 3", tmp_path) == (3, b"out\n", False, False)


def test_large_input_and_output_flow_at_the_same_time(tmp_path: Path) -> None:
    """Neither side of a pipe waits for the other."""
    data = b"x" * 3_000_000
    assert _run("cat", tmp_path, stdin=data)[1] == data


def test_input_that_nobody_reads_is_no_error(tmp_path: Path) -> None:
    """A command may end without reading its input."""
    assert _run("exit 0", tmp_path, stdin=b"x" * 3_000_000)[0] == 0


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    """The deadline holds for the whole process group."""
    script = f"echo before; sleep {FOR_EVER_S} & sleep {FOR_EVER_S}"
    _, out, timed_out, _ = _run(script, tmp_path, timeout_s=0.3)
    assert timed_out
    assert out == b"before\n"


def test_output_beyond_the_limit_stops_the_command(tmp_path: Path) -> None:
    """An endless printer is stopped, not collected."""
    _, out, _, overflowed = _run("yes", tmp_path, keep=100_000)
    assert overflowed
    assert len(out) < 5_000_000


def test_a_background_child_that_holds_the_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """A daemon started by a hook does not hold up the run."""
    child = f"sleep {FOR_EVER_S} & echo $! >pid; echo done"
    code, out, timed_out, _ = _run(child, tmp_path, timeout_s=2 * FOR_EVER_S)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)  # still there: ours to end
    assert (code, out, timed_out) == (0, b"done\n", False)


def test_a_silent_command_with_a_deadline_takes_its_children_along(tmp_path: Path) -> None:
    """In our session too the whole group goes, those that lost their parent included."""
    script = "(sleep 60 & echo $! > orphan); cat > given; sleep 60"
    ended = run_command(
        ["sh", "-c", script], cwd=tmp_path, stdin=b"words", timeout_s=1, output=Output.NOTHING
    )
    assert ended.timed_out
    assert (tmp_path / "given").read_text() == "words"
    orphan = int((tmp_path / "orphan").read_text())
    wait_until(lambda: not is_alive(orphan))


def test_a_program_in_front_has_our_streams_and_a_deadline(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What it prints goes where ours does; one that hangs is ended."""
    assert run_in_front(["sh", "-c", "cat; exit 3"], cwd=tmp_path, given=b"hello") == 3
    assert capfd.readouterr().out == "hello"
    assert run_in_front(["sleep", "60"], given=b"", timeout_s=0.2) == -signal.SIGKILL
