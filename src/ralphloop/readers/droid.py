"""The events of Factory's `droid exec -o stream-json`.

The prompt is echoed as a message of the user.  `completion` ends a good run and has all its tokens;
an `error` ends a bad one, where the first says why and the last only "Exec failed".  A tool that is
not allowed ends the run at once: what the agent seems to say then was written by the CLI.
"""

from ralphloop.core.model import Outcome, Usage
from ralphloop.readers.base import Dialect, End
from ralphloop.readers.failures import Verdict, failure_verdict
from ralphloop.readers.values import Document, count_at, document_at, short_text_of, text_at

_NOT_ALLOWED = "insufficient permission to proceed"
_SAYS_NOTHING = "Exec failed"
_NEEDED = {
    "message": "role",
    "tool_call": "toolId",
    "tool_result": "toolId",
    "completion": "finalText",
    "error": "source",
}


class Droid(Dialect):
    name = "droid"

    def __init__(self) -> None:
        super().__init__()
        self._failure = ""

    @staticmethod
    def knows(document: Document) -> bool:
        kind = text_at(document, "type")
        if Droid.begins_like_others(document):
            return True
        if kind == "message" and not isinstance(document.get("text"), str):
            return False
        needed = _NEEDED.get(kind)
        return needed is not None and needed in document and "session_id" in document

    @staticmethod
    def begins_like_others(document: Document) -> bool:
        is_init = document.get("type") == "system" and document.get("subtype") == "init"
        return is_init and "uuid" not in document

    def see(self, document: Document) -> None:
        kind = text_at(document, "type")
        if kind == "system":
            self.session_id = short_text_of(document.get("session_id")) or self.session_id
            self.model = short_text_of(document.get("model")) or self.model
        elif kind == "message":
            self._message(document)
        elif kind == "tool_call":
            self.answered()
            self.words.forget_last()
            call_id = text_at(document, "id")
            name = text_at(document, "toolName") or text_at(document, "toolId")
            self.call_began(call_id, name, document_at(document, "parameters"))
        elif kind == "tool_result":
            self._tool_result(document)
        elif kind == "completion":
            self._completion(document)
        elif kind == "error":
            self._error(text_at(document, "message")[:4_000])

    def verdict(self, end: End) -> Verdict:
        if self.result_seen:
            return self.good_end("it ended with a completion")
        if self.denials:
            return Verdict(Outcome.DENIED, self.refusals())
        if self._failure:
            return failure_verdict(self._failure)
        return self.no_end(end, "a completion")

    def _message(self, document: Document) -> None:
        text = text_at(document, "text")
        if document.get("role") != "assistant" or not text or _NOT_ALLOWED in text:
            return
        self.answered()
        self._failure = ""
        self.words.say(text)
        self.step("text", text)

    def _tool_result(self, document: Document) -> None:
        call_id = text_at(document, "id")
        problem = text_at(document_at(document, "error"), "message")
        if _NOT_ALLOWED in problem:
            self.refused(call_id, text_at(document, "toolId"))
        self.call_ended(call_id, ok=document.get("isError") is not True)

    def _completion(self, document: Document) -> None:
        usage = document_at(document, "usage")
        self.used = Usage(
            input_tokens=count_at(usage, "input_tokens"),
            output_tokens=count_at(usage, "output_tokens"),
            cache_read_tokens=count_at(usage, "cache_read_input_tokens"),
            cache_write_tokens=count_at(usage, "cache_creation_input_tokens"),
        )
        self.words.finish_with(text_at(document, "finalText"))
        self.result_seen = True
        self.step("result", "completed", ok=True)

    def _error(self, message: str) -> None:
        self.complained(message)
        self.words.nothing_is_final()
        if message != _SAYS_NOTHING or not self._failure:
            self._failure = message
        self.step("result", message, ok=False)
