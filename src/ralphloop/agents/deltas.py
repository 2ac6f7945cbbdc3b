"""Secrets that come in pieces: an answer that streams spells a token over many events.

Each event is a line of its own, so no pattern sees the whole.  Here the pieces of events that
follow each other are read as one text; those that hold a part of a secret are emptied.  Events are
held back until the text has gone on far enough behind them, or until something else comes; other
lines pass as they are.
"""

import re

from ralphloop.redaction import REPLACEMENT, spans_in

_MARK = b"delta"
_PIECE = re.compile(
    rb'"(?:text|thinking|partial_json|content)"[ ]?:[ ]?"((?:[^"\\]|\\.){0,65536}+)"'
)
_BEHIND = 512  # characters that must follow before a piece may go
_MOST_HELD = 64 * 1024


class Joiner:
    """Whole lines in, whole lines out, a moment later where an answer streams."""

    def __init__(self) -> None:
        self._rest = b""  # of a line that has not ended
        self._held: list[tuple[bytes, int, int]] = []  # lines, and where their piece is in them
        self._size = 0

    def feed(self, data: bytes) -> bytes:
        """What may be passed on now."""
        if not self._rest and not self._held and _MARK not in data:
            end = data.rfind(b"\n") + 1
            self._rest = data[end:] if b'"' in data[end:] else b""
            return data[: len(data) - len(self._rest)]
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        out = []
        for line in lines:
            piece = _PIECE.search(line) if _MARK in line else None
            if piece is None:
                out += [self._let_go(0), line + b"\n"]
                continue
            self._held.append((line + b"\n", *piece.span(1)))
            self._size += piece.end(1) - piece.start(1)
            if self._size > 2 * _BEHIND or len(self._held) > 4 * _BEHIND:
                out.append(self._let_go(_BEHIND))
        if len(self._rest) > _MOST_HELD:
            out += [self._let_go(0), self._rest]
            self._rest = b""
        return b"".join(out)

    def finish(self) -> bytes:
        rest, self._rest = self._rest, b""
        return self._let_go(0) + rest

    def _let_go(self, keep: int) -> bytes:
        """Pass on what is held but for the newest pieces, without those that spell a secret."""
        if not self._held:
            return b""
        text = b"".join(line[start:end] for line, start, end in self._held)
        secret = spans_in(text)
        done, at, out = 0, 0, []
        for line, start, end in self._held:
            until = at + end - start
            if keep and until > len(text) - keep:
                break
            spelled = any(first < until and at < last for first, last in secret)
            out.append(line[:start] + REPLACEMENT + line[end:] if spelled else line)
            at, done = until, done + 1
        self._held, self._size = self._held[done:], len(text) - at
        return b"".join(out)
