"""When a limit resets, read from the sentence that announces it.

CLIs that name no epoch write a wall-clock time ("resets 10:27pm (UTC)", "try again at 10:29 PM"),
a date ("resets Nov 20, 11:34am (UTC)"), or a span ("reset after 5h12m3s").  A time without a zone
in parentheses is local where the CLI runs, and cut to the minute: it means the end of that minute.
A clock time that is just past is given as it is, for another day would have been named; whoever
waits tries again soon.  The caller says what time it is now and in which zone; if it does not,
only an epoch can be read.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo

from ralphloop.core.limits import JUST_PAST_S

_EPOCH = re.compile(r"\|\s*(?P<epoch>\d{9,13})\b")
_LEAD = r"\b(?:resets?|(?:try|retry) again|available again)(?: (?:at|on))? "
_TIME = r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))? ?(?P<half>[ap]\.?m\b)?"
_ZONE = r"(?:[^()\n]{0,20}\((?P<zone>[A-Za-z][A-Za-z0-9_+/-]{1,40})\))?"
_DATED = re.compile(
    rf"{_LEAD}(?P<month>[a-z]{{3}})[a-z]{{0,6}}\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?"
    rf"(?:,? (?P<year>20\d\d)\b)?(?:(?:,| at|, at)? {_TIME})?{_ZONE}",
    re.IGNORECASE,
)
_TODAY = re.compile(rf"{_LEAD}{_TIME}{_ZONE}", re.IGNORECASE)
_SPAN = re.compile(
    r"\b(?:resets?|again|retry) (?:in|after) (?P<span>(?:\d{1,4} ?[a-z]{1,7}[ ,]{0,2}){1,4})",
    re.IGNORECASE,
)
_PART = re.compile(r"(\d{1,4}) ?([dhms])", re.IGNORECASE)
JUST_PAST = timedelta(seconds=JUST_PAST_S)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_KINDS = (
    ("opus", "seven_day_opus"),
    ("sonnet", "seven_day_sonnet"),
    ("week", "seven_day"),
    ("5-hour", "five_hour"),
    ("session", "five_hour"),
    ("daily", "daily"),
    ("monthly", "monthly"),
)


def limit_kind(sentence: str) -> str:
    """Which limit the sentence speaks of, in the words of the event that would announce it."""
    lowered = sentence[:400].lower()
    return next((kind for word, kind in _KINDS if word in lowered), "")


def reset_time(sentence: str, now: datetime | None) -> int | None:
    """The epoch second at which the limit resets, or None where it cannot be known.

    `now` is aware; its zone is the one that the CLI speaks in.
    """
    sentence = sentence[:2_000]
    if match := _EPOCH.search(sentence):
        epoch = int(match["epoch"])
        return epoch // 1000 if epoch > 10**11 else epoch
    if now is None:
        return None
    try:
        return _from_clock(sentence, now) or _from_span(sentence, now)
    except (ValueError, OverflowError):  # the 31st of February, 25:70, the year 10000
        return None


def _from_span(sentence: str, now: datetime) -> int | None:
    match = _SPAN.search(sentence)
    if match is None:
        return None
    parts = _PART.findall(match["span"])
    seconds = sum(int(number) * _SECONDS[unit.lower()] for number, unit in parts)
    return int(now.timestamp()) + seconds if seconds else None


def _from_clock(sentence: str, now: datetime) -> int | None:
    if match := _DATED.search(sentence):
        return _dated(match, now)
    match = _TODAY.search(sentence)
    if match is None or not (match["minute"] or match["half"]):
        return None
    here = now.astimezone(_zone(match["zone"], now))
    today = here.replace(hour=_hour(match), minute=_minute(match), second=0, microsecond=0)
    moments = (
        int((today + timedelta(days=day)).replace(fold=fold).timestamp())
        for day in (-1, 0, 1)
        for fold in (0, 1)  # where clocks are set back a time comes twice
    )
    oldest = (now - JUST_PAST).timestamp()
    return min(moment for moment in moments if moment > oldest) + (0 if match["zone"] else 60)


def _dated(match: re.Match[str], now: datetime) -> int | None:
    month = match["month"].lower()
    if month not in _MONTHS:
        return None
    here = now.astimezone(_zone(match["zone"], now))
    moment = datetime(
        int(match["year"] or here.year),
        _MONTHS.index(month) + 1,
        int(match["day"]),
        _hour(match),
        _minute(match),
        tzinfo=here.tzinfo,
    )
    if not match["year"] and moment < here - timedelta(days=30):
        moment = moment.replace(year=moment.year + 1)  # "Jan 2", said in December
    return int(moment.timestamp())


def _hour(match: re.Match[str]) -> int:
    hour = int(match["hour"] or 0)
    half = (match["half"] or "").lower()[:1]
    if half:
        return hour % 12 + (12 if half == "p" else 0)
    return hour


def _minute(match: re.Match[str]) -> int:
    return int(match["minute"] or 0)


def _zone(name: str | None, now: datetime) -> tzinfo | None:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    if not name:
        return now.tzinfo
    if name.upper() in ("UTC", "GMT"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # unknown here, or no zone at all
        return UTC
