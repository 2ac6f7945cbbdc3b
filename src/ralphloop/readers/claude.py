"""The events of Claude Code: `stream-json`, `json`, and `json --verbose` (an array).

* Of several turns, each with its own `init` and `result`, the last result counts, and a result
  followed by another turn is not the end.
* Only messages of the main agent are its words: no subagent (`parent_tool_use_id`, `agent_id`), no
  tool result, no `user` event, no `<synthetic>` message.  The result repeats the last message.
* The text of a failed result was written by the CLI.
* How it ended: `subtype: success` says nothing and exit code 0 says little; the first that applies
  of `is_error`, `terminal_reason` and the API error gives the outcome, the CLI's words the reason.
"""

from itertools import islice

from ralphloop.core.model import Outcome, RateLimit, Usage
from ralphloop.core.totals import Window, updated
from ralphloop.readers.base import Dialect, End, summarise
from ralphloop.readers.claude_usage import ClaudeUsage
from ralphloop.readers.failures import Verdict, failure_verdict, sentence_verdict
from ralphloop.readers.values import (
    Document,
    count_at,
    count_of,
    document_at,
    document_of,
    documents_at,
    listed,
    share_of,
    short_text_of,
    status_code_of,
    text_at,
)
from ralphloop.text.plain import one_line

_DELTA = b'{"type":"stream_event","event":{"type":"content_block_delta",'
# The `error` of an api_retry event or of a failed message.
_FATAL_ERRORS = frozenset(
    "authentication_failed oauth_org_not_allowed account_on_hold verification_required"
    " billing_error model_not_found cloud_credential_error".split()
)
_BY_ERROR = {
    **dict.fromkeys(_FATAL_ERRORS, Outcome.FATAL),
    **dict.fromkeys(("server_error", "overloaded", "rate_limit"), Outcome.TRANSIENT),
    "max_output_tokens": Outcome.LIMIT,
}

# The agent's own limits: turns, money, context, attempts.
_LIMITS = frozenset(
    "max_turns budget_exhausted prompt_too_long structured_output_retry_exhausted blocking_limit"
    " rapid_refill_breaker error_max_turns error_max_budget_usd error_max_structured_output_retries"
    "".split()
)
_BUDGET_ENDED = "error_max_budget_usd"
_HOOK_BLOCKS = "UserPromptSubmit operation blocked by hook"  # the CLI's words, as a good result


class Claude(Dialect):
    name = "claude"
    glanceable = (_DELTA,)

    def __init__(self) -> None:
        super().__init__()
        self._usage = ClaudeUsage()
        self._result: Document | None = None
        self._api_error: Document = {}

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
        is_marked = "session_id" in document and "uuid" in document
        return is_marked or kind in ("stream_event", "rate_limit_event")

    @staticmethod
    def begins_like_others(document: Document) -> bool:
        return document.get("type") == "system" and "uuid" not in document

    @property
    def usage(self) -> Usage:
        return self._usage.value

    def glance(self) -> None:
        self.answered()
        self.result_seen = False

    def see(self, document: Document) -> None:
        session = document.get("session_id")
        if session != self.session_id:
            self.session_id = short_text_of(session) or self.session_id
        kind = text_at(document, "type")
        if kind == "stream_event":
            self._stream_event(document)
        elif kind == "assistant":
            self._assistant(document)
        elif kind == "user":
            self.retrying = False
            for block in documents_at(document_at(document, "message"), "content"):
                if block.get("type") == "tool_result":
                    ok = block.get("is_error") is not True
                    self.call_ended(text_at(block, "tool_use_id"), ok=ok)
        elif kind == "system":
            self._system(document)
        elif kind == "rate_limit_event":
            self._limit(document_at(document, "rate_limit_info"))
        elif kind == "result" or (not kind and "result" in document):
            self._end_of_turn(document)

    def verdict(self, end: End) -> Verdict:
        if (result := self._result) is not None:
            if _is_error(result):
                return self._failed_result(result)
            if self._api_error:  # a good result that is nothing but the error's sentence
                return self._failed_request({}, self.words.final_text or self._api_message())
            if result.get("structured_output") is not None and not self.denials:
                return Verdict(Outcome.COMPLETED, "it ended with structured output")
            said = self.words.final_text or ""
            if not self.model_output and said.startswith(_HOOK_BLOCKS):
                return Verdict(Outcome.ERROR, said.partition("\n\nOriginal prompt")[0])
            what = "it ended with a good result"
            return self.good_end(f"{what}; then exit code {end.exit_code}" if end.failed else what)
        if self.retrying and self.fatal_hint:  # whoever stopped the retries was right
            return Verdict(Outcome.FATAL, f"the API refuses: {self.fatal_hint}")
        if end.signal is None and self._api_error:
            return self._failed_request({}, self._api_message())
        return self.no_end(end, "a result")

    def _failed_result(self, result: Document) -> Verdict:
        terminal = text_at(result, "terminal_reason")
        subtype = text_at(result, "subtype")
        startup = text_at(result, "startup_failure_reason")
        errors = listed(result.get("errors"), str)[:3]  # a diagnostic is for its makers
        errors = [text for text in errors if not text.startswith("[ede_diagnostic]")]
        told = text_at(document_at(result, "error"), "message")  # by its kin, such as Qwen Code
        words = self.words.final_text or "; ".join(filter(None, errors)) or told
        words = (words or self._api_message())[:2_000] or startup or terminal or subtype
        if self._is_usage_limit(result):
            return Verdict(Outcome.USAGE_LIMIT, words)
        if terminal.startswith("aborted"):
            return Verdict(Outcome.INTERRUPTED, words)
        if terminal in _LIMITS or subtype in _LIMITS:
            return Verdict(Outcome.LIMIT, words)
        if startup or (subtype == "error_during_execution" and not count_at(result, "num_turns")):
            return Verdict(Outcome.STARTUP_ERROR, words)  # it ended before a turn
        return self._failed_request(result, words)

    def _failed_request(self, result: Document, words: str) -> Verdict:
        """What a request that failed for good means, by the CLI's words and codes for it."""
        error = text_at(self._api_error, "error")
        outcome = _BY_ERROR.get(error)
        if failure_verdict(words[:400]).outcome is Outcome.USAGE_LIMIT:
            outcome = Outcome.USAGE_LIMIT
        elif result.get("stop_reason") == "refusal":
            outcome = Outcome.ERROR
        elif self._is_usage_limit(result):
            outcome = Outcome.USAGE_LIMIT
        elif error not in _FATAL_ERRORS and self._api_word(result) == "connection_failed":
            outcome = Outcome.TRANSIENT
        if outcome:
            return Verdict(outcome, words or error)
        by_words = sentence_verdict(words)
        told = (result.get("api_error_status"), self._api_error.get("api_error_status"))
        status = next(filter(None, map(status_code_of, told)), None)
        is_error_alone = bool(document_at(result, "error"))
        if by_words is None and (status is not None or is_error_alone):
            return failure_verdict(words, status)
        return by_words or Verdict(Outcome.ERROR, words)

    def _is_usage_limit(self, result: Document) -> bool:
        by_rate = self.rate_limit.rejected and self._api_error.get("error") == "rate_limit"
        return by_rate or self._api_word(result) == "usage_limit_reached"

    def _api_word(self, result: Document) -> str:
        return text_at(result, "api_error") or text_at(self._api_error, "api_error")

    def _api_message(self) -> str:
        blocks = documents_at(document_at(self._api_error, "message"), "content")
        return " ".join(text_at(block, "text") for block in blocks[:3])[:2_000]

    def _stream_event(self, document: Document) -> None:
        event = document_at(document, "event")
        kind = text_at(event, "type")
        if kind in ("content_block_start", "content_block_delta"):
            self.glance()
        elif kind == "message_start":
            message = document_at(event, "message")
            self._usage.streamed(text_at(message, "id"), document_at(message, "usage"))
        elif kind == "message_delta":
            message_id = text_at(document, "api_message_id")
            self._usage.streamed(message_id, document_at(event, "usage"))

    def _assistant(self, document: Document) -> None:
        message = document_at(document, "message")
        if document.get("is_api_error_message"):  # the CLI speaks: a request failed for good
            self._api_error = document
            self.complained(self._api_message())
            self.retrying = False
            if info := document_at(document_at(document, "api_error_params"), "rate_limit_info"):
                self._limit(info)
            return
        if message.get("model") == "<synthetic>":
            return
        if _is_error_sentence(message):
            self._api_error = document
            self.complained(self._api_message())
            return
        self.glance()
        self._api_error = {}
        self._usage.streamed(text_at(message, "id"), document_at(message, "usage"))
        own = not (document.get("parent_tool_use_id") or document.get("agent_id"))
        if own and (model := short_text_of(message.get("model"))):
            self.model = model
        for block in documents_at(message, "content"):
            kind = block.get("type")
            text = text_at(block, "text")
            if kind == "text" and text and own:
                self.words.say(text)
                self.step("text", text)
            elif kind == "tool_use":
                call_id = text_at(block, "id")
                name = text_at(block, "name")
                self.call_began(call_id, name, document_at(block, "input"))

    def _system(self, document: Document) -> None:
        kind = document.get("subtype")
        if kind == "init":
            self.result_seen = False
            self.model = short_text_of(document.get("model")) or self.model
        elif kind == "api_retry":
            self.retrying = True
            error = text_at(document, "error")
            status = status_code_of(document.get("error_status"))
            what = f"{error or 'unknown'} ({status})" if status else error or "unknown"
            self.fatal_hint = one_line(what) if error in _FATAL_ERRORS else None
            attempt = count_at(document, "attempt")
            most = count_at(document, "max_retries")
            self.step("retry", f"API: {what}, attempt {attempt} of {most}", ok=False)
        elif kind == "permission_denied":
            call_id = text_at(document, "tool_use_id")
            tool = text_at(document, "tool_name")
            self.refused(call_id, tool)
            self.step("tool_result", f"{tool} refused: {text_at(document, 'message')}", ok=False)
        elif kind == "model_fallback":
            self.model = short_text_of(document.get("fallback_model")) or self.model
        elif kind == "status" and document.get("status") == "compacting":
            self.step("status", "compacting the conversation")

    def _limit(self, info: Document) -> None:
        kind = text_at(info, "rateLimitType")[:40]
        status = text_at(info, "status")
        told = islice(document_at(info, "unifiedWindows").items(), 10)
        windows = []
        for name, window in (*told, (kind, info)):
            share = share_of(document_of(window).get("utilization"))
            if share is not None and name != "overage":  # that is money
                resets_at = count_at(document_of(window), "resetsAt") or None
                windows.append(Window(kind=name[:40], used=share, resets_at=resets_at))
        self.rate_limit = RateLimit(
            rejected=status == "rejected" and info.get("isUsingOverage") is not True,
            resets_at=count_at(info, "resetsAt") or None,
            windows=updated(self.rate_limit.windows, windows),
        )
        if status not in ("", "allowed"):
            how = "reached" if status == "rejected" else "near"
            self.step("limit", f"{Window(kind=kind).name} limit {how}", ok=how == "near")

    def _end_of_turn(self, document: Document) -> None:
        self.budget_ended = text_at(document, "subtype") == _BUDGET_ENDED
        self._result = {key: value for key, value in document.items() if key != "result"}
        self.result_seen = True
        self.retrying = False
        self._usage.reported(document)
        refused = document.get("stop_reason") == "refusal"  # its few tokens are no answer
        if count_at(document_at(document, "usage"), "output_tokens") and not refused:
            self.model_output = True
        for denial in documents_at(document, "permission_denials"):
            summary = summarise(document_at(denial, "tool_input"))
            call_id = text_at(denial, "tool_use_id")
            tool = text_at(denial, "tool_name")
            self.refused(call_id, tool, summary)
        text = document.get("result")
        good = not (_is_error(document) or self._api_error)
        if not isinstance(text, str):
            self.words.nothing_is_final()
        elif good:
            self.words.finish_with(text)
        else:
            self.words.finish_with_foreign(text)
        self.step("result", text_at(document, "result") or text_at(document, "subtype"), ok=good)


def _is_error_sentence(message: Document) -> bool:
    """Whether a message that used no tokens is the CLI's own word about a request that failed."""
    usage = document_at(message, "usage")
    is_free = bool(usage) and not any(count_of(value) for value in usage.values())
    texts = [text_at(block, "text") for block in documents_at(message, "content")]
    return is_free and len(texts) == 1 and texts[0].startswith("[API Error")


def _is_error(result: Document) -> bool:
    return bool(result.get("is_error")) or text_at(result, "subtype").startswith("error")
