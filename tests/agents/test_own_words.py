"""Keeping an agent's words: bounded, in order, with the block that counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ralphloop.readers.own_words import HEAD, TAIL, BoundedText, OwnWords
from tests.agents.events import FALSE_BLOCK, TRUE_BLOCK


@given(st.lists(st.text(max_size=40)), st.integers(1, 30), st.integers(1, 30))
def test_head_and_tail_are_those_of_the_whole(pieces: list[str], head: int, tail: int) -> None:
    """Whatever the pieces, what is kept begins and ends like the whole, and counts all of it."""
    bounded = BoundedText(head, tail)
    for piece in pieces:
        bounded.add(piece)
    whole, kept = "".join(pieces), bounded.value()
    assert bounded.length == len(whole)
    if len(whole) <= head + tail:
        assert kept == whole
    else:
        assert kept.startswith(whole[:head])
        assert kept.endswith(whole[-tail:])
        assert f"{len(whole) - head - tail} characters left out" in kept


def test_many_tiny_pieces_stay_small() -> None:
    """A million one-letter pieces are kept as a few."""
    bounded = BoundedText()
    for _ in range(1_000_000):
        bounded.add("x")
    assert bounded.length == 1_000_000
    assert len(bounded._tail) <= 1025
    assert len(bounded.value()) < HEAD + TAIL + 100


def test_pieces_and_whole_messages_give_the_same() -> None:
    """A message said in pieces is the message said at once."""
    whole, pieces = OwnWords(), OwnWords()
    message = f"Words.\n\n{TRUE_BLOCK}"
    whole.say(message)
    for letter in message:
        pieces.add(letter)
    for words in (whole, pieces):
        words.last_is_final()
        assert (words.text, words.chars, words.final_text) == (message, len(message), message)
        assert words.status_is_final


def test_a_long_message_keeps_its_block() -> None:
    """A block in the middle of a megabyte is found."""
    words = OwnWords()
    words.say("a" * 500_000 + f"\n{TRUE_BLOCK}\n" + "b" * 500_000)
    words.last_is_final()
    assert words.status is not None
    assert words.status.exit_signal
    assert words.status_is_final


def test_the_last_block_wins() -> None:
    """A later block replaces an earlier one, in whichever message."""
    words = OwnWords()
    words.say(TRUE_BLOCK)
    words.say(FALSE_BLOCK)
    words.say("Bye.")
    words.last_is_final()
    assert words.status is not None
    assert not words.status.exit_signal
    assert not words.status_is_final


def test_a_hidden_name_is_still_a_block() -> None:
    """Zero-width characters and colours inside the markers do not hide a block."""
    for odd in (
        TRUE_BLOCK.replace("RALPH", "RAL\u200bPH"),
        TRUE_BLOCK.replace("RALPH", "RAL\x1b[0mPH"),
    ):
        words = OwnWords()
        words.say(odd)
        assert words.status is not None


def test_a_repeated_message_counts_once() -> None:
    """The final message may differ from the last one by outer blanks, and is the same."""
    words = OwnWords()
    words.say("Done.\n")
    words.finish_with("Done.")
    assert words.chars == len("Done.\n")
    words.finish_with("Something else.")
    assert words.text == "Done.\n\n\nSomething else."


def test_words_before_more_work_are_not_final() -> None:
    """After `forget_last` the final text is empty until something is said again."""
    words = OwnWords()
    words.say(TRUE_BLOCK)
    words.forget_last()
    words.last_is_final()
    assert words.final_text == ""
    assert not words.status_is_final
