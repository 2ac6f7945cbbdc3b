"""What tokens cost where the agent does not say."""

from __future__ import annotations

import pytest

from ralphloop.agents.prices import Price, cost_problems, price_table, priced
from ralphloop.config.model import AgentSection
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


def test_what_the_table_does_not_price_is_free() -> None:
    """A row that names no price for the cache charges none."""
    assert (Price(input=1.0, output=2.0).cache_read, Price(input=1.0, output=2.0).cache_write) == (
        0,
        0,
    )


@pytest.mark.parametrize(
    "agent, model, why, fix",
    [
        ("claude", "", None, ""),
        ("codex", "gpt-5", None, ""),
        ("codex", "nobody-1", "no price is known for nobody-1", "limit iterations or time"),
        ("codex", "", "codex does not name its model", "set agent.model, or limit"),
        ("command", "", "plain text", "limit iterations or time"),
    ],
)
def test_a_limit_of_money_that_will_be_none_is_told(
    agent: str, model: str, why: str | None, fix: str
) -> None:
    """Before the run: why no start will have a price, and what to do instead."""
    config = AgentSection(name=agent, model=model)
    found = list(cost_problems(agent, config, limited=True))
    assert [why in problem.message for problem in found if why] == ([True] if why else [])
    assert all(problem.fix.startswith(fix) for problem in found)
    assert list(cost_problems(agent, config, limited=False)) == []
