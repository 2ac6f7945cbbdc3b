"""How a start of Claude Code ended.

`subtype: success` says nothing and exit code 0 says little: the order is `is_error`, then
`terminal_reason`, then the API error.  Each table is read from the top; the first row that applies
gives the outcome, and the words of the CLI are the reason.
"""

from __future__ import annotations

from collections.abc import Callable
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
    count_of,
    document_of,
    documents_of,
    list_of,
    status_code_of,
    text_of,
)

if TYPE_CHECKING:
    from ralphloop.readers.base import Dialect, End


# The `error` of an api_retry event or of a failed message.
FATAL_ERRORS = frozenset(
    {
        "authentication_failed",
        "oauth_org_not_allowed",
        "account_on_hold",
        "verification_required",
        "billing_error",
        "model_not_found",
        "cloud_credential_error",
    }
)
_PASSING_ERRORS = frozenset({"server_error", "overloaded", "rate_limit"})

# The agent's own limits: turns, money, context, attempts.
_LIMITS = frozenset(
    {
        "max_turns",
        "budget_exhausted",
        "prompt_too_long",
        "structured_output_retry_exhausted",
        "blocking_limit",
        "rapid_refill_breaker",
        "error_max_turns",
        "error_max_budget_usd",
        "error_max_structured_output_retries",
    }
)


class Facts(NamedTuple):
    """What the events left behind."""

    result: Document | None  # without its text
    api_error: Document  # the last failed request, if nothing came after it
    retry_error: str  # of a retry that was the last sign of life
    limit_rejected: bool

    @property
    def told(self) -> Document:
        return self.result or {}

    @property
    def terminal(self) -> str:
        return text_of(self.told.get("terminal_reason"))

    @property
    def subtype(self) -> str:
        return text_of(self.told.get("subtype"))

    @property
    def error(self) -> str:
        """What kind of API error it was, in the CLI's words."""
        return text_of(self.api_error.get("error"))

    @property
    def api_word(self) -> str:
        return text_of(self.told.get("api_error") or self.api_error.get("api_error"))

    @property
    def status(self) -> int | None:
        told = status_code_of(self.told.get("api_error_status"))
        return told or status_code_of(self.api_error.get("api_error_status"))

    @property
    def startup_reason(self) -> str:
        return text_of(self.told.get("startup_failure_reason"))

    @property
    def ended_before_a_turn(self) -> bool:
        never_ran = self.subtype == "error_during_execution" and not count_of(
            self.told.get("num_turns")
        )
        return bool(self.startup_reason) or never_ran

    @property
    def is_usage_limit(self) -> bool:
        return self.api_word == "usage_limit_reached" or (
            self.limit_rejected and self.error == "rate_limit"
        )


_DIAGNOSTIC = "[ede_diagnostic]"  # for its makers; tells a user nothing

_Test = Callable[[Facts], bool]

_FAILED_RESULT: tuple[tuple[_Test, Outcome], ...] = (
    (lambda facts: facts.is_usage_limit, Outcome.USAGE_LIMIT),
    (lambda facts: facts.terminal.startswith("aborted"), Outcome.INTERRUPTED),
    (lambda facts: facts.terminal in _LIMITS or facts.subtype in _LIMITS, Outcome.LIMIT),
    (lambda facts: facts.ended_before_a_turn, Outcome.STARTUP_ERROR),
)
_FAILED_REQUEST: tuple[tuple[_Test, Outcome], ...] = (
    (lambda facts: facts.told.get("stop_reason") == "refusal", Outcome.ERROR),
    (lambda facts: facts.is_usage_limit, Outcome.USAGE_LIMIT),
    (lambda facts: facts.error in FATAL_ERRORS, Outcome.FATAL),
    (lambda facts: facts.api_word == "connection_failed", Outcome.TRANSIENT),
    (lambda facts: facts.error in _PASSING_ERRORS, Outcome.TRANSIENT),
    (lambda facts: facts.error == "max_output_tokens", Outcome.LIMIT),
)


def verdict_on(facts: Facts, seen: Dialect, end: End) -> Verdict:
    """The outcome of a start, from its last result or from the lack of one."""
    if facts.result is None:
        return _without_result(facts, seen, end)
    if not (facts.result.get("is_error") or facts.subtype.startswith("error")):
        return _good(facts, seen, end)
    words = _words(facts, seen.words.final_text or "")
    outcome = _first(_FAILED_RESULT, facts)
    return Verdict(outcome, words) if outcome else _failed_request(facts, words)


def _good(facts: Facts, seen: Dialect, end: End) -> Verdict:
    if facts.told.get("structured_output") is not None and not seen.denials:
        return Verdict(Outcome.COMPLETED, "it ended with structured output")
    what = "it ended with a good result"
    return seen.good_end(f"{what}; then exit code {end.exit_code}" if end.failed else what)


def _without_result(facts: Facts, seen: Dialect, end: End) -> Verdict:
    if facts.retry_error in FATAL_ERRORS:  # whoever stopped the retries was right
        return Verdict(Outcome.FATAL, f"the API refuses: {facts.retry_error}")
    if end.signal is None and facts.api_error:
        return _failed_request(facts, _message_text(facts.api_error))
    return seen.no_end(end, "a result")


def _failed_request(facts: Facts, words: str) -> Verdict:
    if announces_limit(words):
        return Verdict(Outcome.USAGE_LIMIT, words)
    outcome = _first(_FAILED_REQUEST, facts)
    if outcome:
        return Verdict(outcome, words or facts.error)
    by_words = sentence_verdict(words)
    if by_words is None and facts.status is not None:
        return failure_verdict(words, facts.status)
    return by_words or Verdict(Outcome.ERROR, words)


def _first(table: tuple[tuple[_Test, Outcome], ...], facts: Facts) -> Outcome | None:
    return next((outcome for applies, outcome in table if applies(facts)), None)


def _words(facts: Facts, final: str) -> str:
    """The CLI's own explanation, best first."""
    errors = [text_of(error) for error in list_of(facts.told.get("errors"))[:3]]
    errors = [error for error in errors if error and not error.startswith(_DIAGNOSTIC)]
    explained = final or "; ".join(errors) or _message_text(facts.api_error)
    return explained[:2_000] or facts.startup_reason or facts.terminal or facts.subtype


def _message_text(message_event: Document) -> str:
    blocks = documents_of(document_of(message_event.get("message")).get("content"))
    return " ".join(text_of(block.get("text")) for block in blocks[:3])[:2_000]
