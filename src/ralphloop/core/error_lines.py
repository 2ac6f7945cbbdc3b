"""Stage one: which lines of a text are errors at all.

The text is read once, line by line.  Most lines are let go by one cheap search; the rest are
undecorated (`error_decoration`), compared with the shapes tools use (`error_shapes`) and, where
they are prose, read as sentences (`error_prose`).  What a line means depends a little on where it
stands, so the scanner remembers where it is: in a code fence, a diff, a traceback, or below a head
whose message stands on the next line.

Everything is bounded: the last `MAX_TEXT` characters are read (a run ends in its last words), of a
line the first `MAX_LINE`, and at most `MAX_ERRORS` different error lines are kept.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ralphloop.core.error_decoration import core_of, is_no_report
from ralphloop.core.error_prose import announces_failure, is_message, reported_error
from ralphloop.core.error_shapes import Core, Rank, is_severe, rank_of
from ralphloop.core.errors import MAX_TEXT, TRIGGER
from ralphloop.core.text import clean

MAX_LINE = 3_000
MAX_ERRORS = 50
MAX_ERROR_CHARS = 500

_LINE = re.compile(r"[^\n]+")
_FENCE = re.compile(r"\s*(?:>\s*)?(`{3,}|~{3,})\s*([\w+#.-]*)")
_CODE_LANGUAGE = re.compile(
    r"(?i:c|c#|c\+\+|cpp|cs|csharp|css|diff|elixir|ex|go|graphql|html|hcl|java|javascript|js|json5?"
    r"|jsonc|jsx|kotlin|kt|lua|md|markdown|patch|php|proto|py|python3?|rb|rs|ruby|rust|scala|scss|sql"
    r"|svelte|swift|toml|ts|tsx|typescript|vue|xml|ya?ml|zig)$"
)
_DIFF_START = re.compile(r"diff --git |@@ -\d")
_DIFF_LINE = re.compile(r"[ +\-@\\]|index |new file|deleted file|similarity|rename ")
_POINTS_BACK = re.compile(r"\s*--> \S+:\d+:\d+$")
_FRAME = re.compile(r'(\s+)File "[^"]*", line \d+')
_RAISED = re.compile(r"\s*([A-Za-z_][\w.]*(?:: .*)?)$")
_MESSAGE_BELOW = re.compile(
    r"(?:[Ff]atal error|[Ff]atal|[Ee]rror|ERROR|What went wrong):$|CMake Error at .*:$"
    r"|.*\bpanicked at \S+:$"
)
_HEAD_AND_MESSAGE = re.compile(
    r"([Ff]atal(?: error)?|[Ee]rror|ERROR|\w*(?:Error|Exception))\W*?:\s+(.*)$"
)
_SUMMARY = re.compile(
    r"(?i:\W*(?:\d+ problems? \(\d+ errors?\b|(?:(?:error|tests?|test (?:suites?|files?)|suites?"
    r"|snapshots?|results?|summary|totals?|found|ran|lint|eslint|ruff|mypy|tsc|build)\b:?\W+){0,2}"
    r"\d+ [a-z]+(?:[\s\d,;|().=!:✖]"
    r"|(?<![a-z])(?:passed|failed|failing|passing|failures?|errors?|warnings?|skipped|total|in"
    r"|seconds?|s|ms|problems?|tests?|examples?|pending|todo|assertions?|xfailed|xpassed|deselected"
    r"|of|and|files?|checked|source|checks?|suites?)\b)*$))"
)
_BAD_COUNT = re.compile(r"(?i:\b(\d+)\s+(?:\w+\s+)?(?:failed|failing|failures?|errors?)\b)")
_PROBLEMS = re.compile(r"(?i:\b(\d+)\s+(?:\w+\s+)?problems?\b)")  # may all be warnings
_COUNTED = re.compile(
    r"(?i:\b(?:errors?|failures|failed|fatal)\s?[:=]\s*(\d+)(?=\s*(?:[,;|)]|\.(?:\s|$)|$)))"
)


class ErrorLine(NamedTuple):
    text: str
    rank: Rank


def find_error_lines(text: str) -> tuple[ErrorLine, ...]:
    """The different error lines of a text in order of appearance."""
    scanner = _Scanner()
    for match in _LINE.finditer(clean(text[-MAX_TEXT:])):
        scanner.read(match.group()[:MAX_LINE])
        if len(scanner.found) >= MAX_ERRORS:
            break
    return tuple(ErrorLine(text, rank) for text, rank in scanner.found.items())


class _Scanner:
    """Reads a text line by line and remembers where it is."""

    def __init__(self) -> None:
        self.found: dict[str, Rank] = {}
        self._fence = ""  # the marker that closes it
        self._in_code = False
        self._in_diff = False
        self._frame_indent: int | None = None  # of the last `File "…", line n`
        self._head: str | None = None  # its message stands on the next line
        self._announced = False  # "The build stops here:"; what comes next is why
        self._previous = ""

    def read(self, line: str) -> None:
        """Take one more line into account."""
        found = self._found_in(line)
        self._previous = line
        if found:
            self.found.setdefault(found.text[:MAX_ERROR_CHARS].rstrip(), found.rank)

    def _found_in(self, line: str) -> ErrorLine | None:
        waiting = self._in_diff or self._frame_indent is not None or self._head is not None
        if not (waiting or self._announced) and not TRIGGER.search(line.lower()):
            return None
        if line.isspace() or self._is_fence(line) or self._is_diff(line) or self._is_frame(line):
            return None
        named = self._raised(line) or self._pointed_at(line)
        return ErrorLine(named, Rank.SPECIFIC) if named else self._reported(line)

    def _is_fence(self, line: str) -> bool:
        match = _FENCE.match(line)
        if not match:
            return False
        marker, language = match[1], match[2]
        if not self._fence:
            self._fence, self._in_code = marker, bool(_CODE_LANGUAGE.match(language))
        elif marker.startswith(self._fence) and not language:
            self._fence, self._in_code = "", False
        self._in_diff = False
        return True

    def _is_diff(self, line: str) -> bool:
        if _DIFF_START.match(line):
            self._in_diff = True
        elif self._in_diff and not _DIFF_LINE.match(line):
            self._in_diff = False
        return self._in_diff

    def _is_frame(self, line: str) -> bool:
        match = _FRAME.match(line)
        if match:
            self._frame_indent = len(match[1])
        return bool(match)

    def _raised(self, line: str) -> str | None:
        """The exception that ends a traceback: the first line left of its frames."""
        indent = len(line) - len(line.lstrip())
        if self._frame_indent is None or indent >= self._frame_indent:
            return None  # source lines stand right of their frame
        self._frame_indent = None
        match = _RAISED.match(line)
        return match[1].strip() if match else None

    def _pointed_at(self, line: str) -> str | None:
        """The headline of a diagnostic whose place stands below it (`--> file:line:column`)."""
        headline = core_of(self._previous).text if _POINTS_BACK.match(line) else ""
        return headline if headline and is_severe(headline) else None

    def _reported(self, line: str) -> ErrorLine | None:
        head, self._head = self._head, None
        announced, self._announced = self._announced, announces_failure(line)
        if is_no_report(line):
            self._announced = announced and line.lstrip().startswith("$ ")
            return None
        core = core_of(line)
        if _MESSAGE_BELOW.match(core.text):
            self._head = core.text
            return None
        found = _error_in(line, core, in_code=self._in_code)
        if head and not found:
            return _joined(head, core.text)
        if announced and not (found or core.bulleted or self._in_code or self._announced):
            return _told(core.text)
        return found


def _joined(head: str, message: str) -> ErrorLine | None:
    is_error = is_message(head.rstrip(":"), message)
    return ErrorLine(f"{head} {message}", Rank.SPECIFIC) if is_error else None


def _told(text: str) -> ErrorLine | None:
    return ErrorLine(text, Rank.TOLD) if _counts_failures(text) is None else None


def _error_in(line: str, core: Core, *, in_code: bool) -> ErrorLine | None:
    failures_counted = _counts_failures(core.text)
    if failures_counted is not None:
        return ErrorLine(core.text, Rank.TALLY) if failures_counted else None
    rank = rank_of(core)
    if in_code:  # source code is full of errors nobody made; only a compiler gives places
        return ErrorLine(core.text, rank) if rank is not None and core.place else None
    if rank is None:
        told = reported_error(line)
        return ErrorLine(told, Rank.SPECIFIC) if told else None
    said = _HEAD_AND_MESSAGE.match(core.text)
    return None if said and not is_message(said[1], said[2]) else ErrorLine(core.text, rank)


def _counts_failures(text: str) -> bool | None:
    """Whether a summary of counts tells of failures; None where the line is no summary."""
    numbers = _COUNTED.findall(text[:300])
    if not numbers and len(text) < 200 and _SUMMARY.match(text):
        numbers = _BAD_COUNT.findall(text) or _PROBLEMS.findall(text)
    return any(number.strip("0") for number in numbers) if numbers else None
