"""A turn ended in an API error: the outcome is written down, and the loop waits for the next turn.

Claude Code ignores what such a hook answers, so nothing can be decided for the session.  What can
never work (no login, no money, no such model) ends the loop; the rest leaves it ready to go on.
"""

from __future__ import annotations

import os

import msgspec

from ralphloop.agents.environment import local_time
from ralphloop.core.model import Decision, Outcome, RateLimit, Response
from ralphloop.hook.answer import Answer
from ralphloop.hook.stop import count_usage, finish, let_go
from ralphloop.hook.turn import Call, Turn
from ralphloop.loop.loop import not_again
from ralphloop.readers.claude_outcome import Facts, failed_request
from ralphloop.readers.failures import Verdict, limit_kind, reset_time

_OWN_LIMITS = frozenset({"max_output_tokens"})


def failed(call: Call, turn: Turn) -> Answer | None:
    """Record how the turn ended."""
    judged, decision = finish(call, turn, _response(call, turn))
    decision = decision or not_again(turn.runner)
    begun = turn.begin() if decision is None else decision
    return let_go(turn, begun, judged) if isinstance(begun, Decision) else None


def _response(call: Call, turn: Turn) -> Response:
    verdict = _verdict(call)
    usage, model = count_usage(call, turn)
    response = Response(
        reader="hook",
        outcome=verdict.outcome,
        reason=verdict.reason,
        usage=usage,
        model=model or None,
        model_output=usage.output_tokens > 0,
    )
    if verdict.outcome is not Outcome.USAGE_LIMIT:
        return response
    limit = RateLimit(
        rejected=True,
        resets_at=reset_time(verdict.reason, local_time(call.now, os.environ)),
        kind=limit_kind(verdict.reason),
    )
    return msgspec.structs.replace(response, rate_limit=limit)


def _verdict(call: Call) -> Verdict:
    """What the error means; the same tables as for a start that we made ourselves."""
    error = call.text("error")
    words = call.text("last_assistant_message") or call.text("error_details") or error
    if error in _OWN_LIMITS:
        return Verdict(Outcome.LIMIT, words)
    verdict = failed_request(Facts(None, {"error": error or "unknown"}), words[:2_000])
    if verdict.outcome is Outcome.ERROR and error in ("", "unknown"):
        return Verdict(Outcome.TRANSIENT, verdict.reason)  # nobody knows: try again
    return verdict
