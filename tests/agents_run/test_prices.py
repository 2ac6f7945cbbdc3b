"""What tokens cost where the agent does not say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ralphloop.agents.prices import (
    NO_ROWS,
    assumed_price,
    assumption,
    cost_problems,
    our_prices,
    own_prices,
    price_of,
    priced,
)
from ralphloop.config.model import AgentSection
from ralphloop.core.model import Usage
from ralphloop.core.price import Price
from ralphloop.errors import InputError

TOKENS = Usage(input_tokens=100_000, output_tokens=5_000, cache_read_tokens=1_000_000)


@pytest.mark.parametrize(
    "model, dollars",
    [
        ("gpt-5", 1.25),
        ("gpt-5-pro", 15.0),
        ("gpt-5-nano", 0.05),
        ("gpt-5-mini-2025-08-07", 0.25),
        ("gpt-5.1-codex-mini", 0.25),
        ("gpt-5.5-pro", 30.0),
        ("gemini-2.5-flash-lite", 0.1),
        ("claude-opus-4-20250514", 15.0),
        ("claude-opus-4-6", 5.0),
        ("claude-opus-5-5", 4.0),
        ("claude-sonnet-4-5@20250929", 3.0),
        ("claude-sonnet-4-6[1m]", 3.0),
    ],
)
def test_a_model_has_its_own_price(model: str, dollars: float) -> None:
    """Names that begin alike are other models; a date, a place or a context size is the same one."""
    price = price_of(model)
    assert price is not None
    assert price.input == dollars


def test_a_provider_before_the_name_does_not_matter() -> None:
    """`openai/gpt-5` is `gpt-5`; the cost is marked as an estimate."""
    found = priced(TOKENS, "openai/gpt-5")
    assert found.cost_usd == pytest.approx(0.125 + 0.05 + 0.125)
    assert found.estimated is True


@pytest.mark.parametrize(
    "model, reader, row",
    [
        ("gpt-5-huge", "", "gpt-5.5-pro"),
        ("openai/gpt-5.5-codex", "opencode", "gpt-5.5-pro"),
        ("claude", "", "claude-opus-4-1"),
        ("claude-fable-9", "", "claude-opus-4-1"),
        ("gemini-9-ultra", "", "gemini-3.1-pro-preview*"),
        ("somebodys-model", "gemini", "gemini-3.1-pro-preview*"),
        ("somebodys-model", "codex", "gpt-5.5-pro"),
        ("somebodys-model", "", "gpt-5.5-pro"),
    ],
)
def test_an_unknown_model_costs_the_dearest_of_its_provider(
    model: str, reader: str, row: str
) -> None:
    """By its name, else by its CLI, else of all; the cost is an estimate, and called an assumption."""
    found = priced(TOKENS, model, reader)
    dearest = our_prices().models[row]
    assert found.cost_usd == pytest.approx(dearest.of(TOKENS))
    assert found.estimated
    assert f"no price is known for {model}: an assumption" in assumption(model, reader)


def test_a_model_that_nobody_names_counts_tokens_only() -> None:
    """Without a name there is nothing to assume."""
    assert priced(TOKENS, "") == TOKENS
    assert assumption("", "codex") == ""
    assert assumption("gpt-5") == ""


def test_a_model_of_ones_own_may_cost_nothing(own: Path) -> None:
    """A row of zeros is a price, for a model on the person's own machine."""
    own.write_text('[models]\n"local-*" = { input = 0, output = 0 }\n')
    assert priced(TOKENS, "local-7b").cost_usd == 0.0
    assert assumption("local-7b") == ""


def test_settings_come_before_a_persons_own_table_and_that_before_ours(own: Path) -> None:
    """Of rows with one name the nearest counts; all others stay."""
    own.write_text(
        '[models]\ngpt-5 = { input = 9.0, output = 10.0 }\n"mine-*" = { input = 7.0, output = 8.0 }\n'
    )
    stated = {"gpt-5": Price(input=1.0, output=2.0)}
    found = {name: price_of(name, stated) for name in ("openai/gpt-5", "mine-2", "gpt-5-nano")}
    assert found == {
        "openai/gpt-5": Price(input=1.0, output=2.0),
        "mine-2": Price(input=7.0, output=8.0),
        "gpt-5-nano": our_prices().models["gpt-5-nano"],
    }


def test_a_free_model_makes_no_other_one_free() -> None:
    """What runs on one's own machine is no measure for a model with a like name elsewhere."""
    stated = {"homely-7b": Price(input=0, output=0), "gpt-local": Price(input=0, output=0)}
    assert priced(TOKENS, "homely-7b", "", stated).cost_usd == 0.0
    assert assumed_price("homely-max", "", stated).row == "gpt-5.5-pro"
    assert assumed_price("homely-max", "gemini", stated).row == "gemini-3.1-pro-preview*"


def test_what_the_agent_says_stands() -> None:
    """A reported cost is never replaced."""
    said = Usage(input_tokens=1, cost_usd=0.5)
    assert priced(said, "gpt-5") is said


@pytest.mark.parametrize("told, cost", [(0.01, 0.3), (0.5, 0.5)])
def test_a_cost_that_is_only_a_part_is_at_least_that_part(told: float, cost: float) -> None:
    """What was said of some of the tokens is a floor for all of them, and stays an estimate."""
    part = msgspec.structs.replace(TOKENS, cost_usd=told, estimated=True)
    found = priced(part, "gpt-5")
    assert found.cost_usd == pytest.approx(cost)
    assert found.estimated is True


def test_every_row_has_sensible_numbers() -> None:
    """Output costs more than input, cached input less."""
    for name, price in our_prices().models.items():
        assert price.cache_read is None or price.cache_read < price.input, name
        assert price.input < price.output, name


def test_what_the_cache_costs_is_as_much_as_input_where_nobody_says() -> None:
    """A row without a price for the cache gives no discount."""
    cached = Usage(cache_read_tokens=1_000_000, cache_write_tokens=1_000_000)
    assert Price(input=1.0, output=2.0).of(cached) == 2.0


def test_each_kind_of_token_has_its_own_price() -> None:
    """Input, output, reading the cache and writing it are paid by the million, each at its own."""
    price = Price(input=3.0, output=15.0, cache_read=0.25, cache_write=4.0)
    million = 1_000_000
    paid = [
        price.of(Usage(input_tokens=million)),
        price.of(Usage(output_tokens=million)),
        price.of(Usage(cache_read_tokens=million)),
        price.of(Usage(cache_write_tokens=million)),
    ]
    assert paid == [3.0, 15.0, 0.25, 4.0]
    assert Price(input=3.0, output=15.0, cache_write=0.0).of(Usage(cache_write_tokens=9)) == 0.0


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a person's own prices would stand."""
    file = tmp_path / "ralph" / "prices.toml"
    file.parent.mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    own_prices.cache_clear()
    yield file
    own_prices.cache_clear()


def test_a_persons_own_prices_come_first(own: Path) -> None:
    """Their row replaces ours or adds one; all others stay."""
    own.write_text(
        '[models]\ngpt-5 = { input = 9.0, output = 10.0 }\n"mine-*" = { input = 7.0, output = 8.0 }\n'
    )
    assert price_of("openai/gpt-5") == Price(input=9.0, output=10.0)
    assert price_of("mine-2") == Price(input=7.0, output=8.0)
    assert price_of("gpt-5-nano") == our_prices().models["gpt-5-nano"]


def test_the_closest_family_names_the_price(own: Path) -> None:
    """A row of a family is for the names that begin with all of it; the longest one counts."""
    own.write_text(
        '[models]\n"mine-*" = { input = 7.0, output = 8.0 }\n"mine-big-*" = { input = 70.0, output = 80.0 }\n'
    )
    found = {model: price_of(model) for model in ("mine-1", "mine-big-1", "mine", "mine2")}
    dollars = {model: price.input if price else None for model, price in found.items()}
    assert dollars == {"mine-1": 7.0, "mine-big-1": 70.0, "mine": None, "mine2": None}


def test_without_a_file_of_prices_ours_count(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file, or nobody's home to look for one in, is no error."""
    assert price_of("gpt-5") == our_prices().models["gpt-5"]
    for name in ("XDG_CONFIG_HOME", "HOME"):
        monkeypatch.delenv(name)
    own_prices.cache_clear()
    assert price_of("gpt-5") == our_prices().models["gpt-5"]


@pytest.mark.parametrize(
    "text", ["gpt-5 = ", '[models]\nx = { input = "much" }', "[models]\nx = 1"]
)
def test_a_broken_file_of_prices_is_named(own: Path, text: str) -> None:
    """What cannot be read is an error before the run, with its place, and never a guess."""
    own.write_text(text)
    with pytest.raises(InputError) as caught:
        list(cost_problems("claude", AgentSection(), {}, NO_ROWS, limited=False))
    assert caught.value.place == str(own)


@pytest.mark.parametrize(
    "agent, model, why, fix",
    [
        ("claude", "", None, ""),
        ("codex", "gpt-5", None, ""),
        ("codex", "nobody-1", "no price is known for nobody-1", "say what it costs"),
        ("codex", "", None, ""),
        ("gemini", "pro", None, ""),
        ("command", "", "plain text", "limit tokens, iterations"),
    ],
)
def test_a_limit_of_money_that_will_be_none_is_told(
    agent: str, model: str, why: str | None, fix: str
) -> None:
    """Before the run: why no start will have a price, and what to do instead."""
    config = AgentSection(name=agent, model=model)
    found = list(cost_problems(agent, config, {}, NO_ROWS, limited=True))
    assert len(found) == (why is not None)
    assert all(why is not None and why in problem.message for problem in found)
    assert all(problem.fix.startswith(fix) for problem in found)
    assert list(cost_problems(agent, config, {}, NO_ROWS, limited=False)) == []
