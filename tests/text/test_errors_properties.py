"""What holds for any text: no exception, no memory of digits and places, bounded time."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ralphloop.text.error_lines import MAX_TEXT
from ralphloop.text.signatures import error_signature
from tests.text.errors import error_lines

WORDS = st.sampled_from("config order tenant schema worker parser session router queue".split())
FRAGMENTS = st.sampled_from(
    [
        "Error: ",
        "error[E1]: ",
        "FAILED ",
        "`",
        "'",
        '"',
        "```",
        "\n",
        ": ",
        "/a/b",
        "1",
        "@@ -1 ",
        "  ",
        'File "x", line 1',
        "**",
        "(",
        ")",
        "[",
        "]",
        "fix",
        "0 errors",
        "\x1b[31m",
        "✖ ",
        "| ",
        "> ",
        "The build stops here:\n",
        "...",
    ]
)
MESSAGES = st.sampled_from(
    [
        "TypeError: {word} has {number} items at {path}:{number}",
        "src/{word}.c:{number}:{number}: error: bad {word}",
        "2026-01-{day:02} 03:10:{day:02} ERROR: {word} died, pid {number}, see {path}",
        "FAILED tests/test_x.py::test_{word} - assert {number} == {number}",
        "error: {word} exited with code {number} in {path}",
        "Error: {word} 'id-{number}' is unknown",
        "panic: {word} index {number} out of range [{number}]",
    ]
)


@given(st.text() | st.lists(FRAGMENTS, max_size=30).map("".join))
@example("Error: " + "9" * 5000)
@example("errors: " + "9" * 5000)
def test_any_text_gives_bounded_lines_and_one_signature(text: str) -> None:
    """No text raises; lines and signature keep their bounds and agree with each other."""
    lines = error_lines(text)
    signature = error_signature(text)
    assert len(lines) <= 50
    assert all(0 < len(line) <= 500 and "\n" not in line for line in lines)
    assert signature is None or (0 < len(signature) <= 400 and "\n" not in signature)
    assert lines or signature is None


@given(MESSAGES, WORDS, st.integers(0, 10**9), st.integers(0, 10**9), st.integers(1, 28))
def test_other_numbers_and_places_give_the_same_signature(
    message: str, word: str, one: int, other: int, day: int
) -> None:
    """Digits and absolute paths never make a difference."""
    first = message.format(word=word, number=one, path=f"/tmp/a{one}/x", day=1)
    second = message.format(word=word, number=other, path=f"/tmp/b/{other}", day=day)
    assert error_signature(first) == error_signature(second) != None  # noqa: E711


@given(MESSAGES, WORDS, WORDS)
def test_other_words_give_another_signature(message: str, one: str, other: str) -> None:
    """A word of the message always makes a difference."""
    first = message.format(word=one, number=7, path="/tmp/x", day=1)
    second = message.format(word=other, number=7, path="/tmp/x", day=1)
    assert (error_signature(first) == error_signature(second)) == (one == other)


@given(MESSAGES, WORDS)
def test_a_signature_holds_no_number_of_the_run(message: str, word: str) -> None:
    """What a signature keeps of a message has no digits left."""
    text = message.format(word=word, number=4711, path="/srv/x/4711", day=9)
    assert not re.search(r"\d", error_signature(text) or "")


HOSTILE: dict[str, Callable[[int], str]] = {
    "one line": lambda size: "a" * size,
    "one line of heads": lambda size: "Error: " * (size // 7),
    "one number": lambda size: "error: " + "1" * size,
    "dotted name": lambda size: "A." * (size // 2) + "Error",
    "short lines": lambda size: "x\n" * (size // 2),
    "short suspects": lambda size: "err\n" * (size // 4),
    "fences": lambda size: "```\n" * (size // 4),
    "keys": lambda size: 'a="b" ' * (size // 6) + "level=error",
    "colons": lambda size: ("x: " * 900 + "fail\n") * (size // 2700),
    "colons without blanks": lambda size: ("a:" * 1400 + " fail\n") * (size // 2806),
    "words with hyphens": lambda size: (("a-" * 300 + " ") * 4 + "failed\n") * (size // 2411),
    "paths": lambda size: ("Error: " + "/a" * 240 + "\n") * (size // 487),
    "quotes": lambda size: "fail: " + "'" * size,
    "sentences": lambda size: ("It fails `Error: x. " * 140 + "\n") * (size // 2800),
    "bullets": lambda size: ("- " * 1400 + "fail\n") * (size // 2800),
    "counts": lambda size: ("1 failed " * 20 + "x\n") * (size // 180),
    "escapes": lambda size: "\x1b[" * (size // 2),
    "frames": lambda size: '  File "x", line 1\n' * (size // 19),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_costs_linear_time(name: str) -> None:
    """Twice the text never costs much more than twice the time."""
    half, full = HOSTILE[name](MAX_TEXT // 2), HOSTILE[name](MAX_TEXT)
    assert min(_seconds(full) for _ in range(2)) < 4 * min(_seconds(half) for _ in range(2)) + 0.05


@pytest.mark.parametrize("name", ["one line", "short lines", "one number", "escapes"])
def test_a_huge_text_costs_no_more_than_a_large_one(name: str) -> None:
    """Of sixteen megabytes, in one line or in millions, only the last part is read."""
    assert _seconds(HOSTILE[name](16_000_000)) < 4 * _seconds(HOSTILE[name](2_000_000)) + 0.05


def test_the_last_words_of_a_huge_text_count() -> None:
    """Where not everything can be read, the end is: a run ends in its last words."""
    assert error_signature("x" * 1_000_000 + "\nError: boom") == "Error: boom"
    assert error_signature("word " * 1000 + "\nError: boom\n" + "x\n" * 1000) == "Error: boom"


def _seconds(text: str) -> float:
    start = time.process_time()
    error_signature(text)
    return time.process_time() - start
