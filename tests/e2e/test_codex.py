"""The real Codex against the scripted model, and what our reader makes of it."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest

from ralphloop.agents.environment import local_time
from ralphloop.core.model import Outcome, Response
from ralphloop.readers import read as read_output
from tests.e2e.bills import as_usage
from tests.e2e.clis import codex_env, run_cli, run_until_killed
from tests.e2e.conftest import World
from tests.e2e.model_server import (
    ALWAYS,
    Failure,
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
from tests.e2e.trouble import codex_usage_limit

pytestmark = pytest.mark.e2e

EXEC = ("exec", "--json", "--skip-git-repo-check")
ALL_ALLOWED = "--dangerously-bypass-approvals-and-sandbox"
BILL = Usage(input=1000, output=50, cache_read=300)


def codex(
    server: ModelServer,
    world: World,
    *arguments: str,
    prompt: str = "do it",
    env: Mapping[str, str] | None = None,
) -> Response:
    """One run of Codex, read."""
    done = run_cli(
        "codex",
        *EXEC,
        *arguments,
        "-",
        prompt=prompt,
        cwd=world.work,
        env={**codex_env(server.url, world.home), **(env or {})},
    )
    return read_output(
        done.stdout,
        agent="codex",
        exit_code=done.returncode,
        stderr=done.stderr.decode(),
        now=local_time(time.time(), env or {}),
    )


def test_an_answer_is_read_and_billed_to_the_token(server: ModelServer, world: World) -> None:
    """Words and tokens are those of the model; Codex names no price."""
    server.play(say("Hello, all is well.", usage=BILL))
    response = codex(server, world)
    assert (response.outcome, response.final_text) == (Outcome.COMPLETED, "Hello, all is well.")
    assert as_usage(response.usage) == server.billed == BILL
    assert response.usage.cost_usd is None
    assert response.session_id


def test_it_writes_edits_and_runs_commands(server: ModelServer, world: World) -> None:
    """The neutral tools of the script do real work, and each call is seen."""
    code = world.work / "code.py"
    code.write_text("def f():\n    return 1\n")
    server.play(
        use(write("new.txt", "one\n"), text="On it."),
        use(read("code.py")),
        use(edit("code.py", "    return 1", "    return 2")),
        use(shell("cat new.txt code.py")),
        say("Done."),
    )
    response = codex(server, world, ALL_ALLOWED)
    assert response.outcome is Outcome.COMPLETED
    assert code.read_text() == "def f():\n    return 2\n"
    assert [call.name for call in response.tool_calls] == [
        "file_change",
        "command_execution",
        "file_change",
        "command_execution",
    ]
    assert all(call.ok for call in response.tool_calls)
    assert server.requests[-1].mentions("one\ndef f():\n    return 2")
    assert as_usage(response.usage) == server.billed == Usage(input=500, output=100)


def test_what_the_sandbox_refuses_is_not_told(server: ModelServer, world: World) -> None:
    """The file is not written and Codex prints nothing of it: only evidence shows that."""
    server.play(use(shell("echo x > new.txt")), say("Written."))
    response = codex(server, world)
    assert not (world.work / "new.txt").exists()
    assert (response.outcome, response.denials) == (Outcome.COMPLETED, ())


@pytest.mark.parametrize(
    "status, outcome",
    [
        (401, Outcome.FATAL),
        (429, Outcome.TRANSIENT),
        (500, Outcome.TRANSIENT),
        (529, Outcome.TRANSIENT),
    ],
)
def test_api_errors_are_told_apart(
    server: ModelServer, world: World, status: int, outcome: Outcome
) -> None:
    """What can be waited out is transient, what needs a person is fatal; nothing is billed."""
    server.play(fail(status, times=ALWAYS))
    response = codex(server, world)
    assert response.outcome is outcome
    assert not response.model_output
    assert as_usage(response.usage) == server.billed == Usage()


def test_no_key_is_fatal(server: ModelServer, world: World) -> None:
    """Without a key no request is made, and waiting would not help."""
    response = codex(server, world, env={"SCRIPTED_API_KEY": ""})
    assert response.outcome is Outcome.FATAL
    assert server.requests == []


@pytest.mark.parametrize("zone", ["America/New_York", "UTC", "Asia/Kolkata"])
def test_a_spent_plan_tells_when_it_comes_back(
    server: ModelServer, world: World, zone: str
) -> None:
    """Codex names a clock time to the minute, which is over when the minute is."""
    reset = int(time.time()) + 600
    server.play(codex_usage_limit(resets_at=reset, times=ALWAYS))
    response = codex(server, world, env={"TZ": zone})
    assert response.outcome is Outcome.USAGE_LIMIT
    assert response.rate_limit.resets_at
    assert 0 < response.rate_limit.resets_at - reset <= 60


def test_a_lost_connection_is_tried_again(server: ModelServer, world: World) -> None:
    """A stream cut in the middle is asked for once more."""
    server.play(say("I begin to say", cut="middle"), say("I say it again."))
    response = codex(server, world)
    assert (response.outcome, response.final_text) == (Outcome.COMPLETED, "I say it again.")
    assert as_usage(response.usage) == server.billed


def test_errors_inside_the_stream_end_as_transient(server: ModelServer, world: World) -> None:
    """The provider breaks off again and again; the half answers are no result."""
    server.play(say("Half an answer", break_off=Failure(), times=ALWAYS))
    response = codex(server, world)
    assert response.outcome is Outcome.TRANSIENT
    assert response.final_text is None


def test_a_turn_killed_in_silence_is_seen_as_killed(server: ModelServer, world: World) -> None:
    """Launcher and program go together, the model sees the client leave, no result is made up."""
    server.play(say("A long answer that stops", pause_s=60))
    stdout, exit_code = run_until_killed(
        "codex",
        *EXEC,
        "-",
        prompt="do it",
        cwd=world.work,
        env=codex_env(server.url, world.home),
        sight=b"turn.started",
    )
    response = read_output(stdout, agent="codex", exit_code=exit_code)
    assert response.outcome is Outcome.KILLED
    assert response.final_text is None
    assert as_usage(response.usage) == server.billed == Usage()


def test_a_resumed_conversation_goes_on(server: ModelServer, world: World) -> None:
    """The same id goes on, the model sees the past, and the tokens are those of all of it."""
    server.play(say("First."), say("Second.", usage=BILL))
    first = codex(server, world)
    assert first.session_id
    done = run_cli(
        "codex",
        *("exec", "resume", "--json", "--skip-git-repo-check", first.session_id, "-"),
        prompt="and now?",
        cwd=world.work,
        env=codex_env(server.url, world.home),
    )
    second = read_output(done.stdout, agent="codex", exit_code=done.returncode)
    assert (second.session_id, second.final_text) == (first.session_id, "Second.")
    assert server.requests[1].mentions("First.")
    # Codex counts per conversation: whoever resumes has to subtract what was counted before.
    assert as_usage(second.usage) == server.billed


def test_a_large_prompt_arrives_whole(server: ModelServer, world: World) -> None:
    """200 KB on stdin reach the model from the first word to the last, with AGENTS.md beside."""
    (world.work / "AGENTS.md").write_text("Never use tabs in this house.\n")
    prompt = "BEGIN " + "All work and no play. " * 9_000 + "END"
    server.play(say("Read."))
    response = codex(server, world, prompt=prompt)
    assert response.outcome is Outcome.COMPLETED
    assert server.requests[0].prompt == prompt
    assert server.requests[0].mentions("Never use tabs in this house.")
