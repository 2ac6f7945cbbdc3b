"""No process of an agent survives it, whatever it does to hide."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ralphloop.proc.process_table import process_table
from ralphloop.proc.tree import become_subreaper
from tests.agents_run.helpers import QUICK, Stage

# Written into an agent: `daemon` leaves a grandchild that no longer has anything to do with us.
DAEMON = """
import os, sys, time

def daemon(*, keep_env, keep_output, linger=0.0, ignore=()):
    if os.fork():
        return
    os.setsid()
    if os.fork():
        time.sleep(linger)
        os._exit(0)
    open("pids", "a").write(f"{os.getpid()}\\n")
    if not keep_output:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
    import signal
    for number in ignore:
        signal.signal(number, signal.SIG_IGN)
    env = dict(os.environ) if keep_env else {}
    os.execve(sys.executable, [sys.executable, "-S", "-E", "-c",
              "import time\\nwhile True: time.sleep(60)"], env)

def wait_for(count):
    while not os.path.exists("pids") or len(open("pids").read().split()) < count:
        time.sleep(0.01)
"""


@pytest.fixture(params=["adopting", "remembering"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Stage:
    """A stage for both ways to find processes."""
    stage = Stage(tmp_path)
    stage.rules = replace(QUICK, adopt_orphans=request.param == "adopting")
    return stage


def _leak(stage: Stage, code: str) -> tuple[str, ...]:
    finished = stage.run(DAEMON + code)
    assert finished.end.exit_code == 0
    assert stage.pids()
    return finished.leftovers


def test_subreaping_works_here() -> None:
    """On Linux the first of the two ways is the one that is used."""
    assert become_subreaper() is (sys.platform == "linux")


def test_a_child_left_running_is_stopped_and_named(stage: Stage) -> None:
    """A server that a tool left behind is stopped after the grace, and its name is told."""
    leftovers = _leak(
        stage,
        """
import subprocess
child = subprocess.Popen(["sleep", "301"], stdout=subprocess.DEVNULL)
open("pids", "w").write(str(child.pid))
""",
    )
    assert leftovers == (f"sleep 301 (pid {stage.pids()[0]})",)


def test_a_child_that_finishes_within_the_grace_is_left_alone(stage: Stage) -> None:
    """Work that ends by itself soon after the agent is not disturbed."""
    code = """
import subprocess
subprocess.Popen(["sh", "-c", "sleep 0.3; echo finished > done"])
"""
    finished = stage.run(code, rules=replace(stage.rules, exit_grace_s=5))
    assert finished.leftovers == ()
    assert (stage.directory / "done").exists()


def test_a_child_in_its_own_session_is_stopped(stage: Stage) -> None:
    """A new session is no way out."""
    assert _leak(
        stage,
        """
import subprocess
child = subprocess.Popen(["sleep", "302"], start_new_session=True)
open("pids", "w").write(str(child.pid))
""",
    )


def test_a_nohup_job_of_a_shell_is_stopped(stage: Stage) -> None:
    """What a shell put into the background is stopped."""
    assert _leak(
        stage,
        """
import subprocess
subprocess.run(["sh", "-c", "nohup sleep 303 >/dev/null 2>&1 & echo $! > pids"])
""",
    )


def test_a_daemon_with_our_mark_is_stopped(stage: Stage) -> None:
    """Forking twice into a new session is no way out."""
    assert _leak(stage, "daemon(keep_env=True, keep_output=False); wait_for(1)")


def test_a_daemon_without_environment_is_stopped(stage: Stage) -> None:
    """Nor is clearing the environment on top of it."""
    linger = 0.0 if stage.rules.adopt_orphans else 1.5
    assert _leak(
        stage,
        f"daemon(keep_env=False, keep_output=False, linger={linger}); wait_for(1); time.sleep({linger})",
    )


def test_a_stubborn_daemon_is_killed(stage: Stage) -> None:
    """Who ignores SIGINT and SIGTERM is killed."""
    assert _leak(stage, "daemon(keep_env=True, keep_output=False, ignore=(2, 15)); wait_for(1)")


def test_several_daemons_at_once_are_stopped(stage: Stage) -> None:
    """All of them, not only the first one found."""
    leftovers = _leak(
        stage,
        "for n in range(5): daemon(keep_env=True, keep_output=bool(n % 2))\nwait_for(5)",
    )
    assert len(leftovers) == 5


def test_a_child_that_holds_the_output_open_does_not_delay_the_end(stage: Stage) -> None:
    """We wait for the agent, not for the end of its output, which would never come."""
    assert _leak(stage, "daemon(keep_env=True, keep_output=True); wait_for(1)")


def test_an_agent_that_closes_its_output_is_still_waited_for(stage: Stage) -> None:
    """The end of the output is not the end of the agent."""
    finished = stage.run(
        """
        import os, time
        print("bye", flush=True)
        os.close(1); os.close(2)
        time.sleep(0.6)
        os._exit(7)
        """,
        rules=stage.rules,
    )
    assert finished.end.exit_code == 7
    assert finished.end.duration_s >= 0.6


def test_children_that_start_others_while_dying_are_all_stopped(stage: Stage) -> None:
    """A process that answers every request to stop with a new process loses in the end."""
    code = """
def phoenix():
    import signal
    def reborn(*_):
        if os.fork() == 0:
            phoenix()
        os._exit(0)
    signal.signal(signal.SIGTERM, reborn)
    signal.signal(signal.SIGINT, reborn)
    open("pids", "a").write(f"{os.getpid()}\\n")
    while True: time.sleep(0.01)
if os.fork() == 0:
    os.setsid()
    phoenix()
wait_for(1)
"""
    _leak(stage, code)


def test_a_stopped_agent_takes_its_daemons_along(stage: Stage) -> None:
    """A clock that runs out ends the tree, not only the agent."""
    code = DAEMON + "daemon(keep_env=True, keep_output=False); wait_for(1); time.sleep(60)"
    finished = stage.run(code, rules=replace(stage.rules, wall_s=1.0))
    assert finished.end.timed_out
    assert finished.leftovers == ()


def test_dead_orphans_are_collected(tmp_path: Path) -> None:
    """A night of short-lived daemons does not fill the process table with zombies."""
    stage = Stage(tmp_path)
    dead_before = _dead_children()
    code = """
for n in range(20):
    if os.fork() == 0:
        if os.fork() == 0:
            os.setsid()
            os._exit(0)
        os._exit(0)
    os.wait()
time.sleep(0.3)
"""
    stage.run(DAEMON + code)
    assert _dead_children() <= dead_before


def _dead_children() -> set[tuple[int, float]]:
    table = process_table().values()
    return {proc.identity for proc in table if proc.parent == os.getpid() and not proc.alive}


def _sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "30"])


def test_children_of_ours_are_not_taken_for_the_agents(tmp_path: Path) -> None:
    """What the supervisor runs itself, before or during an agent, is left alone."""
    before = subprocess.Popen(["sleep", "30"], start_new_session=True)
    children = [before]
    try:
        stage = Stage(tmp_path)

        async def both() -> subprocess.Popen[bytes]:
            running = asyncio.create_task(
                stage._run(stage.launch("import time; time.sleep(0.5)"), QUICK, None, None)
            )
            await asyncio.sleep(0.2)
            ours = _sleeper()
            await running
            return ours

        children.append(asyncio.run(both()))
        assert [child.poll() for child in children] == [None, None]
    finally:
        for child in children:
            child.kill()
            child.wait()


def test_two_agents_at_once_do_not_stop_each_other(tmp_path: Path) -> None:
    """The end of one agent leaves the processes of another alone."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    short, long = Stage(tmp_path / "a"), Stage(tmp_path / "b")
    long_code = """
import subprocess
child = subprocess.Popen(["sh", "-c", "sleep 1.5; echo whole > done"], start_new_session=True)
open("pids", "w").write(str(child.pid))
child.wait()
"""

    async def both() -> None:
        await asyncio.gather(
            short._run(short.launch("import time; time.sleep(0.4)"), QUICK, None, None),
            long._run(long.launch(long_code), QUICK, None, None),
        )

    asyncio.run(both())
    assert (long.directory / "done").exists()
    assert short.survivors() == long.survivors() == []
