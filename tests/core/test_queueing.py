"""Which criteria an item lists."""

from __future__ import annotations

import pytest

from ralphloop.core.queueing import criteria_in, criteria_of_answer


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("## Acceptance criteria\n\n- one\n- [ ] two\n\n## Notes\n- three", ["one", "two"]),
        ("**Done when:**\n1. one\n2) two\n", ["one", "two"]),
        ("Criteria:\n* one\n\nSome words of prose, and more of them.\n* two", ["one", "two"]),
        ("## Akzeptanzkriterien\n- eins\n- zwei\n", ["eins", "zwei"]),
        ("- [ ] open\n- [x] done\n- plain", ["open"]),
        ("# Title\n- a list\n- of things", []),
        ("", []),
    ],
)
def test_criteria_stand_below_their_heading_or_are_open_boxes(text: str, found: list[str]) -> None:
    """A list about something else is none."""
    assert criteria_in(text) == found


def test_criteria_are_bounded() -> None:
    """Whatever is sent."""
    found = criteria_in("Criteria:\n" + "\n".join(f"- {'x' * 1000}" for _ in range(1000)))
    assert len(found) == 20
    assert max(map(len, found)) == 300


@pytest.mark.parametrize(
    ("text", "found"),
    [("It:\n- one\n- two", ["one", "two"]), ("one\n\ntwo\n", ["one", "two"]), (" ", [])],
)
def test_an_answer_lists_criteria(text: str, found: list[str]) -> None:
    """By bullets, else line by line."""
    assert criteria_of_answer(text) == found
