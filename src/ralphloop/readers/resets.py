"""When a usage limit resets, from the sentence in which a CLI says so.

CLIs that name no epoch write a time ("resets 10:27pm (UTC)", "try again at 22:00 PST"), a date
("resets Nov 20, 11:34am (UTC)", "2026-11-20T11:34:00Z"), a weekday ("resets Monday 9am") or a span
("reset after 5h12m3s", "It will reset in 2h").  Without a zone it is local where the CLI runs, and
cut to the minute: it means the end of that minute.  A time just past is given as it is, for another
day would have been named; whoever waits tries again soon.
"""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from ralphloop.core.policy import JUST_PAST_S
from ralphloop.text.plain import any_case

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}

# Hours ahead of UTC of the short names that are not ambiguous where they are used; two letters
# name a place, whose clocks are changed twice a year.
_SHORT_ZONES = {
    "utc": 0,
    "gmt": 0,
    "z": 0,
    "wet": 0,
    "bst": 1,
    "cet": 1,
    "cest": 2,
    "eet": 2,
    "eest": 3,
    "est": -5,
    "edt": -4,
    "cst": -6,
    "cdt": -5,
    "mst": -7,
    "mdt": -6,
    "pst": -8,
    "pdt": -7,
    "jst": 9,
    "kst": 9,
    "sgt": 8,
    "aest": 10,
    "aedt": 11,
}
_PLACES = {
    "et": "America/New_York",
    "ct": "America/Chicago",
    "mt": "America/Denver",
    "pt": "America/Los_Angeles",
}

_EPOCH = any_case(r"\|\s*(?P<epoch>\d{9,13})\b")
_INSTANT = any_case(
    r"\b(?P<date>20\d\d-\d\d-\d\d)(?:[T ]|,? at )(?P<time>\d\d:\d\d(?::\d\d)?)(?:\.\d{1,9})?"
    r"(?: ?(?P<offset>Z\b|UTC\b|[+-]\d\d:?\d\d))?"
)
_LEAD = (
    r"\b(?:resets?|(?:try|retry) again|available again|refreshes|renews|regain access)"
    r"(?: (?:at|on|by))? "
)
_DAY = any_case(rf"{_LEAD}(?P<date>20\d\d-\d\d-\d\d)\b")
_TIME = r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?(?::\d\d)? ?(?P<half>[ap]\.?m\b\.?)?"
_SHORT = "|".join((*_SHORT_ZONES, *_PLACES))
_ZONE = (
    rf"(?: ?(?P<short>{_SHORT})\b(?P<shift>[+-]\d{{1,2}}(?::?\d\d)?)?"
    r"| ?(?P<offset>[+-]\d\d:?\d\d)\b"
    r"|[^()\n]{0,20}\((?P<zone>[A-Za-z][A-Za-z0-9_+/-]{1,40})\))?"
)
_DATED = any_case(
    rf"{_LEAD}(?P<month>[a-z]{{3}})[a-z]{{0,6}}\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?"
    rf"(?:,? (?P<year>20\d\d)\b)?(?:(?:,| at|, at)? {_TIME})?{_ZONE}"
)
_WEEKDAY = any_case(
    rf"{_LEAD}(?:next )?(?P<weekday>mon|tue|wed|thu|fri|sat|sun|tomorrow)(?:[a-z]{{0,6}})\b\.?"
    rf"(?:(?:,| at|, at)? {_TIME})?{_ZONE}"
)
_TODAY = any_case(rf"{_LEAD}{_TIME}{_ZONE}")
_SPAN = any_case(
    r"\b(?:resets?|again|retry|available|refreshes|renews) (?:in|after)(?: about| ~)?"
    r" (?P<span>(?:\d{1,4} ?[a-z]{1,7}[ ,]{0,2}(?:and )?){1,4})"
)
_PART = any_case(r"(\d{1,4}) ?([wdhms])")


def reset_time(sentence: str, now: datetime | None) -> int | None:
    """The epoch second at which the limit resets, or None where it cannot be known; the zone of
    `now` is the one that the CLI speaks in."""
    sentence = sentence[:2_000]
    if match := _EPOCH.search(sentence):
        epoch = int(match["epoch"])
        return epoch // 1000 if epoch > 10**11 else epoch
    try:
        if match := _INSTANT.search(sentence):
            return _of_instant(match, now)
        if now is None:
            return None
        if match := _DAY.search(sentence):
            midnight = datetime.fromisoformat(match["date"]).replace(tzinfo=now.tzinfo)
            return int(midnight.timestamp())
        return _of_date(sentence, now) or _of_weekday(sentence, now) or _of_span(sentence, now)
    except (ValueError, OverflowError):  # the 31st of February, 25:70, the year 10000
        return None


def _of_instant(match: re.Match[str], now: datetime | None) -> int | None:
    """A date and a time as machines write them."""
    moment = datetime.fromisoformat(f"{match['date']}T{match['time']}")
    offset = match["offset"]
    if offset:
        zone: tzinfo | None = UTC if offset.lower() in ("z", "utc") else _shifted(offset)
    elif now is not None:
        zone = now.tzinfo
    else:
        return None
    return int(moment.replace(tzinfo=zone).timestamp())


def _of_span(sentence: str, now: datetime) -> int | None:
    """A clock time of one of these days, else so long from now."""
    if (moment := _of_clock(sentence, now)) is not None:
        return moment
    span = _SPAN.search(sentence)
    if span is None:
        return None
    seconds = sum(int(part[1]) * _SECONDS[part[2].lower()] for part in _PART.finditer(span["span"]))
    return int(now.timestamp()) + seconds if seconds else None


def _of_date(sentence: str, now: datetime) -> int | None:
    """A day of a month, at midnight where no time is named."""
    match = _DATED.search(sentence)
    if match is None or match["month"].lower() not in _MONTHS:
        return None
    here = now.astimezone(_zone(match, now))
    moment = datetime(
        year=int(match["year"] or here.year),
        month=_MONTHS.index(match["month"].lower()) + 1,
        day=int(match["day"]),
        hour=_hour(match),
        minute=int(match["minute"] or 0),
        tzinfo=here.tzinfo,
    )
    if not match["year"] and moment < here - timedelta(days=30):
        moment = moment.replace(year=moment.year + 1)  # "Jan 2", said in December
    return int(moment.timestamp())


def _of_weekday(sentence: str, now: datetime) -> int | None:
    """The next such day, at midnight where no time is named; today only while it is to come."""
    match = _WEEKDAY.search(sentence)
    if match is None:
        return None
    name = match["weekday"].lower()
    if name == "tomorrow" and match["hour"] is None:
        return None  # at some time of it
    here = now.astimezone(_zone(match, now))
    ahead = 1 if name == "tomorrow" else (_DAYS.index(name) - here.weekday()) % 7
    day = here + timedelta(days=ahead)
    hour = _hour(match)
    moment = day.replace(hour=hour, minute=int(match["minute"] or 0), second=0, microsecond=0)
    if moment.timestamp() <= now.timestamp() - JUST_PAST_S:
        moment += timedelta(days=7)
    return int(moment.timestamp())


def _of_clock(sentence: str, now: datetime) -> int | None:
    """The nearest moment at which a clock shows that time, and that is not long past."""
    match = _TODAY.search(sentence)
    if match is None or not (match["minute"] or match["half"]):
        return None
    here = now.astimezone(_zone(match, now))
    minute = int(match["minute"] or 0)
    today = here.replace(hour=_hour(match), minute=minute, second=0, microsecond=0)
    moments = (
        int((today + timedelta(days=day)).replace(fold=fold).timestamp())
        for day in (-1, 0, 1)
        for fold in (0, 1)  # where clocks are set back a time comes twice
    )
    oldest = now.timestamp() - JUST_PAST_S
    moment = min(moment for moment in moments if moment > oldest)
    has_zone = match["zone"] or match["short"] or match["offset"]
    return moment if has_zone else moment + 60


def _hour(match: re.Match[str]) -> int:
    hour = int(match["hour"] or 0)
    half = (match["half"] or "").lower()[:1]
    if not half:
        return hour
    return hour % 12 + 12 if half == "p" else hour % 12


def _zone(match: re.Match[str], now: datetime) -> tzinfo | None:
    """The zone a time is told in; the one of `now` where none is named."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    short = (match["short"] or "").lower()
    if match["offset"]:
        return _shifted(match["offset"])
    if short and match["shift"]:
        return _shifted(match["shift"])  # UTC+2
    if short in _SHORT_ZONES:
        return timezone(timedelta(hours=_SHORT_ZONES[short]))
    name = match["zone"] or _PLACES.get(short)
    if not name:
        return now.tzinfo
    if name.lower() in _SHORT_ZONES:
        return timezone(timedelta(hours=_SHORT_ZONES[name.lower()]))
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # unknown here, or no zone at all
        return UTC


def _shifted(offset: str) -> timezone:
    """The zone of `+02:00`, `-0530` or `+2`."""
    sign = -1 if offset.startswith("-") else 1
    digits = offset[1:].replace(":", "")
    hours = digits if len(digits) <= 2 else digits[:2]
    minutes = digits[2:] or "0"
    return timezone(sign * timedelta(hours=int(hours), minutes=int(minutes)))
