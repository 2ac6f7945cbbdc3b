"""Whole runs of `ralph run` with the real Codex.

Codex names no price, so the bill is in tokens.  It prints nothing while an answer streams, and its
launcher is not the program: silence and kill -9 are tested for both reasons.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest

from ralphloop.errors import ExitCode
from tests import sentences
from tests.e2e.clis import CLIS
from tests.e2e.conftest import World
from tests.e2e.model_server import (
    ALWAYS,
    ModelServer,
    Usage,
    edit,
    fail,
    read,
    say,
    shell,
    use,
    write,
)
from tests.e2e.processes import agent_process, named, processes_of
from tests.e2e.projects import (
    Project,
    assert_done,
    claim,
    counted,
    feature,
    of_story,
    project,
    story,
)
from tests.e2e.trouble import codex_usage_limit

pytestmark = pytest.mark.e2e

ONE = (use(*feature("one", 1)), say(claim(exit_signal=True)))
BILL = Usage(input=2000, output=500, cache_read=300)


def codex_project(
    world: World,
    server: ModelServer,
    *,
    settings: str = "",
    agent: str = "",
    agent_env: Mapping[str, str] | None = None,
) -> Project:
    """One story for Codex, which may do anything: what its sandbox does is not tested here."""
    return project(
        world,
        server,
        stories=[story(1, "One")],
        agent="codex",
        agent_settings=f'safety = "minimal"\n{agent}',
        settings=settings,
        agent_env=agent_env,
    )


def assert_billed(made: Project, server: ModelServer) -> None:
    """The tokens ralph counted are those the model billed."""
    assert counted(made.status()) == server.billed


def test_two_stories_of_which_the_first_done_was_a_lie(server: ModelServer, world: World) -> None:
    """A claim that the checks refute is not believed; the next start is told what failed."""
    made = project(world, server, stories=[story(1, "One"), story(2, "Two")], agent="codex")
    server.play(
        use(*feature("one", 1, tested=2)),
        say(claim("Implemented and fully tested."), usage=BILL),
        use(read("one.py")),
        use(edit("one.py", "    return 1", "    return 2")),
        say(claim("Now it is right.")),
        when=of_story(1),
    ).play(
        use(*feature("two", 2)),
        say(claim("All stories are done.", exit_signal=True)),
        when=of_story(2),
    )
    assert_done(made, made.ralph("run"))
    assert made.subjects == ["Begin", "US-001: One", "US-002: Two"]
    assert "AssertionError: 1 != 2" in server.requests[2].prompt
    assert_billed(made, server)


def test_a_forgotten_block_is_asked_for(server: ModelServer, world: World) -> None:
    """The same conversation gives it: one iteration, both answers counted once."""
    made = codex_project(world, server)
    server.play(use(*feature("one", 1)), say("I did a part.", usage=BILL), say(claim(), usage=BILL))
    assert_done(made, made.ralph("run"))
    assert len(server.requests) == 3
    assert "RALPH_STATUS block" in server.requests[-1].prompt
    assert made.status()["session"]["iterations"] == 1
    assert_billed(made, server)


@pytest.mark.parametrize("status", [429, 500])
def test_an_outage_is_sat_out(server: ModelServer, world: World, status: int) -> None:
    """A start that the API refused is no iteration; the story is done when it answers again."""
    made = codex_project(world, server, settings='[limits]\nbackoff = "200ms"\n')
    refusals = 1 if status == 429 else 4  # Codex tries a request and a stream twice each
    server.play(fail(status, times=refusals), *ONE)
    assert_done(made, made.ralph("run"))
    assert made.status()["session"]["iterations"] == 1
    assert_billed(made, server)


def test_a_wrong_key_ends_the_run(server: ModelServer, world: World) -> None:
    """Nothing can be done without a person, who is told what."""
    made = codex_project(world, server)
    server.play(fail(401, "invalid key", times=ALWAYS))
    run = made.ralph("run")
    assert run.returncode == ExitCode.AGENT_UNAVAILABLE
    assert "next:" in run.stdout + run.stderr


def test_a_usage_limit_ends_the_run_where_waiting_is_not_wanted(
    server: ModelServer, world: World
) -> None:
    """With --no-wait the run ends as limited and says how to go on."""
    made = codex_project(world, server)
    server.play(codex_usage_limit(resets_at=int(time.time()) + 3600))
    run = made.ralph("run", "--no-wait")
    assert run.returncode == ExitCode.LIMIT
    assert sentences.GO_ON in run.stdout + run.stderr


@pytest.mark.parametrize("zone", ["America/New_York", "UTC", "Asia/Kolkata"])
def test_a_usage_limit_is_waited_for_in_every_zone(
    server: ModelServer, world: World, zone: str
) -> None:
    """The clock time that Codex names is local; the one just past means soon, not tomorrow."""
    made = codex_project(world, server, agent_env={"TZ": zone})
    server.play(codex_usage_limit(resets_at=int(time.time()) - 120), *ONE)
    assert_done(made, made.ralph("run"))


def test_silence_in_the_middle_of_an_answer_is_ended(server: ModelServer, world: World) -> None:
    """Our stall clock stops a start that hangs, and the next one does the work."""
    made = codex_project(
        world, server, settings='[limits]\nstall_timeout = "5s"\nbackoff = "200ms"\n'
    )
    server.play(say("I think, and think", pause_s=100), *ONE)
    began = time.monotonic()
    assert_done(made, made.ralph("run"))
    assert time.monotonic() - began < 40
    assert server.requests[0].abandoned
    found = counted(made.status())
    assert found.output == server.billed.output
    assert found.input > server.billed.input  # the silent start is estimated by its prompt


def test_killing_the_launcher_leaves_nothing_behind(server: ModelServer, world: World) -> None:
    """A kill -9 of the launcher orphans the program and its command; ralph ends both."""
    made = codex_project(world, server, settings='[limits]\nbackoff = "200ms"\n')
    endless = "touch begun; while true; do sleep 0.2; done"
    server.play(use(shell(endless)), *ONE)
    running = made.start("run", "--json")
    made.wait_for_file("begun", running)
    agent_process(world.work, CLIS["codex"].program).kill()
    out, _ = running.communicate(timeout=60)
    assert running.returncode == ExitCode.COMPLETE, out
    assert '"killed"' in out


def test_ctrl_c_in_the_middle_of_a_tool_leaves_nothing_running(
    server: ModelServer, world: World
) -> None:
    """The agent and its command are stopped, and `--continue` takes the story up again."""
    made = codex_project(world, server)
    endless = "touch begun; while true; do sleep 0.2; done"
    server.play(use(shell(endless)), *ONE)
    running = made.start("run")
    made.wait_for_file("begun", running)
    made.interrupt(running)
    out, _ = running.communicate(timeout=60)
    assert running.returncode == ExitCode.INTERRUPTED, out
    assert sentences.GO_ON in out
    assert [named(it) for it in processes_of(world.work)] == []
    assert_done(made, made.ralph("run", "--continue"))


def test_killed_in_the_middle_of_a_tool_it_goes_on(server: ModelServer, world: World) -> None:
    """After kill -9 of ralph `--continue` ends what still ran and finishes the work."""
    made = codex_project(world, server)
    endless = "touch begun; while true; do sleep 0.2; done"
    server.play(use(write("notes.txt", "half\n")), use(shell(endless)), *ONE)
    running = made.start("run")
    made.wait_for_file("begun", running)
    running.kill()
    running.communicate()
    assert_done(made, made.ralph("run", "--continue"))


def test_a_retry_resumes_the_conversation_where_wanted(server: ModelServer, world: World) -> None:
    """The second attempt sees the first and what was wrong with it."""
    made = codex_project(world, server, agent='context = "resume"')
    server.play(
        use(*feature("one", 1, tested=2), usage=BILL),
        say(claim("My first and wrong answer."), usage=BILL),
        use(read("one.py")),
        use(edit("one.py", "    return 1", "    return 2")),
        say(claim("Now it is right.", exit_signal=True)),
    )
    assert_done(made, made.ralph("run"))
    assert server.requests[2].mentions("My first and wrong answer.")
    assert "AssertionError: 1 != 2" in server.requests[2].prompt
