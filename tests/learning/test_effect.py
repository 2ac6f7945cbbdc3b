"""Does it help?  Intervals that hold what they say, and silence where nothing can be said."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.bench_learning_intervals import AGENTS, coverage
from ralphloop.learning.stats import TOO_EARLY, TrialStory, compare, students_t

TOLD = st.builds(
    TrialStory,
    first=st.booleans(),
    attempts=st.integers(1, 6),
    tokens=st.integers(1, 10**7),
    cost_usd=st.floats(0.001, 50),
)


def told(chance: random.Random, p: float, size: float = 1.0) -> TrialStory:
    """A story that passes at each attempt with this chance."""
    attempts = 1
    while chance.random() > p and attempts < 4:
        attempts += 1
    tokens = sum(int(chance.lognormvariate(9, 0.3) * size) for _ in range(attempts))
    return TrialStory(first=attempts == 1, attempts=attempts, tokens=tokens, cost_usd=tokens / 1e5)


@given(st.lists(TOLD, max_size=60), st.lists(TOLD, max_size=4))
def test_before_five_are_held_out_it_is_too_early(a: list[TrialStory], b: list[TrialStory]) -> None:
    """Whatever the numbers say, four held out stories say nothing."""
    effect = compare(a, b)
    assert effect.sentence.startswith(TOO_EARLY)
    assert (effect.first, effect.attempts, effect.cost, effect.tokens) == (None,) * 4


@given(st.lists(TOLD, min_size=15, max_size=30), st.lists(TOLD, min_size=5, max_size=30))
def test_the_change_lies_in_its_interval(a: list[TrialStory], b: list[TrialStory]) -> None:
    """Low, change and high are in order, and swapping the groups turns the sign."""
    effect, turned = compare(a, b), compare(b, a)
    for one, other in (
        (effect.first, turned.first),
        (effect.attempts, turned.attempts),
        (effect.tokens, turned.tokens),
    ):
        assert one is not None
        assert other is not None
        assert one.low <= one.change <= one.high
        assert one.change * other.change <= 1e-9


def test_a_real_difference_is_seen() -> None:
    """Half the attempts, with some spread, is far from chance, and every number says so."""
    chance = random.Random(3)
    effect = compare(
        [told(chance, 0.95) for _ in range(60)], [told(chance, 0.3) for _ in range(15)]
    )
    assert effect.first is not None
    assert effect.first.low > 0.2
    assert effect.attempts is not None
    assert effect.attempts.high < 0
    assert effect.tokens is not None
    assert effect.tokens.high < -0.1
    assert effect.sentence.startswith("stories with learnings passed at the first attempt")
    assert "fewer) attempts" in effect.sentence.replace("fewer to", "fewer to")
    assert "60 with, 15 held out at random" in effect.sentence


def test_harm_is_said_as_plainly() -> None:
    """Where carrying learnings costs attempts, the sentence says so."""
    chance = random.Random(4)
    effect = compare([told(chance, 0.3) for _ in range(60)], [told(chance, 0.9) for _ in range(15)])
    assert effect.first is not None
    assert effect.first.high < 0
    assert "more) tokens" in effect.sentence


def test_bigger_first_stories_are_no_effect() -> None:
    """Early stories that had nothing to carry are on no side, so their size makes no saving."""
    chance = random.Random(5)
    effect = compare([told(chance, 0.6) for _ in range(40)], [told(chance, 0.6) for _ in range(10)])
    assert effect.sentence.startswith("no effect seen: ")


def test_unpriced_stories_are_not_compared_in_dollars() -> None:
    """Where some of the money is unknown, the rest of it says nothing."""
    free = [TrialStory(first=True, attempts=1, tokens=100 + n) for n in range(30)]
    assert compare(free, free).cost is None


@pytest.mark.parametrize("name", AGENTS)
def test_the_interval_covers_what_is_true(name: str) -> None:
    """In 1,000 simulated projects each interval holds the truth in 93 to 97 of 100."""
    found = coverage(name, projects=1_000, seed=17)
    assert found.keys() == {"first", "attempts", "tokens"}
    assert all(0.93 <= share <= 0.97 for share in found.values()), found


@pytest.mark.parametrize(
    "freedom, value", [(2, 4.303), (4, 2.776), (10, 2.228), (30, 2.042), (10**6, 1.960)]
)
def test_the_quantiles_are_students(freedom: int, value: float) -> None:
    """Within a hundredth of the printed tables."""
    assert students_t(freedom) == pytest.approx(value, rel=0.01)
