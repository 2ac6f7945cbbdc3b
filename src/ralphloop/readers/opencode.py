"""The events of `opencode run --format json`.

There is no terminal event: it is done when the last step finished with the reason `stop`.  A
permission that would have to be asked for is rejected and ends the run with exit code 0, after a
step that finished with `tool-calls`.  A step's parts are printed when they are complete.
"""

from ralphloop.core.model import Outcome, Usage
from ralphloop.readers.base import Dialect, End
from ralphloop.readers.failures import Verdict, failure_verdict
from ralphloop.readers.values import (
    Document,
    amount_of,
    count_at,
    count_of,
    document_at,
    short_text_of,
    status_code_of,
    text_at,
)

_TYPES = frozenset({"step_start", "step_finish", "text", "tool_use", "error", "reasoning"})
_REJECTED = ("rejected permission", "auto-rejecting", "a rule which prevents you")
_GUARDED = frozenset({"write", "edit", "multiedit", "patch", "apply_patch", "bash"})
_NAMED_ERRORS = {
    "ProviderAuthError": Outcome.FATAL,
    "ProviderModelNotFoundError": Outcome.FATAL,
    "ProviderInitError": Outcome.FATAL,
    "MessageAbortedError": Outcome.INTERRUPTED,
    "MessageOutputLengthError": Outcome.LIMIT,
    "ContextOverflowError": Outcome.LIMIT,
}


class Opencode(Dialect):
    name = "opencode"

    def __init__(self) -> None:
        super().__init__()
        self._reason = ""  # why the last step finished
        self._error: Document = {}

    @staticmethod
    def knows(document: Document) -> bool:
        return text_at(document, "type") in _TYPES and "sessionID" in document

    def see(self, document: Document) -> None:
        session = short_text_of(document.get("sessionID"))
        self.session_id = self.session_id or session
        if session != self.session_id:
            return  # a subagent's
        kind = text_at(document, "type")
        part = document_at(document, "part")
        if kind == "step_start":
            self.answered()  # printed when the answer begins; its parts follow only when complete
            self.words.end()
            self.words.nothing_is_final()
            self.words.forget_last()
            self.result_seen = False
            self._reason = ""
            self._error = {}
        elif kind == "text" and (text := text_at(part, "text")):
            self.answered()
            self.words.add(f"\n\n{text}" if self.words.in_message else text)
            self.step("text", text)
        elif kind == "tool_use":
            self._tool_use(part)
        elif kind == "step_finish":
            self._reason = text_at(part, "reason")
            self.used += _of_step(part)
            self.words.end()
            if self._reason == "stop":
                self.words.last_is_final()
                self.result_seen = True
                self.step("result", "finished", ok=True)
        elif kind == "error":
            self._error = document_at(document, "error") or {"name": "unknown error"}
            self.complained(_message(self._error))
            self.words.end()
            self.words.nothing_is_final()
            self.result_seen = False
            self.step("result", _message(self._error), ok=False)

    def verdict(self, end: End) -> Verdict:
        if self._error:
            return self._verdict_on_error(end)
        if self._reason == "stop":
            return self.good_end("its last step finished")
        if self._reason == "length":
            return Verdict(Outcome.LIMIT, "the answer reached the output limit")
        if end.failed:
            return self.no_end(end, "a last step")
        if self.denials or any(words in end.stderr[-20_000:] for words in _REJECTED):
            refused = self.refusals() if self.denials else "a permission was rejected"
            return Verdict(Outcome.DENIED, refused)
        return self.no_end(end, "a last step")

    def _tool_use(self, part: Document) -> None:
        self.answered()
        state = document_at(part, "state")
        call_id = text_at(part, "callID")
        arguments = document_at(state, "input")
        name = text_at(part, "tool")
        wanted = text_at(arguments, "tool") if name == "invalid" else ""
        self.call_began(call_id, wanted or name, arguments)
        rejected = any(words in text_at(state, "error") for words in _REJECTED)
        if rejected or wanted in _GUARDED:
            self.refused(call_id, wanted or name)
        code = document_at(state, "metadata").get("exit")
        ok = state.get("status") == "completed" and not wanted and not count_of(code)
        self.call_ended(call_id, ok=ok)

    def _verdict_on_error(self, end: End) -> Verdict:
        name = text_at(self._error, "name")
        data = document_at(self._error, "data")
        message = _message(self._error)
        if name in _NAMED_ERRORS:
            return Verdict(_NAMED_ERRORS[name], message)
        if data.get("isRetryable") is True and "statusCode" not in data:
            return Verdict(Outcome.TRANSIENT, message)
        status = status_code_of(data.get("statusCode"))
        if name == "UnknownError" and status is None:
            if end.signal is not None:
                return self.no_end(end, "a last step")
            # Its own server failed: at the start that is the set-up (an unknown model, a plugin).
            return Verdict(Outcome.ERROR if self.model_output else Outcome.STARTUP_ERROR, message)
        # The provider's code in the body ("insufficient_quota") says more than its sentence.
        body = text_at(data, "responseBody")[:1_000]
        return Verdict(failure_verdict(f"{message} {body}", status).outcome, message)


def _message(error: Document) -> str:
    data = document_at(error, "data")
    return (text_at(data, "message") or text_at(error, "name"))[:2_000]


def _of_step(part: Document) -> Usage:
    """One step's own; what the total has beyond input and cache is output, thoughts included."""
    tokens = document_at(part, "tokens")
    cache = document_at(tokens, "cache")
    fresh = count_at(tokens, "input")
    read = count_at(cache, "read")
    written = count_at(cache, "write")
    output = count_at(tokens, "output")
    beyond = count_at(tokens, "total") - fresh - read - written
    thoughts = count_at(tokens, "reasoning")
    return Usage(
        input_tokens=fresh,
        output_tokens=beyond if beyond > 0 else output + thoughts,
        cache_read_tokens=read,
        cache_write_tokens=written,
        cost_usd=amount_of(part.get("cost")),
    )
