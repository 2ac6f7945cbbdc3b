"""The windows of a subscription: what is known, what is too full, what is said of it."""

from __future__ import annotations

from ralphloop.core.totals import Window, free_again, quota_words, too_full, updated, valid

NOW = 1_794_775_000
FULL = Window(kind="five_hour", used=0.85, resets_at=NOW + 60, agent="claude")
WEEK = Window(kind="seven_day", used=0.4, resets_at=NOW + 90_000, agent="claude")


def test_a_window_that_has_reset_says_nothing_any_more() -> None:
    """From its reset on nobody knows how much of the new one is used."""
    assert valid((FULL, WEEK), NOW + 60) == (WEEK,)
    assert too_full((FULL,), 0.2, agent="claude", at=NOW + 60) == ()


def test_only_the_agents_own_windows_hold_it_back() -> None:
    """Another agent's subscription is another one; without a reserve none does."""
    assert too_full((FULL, WEEK), 0.2, agent="claude", at=NOW) == (FULL,)
    assert too_full((FULL, WEEK), 0.2, agent="codex", at=NOW) == ()
    assert too_full((FULL, WEEK), 0.0, agent="claude", at=NOW) == ()


def test_the_newest_word_about_a_window_counts() -> None:
    """What was told of the others stays."""
    newer = Window(kind="five_hour", used=0.9, resets_at=NOW + 60, agent="claude")
    assert set(updated((FULL, WEEK), [newer])) == {newer, WEEK}


def test_a_window_of_nobody_is_the_agents_who_told_of_it() -> None:
    """What names its agent keeps it, and each agent has windows of its own."""
    told = Window(kind="five_hour", used=0.3)
    known = updated((FULL,), [told], agent="codex")
    assert [(one.agent, one.used) for one in known] == [("claude", 0.85), ("codex", 0.3)]
    assert updated((), [FULL], agent="codex") == (FULL,)


def test_the_last_reset_is_waited_for() -> None:
    """Both windows have to be free; one that names no time makes it unknown."""
    assert free_again((FULL, WEEK)) == NOW + 90_000
    assert free_again((FULL, Window(kind="seven_day", used=1.0))) is None


def test_agents_are_named_where_there_are_several() -> None:
    """One subscription needs no name, and nothing known needs no words."""
    assert quota_words((FULL,), NOW) == "5-hour window 85% used"
    other = Window(kind="five_hour", used=0.1, agent="codex")
    words = "claude 5-hour window 85% used, codex 5-hour window 10% used"
    assert quota_words((FULL, other), NOW) == words
    assert quota_words((), NOW) == ""
