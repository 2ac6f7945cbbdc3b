"""The messages of an agent that speaks ACP, the Agent Client Protocol: JSON-RPC, one object a line.

We speak with fixed ids: `initialize`, then `session/new` or `session/load`, then `session/prompt`,
whose answer ends the turn.  What the agent asks of us in between is kept for whoever answers it
(`agents.acp_client`).  What a loaded session replays is old and counts for nothing.

An `end_turn` is no success by itself: some agents tell an error of the API in its text.  Usage is a
lower bound: some report each step, some the whole turn at its end, some only the last step, and
most how full the context was with each step.
"""

from ralphloop.core.model import Outcome, Usage
from ralphloop.readers.base import Dialect, End
from ralphloop.readers.failures import Verdict, failure_verdict, last_words_verdict
from ralphloop.readers.values import (
    Document,
    amount_of,
    count_at,
    document_at,
    document_of,
    documents_at,
    short_text_of,
    text_at,
)
from ralphloop.text.plain import one_line

INITIALIZE = 1
SESSION = 2
PROMPT = 3

PROTOCOL = 1

_AUTH_REQUIRED = -32_000
_NO_OWNER = frozenset({Outcome.ERROR, Outcome.FATAL})
_GOOD_ENDS = frozenset({"", "end_turn"})
_LIMITS = {
    "max_tokens": "the answer reached the output limit",
    "max_turn_requests": "too many turns",
}
_NOTICES = ("Error: ", "Info: ", "Warning: ")  # how a CLI begins what it says in the model's place
_LONGEST_ERROR = 1_000
_MOST_WAITING = 1_000
_MOST_CALLS = 200


class Acp(Dialect):
    name = "acp"

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[Document] = []  # what the agent sent that somebody has to answer
        self.can_load = False
        self._stop_reason = ""
        self._failure: Document = {}  # an error in place of a result
        self._failed_at = 0
        self._in_session = False  # what comes before is a replay
        self._answered: set[int] = set()  # our own requests that were
        self._logins: list[str] = []  # the ways to log in that it names
        self._told_calls: dict[str, Document] = {}  # everything said of a call, in many messages
        self._notice = ""  # the CLI's own error, said since the model's last word
        self._steps_told = Usage()  # by agents that report each step
        self._context = 0  # tokens in the context, over all steps
        self._last_context = 0
        self._turn_told = Usage()
        self._cost: float | None = None

    @staticmethod
    def knows(document: Document) -> bool:
        return document.get("jsonrpc") == "2.0"

    @property
    def usage(self) -> Usage:
        told = self._steps_told
        if self._turn_told.total_tokens > told.total_tokens:
            told = self._turn_told
        if self._context > told.total_tokens:
            told = Usage(input_tokens=self._context, estimated=True)
        if self._cost is None:
            return told
        return told + Usage(cost_usd=self._cost)

    def see(self, document: Document) -> None:
        method = text_at(document, "method")
        if method == "session/update":
            params = document_at(document, "params")
            if text_at(params, "sessionId") in ("", self.session_id):
                self._update(document_at(params, "update"))
            else:
                self.answered()  # a session of its own making is at work: not the agent's words
        elif method:
            if "id" in document and len(self.waiting) < _MOST_WAITING:
                self.waiting.append(document)
        elif "id" in document:
            self._answer(document)

    def verdict(self, end: End) -> Verdict:
        if self._failure:
            return self._verdict_on_failure()
        if not self.result_seen:
            return self.no_end(end, "an answer to its prompt")
        if self._stop_reason == "cancelled":
            return Verdict(Outcome.INTERRUPTED, "the turn was cancelled")
        if self._stop_reason == "refusal":
            return Verdict(Outcome.ERROR, "the model refused the request")
        if words := _LIMITS.get(self._stop_reason):
            return Verdict(Outcome.LIMIT, f"{words} ({self._stop_reason})")
        if self._stop_reason not in _GOOD_ENDS:
            return self._told_error() or Verdict(
                Outcome.ERROR, f"the turn ended with {one_line(self._stop_reason, 80)}"
            )
        if meaning := self._told_error():
            return meaning
        return self.good_end("the turn ended")

    def _told_error(self) -> Verdict | None:
        """What the text of a turn that ended well says went wrong, where it is an error's."""
        if self._notice:
            return last_words_verdict(self._notice) or failure_verdict(self._notice)
        said = (self.words.final_text or "").strip()
        is_short = 0 < len(said) <= _LONGEST_ERROR and self.words.status is None
        return last_words_verdict(said) if is_short else None

    def _verdict_on_failure(self) -> Verdict:
        message = text_at(self._failure, "message")
        more = _details_of(self._failure.get("data"))
        words = f"{message}: {more}"[:2_000] if more else message[:2_000] or "the agent failed"
        meaning = failure_verdict(words)
        if self._failure.get("code") == _AUTH_REQUIRED and meaning.outcome in _NO_OWNER:
            ways = f" ({', '.join(self._logins)})" if self._logins else ""
            return Verdict(Outcome.FATAL, f"{words}{ways}")
        is_start = self._failed_at != PROMPT
        if is_start and meaning.outcome is Outcome.ERROR:
            return Verdict(Outcome.STARTUP_ERROR, words)
        return meaning

    def _answer(self, document: Document) -> None:
        """One of our own requests is answered, for the first time."""
        number = _own_number(document.get("id"))
        if number in self._answered or number == 0:
            return
        self._answered.add(number)
        result = document_at(document, "result")
        failure = document_at(document, "error") or self._refused_by_us(number, result)
        if failure:
            self._fail(number, failure)
        elif number == INITIALIZE:
            self.can_load = document_at(result, "agentCapabilities").get("loadSession") is True
            ways = documents_at(result, "authMethods")[:5]
            self._logins = [
                one_line(text_at(one, "name") or text_at(one, "id"), 60) for one in ways
            ]
            self.waiting.append({"id": number})
        elif number == SESSION:
            self.session_id = short_text_of(result.get("sessionId")) or self.session_id
            self._in_session = True
            self.model = short_text_of(_model_of(result)) or self.model
            self.waiting.append({"id": number})
        else:
            self._stop_reason = text_at(result, "stopReason")
            self._turn_told = _tokens(document_at(result, "usage"))
            self.result_seen = True
            self.retrying = False
            self.words.last_is_final()
            self.step("result", self._stop_reason, ok=self._stop_reason in _GOOD_ENDS)

    def _refused_by_us(self, number: int, result: Document) -> Document:
        """Why we cannot go on from an answer; empty where we can."""
        if number == INITIALIZE:
            version = result.get("protocolVersion", PROTOCOL)
            if version != PROTOCOL:
                spoken = one_line(str(version), 20)
                return {"message": f"it speaks version {spoken} of ACP, ralph version {PROTOCOL}"}
        if number == SESSION and not (short_text_of(result.get("sessionId")) or self.session_id):
            return {"message": "it gave no session"}
        return {}

    def _fail(self, number: int, failure: Document) -> None:
        self._failure = failure
        self._failed_at = number
        self.retrying = False
        self.result_seen = True
        self.words.end()
        self.words.nothing_is_final()
        self.step("result", text_at(failure, "message"), ok=False)

    def _update(self, update: Document) -> None:
        kind = text_at(update, "sessionUpdate")
        if not self._in_session:
            return
        if kind == "agent_message_chunk":
            self._chunk(update)
        elif kind == "agent_thought_chunk":
            self.answered()
        elif kind == "tool_call":
            self.answered()
            self._notice = ""
            self._end_message()
            self.words.forget_last()
            self._tool_call(self.told_of(update))
            self._call_ended(update)
        elif kind == "tool_call_update":
            self.permission_asked(self.told_of(update))
            self._call_ended(update)
        elif kind == "usage_update":
            self._usage_update(update)

    def _chunk(self, update: Document) -> None:
        usage = _tokens(document_at(document_at(update, "_meta"), "usage"))
        self._steps_told += usage
        blocks = documents_at(update, "content") or [document_at(update, "content")]
        text = "".join(text_at(block, "text") for block in blocks)
        if not text:
            return
        if text.startswith(_NOTICES):
            self._say_notice(text)
            return
        self.answered()
        self._notice = ""
        self.words.add(text)

    def _say_notice(self, text: str) -> None:
        """The CLI speaks in the model's place: of a retry, or of what it failed at."""
        self._end_message()
        self.retrying = "etrying" in text
        if text.startswith("Error: "):
            self._notice = text[:4_000]
            self.complained(text)
        self.step("retry" if self.retrying else "status", text)

    def _end_message(self) -> None:
        if self.words.in_message:
            self.step("text", self.words.end())

    def told_of(self, update: Document) -> Document:
        """Everything that was said of a call so far: an update has only what is new."""
        key = text_at(update, "toolCallId")
        known = {name: value for name, value in update.items() if value is not None}
        whole = {**self._told_calls.pop(key, {}), **known}
        self._told_calls[key] = whole
        if len(self._told_calls) > _MOST_CALLS:
            del self._told_calls[next(iter(self._told_calls))]
        return whole

    def _call_ended(self, update: Document) -> None:
        status = text_at(update, "status")
        if status in ("completed", "failed"):
            self.call_ended(text_at(update, "toolCallId"), ok=status == "completed")

    def permission_asked(self, call: Document) -> None:
        """Some agents tell of a call only by asking whether they may make it."""
        is_named = bool(text_at(call, "title") or text_at(call, "kind"))
        if is_named and not self.call_known(text_at(call, "toolCallId")).name:
            self._tool_call(call)

    def _tool_call(self, update: Document) -> None:
        arguments = document_at(update, "rawInput")
        places = documents_at(update, "locations")
        if not arguments and places:
            arguments = {"path": text_at(places[0], "path")}
        name = text_at(update, "title") or text_at(update, "kind")
        self.call_began(text_at(update, "toolCallId"), name, arguments)

    def _usage_update(self, update: Document) -> None:
        used = count_at(update, "used")
        if used != self._last_context:
            self._context += used
            self._last_context = used
        cost = document_at(update, "cost")
        if text_at(cost, "currency") == "USD":
            self._cost = amount_of(cost.get("amount"))


def _own_number(number: object) -> int:
    """The request of ours that is answered; 0: none of them, whatever it looks like."""
    for own in (INITIALIZE, SESSION, PROMPT):
        if number == str(own) or (number == own and not isinstance(number, bool)):
            return own
    return 0


def _details_of(data: object) -> str:
    """What an error says besides its message, wherever an agent puts it."""
    if isinstance(data, str):
        return data
    if not isinstance(data, dict):
        return ""
    told = document_of(data)
    inner = document_at(told, "error")
    named = (text_at(told, "details"), text_at(told, "message"), text_at(inner, "message"))
    return next(filter(None, named), "")


def _model_of(session: Document) -> str:
    return text_at(document_at(session, "models"), "currentModelId")


def _tokens(usage: Document) -> Usage:
    """Tokens as ACP names them; input contains what the cache served where the total shows it."""
    fresh = count_at(usage, "inputTokens")
    output = count_at(usage, "outputTokens")
    read = count_at(usage, "cachedReadTokens")
    written = count_at(usage, "cachedWriteTokens")
    if count_at(usage, "totalTokens") < fresh + output + read + written:
        fresh = max(0, fresh - read - written)
    return Usage(
        input_tokens=fresh,
        output_tokens=output,
        cache_read_tokens=read,
        cache_write_tokens=written,
    )
