"""The real Claude Code against the scripted model, and what our reader makes of it.

Nothing of ralph but the reader takes part: if a release of Claude Code changes what it prints,
these tests say so before any run goes wrong.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping

import pytest

from ralphloop.core.model import Outcome, Response
from ralphloop.readers import read as read_output
from tests.e2e.bills import CLAUDE_PRICES, as_usage
from tests.e2e.clis import claude_env, run_cli, run_until_killed
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
from tests.e2e.trouble import claude_usage_limit

pytestmark = pytest.mark.e2e

STREAM = ("-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages")
ALL_ALLOWED = "--dangerously-skip-permissions"
BILL = Usage(input=1000, output=50, cache_read=300, cache_write=200)


def claude(
    server: ModelServer,
    world: World,
    *arguments: str,
    prompt: str = "do it",
    subscription: bool = False,
    env: Mapping[str, str] | None = None,
) -> Response:
    """One run of Claude Code, read."""
    done = run_cli(
        "claude",
        *STREAM,
        *arguments,
        prompt=prompt,
        cwd=world.work,
        env={**claude_env(server.url, world.home, subscription=subscription), **(env or {})},
    )
    return read_output(
        done.stdout, agent="claude", exit_code=done.returncode, stderr=done.stderr.decode()
    )


def test_an_answer_is_read_and_billed_to_the_token(server: ModelServer, world: World) -> None:
    """Words, tokens and dollars are those of the model."""
    server.play(say("Hello, all is well.", usage=BILL))
    response = claude(server, world)
    assert (response.outcome, response.final_text) == (Outcome.COMPLETED, "Hello, all is well.")
    assert as_usage(response.usage) == server.billed == BILL
    assert response.usage.cost_usd == pytest.approx(BILL.cost(CLAUDE_PRICES))
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
    response = claude(server, world, ALL_ALLOWED)
    assert response.outcome is Outcome.COMPLETED
    assert code.read_text() == "def f():\n    return 2\n"
    assert [call.name for call in response.tool_calls] == ["Write", "Read", "Edit", "Bash"]
    assert all(call.ok for call in response.tool_calls)
    assert server.requests[-1].mentions("one\ndef f():\n    return 2")
    assert as_usage(response.usage) == server.billed == Usage(input=500, output=100)


def test_refused_tools_are_denials_although_it_ends_well(server: ModelServer, world: World) -> None:
    """Exit code 0 and a happy result do not hide that nothing was allowed."""
    server.play(use(write("new.txt", "x")), say("I could not write."))
    response = claude(server, world, "--permission-mode", "dontAsk")
    assert response.outcome is Outcome.DENIED
    assert [denial.tool for denial in response.denials] == ["Write"]
    assert not (world.work / "new.txt").exists()


@pytest.mark.parametrize(
    "status, outcome",
    [
        (401, Outcome.FATAL),
        (403, Outcome.FATAL),
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
    response = claude(server, world, env={"CLAUDE_CODE_MAX_RETRIES": "1"})
    assert response.outcome is outcome
    assert not response.model_output
    assert as_usage(response.usage) == server.billed == Usage()


def test_no_key_is_fatal(server: ModelServer, world: World) -> None:
    """Nobody is logged in: no request is made, and waiting would not help."""
    response = claude(server, world, env={"ANTHROPIC_API_KEY": ""})
    assert response.outcome is Outcome.FATAL
    assert server.requests == []


def test_a_spent_subscription_tells_when_it_comes_back(server: ModelServer, world: World) -> None:
    """The reset time is the provider's, to the second."""
    server.play(claude_usage_limit(resets_in_s=3, times=ALWAYS))
    began = time.time()
    response = claude(server, world, subscription=True)
    assert response.outcome is Outcome.USAGE_LIMIT
    assert response.rate_limit.resets_at
    assert began + 2 <= response.rate_limit.resets_at <= time.time() + 3


def test_overload_that_passes_is_no_event(server: ModelServer, world: World) -> None:
    """The CLI's own retries are enough, and only the answer is billed."""
    server.play(fail(529, times=2), say("Here I am."))
    response = claude(server, world)
    assert (response.outcome, response.final_text) == (Outcome.COMPLETED, "Here I am.")
    assert len(server.requests) == 3
    assert as_usage(response.usage) == server.billed


def test_a_lost_connection_is_tried_again(server: ModelServer, world: World) -> None:
    """A stream cut in the middle is asked for once more."""
    server.play(say("I begin to say", cut="middle"), say("I say it again."))
    response = claude(server, world)
    assert (response.outcome, response.final_text) == (Outcome.COMPLETED, "I say it again.")


def test_errors_inside_the_stream_end_as_transient(server: ModelServer, world: World) -> None:
    """The provider breaks off again and again; the half answers are no result."""
    server.play(say("Half an answer", break_off=Failure(status=529), times=ALWAYS))
    response = claude(server, world, env={"CLAUDE_CODE_MAX_RETRIES": "1"})
    assert response.outcome is Outcome.TRANSIENT
    assert response.model_output


def test_a_turn_killed_in_silence_is_billed_as_far_as_it_was_told(
    server: ModelServer, world: World
) -> None:
    """No result line comes, but what had been streamed is counted and marked as an estimate."""
    server.play(say("A long answer that stops", pause_s=60, usage=BILL))
    stdout, exit_code = run_until_killed(
        "claude",
        *STREAM,
        prompt="do it",
        cwd=world.work,
        env=claude_env(server.url, world.home),
        sight=b"text_delta",
    )
    response = read_output(stdout, agent="claude", exit_code=exit_code)
    assert response.outcome is Outcome.KILLED
    assert response.usage.estimated
    assert (
        as_usage(response.usage)
        == server.billed
        == Usage(input=1000, output=1, cache_read=300, cache_write=200)
    )


def test_its_own_turn_limit_is_told_apart(server: ModelServer, world: World) -> None:
    """Out of turns is neither success nor failure of the API."""
    server.play(use(shell("true")), use(shell("true")), use(shell("true")))
    response = claude(server, world, ALL_ALLOWED, "--max-turns", "2")
    assert response.outcome is Outcome.LIMIT
    assert as_usage(response.usage) == server.billed


def test_a_resumed_conversation_costs_what_it_added(server: ModelServer, world: World) -> None:
    """The same id goes on, the model sees the past, and the past is not billed twice."""
    session = str(uuid.uuid4())
    server.play(say("First."), say("Second.", usage=BILL))
    claude(server, world, "--session-id", session)
    response = claude(server, world, "--resume", session, prompt="and now?")
    assert (response.session_id, response.final_text) == (session, "Second.")
    assert server.requests[1].mentions("First.")
    assert as_usage(response.usage) == BILL
    assert response.usage.cost_usd == pytest.approx(BILL.cost(CLAUDE_PRICES))


def test_project_memory_and_skills_reach_the_model(server: ModelServer, world: World) -> None:
    """CLAUDE.md and a skill of the project are in the request."""
    (world.work / "CLAUDE.md").write_text("Never use tabs in this house.\n")
    skill = world.work / ".claude" / "skills" / "testing-learned" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: testing-learned\ndescription: How we test\n---\nUse unittest.\n")
    server.play(say("Understood."))
    claude(server, world, "--setting-sources", "user,project")
    assert server.requests[0].mentions("Never use tabs in this house.")
    assert "testing-learned" in server.requests[0].skills


def test_a_large_prompt_arrives_whole(server: ModelServer, world: World) -> None:
    """200 KB on stdin reach the model from the first word to the last."""
    prompt = "BEGIN " + "All work and no play. " * 9_000 + "END"
    server.play(say("Read."))
    response = claude(server, world, prompt=prompt)
    assert response.outcome is Outcome.COMPLETED
    assert server.requests[0].prompt == prompt
