"""What earlier versions wrote in words alone, as the values that say it now.

Nothing else reads our own sentences.  What was written since has the value beside the words.
"""

from msgspec.structs import replace

from ralphloop.core.events import RunFinished
from ralphloop.core.iteration import Iteration, KeptAnswer
from ralphloop.core.model import Decision, RunLimit

_LIMITS = {f"(limits.{limit})": limit for limit in RunLimit}
_CRASHED = "crashed: "


def limit_named_in(reason: str) -> RunLimit | None:
    """The limit that ended a run, by the setting its reason names."""
    return next((limit for words, limit in _LIMITS.items() if words in reason), None)


def iteration_with_values(kept: Iteration) -> Iteration:
    """The iteration, with what its reasons name: the limit it ended by, what its agent died of."""
    response = kept.response
    decision = kept.decision
    if not response.crash and response.reason.startswith(_CRASHED):
        response = _with_crash(response)
    if decision.limit is None:
        decision = _with_limit(decision)
    if response is kept.response and decision is kept.decision:
        return kept
    return replace(kept, response=response, decision=decision)


def finish_with_values(told: RunFinished) -> RunFinished:
    """The end of a run, with the limit it ended by."""
    if told.limit is not None:
        return told
    return replace(told, limit=limit_named_in("; ".join(told.reasons)))


def _with_crash(answer: KeptAnswer) -> KeptAnswer:
    return replace(answer, crash=answer.reason.removeprefix(_CRASHED))


def _with_limit(decision: Decision) -> Decision:
    limit = limit_named_in("; ".join(decision.reasons))
    return decision if limit is None else replace(decision, limit=limit)
