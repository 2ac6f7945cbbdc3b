"""Dollars in words: unknown is not zero, and a fraction of a cent is not nothing."""

from __future__ import annotations

import pytest

from ralphloop.core.totals import Usage, cost_words, money, short_cost, spent_words


@pytest.mark.parametrize(
    "dollars, words",
    [(0, "$0.00"), (0.01, "$0.01"), (0.0099, "$0.0099"), (0.0004, "$0.0004"), (12.345, "$12.35")],
)
def test_as_many_digits_as_matter(dollars: float, words: str) -> None:
    """Below a cent four digits are shown, so that small costs are not nothing."""
    assert money(dollars) == words


@pytest.mark.parametrize(
    "dollars, unpriced, words, among_words, narrow",
    [
        (1.2, 0, "$1.20", "$1.20", "$1.20"),
        (0.0, 0, "$0.00", "$0.00", "$0.00"),
        (0.0, 2, "unknown", "unknown cost", "unknown"),
        (1.2, 1, "$1.20 + unknown (1 start)", "$1.20 + unknown (1 start)", "$1.20+?"),
        (1.2, 3, "$1.20 + unknown (3 starts)", "$1.20 + unknown (3 starts)", "$1.20+?"),
    ],
)
def test_what_has_no_price_is_unknown(
    dollars: float, unpriced: int, words: str, among_words: str, narrow: str
) -> None:
    """Starts without a price are named beside the known dollars, never counted as free."""
    assert cost_words(dollars, unpriced) == words
    assert spent_words(dollars, unpriced) == among_words
    assert short_cost(dollars, unpriced) == narrow


@pytest.mark.parametrize("estimated", [Usage(estimated=True), Usage(estimated=True, cost_usd=1.0)])
def test_a_sum_with_an_estimate_is_an_estimate(estimated: Usage) -> None:
    """Whichever of the two was estimated; what covers a whole conversation stays marked too."""
    sure = Usage(cost_usd=2.0, input_tokens=3)
    for together in (estimated + sure, sure + estimated):
        assert together.estimated
        assert not together.cumulative
        assert together.cost_usd == 2.0 + (estimated.cost_usd or 0.0)
        assert together.input_tokens == 3
    whole = Usage(cumulative=True)
    assert not (sure + sure).estimated
    assert (sure + whole).cumulative
    assert (whole + sure).cumulative
