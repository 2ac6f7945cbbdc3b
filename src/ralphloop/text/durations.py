"""Durations are float seconds, points in time epoch seconds; text appears only at the edges.

The clock is always handed in, so that every decision that depends on time can be replayed; only the
time zone in which a person reads and writes a time of day is that of the machine.
"""

import math
import re
from datetime import UTC, datetime, timedelta, tzinfo

from ralphloop.text.plain import LazyRegex

_DAY = 86_400
_HOUR = 3_600
_MINUTE = 60
_N = r"(\d+(?:\.\d+)?) ?"
_DURATION = LazyRegex(  # each unit once, larger ones first; or a bare number of seconds
    rf"(?:{_N}d ?)?(?:{_N}h ?)?(?:{_N}m(?!s) ?)?(?:{_N}s ?)?(?:{_N}ms)?|{_N}", re.ASCII
)
_UNITS = (float(_DAY), float(_HOUR), float(_MINUTE), 1.0, 0.001, 1.0)
_HALF_DAY = LazyRegex(r"(0?[1-9]|1[0-2])(?::([0-5]\d))? ?([ap])\.?m\.?", re.ASCII)
_CLOCK = LazyRegex(r"([01]?\d|2[0-3]):([0-5]\d)", re.ASCII)
_LONGEST_TEXT = 40


def parse_duration(value: str | float) -> float:
    """Seconds of `90s`, `15m`, `1h30m`, `2d`, `500ms`; a bare number is seconds."""
    seconds: float | None = None
    if isinstance(value, str):
        text = value.strip().lower()
        if 0 < len(text) <= _LONGEST_TEXT and (parts := _DURATION.fullmatch(text)):
            counts = zip(parts.groups(), _UNITS, strict=True)
            seconds = sum(float(part) * unit for part, unit in counts if part)
    elif type(value) in (int, float):  # True would be one second; in a file it is a mistake
        try:
            seconds = float(value)
        except OverflowError:
            seconds = math.inf
    if seconds is None:
        raise ValueError(f"not a duration: {_shown(value)}; write it like 90s, 15m or 1h30m")
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError(f"a duration must be zero or more and finite, not {_shown(value)}")
    return seconds


def format_duration(seconds: float) -> str:
    """The two largest units: `45s`, `3m 20s`, `2h 05m`, `3d 04h`; below zero is `0s`."""
    whole = int(seconds) if math.isfinite(seconds) and seconds > 0 else 0
    if whole < _MINUTE:
        return f"{whole}s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}m {whole % _MINUTE:02d}s"
    if whole < _DAY:
        return f"{whole // _HOUR}h {whole % _HOUR // _MINUTE:02d}m"
    return f"{whole // _DAY}d {whole % _DAY // _HOUR:02d}h"


def iso(epoch: float) -> str:
    """ISO 8601 in UTC to the second: `2026-11-15T22:00:00Z`."""
    try:
        moment = datetime.fromtimestamp(math.floor(epoch), UTC)
    except (OverflowError, OSError, ValueError) as error:
        raise ValueError(f"not a point in time: {epoch!r}") from error
    # isoformat pads years below 1000 where strftime's %Y does not on every platform.
    return moment.isoformat().replace("+00:00", "Z")


def stamp(epoch: float) -> str:
    """The same for names: `20261115-220000`."""
    return iso(epoch).translate(str.maketrans("T", "-", "-:Z"))


def told_iso(epoch: float) -> str:
    """The same for a person to read, whatever the number is."""
    try:
        return iso(epoch)
    except ValueError:
        return "an unknown time"


def clock_time(epoch: float, now: float) -> str:
    """A person's wall clock: `07:12` today or within a day, else `2026-11-20 07:12`."""
    try:
        then, today = (datetime.fromtimestamp(at).astimezone() for at in (epoch, now))
        is_near = 0 <= epoch - now < _DAY or then.date() == today.date()
        return then.strftime("%H:%M" if is_near else "%Y-%m-%d %H:%M")
    except (OverflowError, OSError, ValueError):
        return "at an unknown time"


def clock(at: float | None, zone: tzinfo | None = None, form: str = "%Y-%m-%d %H:%M") -> str:
    return "" if at is None else datetime.fromtimestamp(at).astimezone(zone).strftime(form)


def parse_clock(text: str) -> str:
    found = _CLOCK.fullmatch(text.strip())
    if found is None and (half := _HALF_DAY.fullmatch(text.strip().lower())):
        afternoon = 12 if half[3] == "p" else 0
        return f"{int(half[1]) % 12 + afternoon:02d}:{half[2] or '00'}"
    if found is None:
        raise ValueError(f'expected a time of day such as "07:00" or "7am", got {_shown(text)}')
    return f"{int(found[1]):02d}:{found[2]}"


def next_clock(clock: str, now: float) -> float:
    hour, minute = map(int, clock.split(":"))
    here = datetime.fromtimestamp(now)  # noqa: DTZ006 - the clock on the wall, summer or winter
    then = here.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if then <= here:
        then += timedelta(days=1)
    return then.timestamp()


def parse_iso(text: str) -> float:
    """Epoch seconds of an ISO 8601 text; without an offset it is taken as UTC."""
    try:
        moment = datetime.fromisoformat(text.strip())
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return aware.timestamp()
    except (ValueError, OverflowError) as error:
        raise ValueError(f"not an ISO 8601 time: {_shown(text)}") from error


def elapsed(since: float, now: float) -> float:
    """Seconds since then, never negative: a clock set back must not undo time."""
    return max(0.0, now - since)


def is_expired(last: float, now: float, hours: float = 24) -> bool:
    """True when more than so many hours passed; a clock set back expires nothing."""
    return elapsed(last, now) > hours * _HOUR


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= _LONGEST_TEXT else shown[: _LONGEST_TEXT - 1] + "…"
