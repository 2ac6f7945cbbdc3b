"""Durations and points in time, for people and for files.

Durations are float seconds, points in time are epoch seconds; text appears only at the edges:
`90s`, `1h30m` in configuration, `2h 05m` on screen, ISO 8601 in UTC in files.  The clock is
always handed in, so every decision that depends on time can be replayed.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

from ralphloop.text.lazy_regex import LazyRegex

_DAY, _HOUR, _MINUTE = 86_400, 3_600, 60
_UNIT_SECONDS = {
    "d": float(_DAY),
    "h": float(_HOUR),
    "m": float(_MINUTE),
    "s": 1.0,
    "ms": 0.001,
}
_UNITS_IN_ORDER = tuple(_UNIT_SECONDS)

_PART = LazyRegex(r"(\d+(?:\.\d+)?) ?(ms|[dhms]) ?", re.ASCII)
_BARE_NUMBER = LazyRegex(r"\d+(?:\.\d+)?", re.ASCII)
_LONGEST_TEXT = 40


def parse_duration(value: str | float) -> float:
    """Seconds of `90s`, `15m`, `1h30m`, `2d`, `500ms`; a bare number is seconds."""
    seconds = _seconds_of_text(value) if isinstance(value, str) else _seconds_of_number(value)
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


def _seconds_of_number(value: object) -> float:
    # True would be one second; in a configuration file it is a mistake.
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    raise _not_a_duration(value)


def _seconds_of_text(text: str) -> float:
    stripped = text.strip().lower()
    if 0 < len(stripped) <= _LONGEST_TEXT:
        if _BARE_NUMBER.fullmatch(stripped):
            return float(stripped)
        seconds = _sum_of_parts(stripped)
        if seconds is not None:
            return seconds
    raise _not_a_duration(text)


def _sum_of_parts(text: str) -> float | None:
    """Sum of the parts when they cover the text, each unit once, larger ones first."""
    position, total, next_unit = 0, 0.0, 0
    while position < len(text):
        part = _PART.match(text, position)
        if part is None or part[2] not in _UNITS_IN_ORDER[next_unit:]:
            return None
        next_unit = _UNITS_IN_ORDER.index(part[2]) + 1
        total += float(part[1]) * _UNIT_SECONDS[part[2]]
        position = part.end()
    return total


def _not_a_duration(value: object) -> ValueError:
    return ValueError(f"not a duration: {_shown(value)}; write it like 90s, 15m or 1h30m")


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= _LONGEST_TEXT else shown[: _LONGEST_TEXT - 1] + "…"
