"""Which status block of a message counts.

* A whole, bare block counts wherever it stands; the last one wins.
* A fenced block, and the `RALPH_STATUS:` and `## RALPH_STATUS` forms, count only if they end the
  answer; anywhere else they are quotations.
* Blockquotes, line-numbered listings, diff lines and indented code never match the markers.
* A block that still carries the template's alternatives is an echo.
* A block without its end marker is read, never believed in its EXIT_SIGNAL, and only used when no
  whole block exists.

The finder is fed in pieces of any size and keeps a bounded amount of text, so one message of a
gigabyte costs what a short one costs in memory.
"""

from __future__ import annotations

import re

from ralphloop.text import status
from ralphloop.text.lazy_regex import LazyRegex
from ralphloop.text.lines import MAX_MARKER, Fence
from ralphloop.text.plain import clean
from ralphloop.text.status import StatusBlock

_BATCH = 1 << 16  # characters scanned at once
_MAX_BLOCK = 1 << 14  # a longer "block" is a lost marker, not a block

_CANDIDATE = re.compile(r"```|~~~|RALPH[_ ]STATUS", re.IGNORECASE)
_MARKER = LazyRegex(
    r" {0,3}(?:[*_]{1,3} ?)?(?:---|—) ?(?P<end>END[_ ])?RALPH[_ ]STATUS ?(?:---|—)"
    r" ?[*_]{0,3}[ \t]*",
    re.IGNORECASE,
)
_FENCE = LazyRegex(r" {0,3}(?P<run>`{3,}|~{3,})(?P<info>[^\n]*)")
_PROMISE = LazyRegex(r"[ \t]*<promise>[^<\n]*</promise>[ \t]*", re.IGNORECASE)
_TITLE = LazyRegex(
    r"[ \t]{0,3}(?:#{1,6}[ \t]*[-—*_`]{0,3}RALPH[_ ]STATUS[-—*_`]{0,3}:?"
    r"|[*_]{0,3}RALPH[_ ]STATUS[*_]{0,3}:[*_]{0,3}"
    r"|[*_]{2,3}RALPH[_ ]STATUS[*_]{2,3})[ \t]*#*[ \t]*",
    re.IGNORECASE,
)
_TITLED_END = LazyRegex(r"[-—*_#` \t]*END[_ ]RALPH[_ ]STATUS[-—*_#`: \t]*", re.IGNORECASE)


class _Open:
    """A block whose end marker has not come yet."""

    def __init__(self, *, fenced: bool) -> None:
        self.fenced = fenced
        self.parts: list[str] = []
        self.size = 0

    def add(self, text: str) -> bool:
        """Keep more of the block; False once it is too long to be one."""
        self.parts.append(text)
        self.size += len(text)
        return self.size <= _MAX_BLOCK

    def lines(self) -> list[str]:
        return "".join(self.parts).split("\n")


class StatusFinder:
    """Finds the status block that counts in one message, fed in pieces."""

    def __init__(self) -> None:
        self._pending: list[str] = []
        self._pending_size = 0
        self._in_long_line = False
        self._fence: Fence | None = None
        self._open: _Open | None = None
        self._whole: list[str] | None = None  # its lines: only the last one is worth parsing
        self._unclosed: StatusBlock | None = None
        self._at_end: StatusBlock | None = None  # fenced, and nothing has followed so far
        self._tail = ""

    def feed(self, piece: str) -> None:
        """Take the next piece of the message."""
        self._pending.append(piece)
        self._pending_size += len(piece)
        if self._pending_size >= _BATCH:
            self._drain()

    def finish(self) -> StatusBlock | None:
        """The block that counts, or None."""
        rest = "".join(self._pending)
        self._scan(clean(rest.partition("\n")[2] if self._in_long_line else rest))
        self._pending = []
        if self._open is not None:
            self._leave_open(self._open)
            self._open = None
        return _titled_block(self._tail) or self._at_end or self._bare_block()

    def _bare_block(self) -> StatusBlock | None:
        if self._whole is None:
            return self._unclosed
        return status.to_block(status.read_fields(self._whole))

    def _drain(self) -> None:
        """Scan the complete lines that are waiting; drop what cannot be a marker line."""
        text = "".join(self._pending)
        if self._in_long_line:
            _, newline, text = text.partition("\n")
            if not newline:
                self._wait_for("")
                return
            self._in_long_line = False
        complete, newline, rest = text.rpartition("\n")
        if newline:
            self._scan(clean(complete + "\n"))
        if len(rest) >= _BATCH:
            self._scan(clean(rest[:_MAX_BLOCK]) + "\n")
            self._in_long_line, rest = True, ""
        self._wait_for(rest)

    def _wait_for(self, rest: str) -> None:
        self._pending = [rest]
        self._pending_size = len(rest)

    def _scan(self, text: str) -> None:
        cursor = position = 0
        # Ordinary text has neither; three searches for words beat one for a pattern.
        worth = "```" in text or "~~~" in text or "ralph" in text.lower()
        while worth and (match := _CANDIDATE.search(text, position)):
            start = text.rfind("\n", cursor, match.start()) + 1 or cursor
            end = text.find("\n", match.end())
            end = len(text) if end < 0 else end
            if end - start <= MAX_MARKER and self._is_event(text[start:end]):
                self._pass_over(text[cursor:start])
                self._handle(text[start:end])
                cursor = min(end + 1, len(text))
            position = end + 1
        self._pass_over(text[cursor:])
        self._tail = (self._tail + text)[-_MAX_BLOCK:]

    def _is_event(self, line: str) -> bool:
        return bool(_MARKER.fullmatch(line) or _FENCE.fullmatch(line))

    def _pass_over(self, text: str) -> None:
        """Ordinary text: part of an open block, or proof that a fenced block was not the end."""
        if self._open is not None:
            if text and not self._open.add(text):
                self._open = None
        elif self._at_end is not None and text.strip() and not _PROMISE.fullmatch(text.strip()):
            self._at_end = None

    def _handle(self, line: str) -> None:
        marker = _MARKER.fullmatch(line)
        if marker is None:
            self._handle_fence(line)
        elif marker["end"]:
            self._close_block()
        else:
            self._at_end = None
            self._open = _Open(fenced=self._fence is not None)

    def _handle_fence(self, line: str) -> None:
        match = _FENCE.fullmatch(line)
        if match is None:
            return
        run, info = match["run"], match["info"]
        if self._fence is not None and not self._fence.closed_by(run, info):
            self._pass_over(line)
            return
        opened = None if self._fence else Fence.opened_by(run, info)
        if self._fence is None and opened is None:
            return
        if self._open is not None:
            self._leave_open(self._open)
            self._open = None
        if opened is not None:
            self._at_end = None
        self._fence = opened

    def _close_block(self) -> None:
        block, self._open = self._open, None
        if block is None:
            return
        lines = block.lines()
        if _may_be_echo(lines) and status.is_echo(status.read_fields(lines)):
            return
        if not block.fenced:
            self._whole = lines
        elif self._fence is not None and not self._fence.is_diff:
            self._at_end = status.to_block(status.read_fields(lines))

    def _leave_open(self, block: _Open) -> None:
        """A block whose end marker never came: read up to the first line that is no field."""
        fields = status.read_fields(_leading_fields(block.lines()))
        if not fields or status.is_echo(fields):
            return
        found = status.to_block(fields, truncated=True)
        if not block.fenced:
            self._unclosed = found
        elif self._fence is not None and not self._fence.is_diff:
            self._at_end = found


def _may_be_echo(lines: list[str]) -> bool:
    return any("|" in line or "/" in line for line in lines)


def _leading_fields(lines: list[str]) -> list[str]:
    kept: list[str] = []
    for line in lines:
        if line.strip() and status.read_field(line) is None:
            break
        kept.append(line)
    return kept


def _titled_block(tail: str) -> StatusBlock | None:
    """The YAML or heading form, if nothing but its fields stands between it and the end."""
    lines = tail.rstrip().split("\n")
    while lines and (not lines[-1].strip() or _is_trailer(lines[-1])):
        lines.pop()
    for index in range(len(lines) - 1, -1, -1):
        if _TITLE.fullmatch(lines[index]):
            fields = status.read_fields(lines[index + 1 :])
            known = fields.keys() & set(status.REQUIRED)
            return status.to_block(fields) if known and not status.is_echo(fields) else None
        if lines[index].strip() and status.read_field(lines[index]) is None:
            return None
    return None


def _is_trailer(line: str) -> bool:
    fence = _FENCE.fullmatch(line)
    is_fence = fence is not None and not fence["info"].strip()
    return is_fence or bool(_PROMISE.fullmatch(line) or _TITLED_END.fullmatch(line))
