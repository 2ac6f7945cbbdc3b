"""The events of `gemini -o stream-json`, and the one object of `-o json`.

The prompt is echoed as a message of the user; answers come in deltas.  The exit code is one of its
own numbers or an HTTP status modulo 256; after SIGTERM and SIGINT it is 0, without a result.  Tools
that are not allowed are simply not found.  Where it stops itself (a loop, a refusal) the result is
a success, or an error without a word: what it said just before is the reason.  A refusal
for safety that comes with an answer leaves no trace at all.
"""

import re

from ralphloop.core.model import Outcome, Usage
from ralphloop.readers.base import Dialect, End, first_complaint
from ralphloop.readers.failures import Verdict, failure_verdict, sentence_inside
from ralphloop.readers.values import (
    Document,
    count_at,
    document_at,
    document_of,
    short_text_of,
    status_code_of,
    text_at,
)
from ralphloop.text.plain import clean

_EXIT_CODES = {
    41: Outcome.FATAL,  # authentication
    42: Outcome.STARTUP_ERROR,  # bad input, for one a session to resume that does not exist
    44: Outcome.STARTUP_ERROR,  # sandbox
    52: Outcome.STARTUP_ERROR,  # configuration
    53: Outcome.LIMIT,  # session turns
    55: Outcome.STARTUP_ERROR,  # untrusted directory
}
_ERROR_TYPES = {
    "FatalAuthenticationError": Outcome.FATAL,
    "FatalCancellationError": Outcome.INTERRUPTED,
    "FatalInputError": Outcome.STARTUP_ERROR,
    "FatalTurnLimitedError": Outcome.LIMIT,
}
_HTTP = {
    status % 256: status for status in (400, 401, 402, 403, 404, 408, 413, 429, *range(500, 505))
}
_CODE = re.compile(r'"code\\?": ?(\d{3})\b|\bstatus:? (\d{3})\b')

_STOPPED_ITSELF = ("Loop detected", "Maximum session turns")

# Tools that are absent because the approval mode does not allow them.
_GUARDED = frozenset("write_file replace edit run_shell_command web_fetch save_memory".split())
_REFUSED = frozenset({"policy_violation", "execution_denied"})


class Gemini(Dialect):
    name = "gemini"

    def __init__(self) -> None:
        super().__init__()
        self._result: Document | None = None
        self._complaint = ""  # said since the model's last word
        self._is_severe = False

    @staticmethod
    def knows(document: Document) -> bool:
        kind = document.get("type")
        if kind is None:
            answer = isinstance(document.get("response"), str) or "error" in document
            return answer and "session_id" in document
        needed = {
            "init": "session_id",
            "message": "role",
            "tool_use": "tool_name",
            "tool_result": "tool_id",
            "error": "severity",
            "result": "status",
        }.get(text_at(document, "type"))
        return needed is not None and needed in document and "subtype" not in document

    def see(self, document: Document) -> None:
        kind = text_at(document, "type")
        if kind == "message":
            self._message(document)
            return
        self._end_message()
        if kind in ("init", ""):
            self.session_id = short_text_of(document.get("session_id")) or self.session_id
            self.model = short_text_of(document.get("model")) or self.model
        if kind in ("result", ""):
            self._end(document)
        elif kind == "tool_use":
            self.answered()
            self.words.forget_last()
            call_id = text_at(document, "tool_id")
            name = text_at(document, "tool_name")
            self.call_began(call_id, name, document_at(document, "parameters"))
        elif kind == "tool_result":
            call_id = text_at(document, "tool_id")
            name = self.call_known(call_id).name
            why = text_at(document_at(document, "error"), "type")
            if why in _REFUSED or (why == "tool_not_registered" and name in _GUARDED):
                self.refused(call_id, name)
            self.call_ended(call_id, ok=document.get("status") == "success")
        elif kind == "error":
            self._complaint = text_at(document, "message")[:4_000]
            self._is_severe = document.get("severity") == "error"
            self.step("status", self._complaint)

    def verdict(self, end: End) -> Verdict:
        if self._complaint.startswith(_STOPPED_ITSELF) and self._result is not None:
            return Verdict(Outcome.LIMIT, self._complaint)
        if self._result is not None and self._succeeded() and not self._is_severe:
            return self.good_end("it ended with a good result")
        message = text_at(document_at(self._result or {}, "error"), "message") or self._complaint
        if self._result is None and end.exit_code == 0:
            return Verdict(Outcome.KILLED, "it ended without a result, as it does when stopped")
        by_code = _by_exit_code(message, end)
        if by_code is not None:
            return by_code
        if self._result is None:
            return self.no_end(end, "a result")
        named = _ERROR_TYPES.get(text_at(document_at(self._result, "error"), "type"))
        by_words = failure_verdict(sentence_inside(message), _code_in(message))
        return Verdict(named, by_words.reason) if named else by_words

    def plain_verdict(self, text: str, end: End) -> Verdict:
        by_code = _by_exit_code("", end)
        if by_code is not None:
            return by_code
        verdict = super().plain_verdict(text, end)
        code = _code_in(end.stderr[-20_000:]) if verdict.outcome is Outcome.STARTUP_ERROR else None
        return failure_verdict(_api_complaint(end.stderr), code) if code else verdict

    def _succeeded(self) -> bool:
        result = self._result or {}
        return result.get("status") == "success" or isinstance(result.get("response"), str)

    def _message(self, document: Document) -> None:
        if document.get("role") != "assistant":
            self._end_message()
            return
        self.answered()
        if not document.get("delta"):
            self._end_message()
        if text := text_at(document, "content"):
            self.words.add(text)

    def answered(self) -> None:
        super().answered()
        self._complaint = ""
        self._is_severe = False

    def _end_message(self) -> None:
        if self.words.in_message:
            self.step("text", self.words.end())

    def _end(self, document: Document) -> None:
        """A result, or the one object that is the whole answer."""
        self._result = document
        self.result_seen = True
        stats = document_at(document, "stats")
        self.model = _most_used(stats) or self.model
        if text_at(document, "type"):
            # `input` is what was not cached; the total also has the thoughts, billed as output.
            prompt = count_at(stats, "input_tokens")
            cached = count_at(stats, "cached")
            fresh = count_at(stats, "input") if "input" in stats else max(0, prompt - cached)
            output = count_at(stats, "output_tokens")
            self.used = Usage(
                input_tokens=fresh,
                output_tokens=max(output, count_at(stats, "total_tokens") - prompt),
                cache_read_tokens=cached,
            )
            if self._succeeded():
                self.words.last_is_final()
            self.step("result", text_at(document, "status"), ok=self._succeeded())
            return
        self.used = _of_models(document_at(stats, "models"))
        if isinstance(answer := document.get("response"), str):
            self.model_output = True
            self.words.finish_with(answer)


def _by_exit_code(message: str, end: End) -> Verdict | None:
    complaint = (
        sentence_inside(message) or _api_complaint(end.stderr) or first_complaint(end.stderr)
    )
    outcome = _EXIT_CODES.get(end.exit_code or 0)
    if outcome is not None:
        return Verdict(outcome, complaint or f"exit code {end.exit_code}")
    status = _HTTP.get(end.exit_code or 0)
    return failure_verdict(complaint, status) if status else None


def _code_in(message: str) -> int | None:
    """The last HTTP status a message or a stack trace names."""
    found = [first or second for first, second in _CODE.findall(message)]
    return status_code_of(int(found[-1])) if found else None


def _api_complaint(stderr: str) -> str:
    """The last line about the API on a stderr full of stack traces."""
    lines = clean(stderr[-20_000:]).split("\n")
    return sentence_inside(next((line for line in reversed(lines) if "Error: " in line), ""))


def _most_used(stats: Document) -> str | None:
    """The model that did the work: asked for `auto`, a small one chooses and another one works."""
    models = document_at(stats, "models")

    def tokens(name: str) -> int:
        model = document_of(models[name])
        return count_at(model, "total_tokens") or count_at(document_at(model, "tokens"), "total")

    return short_text_of(max(models, key=tokens, default=None))


def _of_models(models: Document) -> Usage:
    fresh = output = cached = 0
    for model in models.values():
        tokens = document_of(document_of(model).get("tokens"))
        hits = count_at(tokens, "cached")
        cached += hits
        fresh += max(0, count_at(tokens, "prompt") - hits) + count_at(tokens, "tool")
        output += count_at(tokens, "candidates") + count_at(tokens, "thoughts")
    return Usage(input_tokens=fresh, output_tokens=output, cache_read_tokens=cached)
