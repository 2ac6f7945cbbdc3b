"""Words in two columns: a label, and what there is to say, wrapped to the terminal's width.

Texts may come from agents and files, so they are made safe and one line here, once.
"""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterator

from ralphloop.cli import output
from ralphloop.text.plain import one_line

LABEL_WIDTH = 13
_NARROWEST, _WIDEST = 50, 110
_LONGEST_TEXT = 1_000
_COMMAND = re.compile(r"`[^`]{1,100}`")
_GLUE = "\x1f"  # a character that no text has here: they are all cleaned


def row(label: str, text: str, *styles: str, width: int = LABEL_WIDTH) -> Iterator[str]:
    """One labelled text; the label is coloured, further lines are indented below it."""
    lines = wrapped(text, indent=width)
    head = output.paint(label, *styles) + " " * max(1, width - len(label))
    yield head + lines[0] if lines else head.rstrip()
    yield from (" " * width + line for line in lines[1:])


def wrapped(text: str, *, indent: int = 0) -> list[str]:
    """The text as lines that fit beside an indentation; words and `commands` are left whole."""
    shown = _COMMAND.sub(lambda found: found[0].replace(" ", _GLUE), one_line(text, _LONGEST_TEXT))
    lines = textwrap.wrap(shown, columns() - indent, break_long_words=False, break_on_hyphens=False)
    return [line.replace(_GLUE, " ") for line in lines]


def columns() -> int:
    """How wide lines may be: the terminal's width, within what can be read."""
    return min(max(shutil.get_terminal_size((80, 24)).columns, _NARROWEST), _WIDEST)


def size(count: float) -> str:
    """Bytes in words a person compares: `1.5 GB`."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
