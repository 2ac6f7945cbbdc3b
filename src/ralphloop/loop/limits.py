"""Budgets and waits: how much is left, and how long to wait.  Pure.

Limits are totals of the session and survive restarts because they are computed from the journal.
"""

from __future__ import annotations

from ralphloop.config.model import LimitsSection
from ralphloop.core.durations import format_duration
from ralphloop.core.model import Decision, ExitDecision, Value
from ralphloop.journal.records import Totals

BACKOFF_CEILING_S = 300.0
UNKNOWN_RESET_S = 900.0  # a usage limit that does not say when it ends
RESET_MARGIN_S = 1.0
HOUR = 3600.0


class Extra(Value, kw_only=True):
    """What a person added to the budgets while the run went on."""

    cost_usd: float = 0.0
    time_s: float = 0.0
    iterations: int = 0


NOTHING = Extra()


def reached(limits: LimitsSection, totals: Totals, extra: Extra = NOTHING) -> Decision | None:
    """The budget that is used up, if one is."""
    if limits.max_cost_usd and totals.cost_usd >= limits.max_cost_usd + extra.cost_usd:
        spent = f"${totals.cost_usd:.2f} of ${limits.max_cost_usd + extra.cost_usd:.2f} is spent"
        return Decision(word=ExitDecision.BUDGET_EXHAUSTED, reasons=(spent,))
    if limits.max_time and totals.active_s >= limits.max_time + extra.time_s:
        used = f"the run took {format_duration(totals.active_s)}, as long as it may"
        return Decision(word=ExitDecision.BUDGET_EXHAUSTED, reasons=(used,))
    allowed = most_iterations(limits, extra)
    if 0 < allowed <= totals.iterations:
        all_used = f"{totals.iterations} iterations were allowed and are used"
        return Decision(word=ExitDecision.MAX_ITERATIONS, reasons=(all_used,))
    return None


def most_iterations(limits: LimitsSection, extra: Extra = NOTHING) -> int:
    """How many iterations the session may have; 0: any number."""
    return limits.max_iterations + extra.iterations if limits.max_iterations else 0


def money_left(limits: LimitsSection, totals: Totals, extra: Extra = NOTHING) -> float | None:
    """Dollars left, or None without a limit."""
    if not limits.max_cost_usd:
        return None
    return max(0.0, limits.max_cost_usd + extra.cost_usd - totals.cost_usd)


def time_left(limits: LimitsSection, totals: Totals, extra: Extra = NOTHING) -> float | None:
    """Seconds left, or None without a limit."""
    if not limits.max_time:
        return None
    return max(0.0, limits.max_time + extra.time_s - totals.active_s)


def backoff(outages: int, first: float) -> float:
    """Exponential, with a ceiling."""
    return float(min(BACKOFF_CEILING_S, first * 2 ** min(max(0, outages - 1), 20)))


def quota_wait(resets_at: float | None, now: float, outages: int) -> float:
    """Seconds until a usage limit is lifted; without a time, longer each time."""
    if resets_at is None or resets_at <= now - HOUR:
        return float(min(HOUR, UNKNOWN_RESET_S * 2 ** min(max(0, outages - 1), 4)))
    return max(0.0, resets_at - now) + RESET_MARGIN_S
