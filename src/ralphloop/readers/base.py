"""What every dialect shares: how a process ended, tool calls, refusals, verdicts.

A **dialect** knows the events of one CLI: it is shown the decoded documents in order and gives a
verdict when the process has ended; splitting and detection are the reader's (`stream`).  Tool calls
and results are tied by an id and may overlap; only the last are kept, their number is not lost.
"""

import re
from datetime import datetime
from typing import ClassVar, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from ralphloop.core.events import AgentStep
from ralphloop.core.model import (
    NO_LIMIT,
    Denial,
    Outcome,
    OutputFormat,
    RateLimit,
    Response,
    ToolCall,
    Usage,
)
from ralphloop.readers.failures import (
    Verdict,
    complaint_verdict,
    failure_verdict,
    last_words_verdict,
    program_error,
    retired_notice,
    sentence_verdict,
)
from ralphloop.readers.own_words import OwnWords
from ralphloop.readers.resets import reset_time
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
SAME_ERRORS = 6  # events of one error within a start, without a tool that worked in between
_KINDS_OF_ERRORS = 50
_NUMBER = re.compile(r"\d+")
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


def crash_verdict(outcome: Outcome, end: End) -> Verdict:
    """The verdict on a process that gave up by itself, without a result."""
    complaint = last_complaint(end.stderr)
    crash = one_line(f"exit code {end.exit_code}" + (f"; {complaint}" if complaint else ""))
    return Verdict(outcome, f"crashed: {crash}", crash)


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
        self.budget_ended = False  # the CLI met the budget that we gave it
        self.error_loop = ""  # the sentence of an error that comes again and again
        self._errors: dict[str, int] = {}  # how often each came since a tool last worked

    @staticmethod
    def knows(_: Document) -> bool:
        return False

    @staticmethod
    def begins_like_others(_: Document) -> bool:
        """Whether another CLI may begin with this event, too."""
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
        if end.exit_code in _NOT_FOUND:
            return Verdict(
                Outcome.STARTUP_ERROR, first_complaint(end.stderr) or "command not found"
            )
        if stopped := killed(end):
            return stopped
        if end.failed:
            return self._failed_text(text, end)
        if not text:
            return Verdict(Outcome.EMPTY, "it ended without a word")
        if "\n" not in text and (meaning := sentence_verdict(text)):
            return meaning
        if (meaning := program_error(text)) is not None:
            return meaning
        if (notice := retired_notice(text)) and self.words.status is None:
            return Verdict(Outcome.STARTUP_ERROR, notice)
        return Verdict(Outcome.COMPLETED, "it ended with an answer")

    def _failed_text(self, text: str, end: End) -> Verdict:
        """What a failed start in plain text means: by its last words, by stderr, by its code."""
        meaning = last_words_verdict(text) or complaint_verdict(end.stderr)
        if meaning is not None:
            return meaning
        has_crashed = _TRACEBACK in end.stderr
        words = f"exit code {end.exit_code}"
        if has_crashed:
            return crash_verdict(Outcome.ERROR if text else Outcome.STARTUP_ERROR, end)
        if text:
            return Verdict(Outcome.ERROR, words)
        complaint = first_complaint(end.stderr)
        return Verdict(Outcome.STARTUP_ERROR, complaint or f"{words} without any output")

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
            if ok:
                self._errors.clear()
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

    def complained(self, message: str) -> None:
        """An error event came; the same one so often will never end by itself."""
        words = one_line(message)
        kind = _NUMBER.sub("#", words)
        count = self._errors.get(kind, 0) + 1
        if count == 1 and len(self._errors) >= _KINDS_OF_ERRORS:
            return
        self._errors[kind] = count
        if words and count >= SAME_ERRORS:
            self.error_loop = words

    def loop_verdict(self) -> Verdict:
        """What an error means that came again and again: a limit, where it is no outage."""
        meaning = failure_verdict(self.error_loop)
        if meaning.outcome.is_infrastructure:
            return meaning
        return Verdict(Outcome.LIMIT, self.error_loop)

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
            return complaint_verdict(end.stderr) or crash_verdict(Outcome.ERROR, end)
        if any(call.ok is None for call in self.calls.values()):
            words = f"the output breaks off inside a tool call, without {what}"
            return Verdict(Outcome.KILLED, words)
        if self.model_output:
            return Verdict(Outcome.ERROR, f"the output ends without {what}")
        if (meaning := complaint_verdict(end.stderr)) is not None:
            return meaning
        has_traceback = _TRACEBACK in end.stderr
        if has_traceback and end.failed:
            return crash_verdict(Outcome.STARTUP_ERROR, end)
        if not has_traceback:  # the first line of one says nothing
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
            crash=verdict.crash,
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
