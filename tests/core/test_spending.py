"""The account of one conversation: what a start adds to what was known, and what it is priced."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.core.model import Outcome, Response, Usage
from ralphloop.core.spending import conversation, cost_of, used
from ralphloop.core.story_state import StoryState


def said(usage: Usage, conversation: str = "c-1") -> Response:
    """An answer that reports this usage."""
    return Response(
        reader="x", outcome=Outcome.COMPLETED, reason="", session_id=conversation, usage=usage
    )


def total(tokens: int, cost: float | None) -> Usage:
    """The whole conversation so far."""
    return Usage(input_tokens=tokens, output_tokens=2 * tokens, cost_usd=cost, cumulative=True)


@given(st.lists(st.integers(0, 1_000), min_size=1, max_size=8))
def test_the_parts_of_a_conversation_add_up_to_its_total(steps: list[int]) -> None:
    """However a conversation grows, its starts together cost what its last total says."""
    state, paid, tokens, running = StoryState(session_id="c-1"), 0.0, 0, 0
    for step in steps:
        running += step
        response = said(total(running, running / 100))
        paid += cost_of(response, state)
        tokens += used(response, state).total_tokens
        state = msgspec.structs.replace(state, session_usage=conversation(response, state))
    assert paid == pytest.approx(sum(steps) / 100)
    assert tokens == 3 * sum(steps)


BEFORE = StoryState(session_id="c-1", session_usage=total(100, 1.0))


def test_another_conversation_owes_its_whole_total() -> None:
    """Only what the same conversation paid is taken off."""
    assert cost_of(said(total(150, 1.5), "c-2"), BEFORE) == pytest.approx(1.5)
    assert cost_of(said(total(150, 1.5)), StoryState()) == pytest.approx(1.5)


def test_what_a_start_reports_of_itself_is_not_reduced() -> None:
    """Nothing is taken off usage that never contained the earlier starts."""
    alone = Usage(input_tokens=7, cost_usd=0.5)
    assert used(said(alone), BEFORE) == alone
    known = conversation(said(alone), BEFORE)
    assert (known.input_tokens, known.cost_usd) == (107, 1.5)


def test_a_total_that_shrinks_costs_nothing() -> None:
    """A conversation that was compacted and counts from less than before gives no money back."""
    shrunk = used(said(total(20, 0.2)), BEFORE)
    assert (shrunk.total_tokens, shrunk.cost_usd) == (0, 0.0)


def test_an_unknown_price_stays_unknown() -> None:
    """Tokens are counted where there is no price, and no price is made up."""
    grown = used(said(total(150, None)), BEFORE)
    assert (grown.input_tokens, grown.output_tokens, grown.cost_usd) == (50, 100, None)
    assert cost_of(said(total(150, None)), BEFORE) == 0.0
