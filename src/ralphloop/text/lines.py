"""The lines of an answer, each with what it is: speech, or something that is shown.

One scanner for everybody who reads Markdown as agents write it.  It knows code fences, status
blocks, block quotes, diffs and comments; where none of them begins, a line is speech.  Nothing is
dropped: who reads claims wants speech alone, who reads errors also looks into fences and quotes.

`Fence` is shared with the finder of status blocks, which reads gigabytes in pieces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple

from ralphloop.text.lazy_regex import LazyRegex

MAX_MARKER = 400  # a longer line is neither marker nor fence
_MAX_BLOCK = 400  # lines; a longer "block" is a lost marker

_FENCE = LazyRegex(r"[ \t]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?(?P<run>`{3,}|~{3,})(?P<info>.*)")
_BLOCK_BEGIN = LazyRegex(r"[-—*_#` \t]*RALPH[_ ]STATUS[-—*_#`: \t]*", re.IGNORECASE)
_BLOCK_END = LazyRegex(r"[-—*_#` \t]*END[_ ]RALPH[_ ]STATUS[-—*_#`: \t]*", re.IGNORECASE)
_BLOCK_FIELD = LazyRegex(
    r"[ \t]*(?:[-*•][ \t]+|\d{1,2}[.)][ \t]+)?[*_`\"']{0,3}(?:STATUS"
    r"|TASKS[_ -]COMPLETED[_ -]THIS[_ -]LOOP|FILES[_ -]MODIFIED|TESTS[_ -]STATUS|WORK[_ -]TYPE"
    r"|EXIT[_ -]SIGNAL|RECOMMENDATION)[*_`\"']{0,3}[ \t]*:",
    re.IGNORECASE,
)
_QUOTE = LazyRegex(r"[ \t]*>[> \t]*")
_DIFF_START = LazyRegex(r"diff --git |@@ -\d")
_DIFF_LINE = LazyRegex(r"[ +\-@\\]|index |new file|deleted file|similarity|rename |diff --git ")
_COMMENT = LazyRegex(r"<!--[^\n]*?-->")


class Kind(Enum):
    SPEECH = auto()  # blank lines too: they end paragraphs
    CODE = auto()
    BLOCK = auto()  # a status block, its markers included
    QUOTE = auto()
    DIFF = auto()
    COMMENT = auto()


class Line(NamedTuple):
    text: str
    kind: Kind
    language: str = ""  # of the fence it stands in


_BLANK = Line("", Kind.SPEECH)


class Fence(NamedTuple):
    """An open code fence by CommonMark's rules."""

    run: str
    language: str

    @classmethod
    def opened_by(cls, run: str, info: str) -> Fence | None:
        if run[0] == "`" and "`" in info:
            return None  # inline code
        return cls(run, (info.split() or [""])[0].lower())

    def closed_by(self, run: str, info: str) -> bool:
        return run.startswith(self.run) and not info.strip()

    @property
    def is_diff(self) -> bool:
        return self.language.startswith(("diff", "patch", "udiff"))


def scan(text: str) -> Iterator[Line]:
    """Every line of a clean text, in order, with what it is."""
    lines = text.split("\n")
    scanner, index = _Scanner(), 0
    may_be_marked = "STATUS" in text.upper()
    while index < len(lines):
        if may_be_marked and _is_marker(lines[index], _BLOCK_BEGIN):
            end = _after_block(lines, index + 1)
            yield from (Line(line, Kind.BLOCK) for line in lines[index:end])
            index = end
        else:
            yield scanner.read(lines[index])
            index += 1


def own_lines(text: str) -> Iterator[str]:
    """The lines outside fences, status blocks and comments, each of those a blank line."""
    for line in scan(text):
        if line.kind in (Kind.CODE, Kind.BLOCK, Kind.COMMENT):
            yield ""
        else:
            yield f"> {line.text}" if line.kind is Kind.QUOTE else line.text


class _Scanner:
    def __init__(self) -> None:
        self._fence: Fence | None = None
        self._in_diff = self._in_comment = False

    def read(self, line: str) -> Line:
        """What one line is, by what stood before it."""
        if not (line or self._fence or self._in_comment):
            self._in_diff = False
            return _BLANK
        if self._is_fence(line):
            return Line(line, Kind.CODE)
        if self._fence:
            kind = Kind.DIFF if self._fence.is_diff else Kind.CODE
            return Line(line, kind, self._fence.language)
        if "<!--" in line or self._in_comment:
            line = self._without_comment(line)
            if not line.strip():
                return Line(line, Kind.COMMENT)
        if self._is_diff(line):
            return Line(line, Kind.DIFF)
        quote = _QUOTE.match(line)
        return Line(line[quote.end() :], Kind.QUOTE) if quote else Line(line, Kind.SPEECH)

    def _is_fence(self, line: str) -> bool:
        if not ("```" in line or "~~~" in line) or len(line) > MAX_MARKER:
            return False
        found = _FENCE.fullmatch(line)
        if found is None:
            return False
        run, info = found["run"], found["info"]
        if self._fence is None:
            self._fence = Fence.opened_by(run, info)
            return self._fence is not None
        if self._fence.closed_by(run, info):
            self._fence = None
            return True
        return False

    def _without_comment(self, line: str) -> str:
        if self._in_comment:
            _, closed, line = line.partition("-->")
            self._in_comment = not closed
        line = _COMMENT.sub("", line)
        before, opened, _ = line.partition("<!--")
        self._in_comment = self._in_comment or bool(opened)
        return before

    def _is_diff(self, line: str) -> bool:
        begins = line.startswith(("diff --git ", "@@ -")) and _DIFF_START.match(line) is not None
        self._in_diff = begins or (self._in_diff and _DIFF_LINE.match(line) is not None)
        return self._in_diff


def _is_marker(line: str, marker: LazyRegex) -> bool:
    return len(line) < MAX_MARKER and "STATUS" in line.upper() and bool(marker.fullmatch(line))


def _after_block(lines: list[str], start: int) -> int:
    """The index behind the block; one without an end ends with its last field."""
    for index in range(start, min(start + _MAX_BLOCK, len(lines))):
        if _is_marker(lines[index], _BLOCK_END):
            return index + 1
        if _is_marker(lines[index], _BLOCK_BEGIN):
            break
    index = start
    while index < len(lines) and (not lines[index].strip() or _BLOCK_FIELD.match(lines[index])):
        index += 1
    return index
