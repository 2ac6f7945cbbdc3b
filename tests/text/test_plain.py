"""Text as it arrives, made plain."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ralphloop.text.plain import against, agreeing, clean, counted


@pytest.mark.parametrize(
    "raw, plain",
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("\x9b\x1f@", "@"),  # a sequence broken by another control character is none any more
        ("\x1b]0;title\x07words", "words"),
        ("one\r\ntwo\rthree", "one\ntwo\nthree"),
        ("one\x85two\u00a0three", "one two three"),
        ("\ufeffzero\u200bwidth", "zerowidth"),
        ("tab\tand newline\n", "tab\tand newline\n"),
    ],
)
def test_what_only_a_terminal_understands_is_taken_off(raw: str, plain: str) -> None:
    """Colours, titles, invisible characters and foreign line ends go; words stay."""
    assert clean(raw) == plain


@given(st.text())
@example("\x9b\x1f@")
def test_clean_text_stays_as_it_is(text: str) -> None:
    """What was cleaned once has nothing left that a second look would take."""
    assert clean(clean(text)) == clean(text)


@pytest.mark.parametrize(
    "number, noun, verb, words",
    [
        (1, "story", "", "1 story"),
        (0, "story", "", "0 stories"),
        (2, "story", "is", "2 stories are"),
        (1, "run", "waits", "1 run waits"),
        (3_000, "run", "waits", "3,000 runs wait"),
    ],
)
def test_a_number_of_things_is_said_as_people_say_it(
    number: int, noun: str, verb: str, words: str
) -> None:
    """One thing is singular, none and many are plural, and so is what they do."""
    assert counted(number, noun, verb) == words


@pytest.mark.parametrize(
    "verb, many",
    [("is", "are"), ("was", "were"), ("has", "have"), ("does", "do"), ("waits", "wait")],
)
def test_a_verb_agrees_with_its_number(verb: str, many: str) -> None:
    """It stays as it is for one."""
    assert [agreeing(number, verb) for number in (0, 1, 2)] == [many, verb, many]


def test_a_count_that_passed_its_limit_says_so() -> None:
    """`2 of 3` up to the limit; beyond it, both numbers by name."""
    assert [against(count, 3) for count in (2, 3, 4)] == ["2 of 3", "3 of 3", "4, limit 3"]
