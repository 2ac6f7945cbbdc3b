"""Hostile answers cost linear time, counted in CPU time of this process, best of several."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ralphloop.core.iteration import Result, Start
from ralphloop.core.model import Evidence
from ralphloop.core.policy import Policy
from ralphloop.core.run_state import RunState
from ralphloop.core.step import step
from ralphloop.readers import read
from ralphloop.text.signatures import error_signature
from tests.text.blocks import TEMPLATE, block
from tests.timing import assert_linear

MB = 1 << 20
BLOCK = block() + "\n"

GENERATORS: dict[str, Callable[[int], str]] = {
    "one line": lambda n: "x" * n,
    "blocks": lambda n: BLOCK * (n // len(BLOCK)),
    "begin markers": lambda n: "---RALPH_STATUS---\n" * (n // 19),
    "unclosed fences": lambda n: "```\nx\n~~~\n" * (n // 10),
    "nested json": lambda n: "[" * n,
    "braces by line": lambda n: '{"a":\n' * (n // 6),
    "errors": lambda n: "Error: Cannot find module './db'\n" * (n // 33),
    "ansi": lambda n: "\x1b[31m\u00a0x" * (n // 7),
    "sentences": lambda n: "The project is almost complete, but not yet. " * (n // 45),
    "templates": lambda n: (TEMPLATE + "\n") * (n // len(TEMPLATE)),
    "quotes": lambda n: "\"'`" * (n // 3),
    "spaces": lambda n: " \t" * (n // 2),
}


def judge(text: str) -> None:
    """Read, weigh and decide: all of what one answer goes through."""
    response = read(text.encode(), agent="auto")
    words = response.final_words
    error_signature(words)
    step(RunState(), Start(), Result(response=response), Evidence(), Policy())


@pytest.mark.parametrize("name", GENERATORS)
def test_judging_hostile_text_is_linear(name: str) -> None:
    """Eight times the text costs at most twenty times as much; a quadratic scan would take 64."""
    assert_linear(GENERATORS[name], judge, MB // 64)
