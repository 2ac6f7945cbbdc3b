"""The events of `codex exec --json`.

`turn.completed` and `turn.failed` end it; a top-level `error` is a retry (`Reconnecting…`) or the
message that `turn.failed` repeats; an item of type `error` is only a warning.  There is no price,
and `input_tokens` contains the cached ones.  In text mode errors go to stderr.  `rate_limits` with
a `primary` and a `secondary` window may come with any event, or in its `msg` or `payload`.
"""

from collections.abc import Iterator

from ralphloop.core.model import Outcome, RateLimit, Usage
from ralphloop.core.totals import Window, updated
from ralphloop.readers.base import Dialect, End
from ralphloop.readers.failures import Verdict, failure_verdict
from ralphloop.readers.values import (
    Document,
    count_at,
    document_at,
    share_of,
    short_text_of,
    text_at,
)

_TOOLS = frozenset({"command_execution", "file_change", "mcp_tool_call", "web_search"})
_WINDOWS = {300: "five_hour", 10_080: "seven_day"}  # by their minutes


class Codex(Dialect):
    name = "codex"
    code_when_cut = 1

    def __init__(self) -> None:
        super().__init__()
        self._failure: str | None = None  # of the turn, or the newest error
        self._turn_failed = False
        self._turn_started = False

    @staticmethod
    def knows(document: Document) -> bool:
        kind = text_at(document, "type")
        if kind.startswith(("thread.", "turn.", "item.")):
            return True
        only_message = "severity" not in document and "sessionID" not in document
        return kind == "error" and isinstance(document.get("message"), str) and only_message

    def see(self, document: Document) -> None:
        for told in (document, document_at(document, "msg"), document_at(document, "payload")):
            if limits := document_at(told, "rate_limits"):
                windows = updated(self.rate_limit.windows, windows_of(limits))
                self.rate_limit = RateLimit(windows=windows)
        kind = text_at(document, "type")
        if kind.startswith("item."):
            self._item(kind, document_at(document, "item"))
        elif kind == "thread.started":
            self.session_id = short_text_of(document.get("thread_id")) or self.session_id
        elif kind == "turn.started":
            self._turn_started = True
            self.result_seen = False
            self._turn_failed = False
        elif kind == "turn.completed":
            self.used += tokens_of(document_at(document, "usage"))
            self.words.last_is_final()
            self.answered()
            self.result_seen = True
            self._failure = None
            self.step("result", "turn completed", ok=True)
        elif kind == "turn.failed":
            message = text_at(document_at(document, "error"), "message")[:4_000]
            self._failure = message or self._failure
            self._turn_failed = self.result_seen = True
            self.retrying = False
            self.words.nothing_is_final()
            self.step("result", message or "turn failed", ok=False)
        elif kind == "error":
            self._error(text_at(document, "message")[:4_000])

    def verdict(self, end: End) -> Verdict:
        if self.result_seen and not self._turn_failed:
            return self.good_end("the turn was completed")
        if self._turn_failed or (self._failure and end.signal is None and not self.retrying):
            return failure_verdict(self._failure or "the turn failed")
        if self.fatal_hint:  # whoever stopped the retries was right
            return failure_verdict(self.fatal_hint)
        if self._turn_started and not (self.model_output or self.retrying) and end.exit_code == 1:
            # Every failure of its own ends in turn.failed; this is how it answers Ctrl+C.
            return Verdict(Outcome.INTERRUPTED, "the turn was given up before the model answered")
        return self.no_end(end, "turn.completed")

    def _item(self, kind: str, item: Document) -> None:
        what = text_at(item, "type")
        if what in ("error", "user_message"):
            return
        self.answered()
        self.result_seen = False
        self._failure = None
        text = text_at(item, "text") if what == "agent_message" else ""
        if text and kind == "item.completed":
            self.words.say(text)
            self.step("text", text)
        if what not in _TOOLS:
            return
        call_id = text_at(item, "id")
        if not self.call_known(call_id).name:
            self.call_began(call_id, text_at(item, "tool") or what, item)
        if kind != "item.completed":
            return
        status = text_at(item, "status")
        problem = text_at(document_at(item, "error"), "message")
        if what == "mcp_tool_call" and "requires approval" in problem:
            name = f"mcp__{text_at(item, 'server')}__{text_at(item, 'tool')}"
            self.refused(call_id, name)
        elif status == "declined":
            self.refused(call_id, what)
        self.call_ended(call_id, ok=status in ("completed", ""))

    def _error(self, message: str) -> None:
        self.retrying = message.startswith("Reconnecting")
        if not self.retrying:
            self._failure = message
            self.complained(message)
            return
        verdict = failure_verdict(message)
        self.fatal_hint = verdict.reason if verdict.outcome is Outcome.FATAL else None
        self.step("retry", message, ok=False)


def tokens_of(usage: Document) -> Usage:
    """The tokens of a turn or a conversation; `input_tokens` contains the cached ones."""
    cached = count_at(usage, "cached_input_tokens")
    written = count_at(usage, "cache_write_input_tokens")
    return Usage(
        input_tokens=max(0, count_at(usage, "input_tokens") - cached - written),
        output_tokens=count_at(usage, "output_tokens"),
        cache_read_tokens=cached,
        cache_write_tokens=written,
        cumulative=True,  # after `resume` a turn counts the whole conversation
    )


def windows_of(limits: Document) -> Iterator[Window]:
    """The windows in a `rate_limits` of codex; their length may be a minute short."""
    for slot in ("primary", "secondary"):
        window = document_at(limits, slot)
        minutes = count_at(window, "window_minutes")
        if (share := share_of(window.get("used_percent"), 100)) is not None:
            kind = _WINDOWS.get(round(minutes, -1)) or (f"{minutes} minutes" if minutes else slot)
            yield Window(kind=kind, used=share, resets_at=count_at(window, "resets_at") or None)
