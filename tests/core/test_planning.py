"""Which story comes next, and which of the others could."""

from __future__ import annotations

import pytest

from ralphloop.core.model import Decision, ExitDecision
from ralphloop.core.planning import choose, ending, facts_of, rungs_in_order, runnable_besides
from ralphloop.core.run_state import (
    Attempt,
    Standing,
    StoryBase,
    StoryState,
    state_of,
)
from tests.stories.builders import story, story_list

STORIES = story_list(story("a"), story("b"), story("c"))
WAITS = StoryState(standing=Standing.BLOCKED)
ASIDE = StoryState(standing=Standing.SET_ASIDE)
TWICE_ASIDE = StoryState(standing=Standing.SET_ASIDE, attempt=Attempt(second_chance=True))


@pytest.mark.parametrize(
    "states, expected",
    [
        ({}, ("a", False)),
        ({"a": WAITS}, ("b", False)),
        ({"a": ASIDE}, ("b", False)),
        ({"a": ASIDE, "b": WAITS, "c": WAITS}, ("a", True)),
        ({"a": TWICE_ASIDE, "b": ASIDE, "c": WAITS}, ("b", True)),
        ({"a": TWICE_ASIDE, "b": WAITS, "c": WAITS}, None),
        ({"c": StoryState(base=StoryBase(lost={"1f": "reset"}))}, ("c", False)),
    ],
    ids=["first", "waits", "aside", "second chance", "its turn", "nothing left", "answers first"],
)
def test_what_comes_next(states: dict[str, StoryState], expected: tuple[str, bool] | None) -> None:
    """Open stories in order, then those set aside, once each; one that lost commits before all."""
    chosen = choose(STORIES, states)
    found = chosen and (chosen.id, state_of(states, chosen.id).has_a_chance)
    assert found == expected


@pytest.mark.parametrize(
    "states, second_chance", [({}, False), ({"b": ASIDE}, True)], ids=["open", "set aside"]
)
def test_only_the_story_that_was_asked_for(
    states: dict[str, StoryState], second_chance: bool
) -> None:
    """`--story b` never runs another one."""
    chosen = choose(STORIES, states, only="b")
    assert chosen is not None
    assert (chosen.id, state_of(states, "b").has_a_chance) == ("b", second_chance)
    assert choose(STORIES, {"b": WAITS}, only="b") is None


@pytest.mark.parametrize(
    "states, count",
    [({}, 2), ({"b": WAITS}, 1), ({"b": ASIDE}, 2), ({"b": TWICE_ASIDE}, 1), ({"a": WAITS}, 2)],
    ids=["all open", "one waits", "one aside", "one aside for good", "itself"],
)
def test_how_many_others_could_run(states: dict[str, StoryState], count: int) -> None:
    """Second chances count, the story itself and those that wait do not."""
    assert runnable_besides(STORIES, states, "a") == count


@pytest.mark.parametrize(
    "only, others, if_passed", [(None, 1, 2), ("a", 0, 0)], ids=["all", "one asked for"]
)
def test_what_a_decision_knows_of_the_list(only: str | None, others: int, if_passed: int) -> None:
    """How many others can run, now and once this one has passed; none where one is asked for."""
    stories = story_list(story("a"), story("b"), story("c", depends_on=("a",)))
    facts = facts_of(stories, {}, stories.stories[0], only=only)
    assert (facts.total, facts.passed, facts.current) == (3, 0, "a")
    assert (facts.others, facts.others_if_passed) == (others, if_passed)


def test_a_plain_loop_has_no_list_and_is_about_nothing_in_particular() -> None:
    """Nothing is made up where there is none: no count, no story about tests, no permission."""
    facts = facts_of(None, {}, None, only=None)
    assert (facts.total, facts.current, facts.others) == (None, None, 0)
    assert not facts.about_tests
    assert not facts.exit_signal


@pytest.mark.parametrize("word", ["blocked", "no_runnable_story", "max_iterations"])
def test_the_end_of_a_plain_loop_is_what_was_decided(word: str) -> None:
    """Without a list there are no stories to name."""
    decision = Decision(word=ExitDecision(word), reasons=("why",))
    assert ending(decision, None, {}) == decision


def test_a_limit_met_with_the_last_story_is_no_end() -> None:
    """What is done is complete; with a story open the limit stands."""
    limit = Decision(word=ExitDecision.MAX_ITERATIONS, reasons=("why",))
    done = STORIES.with_passes(dict.fromkeys("abc", True))
    assert ending(limit, done, {}).word is ExitDecision.PROJECT_COMPLETE
    assert ending(limit, STORIES, {}) == limit


@pytest.mark.parametrize(
    "failed, order",
    [(0, [0, 1, 2, 3]), (1, [1, 2, 3, 0]), (2, [2, 3, 1, 0]), (3, [3, 2, 1, 0]), (9, [3, 2, 1, 0])],
)
def test_failed_attempts_lead_up_the_ladder(failed: int, order: list[int]) -> None:
    """Its own rung first, then those above it, then the nearest below; the last one is the end."""
    assert rungs_in_order(failed, 4) == order
    assert rungs_in_order(failed, 0) == []


def test_marking_changes_the_named_stories_only() -> None:
    """A list with marks is the same list otherwise."""
    marked = STORIES.with_passes({"b": True})
    assert [story.passes for story in marked.stories] == [False, True, False]
    assert (marked.total, marked.passed) == (3, 1)
    assert marked.with_passes({"b": False}) == STORIES


@pytest.mark.parametrize(
    "before, others, after",
    [
        (
            StoryState(attempt=Attempt(failed=3)),
            False,
            StoryState(attempt=Attempt(second_chance=True)),
        ),
        (
            StoryState(attempt=Attempt(failed=3)),
            True,
            StoryState(standing=Standing.SET_ASIDE, reason="worn out", attempt=Attempt(failed=3)),
        ),
        (
            StoryState(reason="red", attempt=Attempt(second_chance=True)),
            False,
            StoryState(
                standing=Standing.SET_ASIDE,
                reason="worn out: red",
                attempt=Attempt(second_chance=True),
            ),
        ),
    ],
    ids=["last story", "others can run", "last story again"],
)
def test_how_a_story_is_set_aside(before: StoryState, others: bool, after: StoryState) -> None:
    """The last story has its second chance first; the reason keeps what was known."""
    assert before.put_aside("worn out", others=others) == after
