"""Spans of a file, what stands in them, and which lines of a new version are new.

Columns count bytes, as the parsers do.
"""

import codecs
from bisect import bisect_right
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import NamedTuple

from ralphloop.core.mutation import Edit

_MOST_COMPARED = 4_000  # lines: comparing takes the square of them at worst


class TextPlace(NamedTuple):
    """A place in a file; lines count from one."""

    line: int
    column: int


class Lines:
    """A file by its lines."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        starts = [0]
        for line in source.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        if source.startswith(codecs.BOM_UTF8):
            starts[0] = len(codecs.BOM_UTF8)
        self.starts = starts

    def at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def position(self, offset: int) -> TextPlace:
        """Where so many bytes from the start are."""
        line = max(1, bisect_right(self.starts, offset))
        return TextPlace(line, offset - self.starts[line - 1])

    def between(self, line: int, column: int, last_line: int, last_column: int) -> str:
        text = self.source[self.at(line, column) : self.at(last_line, last_column)]
        return text.decode("utf-8", "replace")


def edited(source: bytes, edits: Iterable[Edit]) -> bytes:
    """The file with these spans replaced, which do not overlap."""
    lines = Lines(source)
    text = source
    for edit in sorted(edits, key=lambda one: (one.line, one.column), reverse=True):
        start = lines.at(edit.line, edit.column)
        end = lines.at(edit.last_line, edit.last_column)
        text = text[:start] + edit.text.encode() + text[end:]
    return text


def new_lines(old: bytes, new: bytes) -> frozenset[int]:
    """The numbers of the lines of `new` that `old` does not have."""
    before = old.splitlines()
    now = new.splitlines()
    first = 0
    while first < min(len(before), len(now)) and before[first] == now[first]:
        first += 1
    last = 0
    while last < min(len(before), len(now)) - first and before[-1 - last] == now[-1 - last]:
        last += 1
    was = before[first : len(before) - last]
    rest = now[first : len(now) - last]
    if len(was) > _MOST_COMPARED or len(rest) > _MOST_COMPARED:
        return frozenset(range(first + 1, first + len(rest) + 1))
    matcher = SequenceMatcher(None, was, rest, autojunk=False)
    found = set[int]()
    for kind, _, _, start, end in matcher.get_opcodes():
        if kind != "equal":
            found.update(range(first + start + 1, first + end + 1))
    return frozenset(found)
