"""The windows of a subscription: how much of each is used, and whether enough is left.

People with a subscription have no dollars to spend but hours and weeks of which a share is used
up.  A `Window` is the newest word of a CLI about one of them; one whose reset has come says
nothing any more.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from ralphloop.core import Value
from ralphloop.text.durations import clock_time

_NAMES = {
    "five_hour": "5-hour",
    "seven_day": "weekly",
    "seven_day_opus": "weekly Opus",
    "seven_day_sonnet": "weekly Sonnet",
}


class Window(Value, kw_only=True):
    """One window of an agent's usage."""

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
    now, several = valid(windows, at), len({one.agent for one in windows}) > 1
    return ", ".join(
        f"{one.agent + ' ' if several else ''}{one.name} window {one.used:.0%} used"
        + (f" (resets {clock_time(one.resets_at, at)})" if resets and one.resets_at else "")
        for one in now
    )
