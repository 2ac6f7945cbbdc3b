"""The account of one conversation: what a start adds to what was known, and what it is priced."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.core.grading import StoryVerdict
from ralphloop.core.iteration import Assessment, Result, Start
from ralphloop.core.model import (
    TOKENS,
    Analysis,
    Evidence,
    Outcome,
    Response,
    Usage,
)
from ralphloop.core.policy import Policy
from ralphloop.core.progress import Progress
from ralphloop.core.run_state import (
    Conversation,
    StoryState,
)
from ralphloop.core.story_after import accounted, spent
from ralphloop.core.totals import Amounts, Expense, Totals
from ralphloop.text.status_block import StatusBlock


def used(answer: Response, before: StoryState, *asked: Response) -> Usage:
    """By these answers alone."""
    return accounted(before.conversation, answer, *asked).own


def conversation(answer: Response, before: StoryState, *asked: Response) -> Usage:
    """What is known of it after them."""
    return accounted(before.conversation, answer, *asked).conversation


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
    state = StoryState(conversation=Conversation(id="c-1"))
    paid = 0.0
    tokens = 0
    running = 0
    for step in steps:
        running += step
        response = said(total(running, running / 100))
        paid += used(response, state).dollars
        tokens += used(response, state).total_tokens
        known = Conversation(id="c-1", usage=conversation(response, state))
        state = StoryState(conversation=known)
    assert paid == pytest.approx(sum(steps) / 100)
    assert tokens == 3 * sum(steps)


BEFORE = StoryState(conversation=Conversation(id="c-1", usage=total(100, 1.0)))


def test_another_conversation_owes_its_whole_total() -> None:
    """Only what the same conversation paid is taken off."""
    assert used(said(total(150, 1.5), "c-2"), BEFORE).dollars == pytest.approx(1.5)
    assert used(said(total(150, 1.5)), StoryState()).dollars == pytest.approx(1.5)


def test_what_a_start_reports_of_itself_is_not_reduced() -> None:
    """Nothing is taken off usage that never contained the earlier starts."""
    alone = Usage(input_tokens=7, cost_usd=0.5)
    assert used(said(alone), BEFORE) == alone
    known = conversation(said(alone), BEFORE)
    assert (known.input_tokens, known.cost_usd) == (107, 1.5)


def test_a_conversation_nobody_went_on_with_begins_at_nothing() -> None:
    """What an earlier conversation used is not added to a start that has no conversation."""
    before = StoryState(conversation=Conversation(usage=total(100, 1.0)))
    alone = msgspec.structs.replace(said(Usage(input_tokens=7)), session_id=None)
    assert conversation(alone, before) == Usage(input_tokens=7)


@pytest.mark.parametrize("before", [StoryState(), BEFORE], ids=["fresh", "resumed"])
def test_an_answer_to_a_question_is_paid_once(before: StoryState) -> None:
    """Its running total holds the answer before it, which is taken off; the next start knows."""
    first, asked = said(total(150, 1.5)), said(total(160, 1.6))
    known = before.conversation.usage
    assert used(first, before, asked).input_tokens == 160 - known.input_tokens
    assert used(first, before, asked).dollars == pytest.approx(1.6 - (known.cost_usd or 0.0))
    assert conversation(first, before, asked) == total(160, 1.6)


def test_an_answer_that_counts_itself_alone_is_added() -> None:
    """Agents that report each turn by itself are believed."""
    alone = Usage(input_tokens=7, cost_usd=0.5)
    both = used(said(alone), StoryState(), said(alone))
    assert (both.input_tokens, both.cost_usd) == (14, 1.0)


def test_a_total_that_shrinks_costs_nothing() -> None:
    """A conversation that was compacted and counts from less than before gives no money back."""
    shrunk = used(said(total(20, 0.2)), BEFORE)
    assert (shrunk.total_tokens, shrunk.cost_usd) == (0, 0.0)


def test_an_unknown_price_stays_unknown() -> None:
    """Tokens are counted where there is no price, and no price is made up."""
    grown = used(said(total(150, None)), BEFORE)
    assert (grown.input_tokens, grown.output_tokens, grown.cost_usd) == (50, 100, None)
    assert used(said(total(150, None)), BEFORE).dollars == 0.0


# --- what a start adds to the totals ------------------------------------------------------------

QUIET = Analysis(iteration=1, outcome=Outcome.COMPLETED)


def test_nothing_costs_nothing() -> None:
    """Totals begin at zero in every column."""
    assert not any(msgspec.structs.astuple(Totals()))
    assert not any(msgspec.structs.astuple(Amounts()))


def test_tokens_of_all_kinds_are_added_up() -> None:
    """Fresh, cached, written and answered tokens all count."""
    kinds = {name: 10**place for place, name in enumerate(TOKENS)}
    assert Totals(**kinds).total_tokens == Usage(**kinds).total_tokens == 1111


def added(usage: Usage, response: Response, analysis: Analysis, evidence: Evidence) -> Expense:
    """What such a start adds to the totals."""
    return spent(
        Assessment(
            start=Start(),
            result=Result(response=response),
            evidence=evidence,
            policy=Policy(),
            moved=Progress(made=False),
            verdict=StoryVerdict(),
            analysis=analysis,
            used=usage,
        )
    )


@pytest.mark.parametrize(
    "outcome, model_output, counted",
    [
        (Outcome.COMPLETED, True, True),
        (Outcome.EMPTY, False, True),
        (Outcome.TRANSIENT, True, True),
        (Outcome.TRANSIENT, False, False),
    ],
    ids=["answered", "silent", "cut off while answering", "never answered"],
)
def test_a_start_nobody_answered_is_no_iteration(
    outcome: Outcome, model_output: bool, counted: bool
) -> None:
    """An outage before the first word counts for nothing; whatever was paid for counts."""
    response = msgspec.structs.replace(said(Usage()), model_output=model_output)
    analysis = msgspec.structs.replace(QUIET, outcome=outcome)
    assert added(Usage(), response, analysis, Evidence()).counted is counted


def test_work_is_counted_as_measured_and_claimed_only_where_nothing_was() -> None:
    """Files the agent reports stand in for files nobody could count."""
    block = StatusBlock(files_modified=7)
    response = msgspec.structs.replace(said(Usage()), status=block)
    measured = Evidence(files_changed=2, commits=3, stories_passed=1)
    found = added(Usage(), response, QUIET, measured)
    assert (found.files_modified, found.commits, found.tasks_completed) == (2, 3, 1)
    assert added(Usage(), response, QUIET, Evidence()).files_modified == 7
    nothing = added(Usage(), said(Usage()), QUIET, Evidence())
    assert (nothing.files_modified, nothing.commits, nothing.tasks_completed) == (0, 0, 0)


def test_an_estimate_stays_one_and_money_is_never_negative() -> None:
    """What was estimated is marked, tokens are taken over, and no start gives money back."""
    usage = Usage(input_tokens=5, cache_write_tokens=3, cost_usd=0.5, estimated=True)
    found = added(usage, said(usage), QUIET, Evidence())
    assert (found.cost_usd, found.cost_estimated, found.total_tokens) == (0.5, True, 8)
    refund = added(Usage(cost_usd=-1.0), said(Usage()), QUIET, Evidence())
    assert (refund.cost_usd, refund.cost_estimated) == (0.0, False)


@pytest.mark.parametrize(
    "usage, model_output, unpriced",
    [
        (Usage(), True, 1),
        (Usage(input_tokens=1), False, 1),
        (Usage(), False, 0),
        (Usage(input_tokens=1, cost_usd=0.0), True, 0),
    ],
    ids=["answered", "only tokens", "never reached", "free"],
)
def test_a_start_without_a_price_is_counted_where_the_model_was_reached(
    usage: Usage, model_output: bool, unpriced: int
) -> None:
    """Unknown is not free, free is not unknown, and who was never reached costs nothing."""
    response = msgspec.structs.replace(said(usage), model_output=model_output)
    assert added(usage, response, QUIET, Evidence()).unpriced == unpriced
