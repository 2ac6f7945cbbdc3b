"""Error lines for tests, as plain text."""

from __future__ import annotations

from ralphloop.text.error_lines import find_error_lines


def error_lines(text: str) -> tuple[str, ...]:
    """The lines of a text that are errors, undecorated, in order, each once."""
    return tuple(find_error_lines(text))
