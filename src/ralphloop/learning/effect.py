"""Does it help?  Held out stories against all others of the experiment, and nothing else.  Pure.

Each answer is a difference with a 95 % interval that also holds for few stories: Newcombe's for
pass rates; Welch's for attempts, with one made-up story of two attempts on each side, because a
handful that all passed at once would look as if they could do nothing else; Welch's for the
logarithms of dollars and tokens (`benchmarks/bench_learning_intervals.py` checks all of them).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from ralphloop.core.model import Value

ENOUGH_STORIES = 20
ENOUGH_HELD_OUT = 5
TOO_EARLY = "too early to tell"
_Z = 1.96


@dataclass(kw_only=True)
class TrialStory:
    """How one story of the experiment went."""

    first: bool = False  # it passed at its first attempt
    attempts: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


class Difference(Value, kw_only=True, omit_defaults=False):
    """A difference with its 95 % interval: points of 1, attempts, or shares (-0.1: 10 % fewer)."""

    change: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        return not self.low <= 0 <= self.high


class LearningEffect(Value, kw_only=True, omit_defaults=False):
    """What carrying learnings changes; nothing where it is too early to tell."""

    n_with: int = 0
    n_without: int = 0
    first: Difference | None = None
    attempts: Difference | None = None
    cost: Difference | None = None
    tokens: Difference | None = None
    sentence: str = TOO_EARLY


def compare(with_them: Sequence[TrialStory], without: Sequence[TrialStory]) -> LearningEffect:
    """Stories that were given what was learned against those that were held out."""
    n_with, n_without = len(with_them), len(without)
    if n_with + n_without < ENOUGH_STORIES or min(n_with, n_without) < ENOUGH_HELD_OUT:
        words = f"{TOO_EARLY} ({n_with} with learnings, {n_without} held out)"
        return LearningEffect(n_with=n_with, n_without=n_without, sentence=words)
    sides = with_them, without
    first = newcombe(*((sum(one.first for one in side), len(side)) for side in sides))
    attempts = welch(*([2.0, *(float(one.attempts) for one in side)] for side in sides))
    tokens = _ratio([[float(one.tokens) for one in side] for side in sides])
    cost = _ratio([[one.cost_usd for one in side] for side in sides])
    said = [
        f"passed at the first attempt {_words(first, 'more', 'less', 100, '{:.0f} points')} often",
        f"took {_words(attempts, 'more', 'fewer', 1, '{:.2f}')} attempts",
        *([f"cost {_words(cost, 'more', 'less', 100, '{:.0f} %')}"] if cost else []),
        *([f"used {_words(tokens, 'more', 'fewer', 100, '{:.0f} %')} tokens"] if tokens else []),
    ]
    clear = any(one and one.is_clear for one in (first, attempts, cost, tokens))
    return LearningEffect(
        n_with=n_with,
        n_without=n_without,
        first=first,
        attempts=attempts,
        cost=cost,
        tokens=tokens,
        sentence=f"{'' if clear else 'no effect seen: '}stories with learnings {'; '.join(said)}"
        f" (95 % intervals; {n_with} with, {n_without} held out at random)",
    )


def _words(found: Difference, more: str, less: str, scale: float, form: str) -> str:
    def one(value: float) -> str:
        return f"{form.format(abs(value) * scale)} {less if value < 0 else more}"

    return f"{one(found.change)} ({one(found.low)} to {one(found.high)})"


def newcombe(with_them: tuple[int, int], without: tuple[int, int]) -> Difference:
    """The difference of two shares, each a count and its total."""
    (p, low_p, high_p), (q, low_q, high_q) = _wilson(*with_them), _wilson(*without)
    down, up = math.hypot(p - low_p, high_q - q), math.hypot(high_p - p, q - low_q)
    return Difference(change=p - q, low=p - q - down, high=p - q + up)


def _wilson(count: int, total: int) -> tuple[float, float, float]:
    share, z2 = count / total, _Z * _Z / total
    middle = (share + z2 / 2) / (1 + z2)
    half = _Z * math.sqrt(share * (1 - share) / total + z2 / (4 * total)) / (1 + z2)
    return share, middle - half, middle + half


def welch(with_them: Sequence[float], without: Sequence[float]) -> Difference:
    """The difference of two means whose spreads may differ."""
    a, b = variance(with_them) / len(with_them), variance(without) / len(without)
    change, half = fmean(with_them) - fmean(without), 0.0
    if a + b:
        freedom = (a + b) ** 2 / (a * a / (len(with_them) - 1) + b * b / (len(without) - 1))
        half = students_t(freedom) * math.sqrt(a + b)
    return Difference(change=change, low=change - half, high=change + half)


def students_t(freedom: float) -> float:
    """Student's t at 97.5 %, by its expansion around the normal (within 1 % from 2 on)."""
    return 1.96 + 2.372 / freedom + 2.822 / freedom**2 + 2.556 / freedom**3 + 1.59 / freedom**4


def _ratio(sides: Sequence[Sequence[float]]) -> Difference | None:
    """How many times as much; nothing where some of it is unknown."""
    if not all(value > 0 for side in sides for value in side):
        return None
    found = welch(*([math.log(value) for value in side] for side in sides))
    low, change, high = map(math.expm1, (found.low, found.change, found.high))
    return Difference(change=change, low=low, high=high)
