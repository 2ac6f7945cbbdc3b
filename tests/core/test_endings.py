"""Every way a run can end has its words and its way on."""

from __future__ import annotations

import pytest
from msgspec.structs import astuple

from ralphloop.core.model import ExitDecision
from ralphloop.core.planning import ENDINGS, ended, ending_of


def test_no_ending_is_forgotten() -> None:
    """A decision that ends a run is in the table, with something to say and a command."""
    assert set(ENDINGS) == set(ExitDecision) - {ExitDecision.CONTINUE}
    assert all(all(astuple(ending)) for ending in ENDINGS.values())


@pytest.mark.parametrize(
    "decision, reason, words",
    [
        ("blocked", "US-1 waits for a person: why?", "US-1 waits for a person: why?"),
        ("blocked", "", "waits for you"),
        ("interrupted", "interrupted by a person", "interrupted by a person"),
        ("error", "no such agent", "ended by an error: no such agent"),
        ("budget_exhausted", "90 of 90 (limits.max_tokens)", None),
        ("of_tomorrow", "", "of tomorrow"),
    ],
)
def test_an_end_is_said_once(decision: str, reason: str, words: str | None) -> None:
    """A reason that says it all, or what a story waits for, stands alone."""
    assert ended(decision, reason) == (words or f"out of tokens: {reason}")


@pytest.mark.parametrize(
    "decision, setting, command",
    [
        ("budget_exhausted", "(limits.max_tokens)", "ralph run --continue --max-tokens N"),
        ("budget_exhausted", "(limits.until)", "ralph run --continue --until HH:MM"),
        ("budget_exhausted", "", "ralph run --continue --max-cost X"),
        ("error", "(limits.max_tokens)", "ralph run --continue"),
        ("circuit_open", "(limits.until)", "ralph run --continue --reset-circuit"),
    ],
)
def test_only_a_limit_is_raised_to_go_on(decision: str, setting: str, command: str) -> None:
    """An end of another kind whose reason happens to name one keeps its own way on."""
    found = ending_of(decision, f"why {setting}")
    assert found is not None
    assert found.command == command
    assert ending_of("of_tomorrow", f"why {setting}") is None
