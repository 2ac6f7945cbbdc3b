"""What tokens cost where the agent does not say."""

from __future__ import annotations

import pytest

from ralphloop.agents.prices import price_table, priced
from ralphloop.core.model import Usage

TOKENS = Usage(input_tokens=100_000, output_tokens=5_000, cache_read_tokens=1_000_000)


def test_the_longest_beginning_of_the_name_counts() -> None:
    """A dated release of a small model is not priced as the large one."""
    assert priced(TOKENS, "gpt-5-mini-2026").cost_usd == pytest.approx(0.025 + 0.01 + 0.025)


def test_a_provider_before_the_name_does_not_matter() -> None:
    """`openai/gpt-5` is `gpt-5`; the cost is marked as an estimate."""
    found = priced(TOKENS, "openai/gpt-5")
    assert found.cost_usd == pytest.approx(0.125 + 0.05 + 0.125)
    assert found.estimated is True


@pytest.mark.parametrize("model", ["", "somebody's-model", "claude"])
def test_an_unknown_model_counts_tokens_only(model: str) -> None:
    """Without a price there is no money, and no guess."""
    assert priced(TOKENS, model) == TOKENS


def test_what_the_agent_says_stands() -> None:
    """A reported cost is never replaced."""
    said = Usage(input_tokens=1, cost_usd=0.5)
    assert priced(said, "gpt-5") is said


def test_every_row_has_sensible_numbers() -> None:
    """Output costs more than input, cached input less."""
    for name, price in price_table().items():
        assert price.cache_read < price.input < price.output, name
