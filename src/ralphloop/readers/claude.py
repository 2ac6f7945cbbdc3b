"""The events of Claude Code: `stream-json`, `json`, and `json --verbose` (an array).

What is easy to get wrong, and settled here:

* There may be several turns, each with its own `init` and `result`; the last result counts, and a
  result followed by another turn is not the end.
* Only messages of the main agent are its words: no subagent (`parent_tool_use_id`, `agent_id`), no
  tool result, no `user` event, no `<synthetic>` message.  The result repeats the last message.
* The text of a failed result was written by the CLI.

The verdict is in `claude_outcome.py`, tokens and money in `claude_usage.py`.
"""

from __future__ import annotations

import msgspec

from ralphloop.core.model import RateLimit, Usage
from ralphloop.readers.base import Dialect, End
from ralphloop.readers.claude_outcome import FATAL_ERRORS, Facts, verdict_on
from ralphloop.readers.claude_usage import ClaudeUsage
from ralphloop.readers.failures import Verdict
from ralphloop.readers.tools import summarise
from ralphloop.readers.values import (
    DAMAGES,
    Bytes,
    Document,
    count_of,
    document_of,
    documents_of,
    list_of,
    share_of,
    short_text_of,
    status_code_of,
    text_of,
)
from ralphloop.text.plain import one_line

_TYPES = frozenset({"assistant", "user", "system", "result", "stream_event", "rate_limit_event"})
_GROWING = frozenset({"content_block_start", "content_block_delta"})
_DELTA = b'{"type":"stream_event","event":{"type":"content_block_delta",'
_USER = b'{"type":"user",'
_MOST_SKILLS = 200
_MOST_PLUGIN_ERRORS = 20


class _Result(msgspec.Struct):
    """A content block of a `user` event, as far as it matters."""

    type: str = ""
    tool_use_id: str = ""
    is_error: bool | None = None


class _Results(msgspec.Struct):
    content: list[_Result] | str = ""


class _UserEvent(msgspec.Struct):
    message: _Results


_RESULTS = msgspec.json.Decoder(_UserEvent)


class Claude(Dialect):
    """Collects what Claude Code reports."""

    name = "claude"
    glanceable = (_DELTA, _USER)

    def __init__(self) -> None:
        super().__init__()
        self._usage = ClaudeUsage()
        self._result: Document | None = None
        self._api_error: Document = {}
        self._retry: Document = {}

    @staticmethod
    def knows(document: Document) -> bool:
        kind = document.get("type")
        if kind is None:
            return isinstance(document.get("result"), str)
        if kind == "result":
            return "subtype" in document or "is_error" in document or "result" in document
        if kind in ("assistant", "user"):
            return isinstance(document.get("message"), dict)
        if kind == "system":
            return "subtype" in document
        return text_of(kind) in _TYPES or ("session_id" in document and "uuid" in document)

    @property
    def usage(self) -> Usage:
        return self._usage.value

    def glance(self, line: Bytes) -> bool:
        if line.startswith(_USER):
            return self._glance_at_results(line)
        self._working()
        return True

    def _glance_at_results(self, line: Bytes) -> bool:
        """Which calls ended and how, without decoding what may be megabytes of their output."""
        try:
            event = _RESULTS.decode(line)
        except DAMAGES:
            return False
        self.retrying = False
        for block in event.message.content:
            if isinstance(block, _Result) and block.type == "tool_result":
                self.call_ended(block.tool_use_id, ok=block.is_error is not True)
        return True

    def see(self, document: Document) -> None:
        session = document.get("session_id")
        if session != self.session_id:
            self.session_id = short_text_of(session) or self.session_id
        kind = text_of(document.get("type"))
        if kind == "stream_event":
            self._stream_event(document)
        elif kind == "assistant":
            self._assistant(document)
        elif kind == "user":
            self._user(document)
        elif kind == "system":
            self._system(document)
        elif kind == "rate_limit_event":
            self._limit(document_of(document.get("rate_limit_info")))
        elif kind == "result" or (not kind and "result" in document):
            self._end_of_turn(document)

    def verdict(self, end: End) -> Verdict:
        facts = Facts(
            result=self._result,
            api_error=self._api_error,
            retry_error=text_of(self._retry.get("error")) if self.retrying else "",
            limit_rejected=bool(self.rate_limit and self.rate_limit.rejected),
        )
        return verdict_on(facts, self, end)

    def _stream_event(self, document: Document) -> None:
        event = document_of(document.get("event"))
        kind = text_of(event.get("type"))
        if kind in _GROWING:
            self._working()
        elif kind == "message_start":
            message = document_of(event.get("message"))
            self._usage.streamed(text_of(message.get("id")), document_of(message.get("usage")))
        elif kind == "message_delta":
            message_id = text_of(document.get("api_message_id"))
            self._usage.streamed(message_id, document_of(event.get("usage")))

    def _working(self) -> None:
        self.answered()
        self.result_seen = False

    def _assistant(self, document: Document) -> None:
        message = document_of(document.get("message"))
        if document.get("is_api_error_message"):
            self._failed(document)
            return
        if message.get("model") == "<synthetic>":
            return
        self._working()
        self._api_error = {}
        self._usage.streamed(text_of(message.get("id")), document_of(message.get("usage")))
        own = not (document.get("parent_tool_use_id") or document.get("agent_id"))
        if own and (model := short_text_of(message.get("model"))):
            self.model = model
        for block in documents_of(message.get("content")):
            self._block(block, own=own)

    def _block(self, block: Document, *, own: bool) -> None:
        kind = block.get("type")
        text = text_of(block.get("text"))
        if kind == "text" and text and own:
            self.words.say(text)
            self.step("text", text)
        elif kind == "tool_use":
            arguments = document_of(block.get("input"))
            call_id, name = text_of(block.get("id")), text_of(block.get("name"))
            self.call_began(call_id, name, arguments)

    def _failed(self, document: Document) -> None:
        """The CLI speaks: a request failed for good."""
        self._api_error = document
        self.retrying = False
        parameters = document_of(document.get("api_error_params"))
        if info := document_of(parameters.get("rate_limit_info")):
            self._limit(info)

    def _user(self, document: Document) -> None:
        self.retrying = False
        for block in documents_of(document_of(document.get("message")).get("content")):
            if block.get("type") == "tool_result":
                ok = block.get("is_error") is not True
                self.call_ended(text_of(block.get("tool_use_id")), ok=ok)

    def _system(self, document: Document) -> None:
        kind = document.get("subtype")
        if kind == "init":
            self._init(document)
        elif kind == "api_retry":
            self._retried(document)
        elif kind == "permission_denied":
            self._denied(document)
        elif kind == "model_fallback":
            self.model = short_text_of(document.get("fallback_model")) or self.model
        elif kind == "status" and document.get("status") == "compacting":
            self.step("status", "compacting the conversation")

    def _init(self, document: Document) -> None:
        self.result_seen = False
        self.model = short_text_of(document.get("model")) or self.model
        skills = list_of(document.get("skills"))[:_MOST_SKILLS]
        self.skills = tuple(one_line(skill, 100) for skill in skills if isinstance(skill, str))
        problems = documents_of(document.get("plugin_errors"))[:_MOST_PLUGIN_ERRORS]
        self.plugin_errors = tuple(_plugin_error(problem) for problem in problems)

    def _retried(self, document: Document) -> None:
        self._retry = document
        self.retrying = True
        error = text_of(document.get("error"))
        status = status_code_of(document.get("error_status"))
        what = f"{error or 'unknown'} ({status})" if status else error or "unknown"
        if error in FATAL_ERRORS:
            self.fatal_hint = one_line(what)
        attempt, most = count_of(document.get("attempt")), count_of(document.get("max_retries"))
        self.step("retry", f"API: {what}, attempt {attempt} of {most}", ok=False)

    def _denied(self, document: Document) -> None:
        call_id, tool = text_of(document.get("tool_use_id")), text_of(document.get("tool_name"))
        self.denials.add(call_id, tool, self.tools.summary_of(call_id))
        self.step("tool_result", f"{tool} refused: {text_of(document.get('message'))}", ok=False)

    def _limit(self, info: Document) -> None:
        kind = text_of(info.get("rateLimitType"))[:40]
        window = document_of(document_of(info.get("unifiedWindows")).get(kind))
        share = share_of(info.get("utilization"))
        status = text_of(info.get("status"))
        self.rate_limit = RateLimit(
            rejected=status == "rejected" and info.get("isUsingOverage") is not True,
            resets_at=count_of(info.get("resetsAt")) or None,
            kind=kind,
            utilization=share if share is not None else share_of(window.get("utilization")),
        )
        if status not in ("", "allowed"):
            self.step("limit", f"{kind or 'usage'} limit: {status}", ok=status != "rejected")

    def _end_of_turn(self, document: Document) -> None:
        self._result = {key: value for key, value in document.items() if key != "result"}
        self.result_seen, self.retrying = True, False
        self._usage.reported(document)
        if count_of(document_of(document.get("usage")).get("output_tokens")):
            self.model_output = True
        for denial in documents_of(document.get("permission_denials")):
            self._denied_in_result(denial)
        text = document.get("result")
        good = not is_error(document)
        if not isinstance(text, str):
            self.words.nothing_is_final()
        elif good:
            self.words.finish_with(text)
        else:
            self.words.finish_with_foreign(text)
        self.step("result", text_of(text) or text_of(document.get("subtype")), ok=good)

    def _denied_in_result(self, denial: Document) -> None:
        summary = summarise(document_of(denial.get("tool_input")))
        self.denials.add(
            text_of(denial.get("tool_use_id")), text_of(denial.get("tool_name")), summary
        )


def is_error(result: Document) -> bool:
    return bool(result.get("is_error")) or text_of(result.get("subtype")).startswith("error")


def _plugin_error(problem: Document) -> str:
    plugin, message = text_of(problem.get("plugin")), text_of(problem.get("message"))
    return one_line(f"{plugin}: {message or text_of(problem.get('type'))}")
