"""How a start of Claude Code ended.

`subtype: success` says nothing and exit code 0 says little: the order is `is_error`, then
`terminal_reason`, then the API error.  The first that applies gives the outcome, and the words of
the CLI are the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ralphloop.core.model import Outcome
from ralphloop.readers.failures import (
    Verdict,
    announces_limit,
    failure_verdict,
    sentence_verdict,
)
from ralphloop.readers.values import (
    Document,
    count_at,
    documents_at,
    status_code_of,
    text_at,
    texts_at,
)

if TYPE_CHECKING:
    from ralphloop.readers.base import Dialect, End


# The `error` of an api_retry event or of a failed message.
FATAL_ERRORS = frozenset(
    "authentication_failed oauth_org_not_allowed account_on_hold verification_required"
    " billing_error model_not_found cloud_credential_error".split()
)
_PASSING_ERRORS = frozenset({"server_error", "overloaded", "rate_limit"})

# The agent's own limits: turns, money, context, attempts.
_LIMITS = frozenset(
    "max_turns budget_exhausted prompt_too_long structured_output_retry_exhausted blocking_limit"
    " rapid_refill_breaker error_max_turns error_max_budget_usd error_max_structured_output_retries"
    "".split()
)


class Facts(NamedTuple):
    """What the events left behind."""

    result: Document | None  # without its text
    api_error: Document  # the last failed request, if nothing came after it
    retry_error: str = ""  # of a retry that was the last sign of life
    limit_rejected: bool = False

    @property
    def told(self) -> Document:
        return self.result or {}

    @property
    def error(self) -> str:
        """What kind of API error it was, in the CLI's words."""
        return text_at(self.api_error, "error")

    @property
    def api_word(self) -> str:
        return text_at(self.told, "api_error") or text_at(self.api_error, "api_error")

    @property
    def is_usage_limit(self) -> bool:
        return self.api_word == "usage_limit_reached" or (
            self.limit_rejected and self.error == "rate_limit"
        )


_DIAGNOSTIC = "[ede_diagnostic]"  # for its makers; tells a user nothing


def is_error(result: Document) -> bool:
    return bool(result.get("is_error")) or text_at(result, "subtype").startswith("error")


def verdict_on(facts: Facts, seen: Dialect, end: End) -> Verdict:
    """The outcome of a start, from its last result or from the lack of one."""
    if facts.result is not None:
        failed = is_error(facts.result)
        return _failed(facts, seen.words.final_text or "") if failed else _good(facts, seen, end)
    if facts.retry_error in FATAL_ERRORS:  # whoever stopped the retries was right
        return Verdict(Outcome.FATAL, f"the API refuses: {facts.retry_error}")
    if end.signal is None and facts.api_error:
        return failed_request(facts, _message_text(facts.api_error))
    return seen.no_end(end, "a result")


def _good(facts: Facts, seen: Dialect, end: End) -> Verdict:
    if facts.told.get("structured_output") is not None and not seen.denials:
        return Verdict(Outcome.COMPLETED, "it ended with structured output")
    what = "it ended with a good result"
    return seen.good_end(f"{what}; then exit code {end.exit_code}" if end.failed else what)


def _failed(facts: Facts, final: str) -> Verdict:
    told = facts.told
    terminal, subtype = text_at(told, "terminal_reason"), text_at(told, "subtype")
    startup = text_at(told, "startup_failure_reason")
    errors = [error for error in texts_at(told, "errors")[:3] if not error.startswith(_DIAGNOSTIC)]
    words = (final or "; ".join(filter(None, errors)) or _message_text(facts.api_error))[:2_000]
    words = words or startup or terminal or subtype
    if facts.is_usage_limit:
        return Verdict(Outcome.USAGE_LIMIT, words)
    if terminal.startswith("aborted"):
        return Verdict(Outcome.INTERRUPTED, words)
    if terminal in _LIMITS or subtype in _LIMITS:
        return Verdict(Outcome.LIMIT, words)
    if startup or (subtype == "error_during_execution" and not count_at(told, "num_turns")):
        return Verdict(Outcome.STARTUP_ERROR, words)  # it ended before a turn
    return failed_request(facts, words)


def failed_request(facts: Facts, words: str) -> Verdict:
    """What a request that failed for good means, by the CLI's words and codes for it."""
    if announces_limit(words):
        return Verdict(Outcome.USAGE_LIMIT, words)
    if outcome := _by_code(facts):
        return Verdict(outcome, words or facts.error)
    by_words = sentence_verdict(words)
    status = status_code_of(facts.told.get("api_error_status")) or status_code_of(
        facts.api_error.get("api_error_status")
    )
    if by_words is None and status is not None:
        return failure_verdict(words, status)
    return by_words or Verdict(Outcome.ERROR, words)


def _by_code(facts: Facts) -> Outcome | None:
    if facts.told.get("stop_reason") == "refusal":
        return Outcome.ERROR
    if facts.is_usage_limit:
        return Outcome.USAGE_LIMIT
    if facts.error in FATAL_ERRORS:
        return Outcome.FATAL
    if facts.api_word == "connection_failed" or facts.error in _PASSING_ERRORS:
        return Outcome.TRANSIENT
    return Outcome.LIMIT if facts.error == "max_output_tokens" else None


def _message_text(message_event: Document) -> str:
    blocks = documents_at(message_event, "message", "content")
    return " ".join(text_at(block, "text") for block in blocks[:3])[:2_000]
