"""When a limit resets, from the sentence alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.readers.resets import reset_time

NOW = datetime(2026, 11, 15, 20, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    "sentence, moment",
    [
        ("You've hit your 5-hour limit · resets 10:27pm (UTC)", "2026-11-15T22:27"),
        ("You've hit your limit · resets 8:29pm (UTC)", "2026-11-15T20:29"),
        ("You've hit your limit · resets 5:29pm (UTC)", "2026-11-16T17:29"),
        ("You've hit your limit · resets 5pm (Europe/Vilnius)", "2026-11-16T15:00"),
        ("You've hit your limit · resets 11pm (Europe/Vilnius)", "2026-11-15T21:00"),
        ("You've hit your limit · resets 12am (America/New_York)", "2026-11-16T05:00"),
        ("You've hit your weekly limit · resets Nov 20, 11:34am (UTC)", "2026-11-20T11:34"),
        ("You've hit your weekly limit · resets Jan 2 at 9am (UTC)", "2027-01-02T09:00"),
        ("resets on November 20th, 2026 22:15", "2026-11-20T22:15"),
        ("resets Jan 2, 2028 at 9am (UTC)", "2028-01-02T09:00"),
        ("resets Nov 20 (UTC)", "2026-11-20T00:00"),
        ("5-hour limit reached ∙ resets 3am", "2026-11-16T03:01"),
        ("… purchase more credits or try again at 10:29 PM.", "2026-11-15T22:30"),
        ("try again at 22:29 (Atlantis/Deep)", "2026-11-15T22:29"),
        ("Try again in 1 day 3 hours 12 minutes.", "2026-11-16T23:42"),
        ("Your quota will reset after 5h12m3s.", "2026-11-16T01:42:03"),
        ("retry after 30s", "2026-11-15T20:30:30"),
        ("429 You have reached your weekly usage limit. It will reset in 2h", "2026-11-15T22:30"),
        ("Your limit resets in 1 hour and 30 minutes", "2026-11-15T22:00"),
        ("quota resets in about 2 hours", "2026-11-15T22:30"),
        ("try again at 10:27 pm UTC", "2026-11-15T22:27"),
        ("try again at 14:00 PST", "2026-11-15T22:00"),
        ("try again at 2:00 PM PT", "2026-11-15T22:00"),
        ("resets at 23:00 UTC+2", "2026-11-15T21:00"),
        ("resets at 03:00 +05:30", "2026-11-15T21:30"),
        ("resets at 2026-11-16T09:00:00Z", "2026-11-16T09:00"),
        ("resets on 2026-11-16 09:00:00+02:00", "2026-11-16T07:00"),
        ("resets 2026-11-16 09:00", "2026-11-16T09:00"),
        ("You will regain access on 2026-12-01 at 00:00 UTC.", "2026-12-01T00:00"),
        ("Your limit will reset at 2026-11-18 09:12:00", "2026-11-18T09:12"),
        ("Your quota resets on 2026-12-01.", "2026-12-01T00:00"),
        ("(TPD): Limit 100, Used 99. Please try again in 17m16s.", "2026-11-15T20:47:16"),
        ("Your weekly limit resets Monday at 9am (UTC)", "2026-11-16T09:00"),
        ("resets on Tuesday, 10:30 UTC", "2026-11-17T10:30"),
        ("Try again on Sun at 9pm (UTC)", "2026-11-15T21:00"),
        ("resets Sunday 3am (UTC)", "2026-11-22T03:00"),
        ("limit resets Fri", "2026-11-20T00:00"),
        ("available again tomorrow at 7am (UTC)", "2026-11-16T07:00"),
    ],
)
def test_sentences_with_a_time(sentence: str, moment: str) -> None:
    """A clock time is the nearest one that is not long past; dates and spans are taken as they are."""
    expected = datetime.fromisoformat(moment).replace(tzinfo=UTC)
    assert reset_time(sentence, NOW) == int(expected.timestamp())


@pytest.mark.parametrize(
    "sentence",
    [
        "You've hit your limit",
        "spend limit reached - resets tomorrow",
        "resets Feb 31, 9am (UTC)",
        "resets 25:70 (UTC)",
        "resets soon (../../etc/passwd)",
        "try again in a while",
        "try again 3 times",
        "retry again 2 days later",
        "",
    ],
)
def test_sentences_without_a_time(sentence: str) -> None:
    """What names no possible time gives none."""
    assert reset_time(sentence, NOW) is None


def test_an_epoch_needs_no_clock() -> None:
    """Seconds and milliseconds after a bar are read without knowing the time."""
    assert reset_time("Claude AI usage limit reached|1749924000", None) == 1_749_924_000
    assert reset_time("limit reached|1749924000123", None) == 1_749_924_000
    assert reset_time("resets 10:27pm (UTC)", None) is None


@pytest.mark.parametrize(
    "zone, now, clock, moment",
    [
        ("America/New_York", "2026-11-16T00:34", "12:39 AM", "2026-11-16T00:40"),
        ("Asia/Kolkata", "2026-11-16T10:34", "10:34 AM", "2026-11-16T10:35"),
        ("UTC", "2026-11-16T00:01", "11:59 PM", "2026-11-16T00:00"),
        ("Pacific/Auckland", "2026-11-16T09:00", "7:00 AM", "2026-11-16T07:01"),
        ("Pacific/Auckland", "2026-11-16T23:00", "3:00 AM", "2026-11-17T03:01"),
        ("America/New_York", "2026-10-31T23:00", "3:00 AM", "2026-11-01T03:01"),  # 25 hours
        ("America/New_York", "2026-03-08T01:50", "2:30 AM", "2026-03-08T01:31"),  # skipped
    ],
)
def test_a_time_without_a_zone_is_local(zone: str, now: str, clock: str, moment: str) -> None:
    """It is read where the agent runs, also on the days on which clocks are changed."""
    here = datetime.fromisoformat(now).replace(tzinfo=ZoneInfo(zone))
    expected = datetime.fromisoformat(moment).replace(tzinfo=ZoneInfo(zone))
    assert reset_time(f"try again at {clock}.", here) == int(expected.timestamp())


@given(
    now=st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1)),  # noqa: DTZ001 - zoned below
    zone=st.sampled_from(["America/New_York", "Europe/Dublin", "Australia/Lord_Howe", "UTC"]),
    ahead=st.integers(-170, 20 * 60),
)
def test_a_clock_time_finds_its_way_back(now: datetime, zone: str, ahead: int) -> None:
    """What a CLI would say of a moment is read as the end of that minute, in any zone."""
    here = now.replace(tzinfo=UTC).astimezone(ZoneInfo(zone))
    then = (here.astimezone(UTC) + timedelta(minutes=ahead)).replace(second=0, microsecond=0)
    found = reset_time(f"resets {then.astimezone(ZoneInfo(zone)):%I:%M %p}", here)
    assert found is not None
    # An hour that comes twice cannot be told apart by its name.
    assert found - 60 - then.timestamp() in (-3600, -1800, 0)


@given(st.text(max_size=300))
def test_any_text_is_harmless(sentence: str) -> None:
    """Nothing raises, whatever a CLI writes."""
    reset_time(f"resets {sentence}", NOW)
    reset_time(f"try again in {sentence}", NOW)
