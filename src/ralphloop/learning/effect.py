"""Whether carrying learnings changes what a story costs.  Pure.

Tokens per story differ by factors, so their logarithms are compared: the difference of the means
with a 95 % interval (Welch) is a ratio.  Under twenty stories nothing is said at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, variance

from msgspec.structs import replace

from ralphloop.core.model import Value

ENOUGH_STORIES = 20
_ENOUGH_EACH = 3
_Z = 1.959964
TOO_EARLY = "too early to tell"


class Effect(Value, kw_only=True, omit_defaults=False):
    """The observed difference; changes are shares, -0.1 is ten percent fewer tokens."""

    n_with: int = 0
    n_without: int = 0
    change: float | None = None
    low: float | None = None
    high: float | None = None
    controlled: bool = False  # by holding stories out
    sentence: str = TOO_EARLY


def compare(
    with_them: Sequence[int], without: Sequence[int], *, controlled: bool = False
) -> Effect:
    """Tokens of the stories that carried learnings against those that did not."""
    n_with, n_without = len(with_them), len(without)
    counted = Effect(n_with=n_with, n_without=n_without, controlled=controlled)
    if n_with + n_without < ENOUGH_STORIES:
        return counted
    if min(n_with, n_without) < _ENOUGH_EACH:
        return replace(counted, sentence=_nothing_to_compare(n_with, n_without))
    a = [math.log(value) for value in with_them]
    b = [math.log(value) for value in without]
    half = _half_width(a, b)
    middle = fmean(a) - fmean(b)
    low, change, high = (math.expm1(middle + side) for side in (-half, 0.0, half))
    words = _sentence(low, change, high, n_with, n_without)
    how = "every Nth story was held out" if controlled else "observed, not controlled"
    return replace(counted, change=change, low=low, high=high, sentence=f"{words}; {how}")


def _half_width(a: Sequence[float], b: Sequence[float]) -> float:
    share_a, share_b = variance(a) / len(a), variance(b) / len(b)
    spread = share_a + share_b
    if spread == 0:
        return 0.0
    freedom = spread**2 / (share_a**2 / (len(a) - 1) + share_b**2 / (len(b) - 1))
    return _t_quantile(freedom) * math.sqrt(spread)


def _t_quantile(freedom: float) -> float:
    """Student's t at 97.5 %, by its expansion around the normal (within 1 % from 2 on)."""
    z, f = _Z, max(2.0, freedom)
    return (
        z
        + (z**3 + z) / (4 * f)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * f**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * f**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * f**4)
    )


def _sentence(low: float, change: float, high: float, n_with: int, n_without: int) -> str:
    numbers = f"(95 %: {_percent(low)} to {_percent(high)}; n = {n_with} with, {n_without} without)"
    if low <= 0 <= high:
        return f"no effect seen: stories with learnings used {_percent(change)} tokens {numbers}"
    return f"stories with learnings used {_percent(change)} tokens {numbers}"


def _percent(share: float) -> str:
    return f"{abs(share):.0%} {'fewer' if share < 0 else 'more'}".replace("%", " %")


def _nothing_to_compare(n_with: int, n_without: int) -> str:
    which = "carried learnings" if n_with > n_without else "ran without learnings"
    return (
        f"nothing to compare with: nearly all of {n_with + n_without} stories {which};"
        " learning.holdout = 5 runs every fifth without"
    )
