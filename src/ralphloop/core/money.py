"""Dollars in words.  What nobody named a price for is unknown, and never zero."""

from __future__ import annotations

from ralphloop.text.plain import counted


def money(dollars: float) -> str:
    """Dollars with as many digits as matter."""
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
