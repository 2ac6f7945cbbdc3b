"""A session's beginning: what a new run takes over, and what a person's start opens again."""

from __future__ import annotations

import msgspec
import pytest

from ralphloop.core.breaker import BreakerState
from ralphloop.core.interventions import Reopened
from ralphloop.core.model import CheckResult, CheckStatus, Circuit, Story
from ralphloop.core.policy import Policy
from ralphloop.core.run_state import (
    Attempt,
    LaneNote,
    LanesState,
    OperatorOverrides,
    RunBaseline,
    RunState,
    Session,
    Standing,
    StoryProof,
    StoryState,
    first_state,
)

TIRED = {
    standing.value: StoryState(
        standing=standing, reason="why", attempt=Attempt(failed=2, second_chance=True)
    )
    for standing in Standing
}


def reopened(stories: dict[str, StoryState], change: Reopened) -> dict[str, StoryState]:
    """The stories after a person started again."""
    return change.applied(RunState(stories=stories), Policy()).stories


def test_the_first_state_knows_what_was_found() -> None:
    """The tree and the checks before the first start are no work of the agent."""
    red = CheckResult(name="tests", status=CheckStatus.FAILED)
    circuit = BreakerState(circuit=Circuit.HALF_OPEN)
    state = first_state(RunBaseline(start_tree="t", results=(red,)), circuit, {})
    assert state.breaker == circuit
    assert (state.memory.trees, state.memory.checks) == (("t",), {"tests": CheckStatus.FAILED})
    assert first_state(RunBaseline(), circuit, {}).memory.trees == ()


@pytest.mark.parametrize(
    "standing, after, fresh",
    [
        (Standing.OPEN, Standing.OPEN, False),
        (Standing.PASSED, Standing.PASSED, False),
        (Standing.BLOCKED, Standing.OPEN, True),
        (Standing.SET_ASIDE, Standing.SET_ASIDE, True),
    ],
)
def test_a_person_who_starts_a_run_opens_what_waited(
    standing: Standing, after: Standing, fresh: bool
) -> None:
    """What waited is open, what was set aside has its second chance, the rest is as it was."""
    state = reopened(TIRED, Reopened())[standing.value]
    assert state.standing is after
    assert (state.attempt.failed, state.attempt.second_chance) == (
        (0, False) if fresh else (2, True)
    )


def test_going_on_opens_only_what_waited_for_a_person() -> None:
    """A story set aside stays so, with its attempts."""
    after = reopened(TIRED, Reopened(waiting_only=True))
    assert after["set_aside"] == TIRED["set_aside"]
    assert after["blocked"].standing is Standing.OPEN
    assert after["open"] == TIRED["open"]


def test_what_a_passed_story_took_away_is_asked_once() -> None:
    """A new run does not ask again for stories that a person has seen go."""
    seen = StoryState(
        standing=Standing.PASSED, proof=StoryProof(asked=(Story(id="US-9", title="Gone", index=8),))
    )
    assert reopened({"a": seen}, Reopened())["a"].proof.asked == ()


def test_a_story_nobody_worked_on_is_open_and_fresh() -> None:
    """What is known of the others is as it was found."""
    session = Session(run="r", state=RunState(stories=TIRED))
    assert session.story("nobody's") == session.story(None) == StoryState()
    assert session.story("blocked") == msgspec.structs.replace(TIRED["blocked"])


def test_the_lane_of_a_story_is_the_one_that_holds_its_work() -> None:
    """None holds the work of a story nobody has begun."""
    book = LanesState(lanes={1: LaneNote(story="US-1"), 2: LaneNote(), 3: LaneNote(story="US-3")})
    assert [book.lane_of(story) for story in ("US-1", "US-3", "US-2", None)] == [1, 3, 0, 0]


def test_a_note_is_for_one_story_or_for_all() -> None:
    """Each prompt has those for all and its own, each once."""
    overrides = (
        OperatorOverrides().noted("all").noted("one", "US-1").noted("all").noted("two", "US-1")
    )
    assert (overrides.notes, overrides.own) == (("all",), {"US-1": ("one", "two")})
