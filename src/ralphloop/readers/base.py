"""What every dialect shares: how a process ended, tool calls, refusals, verdicts.

A **dialect** knows the events of one CLI: it is shown the decoded documents in order and gives a
verdict when the process has ended; splitting and detection are the reader's (`stream`).  Tool calls
and results are tied by an id and may overlap; only the last are kept, their number is not lost.
"""

from datetime import datetime
from typing import ClassVar, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from ralphloop.core.events import AgentStep
from ralphloop.core.model import (
    CRASHED,
    NO_LIMIT,
    Denial,
    Outcome,
    OutputFormat,
    RateLimit,
    Response,
    ToolCall,
    Usage,
)
from ralphloop.readers.failures import Verdict, failure_verdict, reset_time, sentence_verdict
from ralphloop.readers.own_words import OwnWords
from ralphloop.readers.values import Document, documents_at, text_at
from ralphloop.text.plain import any_case, clean, counted, one_line

_SIGNALS = {129: 1, 130: 2, 137: 9, 143: 15}  # how a shell reports a signal
_NOT_FOUND = (126, 127)  # says a shell of a program that is not there or cannot be executed
_STDERR_NOISE = (
    *("Warning:", "WARNING:", "(node:", "Reading additional input", "YOLO mode"),
    *("Approval mode overridden", "Ripgrep is not available"),
)
_TRACEBACK = "Traceback (most recent call last):"
_NAMES_AN_ERROR = any_case(r"(?:error|exception|panic(?:ked)?|fatal|fault)\b")
_SUMMARY = 160
_ID = 200

# The argument that says most about a call, best first; names differ between the CLIs.
_TELLING = (
    *("file_path", "filePath", "notebook_path", "command", "cmd", "pattern", "path", "query"),
    *("url", "skill", "description", "prompt", "tool", "name"),
)


class End(NamedTuple):
    """How the process ended; `now` gives clock times in its output a date."""

    exit_code: int | None
    stderr: str
    now: datetime | None  # in the zone the agent speaks in

    @property
    def signal(self) -> int | None:
        if self.exit_code is None:
            return None
        return -self.exit_code if self.exit_code < 0 else _SIGNALS.get(self.exit_code)

    @property
    def failed(self) -> bool:
        return self.exit_code not in (0, None)


def killed(end: End) -> Verdict | None:
    """The verdict on a process that a signal ended before it could finish, else None."""
    if end.signal is None:
        return None
    return Verdict(Outcome.KILLED, f"killed by signal {end.signal} before it finished")


def first_complaint(stderr: str) -> str:
    """The first line of stderr that is more than routine chatter."""
    lines = [line.strip() for line in clean(stderr[:20_000]).split("\n")]
    said = [line for line in lines if line and not line.startswith(_STDERR_NOISE)]
    return one_line(said[0]) if said else ""


def last_complaint(stderr: str) -> str:
    """The line that says what a crashed program died of: its last error, else its last line."""
    lines = [line.rstrip() for line in clean(stderr[-20_000:]).split("\n")]
    # Frames of a traceback and the code they show are indented.
    said = [line for line in lines if line.strip() == line and line]
    said = [line for line in said if not line.startswith(_STDERR_NOISE)]
    errors = [line for line in said if _NAMES_AN_ERROR.search(line)]
    return one_line((errors or said or [""])[-1])


def crash_words(end: End) -> str:
    """How a process ended that gave up by itself, without a result."""
    complaint = last_complaint(end.stderr)
    return f"{CRASHED}exit code {end.exit_code}" + (f"; {complaint}" if complaint else "")


def summarise(arguments: Document) -> str:
    """The one argument a person wants to see: file, command or pattern."""
    for key in _TELLING:
        if value := text_at(arguments, key):
            return one_line(value, _SUMMARY)
    changed = [text_at(change, "path") for change in documents_at(arguments, "changes")]
    return one_line(", ".join(filter(None, changed[:5])), _SUMMARY)


class Dialect:
    """Collects the events of one CLI; this one knows none, so that everything is the answer."""

    name: ClassVar[str] = "text"
    glanceable: ClassVar[tuple[bytes, ...]] = ()  # how lines begin that `glance` takes
    complaint: ClassVar[str] = ""  # how its errors begin on stderr, in text mode
    code_when_cut: ClassVar[int | None] = None  # its exit code, without a word, if somebody ends it

    def __init__(self) -> None:
        self.words = OwnWords()
        self.calls: dict[str, ToolCall] = {}  # the last ones by id
        self.call_count = 0
        self.denials: dict[str, Denial] = {}  # each call once, however often it is reported
        self.used = Usage()
        self.steps: list[AgentStep] = []  # visible steps not yet handed out
        self.session_id: str | None = None
        self.model: str | None = None
        self.rate_limit = NO_LIMIT
        self.model_output = False
        self.retrying = False
        self.result_seen = False
        self.fatal_hint: str | None = None

    @staticmethod
    def knows(_: Document) -> bool:
        return False

    def see(self, document: Document) -> None:
        """Take the next event; one that is not known, or malformed, is ignored."""

    def glance(self) -> None:
        """Take an event by its first bytes alone, where it is frequent and says little."""

    @property
    def usage(self) -> Usage:
        return self.used

    def verdict(self, end: End) -> Verdict:
        return self.plain_verdict(self.words.text, end)

    def plain_verdict(self, text: str, end: End) -> Verdict:
        """What plain output means: by a CLI's own error sentence, else by the exit code."""
        text = text.strip()
        complaint = first_complaint(end.stderr)
        if end.exit_code in _NOT_FOUND:
            return Verdict(Outcome.STARTUP_ERROR, complaint or "command not found")
        if stopped := killed(end):
            return stopped
        if not text and not end.failed:
            return Verdict(Outcome.EMPTY, "it ended without a word")
        spoken = text.rsplit("\n", 1)[-1] if end.failed else text
        if "\n" not in spoken and (meaning := sentence_verdict(spoken or complaint)):
            return meaning
        if not end.failed:
            return Verdict(Outcome.COMPLETED, "it ended with an answer")
        if text:
            has_crashed = _TRACEBACK in end.stderr
            words = crash_words(end) if has_crashed else f"exit code {end.exit_code}"
            return Verdict(Outcome.ERROR, words)
        lines = clean(end.stderr[-20_000:]).split("\n") if self.complaint else ()
        errors = [line for line in lines if line.startswith(self.complaint)]
        meaning = failure_verdict(errors[-1].removeprefix(self.complaint)) if errors else None
        if meaning and meaning.outcome is not Outcome.ERROR:
            return meaning
        words = complaint or f"exit code {end.exit_code} without any output"
        if _TRACEBACK in end.stderr:
            words = crash_words(end)
        return Verdict(Outcome.STARTUP_ERROR, words)

    def step(self, kind: str, summary: str, *, ok: bool | UnsetType = UNSET) -> None:
        self.steps.append(AgentStep(kind=kind, summary=one_line(summary), ok=ok))

    def call_began(self, call_id: str, name: str, arguments: Document) -> None:
        self.call_count += 1
        name = one_line(name, 80)
        summary = summarise(arguments)
        self.calls[call_id[:_ID] or f"#{self.call_count}"] = ToolCall(name=name, summary=summary)
        if len(self.calls) > 50:
            del self.calls[next(iter(self.calls))]
        self.step("tool", f"{name} {summary}")

    def call_ended(self, call_id: str, *, ok: bool) -> None:
        """A tool came back, well or not; nothing shows of one that is not known (any more)."""
        if call := self.calls.get(call_id[:_ID]):
            self.calls[call_id[:_ID]] = msgspec.structs.replace(call, ok=ok)
            self.steps.append(AgentStep(kind="tool_result", summary=call.name, ok=ok))

    def call_known(self, call_id: str) -> ToolCall:
        """The call of that id, nameless where it is not known (any more)."""
        return self.calls.get(call_id[:_ID]) or ToolCall(name="")

    def refused(self, call_id: str, tool: str, summary: str = "") -> None:
        """A call was refused; a later report of the same one may add what the first lacked."""
        key = call_id[:_ID] or f"#{len(self.denials)}"
        known = self.denials.get(key)
        has_room = len(self.denials) < 100 if known is None else not known.summary
        if has_room:
            shown = one_line(summary or self.call_known(call_id).summary, _SUMMARY)
            self.denials[key] = Denial(tool=one_line(tool, 80), summary=shown)

    def refusals(self) -> str:
        names = sorted({denial.tool for denial in self.denials.values() if denial.tool})
        calls = f"{counted(len(self.denials), 'tool call', 'was')} refused"
        return one_line(f"{calls}: {', '.join(names)}" if names else calls)

    def answered(self) -> None:
        """The model said or did something, so it is alive and paid for."""
        self.model_output = True
        self.retrying = False
        self.fatal_hint = None

    def good_end(self, what: str) -> Verdict:
        """The verdict on a good result: refused tools or an empty answer take the shine off."""
        if self.denials:
            return Verdict(Outcome.DENIED, self.refusals())
        if not (self.words.final_text or "").strip():
            return Verdict(Outcome.EMPTY, "it ended without an answer")
        return Verdict(Outcome.COMPLETED, what)

    def no_end(self, end: End, what: str) -> Verdict:
        """The verdict on output that stops before its terminal event."""
        if stopped := killed(end):
            return stopped
        if self.retrying:
            return Verdict(Outcome.TRANSIENT, "it ended while it was retrying the API")
        complaint = last_complaint(end.stderr)
        was_cut = end.exit_code == self.code_when_cut and not complaint
        if end.failed and self.model_output and not was_cut:  # nobody else ended it
            return sentence_verdict(complaint) or Verdict(Outcome.ERROR, crash_words(end))
        if any(call.ok is None for call in self.calls.values()):
            words = f"the output breaks off inside a tool call, without {what}"
            return Verdict(Outcome.KILLED, words)
        if self.model_output:
            return Verdict(Outcome.ERROR, f"the output ends without {what}")
        if _TRACEBACK in end.stderr:  # its first line says nothing
            return Verdict(Outcome.STARTUP_ERROR, crash_words(end) if end.failed else complaint)
        complaint = first_complaint(end.stderr)
        return Verdict(Outcome.STARTUP_ERROR, complaint or "it ended before the model answered")

    def response(
        self, verdict: Verdict, end: End, wire: OutputFormat, warnings: tuple[str, ...]
    ) -> Response:
        limit = self.rate_limit
        if verdict.outcome is Outcome.USAGE_LIMIT:
            # The announced limit; where only a sentence told of it, what the sentence says.
            announced = limit.resets_at if limit.rejected else None
            resets_at = announced or reset_time(verdict.reason, end.now)
            limit = RateLimit(rejected=True, resets_at=resets_at, windows=limit.windows)
        return Response(
            reader=self.name,
            format=wire,
            outcome=verdict.outcome,
            reason=one_line(verdict.reason),
            status=self.words.status,
            status_is_final=self.words.status_is_final,
            final_text=self.words.final_text,
            text=self.words.text,
            text_chars=self.words.chars,
            session_id=self.session_id,
            model=self.model,
            usage=self.usage,
            tool_calls=tuple(self.calls.values()),
            tool_call_count=self.call_count,
            denials=tuple(self.denials.values()),
            rate_limit=limit,
            model_output=self.model_output,
            retrying=self.retrying,
            warnings=warnings,
        )
