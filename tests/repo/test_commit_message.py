"""The message of a story's commit, whatever the story is called."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ralphloop.repo.commit import MAX_SUBJECT, story_message


@given(st.text(), st.text())
def test_a_message_is_one_line_and_our_trailers(story_id: str, title: str) -> None:
    """No text can add a line, a paragraph or a trailer."""
    message = story_message(story_id, title, run="r", iteration=1, grade="checked")
    subject, blank, *trailers = message.rstrip("\n").split("\n")
    assert blank == ""
    assert 0 < len(subject) <= MAX_SUBJECT
    assert [line.split(":")[0] for line in trailers] == [
        "Ralph-Run",
        "Ralph-Iteration",
        "Ralph-Story",
        "Ralph-Grade",
    ]
    assert message.encode("utf-8")  # git can be given it


def test_a_long_title_is_cut_with_a_mark() -> None:
    """One line of at most 120 characters, and one can see that it was longer."""
    message = story_message("US-1", "x" * 300, run="r", iteration=1, grade="checked")
    assert message.startswith("US-1: " + "x" * 113 + "…\n")
