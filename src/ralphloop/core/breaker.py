"""The circuit breaker: pure transitions over what an iteration showed.

    CLOSED ──[no progress × threshold]──► HALF_OPEN ──[still none]──► OPEN
       ▲                                      │                        │
       └──────────────[progress]──────────────┘      [reset] ► CLOSED, [cool-down] ► HALF_OPEN

The same error `same_error_threshold` times opens it from any state.  Preset `strict` skips
HALF_OPEN and also opens on an output decline.  Infrastructure endings never count; progress made
before one still closes HALF_OPEN.  A story that begins to wait for a person is nobody's lack of
progress: only the count of the same error goes on.
"""

import msgspec

from ralphloop.core.model import Circuit, Transition, Value
from ralphloop.core.policy import Policy, Preset

MAX_HISTORY = 50


class BreakerState(Value, kw_only=True):
    circuit: Circuit = Circuit.CLOSED
    reason: str = ""
    since: float | None = None
    no_progress: int = 0
    same_error: int = 0
    last_error: str | None = None
    by_check: bool = False  # that error is a check's, not the agent's word
    opened_count: int = 0
    history: tuple[Transition, ...] = ()


class BreakerInput(Value, kw_only=True):
    """What one iteration showed, as far as the breaker cares."""

    iteration: int
    progress: bool
    infrastructure: bool = False
    waits: bool = False  # its story asks a person; others may go on
    error: str | None = None
    by_check: bool = False  # the error is a check's
    checked: bool = False  # checks ran, so what they do not show is gone
    relieved: bool = False  # a story or check newly passed: the error's row starts anew
    output_declined: str | None = None  # the words, if output fell
    at: float | None = None


def step(state: BreakerState, seen: BreakerInput, policy: Policy) -> BreakerState:
    """The state after an iteration; a change is the last entry of its history."""
    state = cool_down(state, iteration=seen.iteration, at=seen.at, policy=policy)
    if state.circuit is Circuit.OPEN or (seen.infrastructure and not seen.progress):
        return state
    state = _count(state, seen)
    target, reason = _target(state, seen, policy)
    moved = _move(state, target, reason, iteration=seen.iteration, at=seen.at)
    return state if target is state.circuit else moved


def cool_down(
    state: BreakerState, *, iteration: int, at: float | None, policy: Policy
) -> BreakerState:
    """OPEN -> HALF_OPEN once the optional cool-down has passed; a clock set back never locks."""
    if state.circuit is not Circuit.OPEN or policy.cooldown_minutes <= 0:
        return state
    if at is None or state.since is None or at - state.since < policy.cooldown_minutes * 60:
        return state
    reason = f"cool-down of {policy.cooldown_minutes:g} minutes is over"
    return _move(state, Circuit.HALF_OPEN, reason, iteration=iteration, at=at)


def reset(
    state: BreakerState, *, iteration: int, at: float | None = None, reason: str = "manual reset"
) -> BreakerState:
    """Back to CLOSED with both counts at zero; the history stays."""
    moved = _move(state, Circuit.CLOSED, reason, iteration=iteration, at=at)
    return msgspec.structs.replace(
        moved, no_progress=0, same_error=0, last_error=None, by_check=False
    )


def open_now(
    state: BreakerState, reason: str, *, iteration: int, at: float | None = None
) -> BreakerState:
    if state.circuit is Circuit.OPEN:
        return state
    return _move(state, Circuit.OPEN, reason, iteration=iteration, at=at)


def note(
    state: BreakerState, reason: str, *, iteration: int, at: float | None = None
) -> BreakerState:
    """An entry in the history that changes nothing, such as a BLOCKED story."""
    moved = _move(state, state.circuit, reason, iteration=iteration, at=at)
    return msgspec.structs.replace(state, history=moved.history)


def moves(before: BreakerState, after: BreakerState) -> tuple[Transition, ...]:
    """What changed the circuit between two states, oldest first; notes did not."""
    new = (entry for entry in after.history if entry not in before.history)
    return tuple(entry for entry in new if not entry.is_note)


def _count(state: BreakerState, seen: BreakerInput) -> BreakerState:
    no_progress = 0 if seen.progress else state.no_progress + (not seen.waits)
    if seen.infrastructure:  # only its progress counts
        return msgspec.structs.replace(state, no_progress=no_progress)
    if seen.error is None and state.by_check and not (seen.checked or seen.relieved):
        return msgspec.structs.replace(state, no_progress=no_progress)  # nobody looked for it
    goes_on = seen.error == state.last_error and not seen.relieved
    row = state.same_error + 1 if goes_on else 1
    return msgspec.structs.replace(
        state,
        no_progress=no_progress,
        same_error=row if seen.error is not None else 0,
        last_error=seen.error,
        by_check=seen.by_check,
    )


def _target(state: BreakerState, seen: BreakerInput, policy: Policy) -> tuple[Circuit, str]:
    """Where the counts lead, and why; `strict` goes through no HALF_OPEN."""
    strict = policy.preset is Preset.STRICT
    if not seen.infrastructure and 0 < policy.same_error_threshold <= state.same_error:
        return Circuit.OPEN, f"same error {state.same_error} times in a row: {state.last_error}"
    if seen.waits and not seen.progress:
        return state.circuit, ""
    if seen.output_declined and strict and not seen.progress:
        return Circuit.OPEN, seen.output_declined
    if state.circuit is Circuit.HALF_OPEN:
        if seen.progress:
            return Circuit.CLOSED, "progress was made"
        return Circuit.OPEN, f"still no progress after {state.no_progress} iterations"
    if 0 < policy.no_progress_threshold <= state.no_progress:
        reason = f"no progress in {state.no_progress} iterations in a row"
        return (Circuit.OPEN if strict else Circuit.HALF_OPEN), reason
    return state.circuit, ""


def _move(
    state: BreakerState, target: Circuit, reason: str, *, iteration: int, at: float | None
) -> BreakerState:
    before = state.circuit
    entry = Transition(iteration=iteration, before=before, after=target, reason=reason, at=at)
    return msgspec.structs.replace(
        state,
        circuit=target,
        reason=reason,
        since=at,
        opened_count=state.opened_count + (target is Circuit.OPEN),
        history=(*state.history, entry)[-MAX_HISTORY:],
    )
