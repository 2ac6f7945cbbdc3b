"""The bill over silence and resume: what ralph counted is what the model billed."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from tests.e2e.bills import assert_dollars_billed
from tests.e2e.conftest import World
from tests.e2e.model_server import ModelServer, Usage, edit, read, say, use
from tests.e2e.projects import assert_done, claim, counted, feature, project, story

pytestmark = pytest.mark.e2e

ONE = (use(*feature("one", 1)), say(claim(exit_signal=True)))
BILL = Usage(input=2000, output=500, cache_read=300)
QUICK = '[limits]\nstall_timeout = "5s"\nbackoff = "200ms"\n'
LIE_THEN_TRUTH = (
    use(*feature("one", 1, tested=2), usage=BILL),
    say(claim("My first and wrong answer."), usage=BILL),
    use(read("one.py")),
    use(edit("one.py", "    return 1", "    return 2")),
    say(claim("Now it is right.", exit_signal=True)),
)


def test_a_stalled_start_costs_what_was_streamed(server: ModelServer, world: World) -> None:
    """No result names a price: it is estimated from the tokens and marked."""
    made = project(world, server, stories=[story(1, "One")], settings=QUICK)
    server.play(say("I think, and think", pause_s=100, usage=BILL), *ONE)
    assert_done(made, made.ralph("run"))
    assert made.status()["cost_estimated"] is True
    assert_dollars_billed(made, server)


def test_a_resumed_conversation_is_paid_once(server: ModelServer, world: World) -> None:
    """Each start adds what it alone cost."""
    made = project(world, server, stories=[story(1, "One")], agent_settings='context = "resume"')
    server.play(*LIE_THEN_TRUTH)
    assert_done(made, made.ralph("run"))
    assert_dollars_billed(made, server)


def test_codex_tokens_of_a_resumed_conversation_count_once(
    server: ModelServer, world: World
) -> None:
    """Codex counts per conversation, ralph per start."""
    made = project(
        world,
        server,
        stories=[story(1, "One")],
        agent="codex",
        agent_settings='safety = "minimal"\ncontext = "resume"',
    )
    server.play(*LIE_THEN_TRUTH)
    assert_done(made, made.ralph("run"))
    assert counted(made.status()) == server.billed


def test_the_model_codex_takes_by_itself_has_a_price(server: ModelServer, world: World) -> None:
    """Nobody names one: its own record of the conversation does."""
    made = project(
        world, server, stories=[story(1, "One")], agent="codex", agent_settings='safety = "minimal"'
    )
    settings = world.home / ".codex" / "config.toml"
    settings.write_text(settings.read_text().replace('model = "scripted-model"\n', ""))
    server.play(*ONE)
    assert_done(made, made.ralph("run"))
    status = made.status()
    assert (status["cost_known"], status["cost_estimated"]) == (True, True), status
    assert status["cost_usd"] > 0


def test_what_codex_used_of_a_plan_is_found_in_its_record(
    server: ModelServer, world: World
) -> None:
    """Its stream is silent about the windows of a subscription; what it wrote down is not."""
    made = project(
        world, server, stories=[story(1, "One")], agent="codex", agent_settings='safety = "minimal"'
    )
    told = {
        "x-codex-primary-used-percent": "42",
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": str(int(time.time()) + 3600),
    }
    server.play(*(replace(turn, headers=told) for turn in ONE))
    done = made.ralph("run")
    assert_done(made, done)
    assert "5-hour window 42% used" in done.stdout, done.stdout
