"""What tokens cost, for agents that do not say: a small table, and nothing where it has no row."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

import msgspec

from ralphloop.config.model import AgentSection
from ralphloop.core.model import Usage, Value
from ralphloop.errors import Finding, Level
from ralphloop.readers import reader_name

CANNOT_BE_KEPT = "max_cost_usd cannot be kept: "

_NAME_NO_COST = frozenset({"codex", "gemini"})
_PLAIN_TEXT = "plain text names no price"


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


def why_unpriced(agent: str, config: AgentSection) -> str:
    """Why no start of this agent will have a price; empty where that cannot be known before."""
    reader, model = reader_name(agent, config.format), config.model
    if reader == "text":
        return _PLAIN_TEXT
    if reader not in _NAME_NO_COST:
        return ""
    if model:
        return "" if _row_of(model) else f"no price is known for {model}"
    return "codex does not name its model" if reader == "codex" else ""


def cost_problems(agent: str, config: AgentSection, *, limited: bool) -> Iterator[Finding]:
    """A limit of money that will be none."""
    if limited and (why := why_unpriced(agent, config)):
        fix = "limit iterations or time (max_iterations, max_time)"
        if not config.model and why != _PLAIN_TEXT:
            fix = f"set agent.model, or {fix}"
        yield Finding(Level.WARNING, f"{CANNOT_BE_KEPT}{why}", fix)


def _row_of(model: str) -> str:
    """The row of the table for a model; empty where there is none."""
    name = model.rsplit("/", 1)[-1]
    return max((row for row in price_table() if name.startswith(row)), key=len, default="")


def priced(usage: Usage, model: str) -> Usage:
    """The usage with its cost estimated, where the agent did not say it, or only a part of it."""
    said = usage.cost_usd is not None and not usage.estimated
    if said or not model or not (row := _row_of(model)):
        return usage
    price = price_table()[row]
    dollars = (
        usage.input_tokens * price.input
        + usage.cache_read_tokens * price.cache_read
        + usage.cache_write_tokens * price.cache_write
        + usage.output_tokens * price.output
    ) / 1_000_000
    cost_usd = max(dollars, usage.cost_usd or 0.0)
    return msgspec.structs.replace(usage, cost_usd=cost_usd, estimated=True)
