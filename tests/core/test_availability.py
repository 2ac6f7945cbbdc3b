"""When an agent may be started again is decided by the fold, so that replay knows it too."""

from __future__ import annotations

from ralphloop.core.iteration import AgentClocks, Result, Start
from ralphloop.core.model import Evidence, Outcome, RateLimit, Response, Story
from ralphloop.core.policy import UNKNOWN_RESET_S, Policy
from ralphloop.core.run_state import AGENT_GONE, RunState
from ralphloop.core.step import step
from ralphloop.core.totals import Window, too_full

STORY = Story(id="US-1", title="One", index=0)
NOW = 1_000_000.0


def after(state: RunState, outcome: Outcome, at: float) -> RunState:
    """The state after a start of claude that ended so."""
    clocks = AgentClocks(of_limit="claude", of_failure="claude opus")
    start = Start(story=STORY, agent="claude", clocks=clocks)
    result = Result(response=Response(reader="claude", outcome=outcome, reason="limit"))
    return step(state, start, result, Evidence(at=at), Policy()).state


def test_a_limit_that_two_lanes_meet_is_one_outage() -> None:
    """The second start was under way when the first met it: the wait does not double."""
    first = after(RunState(), Outcome.USAGE_LIMIT, NOW)
    second = after(first, Outcome.USAGE_LIMIT, NOW + 2)
    assert first.outages == second.outages == 1
    assert second.agent_available_at == {"claude": NOW + 2 + UNKNOWN_RESET_S}


def test_a_limit_that_is_met_again_after_the_wait_is_another_outage() -> None:
    """It was waited for and has not reset: the next wait is longer."""
    first = after(RunState(), Outcome.USAGE_LIMIT, NOW)
    again = NOW + UNKNOWN_RESET_S + 1
    second = after(first, Outcome.USAGE_LIMIT, again)
    assert second.outages == 2
    assert second.agent_available_at == {"claude": again + 2 * UNKNOWN_RESET_S}


def test_what_cannot_work_at_all_is_gone_by_its_own_clock() -> None:
    """An unknown model takes away that model, not the agent with another one."""
    gone = after(RunState(), Outcome.FATAL, NOW)
    assert gone.agent_available_at == {"claude opus": AGENT_GONE}


def test_a_limit_and_a_full_window_are_those_of_one_account() -> None:
    """What is known of one account of an agent says nothing of another one, or of none."""
    clocks = AgentClocks(of_limit="claude (work)", of_failure="claude (work)")
    start = Start(story=STORY, agent="claude", clocks=clocks)
    told = RateLimit(windows=(Window(kind="five_hour", used=0.95),))
    response = Response(reader="claude", outcome=Outcome.USAGE_LIMIT, rate_limit=told)
    state = step(RunState(), start, Result(response=response), Evidence(at=NOW), Policy()).state

    assert state.agent_available_at == {"claude (work)": NOW + UNKNOWN_RESET_S}
    windows = state.usage_windows
    full = {it: too_full(windows, 0.1, agent=it, at=NOW) for it in ("claude (work)", "claude")}
    assert [bool(it) for it in full.values()] == [True, False]
