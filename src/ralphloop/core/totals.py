"""Sums of money, tokens and work, of one iteration and of a run.

Dollars are said in words here.  What nobody named a price for is unknown, and never zero.
"""

from __future__ import annotations

import msgspec

from ralphloop.text.plain import counted

TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        return sum(getattr(self, name) for name in TOKENS)

    @property
    def fresh_tokens(self) -> int:
        """What `max_tokens` counts: reads of the cache are most of a night, not of its bill."""
        return self.total_tokens - self.cache_read_tokens


class Usage(Tokens, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens and money of one start; `cost_usd` is None where the agent names no price."""

    cost_usd: float | None = None
    estimated: bool = False  # summed from the stream because no result reported it
    cumulative: bool = False  # cost covers the whole resumed conversation, not this start alone

    @property
    def dollars(self) -> float:
        """What is known to have been paid."""
        return max(0.0, self.cost_usd or 0.0)

    def __add__(self, other: Usage) -> Usage:
        """Both together; the price is unknown only where neither names one."""
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            cost_usd=sum(costs) if costs else None,
            estimated=self.estimated or other.estimated,
            cumulative=self.cumulative or other.cumulative,
            **{name: getattr(self, name) + getattr(other, name) for name in TOKENS},
        )


class Amounts(Tokens, frozen=True, kw_only=True):
    """What is summed up: money, tokens and work."""

    cost_usd: float = 0.0
    cost_estimated: bool = False  # at least a part of the cost is an estimate
    unpriced: int = 0  # starts that reached the model and whose cost nobody knows
    tasks_completed: int = 0
    files_modified: int = 0
    commits: int = 0


class Spent(Amounts, frozen=True, kw_only=True):
    """What one iteration adds to the totals of its run."""

    counted: bool = True  # False: a start without model output is no iteration


class Totals(Amounts, frozen=True, kw_only=True):
    """Sums over a run's iterations, kept by the same transactions that write them."""

    starts: int = 0
    iterations: int = 0
    active_s: float = 0.0  # wall clock while a process carried the run, waits included
    waited_s: float = 0.0


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What a start took of what is limited."""

    usd: float = 0.0
    tokens: int = 0


def money(dollars: float) -> str:
    return f"${dollars:.2f}" if dollars >= 0.01 or dollars == 0 else f"${dollars:.4f}"


def cost_words(dollars: float, unpriced: int) -> str:
    """A cost behind its name: `$1.20`, `unknown`, `$1.20 + unknown (3 starts)`."""
    if not unpriced:
        return money(dollars)
    return f"{money(dollars)} + unknown ({counted(unpriced, 'start')})" if dollars else "unknown"


def spent_words(dollars: float, unpriced: int) -> str:
    """The same among other words."""
    return "cost unknown" if unpriced and not dollars else cost_words(dollars, unpriced)


def short_cost(dollars: float, unpriced: int) -> str:
    """The same in a narrow column: `unknown`, `$1.20+?`."""
    return f"{money(dollars)}+?" if unpriced and dollars else cost_words(dollars, unpriced)
