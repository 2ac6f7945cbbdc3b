"""The outcome of one start, once the supervisor's own knowledge is added to the reader's."""

from __future__ import annotations

from ralphloop.core.model import Evidence, Outcome, ProcessEnd, Response

_GOOD = frozenset({Outcome.COMPLETED, Outcome.DENIED, Outcome.EMPTY})


def settle(response: Response, end: ProcessEnd, evidence: Evidence) -> Outcome:
    """How the start ended: our clocks beat the exit code, a good result beats our clocks."""
    if end.interrupted:
        return Outcome.INTERRUPTED
    if response.outcome in _GOOD:
        return _settle_denial(response, evidence)
    if end.timed_out:
        return Outcome.TIMEOUT
    if end.stalled:
        waited_for_api = response.retrying or not response.model_output
        return Outcome.TRANSIENT if waited_for_api else Outcome.STALLED
    return response.outcome


def _settle_denial(response: Response, evidence: Evidence) -> Outcome:
    """Refused tools matter only if nothing came of the start."""
    if response.outcome is not Outcome.DENIED:
        return response.outcome
    changed = evidence.files_changed
    if changed is None:
        changed = response.status.files_modified if response.status else None
    return Outcome.COMPLETED if changed else Outcome.DENIED
