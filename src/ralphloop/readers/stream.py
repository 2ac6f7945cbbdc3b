"""From the bytes of one agent start to its `Response`.

A line that is a JSON object is offered to the dialects; so is each object of a JSON array, and one
printed over several lines.  The first document that one of them knows settles the dialect; if none
ever comes, the text is the answer.

* Until then text may turn out to be the answer, so it is handed on byte for byte.  A document
  inside a code fence is part of such an answer, never an event; so is one behind text that any
  program could have printed: `{"result": "ok"}` names no session.
* Afterwards text is noise, and a JSON line that cannot be read is counted as malformed.
* A line is held only while it looks like JSON, and only up to a limit.
"""

import codecs
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

import msgspec

from ralphloop.core.events import AgentStep
from ralphloop.core.model import Outcome, OutputFormat, Response
from ralphloop.readers.base import Dialect, End
from ralphloop.readers.failures import Verdict, complaint_verdict
from ralphloop.readers.own_words import OwnWords
from ralphloop.readers.values import (
    BLANK,
    DAMAGES,
    Bytes,
    Document,
    Unreadable,
    decode,
    listed,
    opens_document,
)
from ralphloop.text.plain import counted, one_line

MAX_LINE = 64 * 1024 * 1024
MAX_DOCUMENT = 16 * 1024 * 1024  # printed over several lines
_DOUBTFUL_EVENTS = 20
_MAX_ATTEMPTS = 3  # at closing such a document; more would be quadratic
_LONG = 1 << 16
_SLICE = 1 << 20

_SPECIAL = re.compile(rb"^[ \t\r\xef\xbb\xbf]*(?:[{\[]|```|~~~)", re.MULTILINE)
_OBJECT_LINE = re.compile(rb'^[ \t]*\{".*', re.MULTILINE)
_OURS = re.compile(rb'"(?:type|session_id|sessionID)"')


class Reader:
    def __init__(self, dialects: Sequence[type[Dialect]], fallback: Dialect) -> None:
        self._dialects = dialects
        self.dialect = fallback  # tells while it reads what is known so far
        self._settled = False  # it is known whose output this is: every object is an event
        self._doubtful: list[Document] = []  # events that two dialects may begin with
        self._strange = 0  # events that the dialect which was taken does not know
        self._words = OwnWords()  # the text as one message, where no document ever comes
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._accepted = self._malformed = 0
        self._broken = False  # the output begins with an agent's document that cannot be read
        self._array = False
        self._plain = False  # text that is not blank was seen
        self._fenced = False
        self._partial = bytearray()  # the line that is not complete yet
        self._passing = False  # it is text, or too long, and is handed on as it comes
        self._document = bytearray()  # an unfinished document of several lines
        self._closing = b""  # how the line begins that may end it
        self._attempts = 0

    def feed(self, chunk: bytes) -> Sequence[AgentStep]:
        """Take the next bytes, cut anywhere; returns the visible steps they contained."""
        if not self._dialects:  # what shows of mere text is its last line
            self._take_text(chunk)
            last = reversed(chunk[-2_000:].decode("utf-8", "ignore").split("\n"))
            shown = one_line(next(filter(str.strip, last), ""))
            return [AgentStep(kind="text", summary=shown)] if shown else []
        rest, newline, more = chunk.partition(b"\n")
        if newline:
            if self._passing:
                self._passing = False
                self._emit_text(rest + b"\n")
            else:
                self._partial += rest
                self._line(self._take_partial(), b"\n")
            lines, newline, rest = more.rpartition(b"\n")
            if newline and not (self._settled or self._document or _SPECIAL.search(lines)):
                self._emit_text(lines + b"\n")
            elif newline:
                for line in lines.split(b"\n"):
                    self._line(line, b"\n")
        self._hold(rest)
        steps = self.dialect.steps
        self.dialect.steps = []
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
        end = End(exit_code, stderr, now)
        if self._accepted and not self._is_strange:
            dialect = self.dialect
            dialect.words.end()
            verdict = dialect.loop_verdict() if dialect.error_loop else dialect.verdict(end)
        else:
            dialect = Dialect() if self._is_strange else self.dialect
            verdict = self._verdict_on_text(dialect, end)
        if verdict.outcome is Outcome.EMPTY:  # it said nothing, and perhaps stderr says why
            verdict = complaint_verdict(stderr) or verdict
        return dialect.response(verdict, end, self._format(), self._warnings())

    def _verdict_on_text(self, dialect: Dialect, end: End) -> Verdict:
        """Hand all that was printed to the dialect as one message, and ask what it means."""
        if rest := self._decoder.decode(b"", final=True):
            self._words.add(rest)
        words = self._words
        dialect.words = words
        if words.chars:
            words.last_is_final()
        verdict = dialect.plain_verdict(words.text, end)
        if self._broken:
            words.nothing_is_final()
            if verdict.outcome is Outcome.COMPLETED:
                verdict = Verdict(Outcome.ERROR, "malformed output: its JSON cannot be read")
        # The text of other endings was written by the CLI.
        by_model = verdict.outcome is Outcome.KILLED or not verdict.outcome.is_infrastructure
        dialect.model_output = words.chars > 0 and by_model
        return verdict

    def _warnings(self) -> tuple[str, ...]:
        if not self._malformed:
            return ()
        if not self._accepted:
            return ("malformed JSON: the output was read as text",)
        told = f"malformed output: {counted(self._malformed, 'JSON line')} could not be read"
        return (told,)

    @property
    def _is_strange(self) -> bool:
        """It began like the output of a CLI we know, and went on like that of another."""
        return self._strange > 0 and not self._settled

    def _format(self) -> OutputFormat:
        if not self._accepted or self._is_strange:
            return "text"
        if self._array:
            return "json_array"
        # The first line of a stream is not a whole answer.
        whole = self._accepted == 1 and self.dialect.result_seen
        return "json" if whole else "jsonl"

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
        line = self._partial
        self._partial = bytearray()
        return line

    def _line(self, line: Bytes, end: bytes) -> None:
        if self._settled and end and line.startswith(b'{"'):
            # The short way for the usual line: one whole event of a dialect that is known.
            dialect = self.dialect
            if line.startswith(dialect.glanceable):
                dialect.glance()
                return
            try:
                value = msgspec.json.decode(line)
            except DAMAGES:
                pass  # the long way repairs it, or counts it
            else:
                self._accepted += 1
                dialect.see(value)
                return
        body = line.lstrip(BLANK)
        if self._document:
            self._continue_document(line, end)
        elif not self._fenced and opens_document(body):
            self._candidate(line, body, end)
        elif not self._accepted:
            self._fenced ^= body.startswith((b"```", b"~~~"))
            self._emit_text(line + end)

    def _emit_text(self, data: Bytes) -> None:
        if not self._accepted:
            self._plain = self._plain or not data.isspace()
            self._take_text(data)

    def _take_text(self, data: Bytes) -> None:
        for start in range(0, len(data), _SLICE):
            if text := self._decoder.decode(data[start : start + _SLICE]):
                self._words.add(text)

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
            self._take_text(data)
        elif not self._settled:
            self._take_text(data)  # it may turn out to be nobody's

    def _offer(self, value: object) -> bool:
        """Take a document, or those of an array, as events; False where nobody knows one."""
        documents = listed(value, dict)
        before = self._accepted
        if isinstance(value, dict):
            documents = [value]
            # An answer may be showing this object, where it bears no mark of an agent.
            is_marked = any(key in value for key in ("session_id", "sessionID"))
            is_marked = is_marked or value.get("type") not in (None, "result", "error")
            if self._plain and not (self._accepted or is_marked):
                return False
        for document in documents:
            if self._take_event(document):
                self._accepted += 1
        self._array = self._array or (self._accepted > before and not isinstance(value, dict))
        return self._accepted > before

    def _take_event(self, document: Document) -> bool:
        """Show an event to the dialect; False where nobody knows whose it is.

        Two begin alike: one is taken for good by an event that is its own.
        """
        if self._settled:
            self.dialect.see(document)
            return True
        known = next((each for each in self._dialects if each.knows(document)), None)
        if known is None and not self._doubtful:
            return False
        if known is None:
            self._strange += 1
        elif known is not type(self.dialect) and not self._dialect_knows(document):
            self.dialect = known()
            for earlier in self._doubtful:
                self.dialect.see(earlier)
        if len(self._doubtful) < _DOUBTFUL_EVENTS:
            self._doubtful.append(document)
        self.dialect.see(document)
        has_spoken = self.dialect.model_output or self.dialect.result_seen
        is_named = len(self._dialects) == 1
        is_clear = known is not None and not self.dialect.begins_like_others(document)
        self._settled = is_named or has_spoken or is_clear
        return True

    def _dialect_knows(self, document: Document) -> bool:
        return bool(self._doubtful) and self.dialect.knows(document)

    def _continue_document(self, line: Bytes, end: bytes) -> None:
        """A further line of a document that was opened but not yet closed."""
        if self._closing == b"}" and line.startswith(b'{"'):
            event: object = None
            with suppress(Unreadable):
                event = decode(line)
            if isinstance(event, dict) and "type" in event:
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
        document = self._document
        self._document = bytearray()
        self._attempts = 0
        return document

    def _give_up(self) -> None:
        """The document is broken: save its whole lines, or take it as text."""
        document = self._take_document()
        self._note_malformed(document)
        is_saved = False
        for match in _OBJECT_LINE.finditer(document):
            with suppress(Unreadable):
                is_saved |= self._offer(decode(match[0].strip(BLANK + b",")))
        if not is_saved:
            self._emit_text(document)
