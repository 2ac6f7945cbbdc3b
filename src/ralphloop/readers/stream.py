"""One reader for every dialect: splitting, detection, and the way back to plain text.

Output is framed into documents and text.  The first document that one of the possible dialects
knows settles the dialect and makes all text noise; if none ever comes, the text is the answer.

`TextReader` is for an agent that prints its answer and nothing else.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from datetime import datetime

from ralphloop.core.model import AgentEvent, OutputFormat, Response, Usage
from ralphloop.readers.base import Dialect, End, Wire, plain_verdict
from ralphloop.readers.failures import Verdict
from ralphloop.readers.framing import Framer
from ralphloop.readers.own_words import OwnWords
from ralphloop.readers.values import Bytes, Document
from ralphloop.text.plain import one_line


class StreamReader:
    """Reads the output of any of the given dialects."""

    def __init__(self, name: str, dialects: Sequence[type[Dialect]], fallback: Dialect) -> None:
        self._name = name
        self._dialects = dialects
        self._dialect = fallback
        self._settled = False
        self._plain = PlainText()
        self._framer = Framer(self._accept, self._take_text)

    @property
    def name(self) -> str:
        return self._dialect.name if self._settled else self._name

    @property
    def result_seen(self) -> bool:
        return self._dialect.result_seen

    @property
    def fatal_hint(self) -> str | None:
        return self._dialect.fatal_hint

    @property
    def usage(self) -> Usage:
        return self._dialect.usage

    def feed(self, chunk: bytes) -> Sequence[AgentEvent]:
        """Take the next bytes, cut anywhere; returns the visible steps they contained."""
        self._framer.feed(chunk)
        return self._take_steps()

    def finish(
        self, *, exit_code: int | None, stderr: str = "", now: datetime | None = None
    ) -> Response:
        """The whole start in one value."""
        self._framer.finish()
        end = End(exit_code, stderr, now)
        wire = Wire(self._format(), self._warnings(), self._framer.broken)
        if self._framer.accepted:
            return self._dialect.response(end, wire)
        return self._dialect.plain_response(self._plain.finish(), end, wire)

    def _accept(self, document: Document) -> bool:
        if not self._settled:
            known = next((each for each in self._dialects if each.knows(document)), None)
            if known is None:
                return False
            self._settle(known)
        self._dialect.see(document)
        return True

    def _settle(self, dialect: type[Dialect]) -> None:
        self._settled = True
        if dialect is not type(self._dialect):
            self._dialect = dialect()
        chosen = self._dialect
        self._framer.settle(chosen.see, chosen.glance, chosen.glanceable)

    def _take_text(self, data: Bytes) -> None:
        self._plain.feed(data)

    def _take_steps(self) -> Sequence[AgentEvent]:
        steps, self._dialect.steps = self._dialect.steps, []
        return steps

    def _format(self) -> OutputFormat:
        shape = self._framer.format
        if shape is OutputFormat.JSON and self._framer.accepted and not self._dialect.result_seen:
            return OutputFormat.JSONL  # the first line of a stream, not a whole answer
        return shape

    def _warnings(self) -> tuple[str, ...]:
        count = self._framer.malformed
        if not count:
            return ()
        if not self._framer.accepted:
            return ("malformed JSON: the output was read as text",)
        lines = "1 JSON line" if count == 1 else f"{count} JSON lines"
        return (f"malformed output: {lines} could not be read",)


_SHOWN = 2_000  # characters of a chunk searched for its last line


class PlainText:
    """The whole output as one message; invalid bytes become replacement characters."""

    def __init__(self) -> None:
        self.words = OwnWords()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: Bytes) -> str:
        """Take the next bytes; returns them as text."""
        text = self._decoder.decode(data)
        if text:
            self.words.add(text)
        return text

    def finish(self) -> OwnWords:
        """All of it, as the final message if there is one."""
        if rest := self._decoder.decode(b"", final=True):
            self.words.add(rest)
        if self.words.chars:
            self.words.last_is_final()
        return self.words


class Text(Dialect):
    """The dialect without events: everything is the answer."""

    name = "text"

    @staticmethod
    def knows(_: Document) -> bool:
        return False

    def see(self, _: Document) -> None:
        """There is nothing to see in documents that are only text."""

    def verdict(self, end: End) -> Verdict:
        return plain_verdict(self.words.text, end)


class TextReader:
    """Reads output that is text whatever it looks like."""

    name = "text"
    result_seen = False
    fatal_hint: str | None = None

    def __init__(self) -> None:
        self._plain = PlainText()

    @property
    def usage(self) -> Usage:
        return Usage()

    def feed(self, chunk: bytes) -> Sequence[AgentEvent]:
        """Take the next bytes; what shows is their last line."""
        lines = self._plain.feed(chunk)[-_SHOWN:].split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "")
        shown = one_line(last)
        return [AgentEvent(kind="text", summary=shown)] if shown else []

    def finish(
        self, *, exit_code: int | None, stderr: str = "", now: datetime | None = None
    ) -> Response:
        end = End(exit_code, stderr, now)
        return Text().plain_response(self._plain.finish(), end, Wire(OutputFormat.TEXT))
