"""What is done about a pull request, from what was seen of it."""

from __future__ import annotations

from typing import Any

import pytest

from ralphloop.core.following import (
    CheckState,
    Follow,
    FollowEnd,
    MergeFacts,
    PullLook,
    decide_next,
    why_not_merge,
)

GOOD, BAD, RUNNING, OTHER = CheckState.GOOD, CheckState.BAD, CheckState.RUNNING, CheckState.OTHER


def follow(**more: Any) -> Follow:
    """One that has pushed `a1`."""
    known = {
        "run": "r",
        "repository": "o/r",
        "number": 7,
        "remote": "origin",
        "source": "work",
        "branch": "work",
        "base": "main",
        "began_at": 1.0,
        "first_at": 1.0,
        "until": 0.0,
        "rounds": 2,
        "head": "a1",
    }
    return Follow(**{**known, **more})


def seen(**more: Any) -> PullLook:
    """A green one, open, without a word under it."""
    known = {
        "is_open": True,
        "is_merged": False,
        "head": "a1",
        "has_conflict": False,
        "checks": {"tests": GOOD},
    }
    return PullLook(**{**known, **more})


@pytest.mark.parametrize(
    ("look", "end"),
    [
        ({}, FollowEnd.GREEN),
        ({"checks": {}}, FollowEnd.GREEN),
        ({"is_open": False}, FollowEnd.CLOSED),
        ({"is_open": False, "is_merged": True}, FollowEnd.MERGED),
        ({"head": "b2", "checks": {"tests": BAD}}, FollowEnd.TAKEN_OVER),
        ({"checks": {"tests": BAD}, "red_at_base": frozenset({"tests"})}, FollowEnd.NOT_OURS),
        ({"checks": {"tests": OTHER}}, FollowEnd.WAITS),
    ],
)
def test_ends(look: dict[str, Any], end: FollowEnd) -> None:
    """Green, or somebody else's turn."""
    assert decide_next(follow(), seen(**look)).ends is end


@pytest.mark.parametrize(
    "look",
    [
        {"checks": {"tests": RUNNING, "lint": BAD}},
        {"checks": {}, "is_quiet": False},
        {"has_conflict": None},
        {"checks": {"tests": RUNNING}, "remarks": ("line 1",)},
    ],
)
def test_waits_until_everything_has_ended(look: dict[str, Any]) -> None:
    """One round hears all there is: no work while a check runs, nor an end before it is known."""
    found = decide_next(follow(), seen(**look))
    assert (found.ends, found.works) == (None, False)
    assert found.why


@pytest.mark.parametrize(
    "look",
    [
        {"checks": {"tests": BAD, "old": BAD}, "red_at_base": frozenset({"old"})},
        {"remarks": ("line 1",)},
        {"has_conflict": True},
    ],
)
def test_works_within_its_rounds(look: dict[str, Any]) -> None:
    """What is wrong and ours is worked on, until the rounds are used."""
    found = decide_next(follow(), seen(**look))
    assert found.works
    assert "old" not in found.red
    assert decide_next(follow(round=2), seen(**look)).ends is FollowEnd.ROUNDS


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({}, ""),
        ({"is_draft": True}, "it is a draft"),
        ({"asked_for_changes": ("bob",)}, "bob asked for changes"),
        ({"open_stories": ("US-2",)}, "not passed: US-2"),
        ({"grades": {"US-1": "checked"}}, "not everything is verified: US-1 is checked"),
        ({"grades": {}}, "it has no story that is verified"),
    ],
)
def test_why_it_is_not_merged(facts: dict[str, Any], why: str) -> None:
    """Only where every story is verified, and nobody asked for changes."""
    known = {"grades": {"US-1": "verified"}}
    assert why_not_merge(MergeFacts(**{**known, **facts})) == why
