"""One transcript as lines a person reads: steps of the agent, its last words, what came of it."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from ralphloop.cli import output
from ralphloop.core.model import AgentEvent
from ralphloop.core.totals import spent_words
from ralphloop.journal.records import IterationRecord, RunRecord
from ralphloop.readers import reader_for, reader_name
from ralphloop.readers.base import Reader
from ralphloop.stories.names import label
from ralphloop.text.durations import elapsed, format_duration, iso
from ralphloop.text.plain import clean, counted, one_line

_INDENT = 4
_LONGEST_LINE = 4_000
_MOST_WORDS = 8_000


def header(record: IterationRecord) -> Iterator[str]:
    """Which iteration this is."""
    story = label(record.story) if record.story else "the prompt"
    attempt = f", attempt {record.attempt}" if record.attempt > 1 else ""
    words = f"iteration {record.n}: {story}{attempt}, {iso(record.started_at)}"
    yield output.paint(words, "bold")


def footer(record: IterationRecord, *, live: bool) -> Iterator[str]:
    """What came of it, as the journal tells."""
    if record.finished_at is None:
        yield from output.row("", "it goes on" if live else "it was cut off", width=2)
        return
    took = format_duration(elapsed(record.started_at, record.finished_at))
    files = f"{counted(record.files_modified, 'file')} changed"
    files = files if record.files_modified else "no change"
    words = f"{record.outcome} in {took}, {spent_words(record.cost_usd, record.unpriced)}, {files}"
    yield from output.row("=", words, "bold", width=2)
    for check in record.checks:
        flaky = ", at the second try" if check.flaky else ""
        yield from output.row("", f"check {check.name}: {check.status}{flaky}", width=2)
    verdict, reasons = record.record.verdict, record.record.decision.reasons
    if verdict.reasons:
        word = "passed" if verdict.passed else "not passed"
        yield from output.row("", f"story {word}: {'; '.join(verdict.reasons)}", width=2)
    words = f"decision {record.decision}{': ' if reasons else ''}{'; '.join(reasons)}"
    yield from output.row("", words, width=2)


class LogView:
    """The growing transcript of one iteration.

    Words are held back until something follows them: the last ones are shown in full at the end.
    """

    def __init__(self, record: IterationRecord, run: RunRecord) -> None:
        # Who can read it is known at the end, before that by the settings.
        agent = run.config.get("agent", {})
        told = record.record.response.reader or agent.get("name")
        self._reader_name = reader_name(told, agent.get("format"))
        self._reader: Reader | None = None
        self._text = _TextLines()
        self._held: AgentEvent | None = None
        self._seen = False

    def feed(self, chunk: bytes) -> Iterator[str]:
        """The next bytes as lines; no bytes at all mean that nothing comes for now."""
        if self._reader_name == "auto" and chunk.strip():
            # Agents that print events begin with one; everything else is a text.
            self._reader_name = "events" if chunk.lstrip()[:1] in (b"{", b"[") else "text"
        if self._reader_name == "text":
            yield from (_indented(line) for line in self._text.feed(chunk))
            return
        if self._reader is None:
            self._reader = reader_for(reader_name(self._reader_name))
        for event in self._reader.feed(chunk):
            yield from self._take(event)
        if not chunk:
            yield from self._release()

    def rest(self, record: IterationRecord) -> Iterator[str]:
        """What is only known at the end: a last line, and the last words in full."""
        yield from (_indented(line) for line in self._text.rest())
        if self._reader is None:
            return
        words = record.record.response.final_text
        if not words and not self._seen:
            words = self._reader.finish(exit_code=None).text
        words = clean(words[-_MOST_WORDS:]).strip()
        held = self._held.summary if self._held else ""
        if not (words and one_line(words, len(held) + 1).startswith(held.rstrip("…"))):
            yield from self._release()
        for line in words.split("\n") if words else ():
            yield _indented(f"| {line[:_LONGEST_LINE]}".rstrip())

    def _take(self, event: AgentEvent) -> Iterator[str]:
        self._seen = True
        if event.kind == "result" and self._held is not None and event.ok is not False:
            return  # it repeats the last words
        yield from self._release()
        if event.kind in ("text", "result"):
            self._held = event
        else:
            yield from _step(event)

    def _release(self) -> Iterator[str]:
        held, self._held = self._held, None
        if held is not None:
            yield from _step(held)


def _step(event: AgentEvent) -> Iterator[str]:
    if event.kind == "text":
        words = event.summary.split("---RALPH_STATUS---")[0]
        yield from _marked("", words)
    elif event.kind == "tool":
        yield from _marked(">", event.summary)
    elif event.kind != "tool_result" or event.ok is False:
        what = "failed" if event.kind == "tool_result" else event.kind
        style = "red" if event.ok is False else ""
        yield from _marked("!" if style else "", f"{what}: {event.summary}", style)


def _marked(mark: str, text: str, style: str = "") -> Iterator[str]:
    lines = output.wrapped(text, indent=_INDENT)
    head = output.paint(mark, style) if style else mark
    for line in lines:
        yield f"  {head}{' ' * (_INDENT - 2 - len(mark))}{line}"
        mark = head = ""


def _indented(line: str) -> str:
    return " " * _INDENT + line if line else ""


class _TextLines:
    """Lines of a text that arrives in pieces; no piece of it is kept for long."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._open = ""

    def feed(self, chunk: bytes) -> Iterator[str]:
        *lines, self._open = (self._open + self._decoder.decode(chunk)).split("\n")
        yield from map(_line, lines)
        while len(self._open) > _LONGEST_LINE:
            yield _line(self._open[:_LONGEST_LINE])
            self._open = self._open[_LONGEST_LINE:]

    def rest(self) -> Iterator[str]:
        if self._open.strip():
            yield _line(self._open)
        self._open = ""


def _line(text: str) -> str:
    return clean(text).replace("\n", " ").rstrip()
