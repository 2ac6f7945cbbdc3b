"""From the bytes of one agent start to its `Response`.

Output is cut into lines.  A line that is a JSON object is offered to the reader; so is each object
of a JSON array, and an object or array printed over several lines.  All the rest is text: the
whole answer of an agent in text mode, or noise (warnings, banners, half lines) around documents.

* Until a document was accepted, text may turn out to be the answer, so it is handed on byte for
  byte.  A document inside a code fence is part of such an answer, never an event; so is one
  behind text that any program could have printed: `{"result": "ok"}` names no session.
* Afterwards text is noise, and a JSON line that cannot be read is counted as malformed.
* A line is held only while it looks like JSON, and only up to a limit.

The first document that one of the possible dialects knows settles the dialect; if none ever comes,
the text is the answer.  Without dialects it is, whatever it looks like.
"""

import codecs
import re
from collections.abc import Sequence
from datetime import datetime

import msgspec

from ralphloop.core.model import AgentEvent, OutputFormat, Response
from ralphloop.readers.base import Dialect, End
from ralphloop.readers.own_words import OwnWords
from ralphloop.readers.values import (
    BLANK,
    DAMAGES,
    Bytes,
    Document,
    Unreadable,
    decode,
    documents_of,
    opens_document,
)
from ralphloop.text.plain import counted, one_line

MAX_LINE = 64 * 1024 * 1024
MAX_DOCUMENT = 16 * 1024 * 1024  # printed over several lines
_MAX_ATTEMPTS = 3  # at closing such a document; more would be quadratic
_LONG = 1 << 16
_SLICE = 1 << 20

_FENCES = (b"```", b"~~~")
_SPECIAL = re.compile(rb"^[ \t\r\xef\xbb\xbf]*(?:[{\[]|```|~~~)", re.MULTILINE)
_OBJECT_LINE = re.compile(rb'^[ \t]*\{".*', re.MULTILINE)
_OURS = re.compile(rb'"(?:type|session_id|sessionID)"')
_SESSION = ("session_id", "sessionID")
_COMMON_TYPES = (None, "result", "error")
_SHOWN = 2_000  # bytes of a chunk searched for its last line


class Reader:
    """Reads one start of an agent in pieces: the output of any of the given dialects, or text."""

    def __init__(self, dialects: Sequence[type[Dialect]], fallback: Dialect) -> None:
        self._dialects = dialects
        self.dialect = fallback  # tells while it reads what is known so far
        self._settled = False  # it is known whose output this is: every object is an event
        self._words = OwnWords()  # the text as one message, where no document ever comes
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._accepted = self._malformed = 0
        self._foreign = 0  # documents nobody knew
        self._broken = False  # the output begins with an agent's document that cannot be read
        self._array = False
        self._plain = False  # text that is not blank was seen
        self._fenced = False
        self._partial = bytearray()  # the line that is not complete yet
        self._passing = False  # it is text, or too long, and is handed on as it comes
        self._document = bytearray()  # an unfinished document of several lines
        self._closing = b""  # how the line begins that may end it
        self._attempts = 0

    def feed(self, chunk: bytes) -> Sequence[AgentEvent]:
        """Take the next bytes, cut anywhere; returns the visible steps they contained."""
        if not self._dialects:  # what shows of mere text is its last line
            self._take_text(chunk)
            last = reversed(chunk[-_SHOWN:].decode("utf-8", "ignore").split("\n"))
            shown = one_line(next(filter(str.strip, last), ""))
            return [AgentEvent(kind="text", summary=shown)] if shown else []
        rest, newline, more = chunk.partition(b"\n")
        if newline:
            self._end_of_line(rest)
            lines, newline, rest = more.rpartition(b"\n")
            if newline:
                self._lines(lines)
        self._hold(rest)
        steps, self.dialect.steps = self.dialect.steps, []
        return steps

    def finish(
        self, *, exit_code: int | None, stderr: str = "", now: datetime | None = None
    ) -> Response:
        if self._partial:
            self._line(self._take_partial(), b"")
        if self._document:
            self._close_document()
        if self._document:
            self._give_up()
        end, dialect = End(exit_code, stderr, now), self.dialect
        if self._accepted:
            dialect.words.end()
            verdict = dialect.verdict(end)
        else:
            if rest := self._decoder.decode(b"", final=True):
                self._words.add(rest)
            if self._words.chars:
                self._words.last_is_final()
            verdict = dialect.plain_end(self._words, end, broken=self._broken)
        return dialect.response(verdict, end, self._format(), self._warnings())

    def _format(self) -> OutputFormat:
        """The shape on the wire."""
        documents = self._accepted or (0 if self._plain else self._foreign)
        if not documents:
            return OutputFormat.TEXT
        if self._array:
            return OutputFormat.JSON_ARRAY
        # The first line of a stream is not a whole answer.
        whole = documents == 1 and (self.dialect.result_seen or not self._accepted)
        return OutputFormat.JSON if whole else OutputFormat.JSONL

    def _warnings(self) -> tuple[str, ...]:
        if not self._malformed:
            return ()
        if not self._accepted:
            return ("malformed JSON: the output was read as text",)
        return (f"malformed output: {counted(self._malformed, 'JSON line')} could not be read",)

    # --- lines -------------------------------------------------------------------------------

    def _lines(self, lines: bytes) -> None:
        if not self._settled and not self._document and not _SPECIAL.search(lines):
            self._emit_text(lines + b"\n")
            return
        for line in lines.split(b"\n"):
            if not self._known_event(line):
                self._line(line, b"\n")

    def _end_of_line(self, piece: bytes) -> None:
        if self._passing:
            self._passing = False
            self._emit_text(piece + b"\n")
            return
        self._partial += piece
        line = self._take_partial()
        if not self._known_event(line):
            self._line(line, b"\n")

    def _hold(self, piece: bytes) -> None:
        if self._passing:
            self._emit_text(piece)
            return
        self._partial += piece
        if len(self._partial) <= _LONG:
            return
        # A long unfinished line is worth its memory only while it may be JSON.
        begins = not self._fenced and opens_document(self._partial[:_LONG].lstrip(BLANK))
        most = MAX_LINE if begins else _LONG
        if self._document:
            most = MAX_DOCUMENT - len(self._document)
        if len(self._partial) > most:
            self._passing = True
            self._malformed += begins
            self._emit_text(self._take_partial())

    def _take_partial(self) -> bytearray:
        line, self._partial = self._partial, bytearray()
        return line

    def _known_event(self, line: Bytes) -> bool:
        """The short way for the usual line: one event of a dialect that is known."""
        if not self._settled or not line.startswith(b'{"'):
            return False
        dialect = self.dialect
        if line.startswith(dialect.glanceable) and dialect.glance(line):
            return True
        try:
            value = msgspec.json.decode(line)
        except DAMAGES:
            return False  # the long way repairs it, or counts it
        self._accepted += 1
        dialect.see(value)
        return True

    def _line(self, line: Bytes, end: bytes) -> None:
        if self._document:
            self._continue_document(line, end)
            return
        body = line.lstrip(BLANK)
        if not self._fenced and opens_document(body):
            self._candidate(line, body, end)
        elif not self._accepted:
            self._fenced ^= body.startswith(_FENCES)
            self._emit_text(line + end)

    def _emit_text(self, data: Bytes) -> None:
        if not self._accepted:
            self._plain = self._plain or not data.isspace()
            self._take_text(data)

    def _take_text(self, data: Bytes) -> None:
        for start in range(0, len(data), _SLICE):
            if text := self._decoder.decode(data[start : start + _SLICE]):
                self._words.add(text)

    # --- documents ---------------------------------------------------------------------------

    def _candidate(self, line: Bytes, body: Bytes, end: bytes) -> None:
        try:
            value = decode(body)
        except Unreadable as problem:
            if problem.truncated and not self._accepted:
                self._document += line + end
                self._closing = b"}" if body.startswith(b"{") else b"]"
                self._attempts = 0
            else:
                self._note_malformed(body)
                self._emit_text(line + end)
            return
        self._offer_or_keep(value, line + end)

    def _note_malformed(self, start: Bytes) -> None:
        self._malformed += 1
        looks_ours = not self._plain and _OURS.search(start[:_LONG])
        self._broken = self._broken or bool(looks_ours)

    def _offer_or_keep(self, value: object, data: Bytes) -> None:
        if not self._offer(value) and not self._accepted:
            self._foreign += 1
            self._take_text(data)

    def _offer(self, value: object) -> bool:
        """Take a document, or those of an array, as events; False where nobody knows one."""
        if self._plain and not self._accepted and _is_anyones(value):
            return False
        if isinstance(value, dict):
            known = int(self._accept(value))
        else:
            known = sum(self._accept(item) for item in documents_of(value))
            self._array = self._array or known > 0
        self._accepted += known
        return known > 0

    def _accept(self, document: Document) -> bool:
        if not self._settled:
            known = next((each for each in self._dialects if each.knows(document)), None)
            if known is None:
                return False
            if known is not type(self.dialect):
                self.dialect = known()
            self._settled = True
        self.dialect.see(document)
        return True

    def _continue_document(self, line: Bytes, end: bytes) -> None:
        """A further line of a document that was opened but not yet closed."""
        if self._closing == b"}" and line.startswith(b'{"') and _is_event(line):
            self._give_up()
            self._line(line, end)
            return
        self._document += line
        self._document += end
        if line.startswith(self._closing):
            self._close_document()
        if self._attempts >= _MAX_ATTEMPTS or len(self._document) > MAX_DOCUMENT:
            self._give_up()

    def _close_document(self) -> None:
        try:
            value = decode(self._document.lstrip(BLANK))
        except Unreadable as problem:
            self._attempts += 1 if problem.truncated else _MAX_ATTEMPTS
            return
        self._offer_or_keep(value, self._take_document())

    def _take_document(self) -> bytearray:
        document, self._document, self._attempts = self._document, bytearray(), 0
        return document

    def _give_up(self) -> None:
        """The document is broken: save its whole lines, or take it as text."""
        document = self._take_document()
        self._note_malformed(document)
        saved = [self._salvage(match[0]) for match in _OBJECT_LINE.finditer(document)]
        if not any(saved):
            self._emit_text(document)

    def _salvage(self, line: Bytes) -> bool:
        try:
            return self._offer(decode(line.strip(BLANK + b",")))
        except Unreadable:
            return False


def _is_anyones(value: object) -> bool:
    """Whether an answer may be showing this object, since it bears no mark of an agent."""
    if not isinstance(value, dict) or any(key in value for key in _SESSION):
        return False
    return value.get("type") in _COMMON_TYPES


def _is_event(line: Bytes) -> bool:
    try:
        value = decode(line)
    except Unreadable:
        return False
    return isinstance(value, dict) and "type" in value
