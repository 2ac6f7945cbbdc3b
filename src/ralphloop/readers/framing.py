"""From bytes to JSON documents and everything else.

Output is cut into lines.  A line that is a JSON object is offered to the reader; so is each object
of a JSON array, and an object or array printed over several lines.  All the rest is text: the whole
answer of an agent in text mode, or noise (warnings, banners, half lines) around its documents.

* Until a document was accepted, text may turn out to be the answer, so it is handed on byte for
  byte.  A document inside a code fence is part of such an answer, never an event.
* Afterwards text is noise, and a JSON line that cannot be read is counted as malformed.
* A line is buffered only while it looks like JSON, and only up to a limit.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from ralphloop.core.model import OutputFormat
from ralphloop.readers.values import Document, documents_of

MAX_LINE = 64 * 1024 * 1024
MAX_DOCUMENT = 16 * 1024 * 1024  # printed over several lines
_MAX_ATTEMPTS = 3  # at closing a document of several lines; more would be quadratic
_LONG_TEXT = 1 << 16

_BLANK = b" \t\r\xef\xbb\xbf"  # a byte order mark is blank, too
_OPENING = re.compile(rb'\{\s*(?:"|\}|$)|\[\s*(?:\{|\]|$)')
_OURS = re.compile(rb'"(?:type|session_id|sessionID)"')
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    rb"|\\."
)


class Unreadable(Exception):
    """Bytes that are no JSON; `truncated` if more bytes could still make them so."""

    def __init__(self, *, truncated: bool) -> None:
        super().__init__("truncated" if truncated else "malformed")
        self.truncated = truncated


def decode(data: bytes) -> object:
    """Decode one JSON text, forgiving invalid UTF-8 and lone surrogates; raises Unreadable."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_repaired(data)


def _decode_repaired(data: bytes) -> object:
    try:
        return msgspec.json.decode(_repaired(data))
    except msgspec.DecodeError as problem:
        raise Unreadable(truncated="truncated" in str(problem)) from None
    except (UnicodeDecodeError, RecursionError):
        raise Unreadable(truncated=False) from None


def _repaired(data: bytes) -> bytes:
    """Cut emoji and stray bytes become replacement characters; the rest is untouched."""
    if not data.isascii():
        data = data.decode("utf-8", "replace").encode()
    return _ESCAPE.sub(lambda match: rb"\ufffd" if match["lone"] else match[0], data)


class Framer:
    """Cuts a stream into documents, offered to `accept`, and text, handed to `text`."""

    def __init__(self, accept: Callable[[Document], bool], text: Callable[[bytes], None]) -> None:
        self.malformed = 0
        self.broken = False  # the output begins with an agent's document that cannot be read
        self._accept = accept
        self._text = text
        self._accepted = 0
        self._array = False
        self._foreign = 0  # documents nobody knew
        self._plain = False  # text that is not blank was seen
        self._partial: list[bytes] = []
        self._partial_size = 0
        self._worth_holding = False  # the long line held begins like JSON
        self._passing = False  # inside a line that is text, or too long to hold
        self._document: list[bytes] = []  # the lines of an unfinished document
        self._document_size = 0
        self._attempts = 0
        self._fenced = False

    @property
    def accepted(self) -> int:
        return self._accepted

    @property
    def format(self) -> OutputFormat:
        """The shape on the wire, as far as it is known."""
        documents = self._accepted or (0 if self._plain else self._foreign)
        if not documents:
            return OutputFormat.TEXT
        if self._array:
            return OutputFormat.JSON_ARRAY
        return OutputFormat.JSON if documents == 1 else OutputFormat.JSONL

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        if b"\n" not in chunk:
            self._hold(chunk)
            return
        first, *lines, rest = chunk.split(b"\n")
        self._end_of_line(first)
        for line in lines:
            self._line(line, b"\n")
        self._hold(rest)

    def finish(self) -> None:
        """Take what is left as the last line."""
        if self._partial:
            self._line(self._take_partial(), b"")
        if self._document:
            self._close_document()
        if self._document:
            self._give_up()

    def _end_of_line(self, piece: bytes) -> None:
        if self._passing:
            self._passing = False
            self._emit_text(piece + b"\n")
        elif self._partial:
            self._partial.append(piece)
            self._line(self._take_partial(), b"\n")
        else:
            self._line(piece, b"\n")

    def _hold(self, piece: bytes) -> None:
        if self._passing:
            self._emit_text(piece)
        elif piece:
            self._partial.append(piece)
            self._partial_size += len(piece)
            if self._partial_size > _LONG_TEXT and not self._may_be_json():
                self._passing = True
                self.malformed += self._worth_holding
                self._emit_text(self._take_partial())

    def _may_be_json(self) -> bool:
        """Whether the long unfinished line is worth its memory."""
        if self._document:
            return self._partial_size + self._document_size <= MAX_DOCUMENT
        if not self._worth_holding:
            start = b"".join(self._partial).lstrip(_BLANK)
            self._worth_holding = not self._fenced and bool(_OPENING.match(start))
        return self._worth_holding and self._partial_size <= MAX_LINE

    def _take_partial(self) -> bytes:
        line = b"".join(self._partial)
        self._partial, self._partial_size, self._worth_holding = [], 0, False
        return line

    def _line(self, line: bytes, end: bytes) -> None:
        if self._document:
            self._continue_document(line, end)
            return
        body = line.lstrip(_BLANK)
        if body[:1] in (b"{", b"[") and not self._fenced and _OPENING.match(body):
            self._candidate(line, body, end)
        else:
            self._plain_line(line, body, end)

    def _plain_line(self, line: bytes, body: bytes, end: bytes) -> None:
        if not self._accepted:
            if body.startswith((b"```", b"~~~")):
                self._fenced = not self._fenced
            self._emit_text(line + end)

    def _emit_text(self, data: bytes) -> None:
        if not self._accepted:
            self._plain = self._plain or not data.isspace()
            self._text(data)

    def _candidate(self, line: bytes, body: bytes, end: bytes) -> None:
        try:
            value = decode(body)
        except Unreadable as problem:
            if problem.truncated and not self._accepted:
                self._hold_document(line + end)
            else:
                self._note_malformed(body)
                self._emit_text(line + end)
            return
        self._offer_or_keep(value, line + end)

    def _note_malformed(self, start: bytes) -> None:
        self.malformed += 1
        looks_ours = not self._plain and _OURS.search(start[:_LONG_TEXT])
        self.broken = self.broken or bool(looks_ours)

    def _offer_or_keep(self, value: object, data: bytes) -> None:
        if not self._offer(value) and not self._accepted:
            self._foreign += 1
            self._text(data)

    def _offer(self, value: object) -> bool:
        """Hand a document, or those of an array, to the reader; True if it knew one."""
        if isinstance(value, dict):
            known = int(self._accept(value))
        else:
            known = sum(self._accept(item) for item in documents_of(value))
            self._array = self._array or known > 0
        self._accepted += known
        return known > 0

    def _continue_document(self, line: bytes, end: bytes) -> None:
        """A further line of a document that was opened but not yet closed."""
        is_object = self._document[0].lstrip(_BLANK).startswith(b"{")
        if is_object and line.startswith(b'{"') and self._is_event(line):
            self._give_up()
            self._line(line, end)
            return
        self._hold_document(line + end)
        if line.startswith(b"}" if is_object else b"]"):
            self._close_document()
        if self._attempts >= _MAX_ATTEMPTS or self._document_size > MAX_DOCUMENT:
            self._give_up()

    def _hold_document(self, line: bytes) -> None:
        self._document.append(line)
        self._document_size += len(line)

    def _drop_document(self) -> list[bytes]:
        lines, self._document = self._document, []
        self._document_size = self._attempts = 0
        return lines

    def _is_event(self, line: bytes) -> bool:
        try:
            value = decode(line)
        except Unreadable:
            return False
        return isinstance(value, dict) and "type" in value

    def _close_document(self) -> None:
        data = b"".join(self._document)
        try:
            value = decode(data.lstrip(_BLANK))
        except Unreadable as problem:
            self._attempts += 1 if problem.truncated else _MAX_ATTEMPTS
            return
        self._drop_document()
        self._offer_or_keep(value, data)

    def _give_up(self) -> None:
        """The document is broken: save its whole lines, take the rest as text."""
        lines = self._drop_document()
        self._note_malformed(b"".join(lines[:50]))
        for line in lines:
            if not self._salvage(line):
                self._emit_text(line)

    def _salvage(self, line: bytes) -> bool:
        body = line.strip(_BLANK + b"\n,")
        if not body.startswith(b'{"'):
            return False
        try:
            return self._offer(decode(body))
        except Unreadable:
            return False
