"""Untrusted text made harmless, and numbers made readable.  Pure, apart from the time zone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, tzinfo
from typing import TypeVar

from ralphloop.redaction import redact
from ralphloop.text.plain import one_line

_T = TypeVar("_T")
_NIGHT = 20 * 3600.0


class Teller:
    """Turns what agents and files say into one bounded line without secrets."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = tuple(secrets)

    def __call__(self, text: object, limit: int = 300) -> str:
        # Generously cut first: redaction must see whole secrets, not megabytes.
        return one_line(redact(str(text)[: limit * 8], self._secrets), limit)


def clock(at: float | None, zone: tzinfo | None = None) -> str:
    """A point in time as a person's wall clock shows it."""
    return "" if at is None else _local(at, zone).strftime("%Y-%m-%d %H:%M")


def moment(at: float | None, span: float, zone: tzinfo | None = None) -> str:
    """A point in time within so many seconds: a night needs no dates."""
    if at is None:
        return ""
    return _local(at, zone).strftime("%H:%M" if span < _NIGHT else "%m-%d %H:%M")


def zone_name(at: float, zone: tzinfo | None = None) -> str:
    """Which zone those times are in."""
    return _local(at, zone).strftime("%Z") or "local time"


def number(value: float) -> str:
    """`1,234`, `56.7 k`, `9 M`: enough to compare."""
    if value < 10_000:
        return f"{value:,.0f}"
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{value:,.0f}"


def percent(share: float | None) -> str:
    """A share as a person says it."""
    return "" if share is None else f"{share:.0%}"


def thinned(items: Sequence[_T], most: int) -> tuple[_T, ...]:
    """At most so many of them, evenly spread, the last one always among them."""
    if len(items) <= most:
        return tuple(items)
    return tuple(items[(position + 1) * len(items) // most - 1] for position in range(most))


def _local(at: float, zone: tzinfo | None) -> datetime:
    return datetime.fromtimestamp(at).astimezone(zone)
