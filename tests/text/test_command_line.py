"""What only a shell understands in a command that no shell will see."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.text.command_line import word_for_a_shell


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("make && make check", "&&"),
        ("pytest -q|tail -1", "-q|tail"),
        ("pytest -q 2>&1", "2>&1"),
        ("grep 'a'|cat", "|cat"),
        ("pytest $(cat x)", "$(cat"),
        ("test -f ${HOME}", "${HOME}"),
        ("echo `id`", "`id`"),
        ("A=1 pytest", "A=1"),
        ("sleep 1&", "1&"),
        ("open https://a.b/c&", "https://a.b/c&"),
    ],
)
def test_a_word_for_a_shell_is_found(line: str, word: str) -> None:
    """The first such word, as far as it is not quoted."""
    assert word_for_a_shell(line) == word


@pytest.mark.parametrize(
    "line",
    [
        "",
        "pytest -q tests/test_a.py::test_b[1-2]",
        "grep -q 'a|b; c' file",
        'sh -c "a && b > c"',
        "grep a\\|b file",
        "grep -c end$ file",
        "make CFLAGS=-O2",
        "curl https://a.b/?c=1&d=2",
        "go test ./... -run 'Test.*'",
    ],
)
def test_an_argument_is_left_alone(line: str) -> None:
    """What is quoted, escaped, part of an address or only looks like it is for the program."""
    assert word_for_a_shell(line) == ""


@given(st.text("ab'\"\\|&$( \n"))
def test_any_text_has_an_answer(line: str) -> None:
    """Open quotes and lone signs included: a word of the line without its quotes, or nothing."""
    word = word_for_a_shell(line)
    assert set(word) <= set(line)
