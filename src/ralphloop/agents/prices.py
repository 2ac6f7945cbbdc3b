"""What tokens cost, for agents that do not say: a small table, and nothing where it has no row."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

import msgspec

from ralphloop.core.model import Usage, Value

_MILLION = 1_000_000


class Price(Value, frozen=True, kw_only=True):
    """Dollars for a million tokens."""

    input: float
    output: float
    cache_read: float = 0.0
    cache_write: float = 0.0


@cache
def price_table() -> dict[str, Price]:
    """All rows, by the beginning of a model's name."""
    text = files("ralphloop.agents").joinpath("prices.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), type=dict[str, Price])


def priced(usage: Usage, model: str) -> Usage:
    """The usage with its cost estimated, where the agent did not say it, or only a part of it."""
    if not model or (usage.cost_usd is not None and not usage.estimated):
        return usage
    name = model.rsplit("/", 1)[-1]
    beginnings = [row for row in price_table() if name.startswith(row)]
    if not beginnings:
        return usage
    dollars = _dollars(usage, price_table()[max(beginnings, key=len)])
    return msgspec.structs.replace(
        usage, cost_usd=max(dollars, usage.cost_usd or 0.0), estimated=True
    )


def _dollars(usage: Usage, price: Price) -> float:
    return (
        usage.input_tokens * price.input
        + usage.cache_read_tokens * price.cache_read
        + usage.cache_write_tokens * price.cache_write
        + usage.output_tokens * price.output
    ) / _MILLION
