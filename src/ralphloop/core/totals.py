"""What is used up: money, tokens and work, of one iteration and of a run, and subscriptions.

What nobody named a price for is unknown, and never zero.  A `Window` is the newest word of a CLI
about the hours or weeks of a subscription; once its reset has come it says nothing any more.
"""

from collections.abc import Callable, Iterable

import msgspec
from msgspec.structs import replace

from ralphloop.core import Value
from ralphloop.text.durations import clock_time
from ralphloop.text.plain import counted

UNKNOWN = "unknown"  # stands where a number would, on every screen
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

    def __add__(self, other: "Usage") -> "Usage":
        """Both together; the price is unknown only where neither names one."""
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            cost_usd=sum(costs) if costs else None,
            estimated=self.estimated or other.estimated,
            cumulative=self.cumulative or other.cumulative,
            **{name: getattr(self, name) + getattr(other, name) for name in TOKENS},
        )


class Amounts(Tokens, frozen=True, kw_only=True):
    cost_usd: float = 0.0
    cost_estimated: bool = False  # at least a part of the cost is an estimate
    unpriced: int = 0  # starts that reached the model and whose cost nobody knows
    tasks_completed: int = 0
    files_modified: int = 0
    commits: int = 0


class Expense(Amounts, frozen=True, kw_only=True):
    counted: bool = True  # False: a start without model output is no iteration


class Totals(Amounts, frozen=True, kw_only=True):
    """Sums over a run's iterations, kept by the same transactions that write them."""

    starts: int = 0
    iterations: int = 0
    active_s: float = 0.0  # wall clock while a process carried the run, waits included
    waited_s: float = 0.0


def money(dollars: float) -> str:
    return f"${dollars:.2f}" if dollars >= 0.01 or dollars == 0 else f"${dollars:.4f}"


def cost_words(dollars: float, unpriced: int) -> str:
    """A cost behind its name: `$1.20`, `unknown`, `$1.20 + unknown (3 starts)`."""
    if not unpriced:
        return money(dollars)
    return f"{money(dollars)} + {UNKNOWN} ({counted(unpriced, 'start')})" if dollars else UNKNOWN


def spent_words(dollars: float, unpriced: int) -> str:
    """The same among other words: `$1.20`, `unknown cost`."""
    return f"{UNKNOWN} cost" if unpriced and not dollars else cost_words(dollars, unpriced)


def token_words(tokens: int, starts: int, form: Callable[[int], str] = "{:,}".format) -> str:
    """Tokens among other words; where somebody worked and named none, nobody knows."""
    return f"{form(tokens)} tokens" if tokens or not starts else f"{UNKNOWN} tokens"


def short_cost(dollars: float, unpriced: int) -> str:
    """The same in a narrow column: `unknown`, `$1.20+?`."""
    return f"{money(dollars)}+?" if unpriced and dollars else cost_words(dollars, unpriced)


_NAMES = {
    "five_hour": "5-hour",
    "seven_day": "weekly",
    "seven_day_opus": "weekly Opus",
    "seven_day_sonnet": "weekly Sonnet",
}


class Window(Value, kw_only=True):
    kind: str = ""  # five_hour, seven_day …
    used: float = 0.0  # 1.0: all of it
    resets_at: int | None = None  # epoch seconds
    agent: str = ""

    @property
    def name(self) -> str:
        return _NAMES.get(self.kind) or self.kind.replace("_", " ") or "usage"


Windows = tuple[Window, ...]


def valid(windows: Windows, at: float) -> Windows:
    """Those that still say something at that time."""
    return tuple(one for one in windows if one.resets_at is None or one.resets_at > at)


def updated(known: Windows, told: Iterable[Window], agent: str = "") -> Windows:
    """What is known, with what was told last, of that agent where it does not say of whom."""
    new = (replace(one, agent=one.agent or agent) for one in told)
    return tuple({(one.agent, one.kind): one for one in (*known, *new)}.values())


def too_full(windows: Windows, reserve: float, *, agent: str, at: float) -> Windows:
    """The agent's windows of which another start would leave less than is to be left."""
    return tuple(
        one
        for one in valid(windows, at)
        if reserve and one.agent == agent and 1 - one.used <= reserve + 1e-9
    )


def free_again(windows: Windows) -> float | None:
    """When the last of them has reset; None where one does not say."""
    times = [one.resets_at for one in windows if one.resets_at]
    return max(times) if times and len(times) == len(windows) else None


def reserve_words(windows: Windows, reserve: float, at: float) -> str:
    """Why no further start is made for now; empty where nothing is too full."""
    used = quota_words(windows, at, resets=True)
    return f"{used}; {reserve:.0%} is to be left (limits.reserve)" if windows else ""


def quota_words(windows: Windows, at: float, *, resets: bool = False) -> str:
    """`5-hour window 30% used, weekly window 40% used`; empty where nothing is known."""
    now = valid(windows, at)
    several = len({one.agent for one in windows}) > 1
    return ", ".join(
        f"{one.agent + ' ' if several else ''}{one.name} window {one.used:.0%} used"
        + (f" (resets {clock_time(one.resets_at, at)})" if resets and one.resets_at else "")
        for one in now
    )
