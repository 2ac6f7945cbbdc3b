"""Every way a run can end has its words and its way on."""

from __future__ import annotations

import pytest

from ralphloop.core.model import ExitDecision, RunLimit
from ralphloop.core.planning import ENDINGS, ended, ending_of


def test_no_ending_is_forgotten() -> None:
    """A decision that ends a run is in the table, with something to say and a command."""
    assert set(ENDINGS) == set(ExitDecision) - {ExitDecision.CONTINUE}
    assert all(one.words and one.advice and one.command for one in ENDINGS.values())


@pytest.mark.parametrize(
    "decision, reason, words",
    [
        ("blocked", "US-1 waits for a person: why?", "US-1 waits for a person: why?"),
        ("blocked", "", "waits for you"),
        ("interrupted", "interrupted by a person", "interrupted by a person"),
        ("error", "no such agent", "ended by an error: no such agent"),
        ("budget_exhausted", "90 of 90", "out of tokens: 90 of 90"),
        ("of_tomorrow", "", "of tomorrow"),
    ],
)
def test_an_end_is_said_once(decision: str, reason: str, words: str) -> None:
    """A reason that says it all, or what a story waits for, stands alone."""
    limit = RunLimit.TOKENS if decision == "budget_exhausted" else None
    assert ended(decision, reason, limit) == words


@pytest.mark.parametrize(
    "decision, limit, command",
    [
        ("budget_exhausted", RunLimit.TOKENS, "ralph run --continue --max-tokens N"),
        ("budget_exhausted", RunLimit.UNTIL, "ralph run --continue --until HH:MM"),
        ("budget_exhausted", None, "ralph run --continue --max-cost X"),
        ("usage_limit", RunLimit.TIME, "ralph run --continue --max-time D"),
        ("max_iterations", RunLimit.ITERATIONS, "ralph run --continue --max-iterations N"),
        ("error", RunLimit.TOKENS, "ralph run --continue"),
        ("circuit_open", RunLimit.UNTIL, "ralph run --continue --reset-circuit"),
    ],
)
def test_only_a_limit_is_raised_to_go_on(
    decision: str, limit: RunLimit | None, command: str
) -> None:
    """An end of another kind keeps its own way on, whatever limit there is."""
    found = ending_of(decision, limit)
    assert found is not None
    assert found.command == command
    assert ending_of("of_tomorrow", limit) is None
