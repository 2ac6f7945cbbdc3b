"""Text as it arrives, made plain."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ralphloop.text.plain import clean


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
