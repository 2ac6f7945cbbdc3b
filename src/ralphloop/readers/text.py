"""Plain text: an agent that prints its answer and nothing else."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from datetime import datetime

from ralphloop.core.model import AgentEvent, OutputFormat, Response, Usage
from ralphloop.readers.base import Dialect, End, Wire, plain_verdict
from ralphloop.readers.failures import Verdict
from ralphloop.readers.json_text import Bytes
from ralphloop.readers.own_words import OwnWords
from ralphloop.readers.values import Document
from ralphloop.text.plain import one_line

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
