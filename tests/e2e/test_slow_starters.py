"""The real Gemini CLI and opencode against the scripted model: the least each must do.

Both take seconds to start, so there is one success, one edit, one API error and one stop each.
"""

from __future__ import annotations

import pytest

from ralphloop.core.model import Outcome, Response
from ralphloop.readers import read as read_output
from tests.e2e.bills import as_usage
from tests.e2e.clis import ENVIRONMENTS, run_cli, run_until_killed
from tests.e2e.conftest import World
from tests.e2e.model_server import (
    ALWAYS,
    ModelServer,
    Prices,
    Usage,
    edit,
    fail,
    read,
    say,
    shell,
    use,
    write,
)

pytestmark = [pytest.mark.e2e_all, pytest.mark.timeout(240)]

COMMANDS = {
    "gemini": ("-o", "stream-json", "--approval-mode", "yolo", "-m", "gemini-2.5-pro"),
    "opencode": ("run", "--format", "json", "--auto"),
}
BILL = Usage(input=1000, output=50, cache_read=300)

both = pytest.mark.parametrize("name", sorted(COMMANDS))


def run(server: ModelServer, world: World, name: str) -> Response:
    """One run of a CLI, read."""
    done = run_cli(
        name,
        *COMMANDS[name],
        prompt="do it",
        cwd=world.work,
        env=ENVIRONMENTS[name](server.url, world.home),
        timeout_s=120,
    )
    return read_output(
        done.stdout, agent=name, exit_code=done.returncode, stderr=done.stderr.decode()
    )


@both
def test_an_answer_is_read_and_billed_to_the_token(
    server: ModelServer, world: World, name: str
) -> None:
    """Words and tokens are those of the model, whatever is asked beside the conversation."""
    server.play(say("Hello, all is well.", usage=BILL))
    response = run(server, world, name)
    assert (response.outcome, response.final_text) == (Outcome.COMPLETED, "Hello, all is well.")
    assert as_usage(response.usage) == server.billed == BILL


@both
def test_it_writes_edits_and_runs_commands(server: ModelServer, world: World, name: str) -> None:
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
    response = run(server, world, name)
    assert response.outcome is Outcome.COMPLETED
    assert code.read_text() == "def f():\n    return 2\n"
    assert len(response.tool_calls) == 4
    assert all(call.ok for call in response.tool_calls)
    assert server.requests[-1].mentions("one\ndef f():\n    return 2")
    assert as_usage(response.usage) == server.billed == Usage(input=500, output=100)


def test_opencode_reckons_with_the_configured_prices(server: ModelServer, world: World) -> None:
    """Dollars come from the prices in its configuration."""
    server.play(say("Hello.", usage=Usage(input=1000, output=50)))
    response = run(server, world, "opencode")
    prices = Prices(input=3, output=15)
    assert response.usage.cost_usd == pytest.approx(server.billed.cost(prices))


@both
def test_a_wrong_key_is_fatal(server: ModelServer, world: World, name: str) -> None:
    """What needs a person is told apart, and nothing is billed."""
    server.play(fail(401, "bad key", times=ALWAYS))
    response = run(server, world, name)
    assert response.outcome is Outcome.FATAL
    assert as_usage(response.usage) == server.billed == Usage()


@both
def test_a_turn_stopped_in_silence_is_no_success(
    server: ModelServer, world: World, name: str
) -> None:
    """Whatever exit code it ends with, a stopped run is seen as killed."""
    server.play(use(shell("true"), text="On it."), say("A long answer", pause_s=100))
    stdout, exit_code = run_until_killed(
        name,
        *COMMANDS[name],
        prompt="do it",
        cwd=world.work,
        env=ENVIRONMENTS[name](server.url, world.home),
        sight=b'"tool_result"' if name == "gemini" else b'"step_finish"',
    )
    response = read_output(stdout, agent=name, exit_code=exit_code)
    assert response.outcome is Outcome.KILLED
    assert response.final_text is None
