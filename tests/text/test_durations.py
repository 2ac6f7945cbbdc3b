"""Durations and times: what people write, what people read, what files carry (S04 date utilities)."""

from __future__ import annotations

import math
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.text.durations import (
    clock_time,
    elapsed,
    format_duration,
    is_expired,
    iso,
    parse_duration,
    parse_iso,
)

# Years 1 to 9999, the range of the calendar, kept clear of its edges for offsets.
EPOCHS = st.integers(min_value=-62_000_000_000, max_value=253_000_000_000)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("15m", 900),
        ("10h", 36_000),
        ("1h30m", 5_400),
        ("1h 30m", 5_400),
        ("2d", 172_800),
        ("500ms", 0.5),
        ("1s500ms", 1.5),
        ("1.5h", 5_400),
        ("0", 0),
        ("0s", 0),
        ("90", 90),
        (" 5M ", 300),
        ("3m 20s", 200),
        (90, 90),
        (0, 0),
        (0.25, 0.25),
    ],
)
def test_S04_du_parse_reads_what_people_write(text: str | float, seconds: float) -> None:
    """Units may be combined, larger ones first, and a bare number is seconds."""
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "m",
        "5x",
        "1h-5m",
        "-5m",
        "5m5m",
        "30m1h",
        "5m x",
        "1e3s",
        "١٥m",
        "five",
        "1,5h",
    ],
)
def test_S04_du_parse_rejects_with_the_text_and_an_example(text: str) -> None:
    """What is no duration is an error that shows the text and how to write it."""
    with pytest.raises(ValueError, match="15m") as caught:
        parse_duration(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("value", [True, None, [], -1, -0.5, math.nan, math.inf, 10**400])
def test_S04_du_parse_rejects_values_that_are_no_duration(value: object) -> None:
    """Booleans, negative and endless values are errors, not surprises later."""
    with pytest.raises(ValueError, match="duration"):
        parse_duration(value)  # type: ignore[arg-type]


def test_S04_du_parse_bounds_its_message() -> None:
    """A megabyte in place of a duration does not come back in the message."""
    with pytest.raises(ValueError, match="not a duration") as caught:
        parse_duration("9" * 1_000_000)
    assert len(str(caught.value)) < 200


@given(st.text())
def test_S04_du_parse_never_fails_otherwise(text: str) -> None:
    """Any text gives a finite duration or a ValueError."""
    try:
        assert 0 <= parse_duration(text) < math.inf
    except ValueError:
        pass


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.9, "0s"),
        (45, "45s"),
        (59.9, "59s"),
        (60, "1m 00s"),
        (200, "3m 20s"),
        (3_599, "59m 59s"),
        (7_500, "2h 05m"),
        (86_399, "23h 59m"),
        (86_400, "1d 00h"),
        (273_600, "3d 04h"),
        (-5, "0s"),
        (math.nan, "0s"),
        (math.inf, "0s"),
    ],
)
def test_S04_du_format_shows_two_units(seconds: float, text: str) -> None:
    """A duration is shown in its two largest units, rounded down."""
    assert format_duration(seconds) == text


@given(st.floats(min_value=0, max_value=1e9))
def test_S04_du_format_reads_back_within_its_last_unit(seconds: float) -> None:
    """What is shown parses back, short by less than the smallest unit shown."""
    lost = seconds - parse_duration(format_duration(seconds))
    smallest = 1 if seconds < 3_600 else 60 if seconds < 86_400 else 3_600
    assert 0 <= lost < smallest


def test_S04_du_iso_is_utc_to_the_second() -> None:
    """Times in files are UTC, end in Z and carry no fraction."""
    assert iso(0) == "1970-01-01T00:00:00Z"
    assert iso(1_794_780_000.987) == "2026-11-15T22:00:00Z"
    assert iso(-0.5) == "1969-12-31T23:59:59Z"


@pytest.mark.parametrize("epoch", [1e20, -1e20, math.nan, math.inf])
def test_S04_du_iso_rejects_what_no_calendar_holds(epoch: float) -> None:
    """A number that is no point in time is a ValueError."""
    with pytest.raises(ValueError, match="point in time"):
        iso(epoch)


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-15T22:00:00Z",
        "2026-11-15T22:00:00",
        "2026-11-15 22:00:00",
        "2026-11-15T22:00:00+00:00",
        "2026-11-15T23:00:00+01:00",
        "2026-11-15T17:00:00-0500",
        "2026-11-15T22:00:00.000Z",
        "20261115T220000Z",
        " 2026-11-15T22:00Z ",
    ],
)
def test_S04_du_parse_iso_tolerates_the_forms_in_the_wild(text: str) -> None:
    """Offsets, fractions, a missing Z and compact forms name the same moment."""
    assert parse_iso(text) == 1_794_780_000


def test_S04_du_parse_iso_keeps_fractions() -> None:
    """A fraction of a second is part of the moment."""
    assert parse_iso("1970-01-01T00:00:01.250Z") == 1.25


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-13-01T00:00:00Z", "1794780000", "x" * 9999]
)
def test_S04_du_parse_iso_rejects_with_bounded_words(text: str) -> None:
    """What is no time is a short ValueError."""
    with pytest.raises(ValueError, match="ISO 8601") as caught:
        parse_iso(text)
    assert len(str(caught.value)) < 200


@given(EPOCHS)
def test_S04_du_iso_round_trip(epoch: int) -> None:
    """A whole second survives the way into text and back."""
    assert parse_iso(iso(epoch)) == epoch


def test_S04_du_elapsed_is_never_negative() -> None:
    """A clock that was set back does not produce negative time."""
    assert elapsed(100, 160) == 60
    assert elapsed(160, 100) == 0


def test_S04_AC7_du_is_expired_after_more_than_24_hours() -> None:
    """A session expires after more than 24 hours, not at them and not when the clock jumps back."""
    day = 24 * 3_600
    assert not is_expired(0, day)
    assert is_expired(0, day + 1)
    assert not is_expired(day * 9, 0)
    assert is_expired(0, 3_601, hours=1)


@given(EPOCHS, EPOCHS, st.floats(min_value=0, max_value=1e6))
def test_S04_du_expiry_agrees_with_elapsed(last: int, now: int, hours: float) -> None:
    """Expiry is elapsed time against the limit and nothing else."""
    assert is_expired(last, now, hours) == (elapsed(last, now) > hours * 3_600)


@pytest.mark.parametrize(
    "then, words",
    [
        ("2026-11-15T00:00:00", "00:00"),  # today, also where it is over
        ("2026-11-15T23:59:59.5", "23:59"),
        ("2026-11-16T00:00:00", "00:00"),  # half a second from now
        ("2026-11-16T07:12:00", "07:12"),
        ("2026-11-17T07:12:00", "2026-11-17 07:12"),
        ("2026-11-14T23:59:00", "2026-11-14 23:59"),
    ],
)
def test_a_wall_clock_names_the_day_only_where_it_is_needed(then: str, words: str) -> None:
    """Today and within the next day the time says enough; else the date stands before it."""
    now = datetime.fromisoformat("2026-11-15T23:59:59.5").timestamp()
    assert clock_time(datetime.fromisoformat(then).timestamp(), now) == words
    assert clock_time(math.inf, now) == "at an unknown time"
