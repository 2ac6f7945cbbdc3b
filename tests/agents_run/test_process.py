"""Running an agent: its output, its end, our clocks, and what it may never do to us."""

from __future__ import annotations

import asyncio
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ralphloop.core.model import Outcome
from ralphloop.proc.threads import StopSignal
from tests.agents_run.helpers import QUICK, Stage, is_alive, wait_until
from tests.timing import FOR_EVER_S


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """A directory to run an agent in."""
    return Stage(tmp_path)


# --- output and exit codes -------------------------------------------------------------------


def test_output_and_exit_code_arrive(stage: Stage) -> None:
    """What an agent prints reaches reader and disk, and it ends as it ended."""
    finished = stage.run(
        """
        import sys
        print("All done.")
        print("a warning", file=sys.stderr)
        """
    )
    assert finished.end.exit_code == 0
    assert not finished.stopped_because
    assert finished.stopped_because == ""
    assert finished.response.outcome is Outcome.COMPLETED
    assert finished.response.final_text == "All done.\n"
    assert stage.transcript.read_bytes() == b"All done.\n"
    assert "a warning" in finished.stderr_tail
    assert finished.leftovers == ()


@pytest.mark.parametrize("code", [1, 3, 42, 255])
def test_exit_codes_are_kept(stage: Stage, code: int) -> None:
    """Every exit code is reported as it is."""
    assert stage.run(f"raise SystemExit({code})").end.exit_code == code


def test_an_agent_killed_by_somebody_else_is_killed(stage: Stage) -> None:
    """A signal from outside shows as a negative exit code and the outcome killed."""
    finished = stage.run("import os; print('hi', flush=True); os.kill(os.getpid(), 9)")
    assert finished.end.exit_code == -9
    assert finished.response.outcome is Outcome.KILLED
    assert not finished.stopped_because


def test_pid_and_start_time_are_told_at_once(stage: Stage) -> None:
    """The journal can write down which process it is before the first output."""
    before = time.time()
    stage.run("print('x')")
    [(pid, started)] = stage.started
    assert pid > 1
    assert before - 5 <= started <= time.time() + 5


@pytest.mark.parametrize(
    "argv, code", [(("no-such-program-anywhere",), 127), (("/etc/hostname",), 126)]
)
def test_an_agent_that_cannot_be_started_is_a_startup_error(
    stage: Stage, argv: tuple[str, ...], code: int
) -> None:
    """A missing or not executable program is an outcome that names it, not an exception."""
    launch = stage.launch("")._replace(argv=argv)
    finished = asyncio.run(stage._run(launch, QUICK, None, None))
    assert finished.end.exit_code == code
    assert finished.response.outcome is Outcome.STARTUP_ERROR
    assert argv[0] in finished.response.reason


def test_secrets_are_redacted_for_everybody(stage: Stage) -> None:
    """Neither disk nor response nor error tail ever sees a key."""
    key = "sk-ant-" + "api03-Zx8Kq2LmN4pR7sT1vW3yB6dF9hJ0"
    finished = stage.run(f"import sys; print('{key}'); print('{key}', file=sys.stderr)")
    stored = stage.transcript.read_text() + finished.response.text + finished.stderr_tail
    assert key not in stored
    assert stored.count("[redacted]") == 3


# --- stdin -----------------------------------------------------------------------------------


def test_a_large_prompt_arrives_whole(stage: Stage) -> None:
    """Five megabytes on stdin are read to the last byte."""
    finished = stage.run("import sys; print(len(sys.stdin.buffer.read()))", stdin=b"x" * 5_000_000)
    assert finished.response.final_text == "5000000\n"


@pytest.mark.parametrize(
    "code",
    [
        "print('did not read it')",
        "import os; os.close(0); print('closed it')",
        "import sys; sys.stdin.read(10); sys.stdin.close(); print('read a little')",
        "import os, time; os.close(0); time.sleep(0.2); print('closed, then worked')",
    ],
)
def test_an_agent_need_not_read_its_prompt(stage: Stage, code: str) -> None:
    """A prompt that nobody reads neither blocks nor breaks anything."""
    finished = stage.run(code, stdin=b"x" * 5_000_000)
    assert finished.end.exit_code == 0
    assert finished.response.outcome is Outcome.COMPLETED


def test_output_before_reading_does_not_deadlock(stage: Stage) -> None:
    """An agent that prints a lot before it reads its prompt gets both done."""
    finished = stage.run(
        """
        import sys
        for _ in range(100): print("y" * 9999)
        print(len(sys.stdin.buffer.read()))
        """,
        stdin=b"x" * 2_000_000,
    )
    assert finished.response.text_chars == 100 * 10_000 + 8


# --- clocks ----------------------------------------------------------------------------------


def test_the_wall_clock_ends_a_busy_agent(stage: Stage) -> None:
    """An agent that prints for ever is stopped when its time is up."""
    finished = stage.run(
        """
        import time
        while True:
            print("tick", flush=True)
            time.sleep(0.02)
        """,
        rules=replace(QUICK, wall_s=0.5, stall_s=5),
    )
    assert finished.end.timed_out
    assert "still running after" in finished.stopped_because
    assert 0.5 <= finished.end.duration_s < 5


def test_a_silent_idle_agent_is_stalled(stage: Stage) -> None:
    """No output, no work, no change: the stall clock ends it."""
    finished = stage.run(
        "import time; print('hello', flush=True); time.sleep(60)",
        rules=replace(QUICK, stall_s=0.6, wall_s=30),
    )
    assert finished.end.stalled
    assert not finished.end.timed_out
    assert finished.end.duration_s < 10


def test_a_silent_busy_agent_is_not_stalled(stage: Stage) -> None:
    """Processor time of a child counts as work: a silent compiler is left alone."""
    finished = stage.run(
        """
        import subprocess, sys
        subprocess.run([sys.executable, "-S", "-c",
            "import time; end = time.time() + 2.5\\nwhile time.time() < end: sum(range(1000))"])
        print("built")
        """,
        rules=replace(QUICK, stall_s=0.8, wall_s=30),
    )
    assert finished.end.exit_code == 0
    assert finished.response.final_text == "built\n"


def test_a_silent_agent_that_changes_files_is_not_stalled(stage: Stage) -> None:
    """A change that only the file probe sees is a sign of life too."""
    calls: list[float] = []

    def probe() -> object:
        calls.append(time.monotonic())
        return len(calls) if len(calls) < 6 else "still"

    finished = stage.run(
        "import time; time.sleep(60)",
        rules=replace(QUICK, stall_s=0.4, wall_s=30),
        file_probe=probe,
    )
    assert finished.end.stalled
    assert finished.end.duration_s >= 0.8
    assert len(calls) >= 6


def test_clocks_that_are_switched_off_never_fire(stage: Stage) -> None:
    """Zero means no limit."""
    finished = stage.run("import time; time.sleep(1)", rules=replace(QUICK, wall_s=0, stall_s=0))
    assert finished.end.exit_code == 0
    assert not finished.stopped_because


# --- stopping --------------------------------------------------------------------------------

WAITS_FOR_SIGNALS = """
import signal, sys, time
def on_int(*_):
    print("stopping gently", flush=True)
    sys.exit(0)
signal.signal(signal.SIGINT, on_int)
print("ready", flush=True)
time.sleep(60)
"""

IGNORES = """
import signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
{more}
print("ready", flush=True)
while True: time.sleep(60)
"""


def _later(stop: StopSignal, delay: float = 0.4, times: int = 1) -> None:
    loop = asyncio.get_running_loop()
    for n in range(times):
        loop.call_later(delay + 0.15 * n, stop.request)


def test_a_person_stops_an_agent_gently(stage: Stage) -> None:
    """The first request is SIGINT: the agent still says its last words."""
    finished = stage.run(WAITS_FOR_SIGNALS, meanwhile=_later)
    assert finished.end.interrupted
    assert finished.end.exit_code == 0
    assert finished.end.interrupted
    assert "stopping gently" in finished.response.text


@pytest.mark.parametrize(
    "more, code",
    [
        ("", -signal.SIGTERM),
        ("signal.signal(signal.SIGTERM, signal.SIG_IGN)", -signal.SIGKILL),
    ],
)
def test_signals_get_harder(stage: Stage, more: str, code: int) -> None:
    """Who ignores SIGINT gets SIGTERM, who ignores both gets SIGKILL."""
    finished = stage.run(IGNORES.format(more=more), meanwhile=_later)
    assert finished.end.exit_code == code


def test_the_second_request_is_immediate(stage: Stage) -> None:
    """Asked twice, the supervisor does not wait for a stubborn agent."""
    rules = replace(QUICK, stop_grace_s=FOR_EVER_S)
    finished = stage.run(
        IGNORES.format(more="signal.signal(signal.SIGTERM, signal.SIG_IGN)"),
        rules=rules,
        meanwhile=lambda stop: _later(stop, times=2),
    )
    assert finished.end.exit_code == -signal.SIGKILL


def test_a_suspended_agent_can_be_stopped(stage: Stage) -> None:
    """A stopped process does not sleep through its end."""
    finished = stage.run(
        "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", meanwhile=_later
    )
    assert finished.end.exit_code is not None
    assert finished.end.exit_code < 0


def test_cancelling_the_supervisor_leaves_nothing(stage: Stage) -> None:
    """An error on our side still ends the whole tree."""

    async def cancelled() -> None:
        code = """
        import subprocess, sys, time
        child = subprocess.Popen(["sleep", "300"], start_new_session=True)
        open("pids", "w").write(f"{child.pid}\\n")
        print("ready", flush=True)
        time.sleep(300)
        """
        task = asyncio.create_task(stage._run(stage.launch(code), QUICK, None, None))
        await asyncio.to_thread(wait_until, lambda: bool(stage.pids()))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert stage.survivors() == []


def test_an_error_in_a_listener_surfaces_and_leaves_nothing(stage: Stage) -> None:
    """A bug in whoever watches the events is raised, not swallowed, and the agent is gone."""

    class Broken(list[object]):
        def append(self, _event: object) -> None:
            raise RuntimeError("a bug of ours")

    stage.events = Broken()  # type: ignore[assignment]
    code = """
    import json, time
    print(json.dumps({"type": "system", "subtype": "init", "session_id": "s", "model": "m"}))
    print(json.dumps({"type": "assistant", "message": {"id": "1", "content": [
        {"type": "text", "text": "hello"}]}}), flush=True)
    time.sleep(60)
    """
    with pytest.raises(RuntimeError, match="a bug of ours"):
        stage.run(code, reader="claude")
    assert not is_alive(stage.started[0][0])


# --- result and hints ------------------------------------------------------------------------

RESULT = (
    '{"type":"result","subtype":"success","is_error":false,"result":"fine","num_turns":1,'
    '"session_id":"s","total_cost_usd":0.01,"usage":{},"permission_denials":[]}'
)
INIT = '{"type":"system","subtype":"init","session_id":"s","model":"m","tools":[]}'


def test_a_result_followed_by_hanging_is_completed(stage: Stage) -> None:
    """After its result an agent gets a grace, then its tree is stopped and the result stands."""
    finished = stage.run(
        f"""
        import subprocess, time, signal, sys
        def late(*_):
            print('{RESULT}'.replace('"is_error":false', '"is_error":true'), flush=True)
            sys.exit(1)
        signal.signal(signal.SIGINT, late)
        subprocess.Popen(["sleep", "299"], start_new_session=True)
        print('{INIT}')
        print('{RESULT}', flush=True)
        time.sleep(60)
        """,
        reader="claude",
        rules=replace(QUICK, wall_s=30),
    )
    assert "had given its result" in finished.stopped_because
    assert finished.response.outcome is Outcome.COMPLETED
    assert finished.response.final_text == "fine"
    assert any(name.startswith("sleep 299") for name in finished.leftovers)
    assert finished.end.duration_s < 10


def test_work_that_goes_on_after_a_first_result_is_not_cut(stage: Stage) -> None:
    """Background work that starts a second turn within the grace may finish it."""
    finished = stage.run(
        f"""
        import json, time
        print('{INIT}')
        print('{RESULT}', flush=True)
        for n in range(6):
            time.sleep(0.15)
            print(json.dumps({{"type": "assistant", "message": {{"id": str(n), "content": [
                {{"type": "text", "text": "more"}}]}}}}), flush=True)
        print('{RESULT}'.replace("fine", "second"), flush=True)
        """,
        reader="claude",
        rules=replace(QUICK, after_result_grace_s=0.6, wall_s=30),
    )
    assert not finished.stopped_because
    assert finished.response.final_text == "second"


def test_a_fatal_answer_ends_the_wait_at_once(stage: Stage) -> None:
    """Retrying a rejected key for three minutes helps nobody: it is stopped at the first sign."""
    retry = (
        '{"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,'
        '"retry_delay_ms":500,"error_status":401,"error":"authentication_failed"}'
    )
    finished = stage.run(
        f"""
        import time
        print('{INIT}')
        print('{retry}', flush=True)
        time.sleep(60)
        """,
        reader="claude",
        rules=replace(QUICK, wall_s=30),
    )
    assert finished.stopped_because
    assert finished.response.outcome is Outcome.FATAL
    assert finished.end.duration_s < 10
