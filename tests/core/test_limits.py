"""Budgets and waits as numbers: when a limit is reached, and how long a wait lasts."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ralphloop.core.model import ExitDecision, RunLimit
from ralphloop.core.policy import (
    HOUR,
    JUST_PAST_S,
    RESET_MARGIN_S,
    UNKNOWN_RESET_S,
    ExtraBudget,
    Limits,
    Share,
    TimeLeft,
    backoff,
    money_left,
    quota_wait,
    raised,
    reached,
    share_used,
    time_left,
)
from ralphloop.core.totals import Totals

NOW = 1_794_775_000.0


LONG_PAST = JUST_PAST_S


@pytest.mark.parametrize(
    "resets_in, wait",
    [
        (120.0, 120.0 + RESET_MARGIN_S),
        (0.0, 4 * RESET_MARGIN_S),
        (-LONG_PAST + 1, 4 * RESET_MARGIN_S),
        (-LONG_PAST, UNKNOWN_RESET_S),
        (None, UNKNOWN_RESET_S),
    ],
    ids=["ahead", "now", "just past", "long past", "unknown"],
)
def test_how_long_a_usage_limit_is_waited_for(resets_in: float | None, wait: float) -> None:
    """A reset that is just over is over; only one that makes no sense is taken as unknown."""
    resets_at = None if resets_in is None else NOW + resets_in
    assert quota_wait(resets_at, NOW, outages=1) == wait


def test_a_reset_that_never_comes_true_is_asked_for_less_and_less() -> None:
    """Four times as long with every refusal after the named time, up to the unknown one."""
    waits = [quota_wait(NOW - 1, NOW, outages) for outages in range(1, 7)]
    assert waits == [4.0, 16.0, 64.0, 256.0, UNKNOWN_RESET_S, UNKNOWN_RESET_S]


def test_an_unknown_reset_is_waited_for_longer_each_time() -> None:
    """Twice as long with every refusal in a row, up to an hour."""
    waits = [quota_wait(None, NOW, outages) for outages in range(6)]
    quarter = HOUR / 4
    assert waits == [quarter, quarter, 2 * quarter, HOUR, HOUR, HOUR]


def test_outages_back_off_up_to_a_ceiling() -> None:
    """The first wait is the configured one, each further one doubles it, up to five minutes."""
    assert [backoff(outages, 10.0) for outages in range(5)] == [10.0, 10.0, 20.0, 40.0, 80.0]
    assert backoff(40, 10.0) == backoff(10_000, 10.0) == 5 * 60


LIMITS = Limits(max_cost_usd=2.0, max_tokens=100, max_time=60.0, max_iterations=5)


@pytest.mark.parametrize(
    "totals, word",
    [
        (Totals(cost_usd=1.99, active_s=59.0, iterations=4), None),
        (Totals(cost_usd=2.0), ExitDecision.BUDGET_EXHAUSTED),
        (Totals(input_tokens=70, output_tokens=29, cache_read_tokens=10**9), None),
        (Totals(input_tokens=70, output_tokens=20, cache_write_tokens=10), "budget_exhausted"),
        (Totals(active_s=60.0), ExitDecision.BUDGET_EXHAUSTED),
        (Totals(iterations=5), ExitDecision.MAX_ITERATIONS),
    ],
    ids=["within", "money", "cache reads", "tokens", "time", "iterations"],
)
def test_a_limit_is_reached_when_it_is_used_up(totals: Totals, word: str | None) -> None:
    """Exactly the limit is the end; a little less is not."""
    decision = reached(LIMITS, totals)
    assert (decision.word if decision else None) == word


@pytest.mark.parametrize("totals, ends", [(Totals(active_s=60.0), True), (Totals(), False)])
def test_only_time_ends_an_agent_at_work(totals: Totals, ends: bool) -> None:
    """What others spend beside it does not."""
    much = {"cost_usd": 1e6, "input_tokens": 10**9, "iterations": 10**6}
    assert (reached(LIMITS.of_time, replace(totals, **much)) is not None) is ends


@pytest.mark.parametrize(
    ("limits", "used", "words"),
    [
        (Limits(max_iterations=2), Share(), "6 of 2 iterations"),
        (Limits(max_iterations=12), Share(), "6 of 12 iterations"),
        (Limits(max_iterations=13), Share(), ""),
        (Limits(max_cost_usd=1.0), Share(cost_usd=0.5), "$0.50 of $1.00"),
        (Limits(max_cost_usd=1.0), Share(cost_usd=0.49), ""),
        (Limits(max_time=100.0), Share(active_s=50.0), "50s of 1m 40s"),
        (Limits(max_time=100.0), Share(active_s=49.0), ""),
    ],
)
def test_half_of_a_limit_is_a_storys_share(limits: Limits, used: Share, words: str) -> None:
    """Of each limit there is; a share of one iteration is one as well."""
    told = share_used(replace(limits, max_story_share=0.5), replace(used, iterations=6))
    assert words in told
    assert bool(told) is bool(words)


def test_a_limit_of_one_is_one() -> None:
    """The smallest limits are limits too."""
    assert reached(Limits(max_iterations=1), Totals(iterations=1)) is not None
    assert reached(Limits(max_cost_usd=0.01), Totals(cost_usd=0.01)) is not None
    assert reached(Limits(max_time=1.0), Totals(active_s=1.0)) is not None


def test_nothing_is_added_where_a_person_added_nothing() -> None:
    """Limits stay as they were configured, and those nobody configured are off."""
    assert reached(Limits(), Totals(cost_usd=1e6, active_s=1e9, iterations=10**6)) is None
    assert raised(LIMITS, ExtraBudget()) == LIMITS


def test_a_limit_of_zero_is_none() -> None:
    """Switched off limits are never reached, and what a person adds does not switch them on."""
    off = Limits(max_cost_usd=0.0, max_tokens=0, max_time=0.0, max_iterations=0)
    much = Totals(cost_usd=1e6, input_tokens=10**9, active_s=1e9, iterations=10**6)
    assert reached(off, much) is None
    assert (
        reached(raised(off, ExtraBudget(cost_usd=1.0, tokens=1, time_s=1.0, iterations=1)), much)
        is None
    )
    assert (money_left(off, much), time_left(off, much, NOW)) == (None, None)


def test_what_is_left_is_never_negative() -> None:
    """A budget that was overrun leaves nothing, one that was raised leaves the rest."""
    spent = Totals(cost_usd=2.5, active_s=90.0)
    assert money_left(LIMITS, spent) == 0.0
    assert time_left(LIMITS, spent, NOW) == TimeLeft(words="the 0s left (limits.max_time)")
    more = raised(LIMITS, ExtraBudget(cost_usd=1.0, time_s=40.0, iterations=2))
    assert money_left(more, spent) == 0.5
    assert time_left(more, spent, NOW) == TimeLeft(
        seconds=10.0, words="the 10s left (limits.max_time)"
    )
    assert more.max_iterations == 7


@pytest.mark.parametrize("at, is_over", [(NOW - 1, False), (NOW, True), (NOW + 86_400, True)])
def test_the_end_of_the_night_is_a_moment(at: float, is_over: bool) -> None:
    """Before it nothing is said, from then on it stays over, and the setting is named."""
    decision = reached(Limits(ends_at=NOW), Totals(), at)
    assert (decision is not None) == is_over
    if decision:
        assert decision.word is ExitDecision.BUDGET_EXHAUSTED
        assert "(limits.until)" in decision.reasons[0]


def test_the_sooner_end_counts() -> None:
    """Of two ends in time the nearer one is what is left."""
    both = Limits(max_time=100.0, ends_at=NOW + 50)
    left = time_left(both, Totals(active_s=10.0), NOW)
    assert left is not None
    assert (left.seconds, left.limit) == (50.0, RunLimit.UNTIL)
    left = time_left(both, Totals(active_s=90.0), NOW)
    assert left is not None
    assert (left.seconds, left.limit) == (10.0, RunLimit.TIME)


@pytest.mark.parametrize(
    "used, setting",
    [
        ({"cost_usd": 2.0}, "(limits.max_cost_usd)"),
        ({"input_tokens": 100}, "(limits.max_tokens)"),
        ({"active_s": 60.0}, "(limits.max_time)"),
    ],
    ids=["money", "tokens", "time"],
)
def test_a_budget_that_is_used_up_names_its_setting(used: dict[str, float], setting: str) -> None:
    """The advice at the end of the run is found by it."""
    over = reached(LIMITS, Totals(**used))  # type: ignore[arg-type]
    assert over is not None
    assert over.word is ExitDecision.BUDGET_EXHAUSTED
    assert over.reasons[0].endswith(setting)
