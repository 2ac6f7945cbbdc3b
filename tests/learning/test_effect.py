"""Does it help?  An interval, a number of stories, and silence where neither would mean anything."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.learning.stats import TOO_EARLY, compare, students_t

TOKENS = st.integers(1, 10**7)


@given(st.lists(TOKENS, max_size=10), st.lists(TOKENS, max_size=9))
def test_under_twenty_stories_it_is_too_early(with_them: list[int], without: list[int]) -> None:
    """Whatever the numbers say, nineteen stories say nothing."""
    effect = compare(with_them, without)
    assert effect.sentence == TOO_EARLY
    assert effect.change is None


@given(st.lists(TOKENS, min_size=12, max_size=30), st.lists(TOKENS, min_size=8, max_size=30))
def test_the_change_lies_in_its_interval(with_them: list[int], without: list[int]) -> None:
    """Low, change and high are in order, and swapping the groups turns the sign."""
    effect, turned = compare(with_them, without), compare(without, with_them)
    assert effect.low is not None
    assert effect.change is not None
    assert effect.high is not None
    assert -1 <= effect.low <= effect.change <= effect.high
    assert turned.change is not None
    assert (1 + turned.change) * (1 + effect.change) == pytest.approx(1, rel=1e-6)


def test_a_real_difference_is_seen() -> None:
    """Half the tokens, with some spread, is far from chance."""
    effect = compare([5_000 + 100 * n for n in range(15)], [10_000 + 200 * n for n in range(8)])
    assert effect.high is not None
    assert effect.high < -0.3
    assert effect.sentence.startswith("stories with learnings used 4")
    assert "fewer tokens" in effect.sentence
    assert "n = 15 with, 8 without" in effect.sentence


def test_no_difference_is_called_none() -> None:
    """Over many random worlds without an effect, one in twenty is called one, not more."""
    chance = random.Random(7)
    seen = 0
    for _ in range(400):
        with_them = [int(chance.lognormvariate(9, 0.4)) for _ in range(15)]
        without = [int(chance.lognormvariate(9, 0.4)) for _ in range(6)]
        seen += "no effect seen" not in compare(with_them, without).sentence
    assert seen <= 400 * 0.08


def test_more_tokens_are_said_as_plainly() -> None:
    """Where carrying learnings costs, the sentence says so."""
    assert "more tokens" in compare([200, 210] * 8, [100, 105] * 4).sentence


def test_without_a_second_group_there_is_nothing_to_compare() -> None:
    """When every story carried learnings, the way to a controlled answer is named."""
    sentence = compare([100] * 25, [100] * 2).sentence
    assert "nothing to compare with" in sentence
    assert "learning.holdout" in sentence


def test_how_it_was_compared_is_said() -> None:
    """Observed differences and held out stories are not the same."""
    groups = [100, 110] * 8, [120, 130] * 3
    assert "observed, not controlled" in compare(*groups).sentence
    assert "held out" in compare(*groups, controlled=True).sentence


@pytest.mark.parametrize(
    "freedom, value", [(2, 4.303), (4, 2.776), (10, 2.228), (30, 2.042), (10**6, 1.960)]
)
def test_the_quantiles_are_students(freedom: int, value: float) -> None:
    """Within a hundredth of the printed tables."""
    assert students_t(freedom) == pytest.approx(value, rel=0.01)
