"""The circuit breaker: pure transitions over what an iteration showed.

    CLOSED ──[no progress × threshold]──► HALF_OPEN ──[still none]──► OPEN
       ▲                                      │                        │
       └──────────────[progress]──────────────┘      [reset] ► CLOSED, [cool-down] ► HALF_OPEN

The same error `same_error_threshold` times opens it from any state; preset `strict` skips HALF_OPEN
and also opens on an output decline.  Infrastructure endings never count, but progress before one
closes HALF_OPEN.  A story that begins to wait for a person counts for the same error alone; what a
person answers, or sends back, makes HALF_OPEN of OPEN.
"""

from typing import NamedTuple

from msgspec.structs import replace

from ralphloop.core.model import Circuit, Transition, Value
from ralphloop.core.policy import Policy

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
    row_goes_on = seen.error == state.last_error and not seen.relieved
    is_unseen = seen.error is None and state.by_check and not (seen.checked or seen.relieved)
    no_progress = state.no_progress
    if seen.progress:
        no_progress = 0
    elif not seen.waits:
        no_progress += 1
    state = replace(state, no_progress=no_progress)
    if not (seen.infrastructure or is_unseen):  # nobody looked for an error there
        row = state.same_error + 1 if row_goes_on else 1
        state = replace(
            state,
            same_error=row if seen.error is not None else 0,
            last_error=seen.error,
            by_check=seen.by_check,
        )
    target = _target(state, seen, policy)
    if target.circuit is state.circuit:
        return state
    return _move(state, target.circuit, target.reason, iteration=seen.iteration, at=seen.at)


def cool_down(
    state: BreakerState, *, iteration: int, at: float | None, policy: Policy
) -> BreakerState:
    """OPEN -> HALF_OPEN once the optional cool-down has passed; a clock set back never locks."""
    if state.circuit is not Circuit.OPEN or policy.cooldown_minutes <= 0:
        return state
    if at is None or state.since is None or at - state.since < policy.cooldown_minutes * 60:
        return state
    reason = f"cool-down of {policy.cooldown_minutes:g} minutes is over"
    return half_open(state, reason, iteration=iteration, at=at)


def half_open(
    state: BreakerState, reason: str, *, iteration: int, at: float | None
) -> BreakerState:
    """HALF_OPEN: one more start without progress opens it again."""
    return _move(state, Circuit.HALF_OPEN, reason, iteration=iteration, at=at)


def reset(
    state: BreakerState, *, iteration: int, at: float | None = None, reason: str = "manual reset"
) -> BreakerState:
    """Back to CLOSED with both counts at zero; the history stays."""
    moved = _move(state, Circuit.CLOSED, reason, iteration=iteration, at=at)
    return replace(moved, no_progress=0, same_error=0, last_error=None, by_check=False)


def open_now(state: BreakerState, reason: str, *, iteration: int, at: float | None) -> BreakerState:
    if state.circuit is Circuit.OPEN:
        return state
    return _move(state, Circuit.OPEN, reason, iteration=iteration, at=at)


def note(state: BreakerState, reason: str, *, iteration: int, at: float | None) -> BreakerState:
    """An entry in the history that changes nothing, such as a BLOCKED story."""
    moved = _move(state, state.circuit, reason, iteration=iteration, at=at)
    return replace(state, history=moved.history)


def moves(before: BreakerState, after: BreakerState) -> tuple[Transition, ...]:
    """What changed the circuit between two states, oldest first; notes did not."""
    new = (entry for entry in after.history if entry not in before.history)
    return tuple(entry for entry in new if not entry.is_note)


class _Target(NamedTuple):
    circuit: Circuit
    reason: str = ""  # empty where it stays as it is


def _target(state: BreakerState, seen: BreakerInput, policy: Policy) -> _Target:
    """Where the circuit belongs after this iteration."""
    strict = policy.preset == "strict"
    if not seen.infrastructure and 0 < policy.same_error_threshold <= state.same_error:
        words = f"same error {state.same_error} times in a row: {state.last_error}"
        return _Target(Circuit.OPEN, words)
    if seen.waits and not seen.progress:
        return _Target(state.circuit)
    if seen.output_declined and strict and not seen.progress:
        return _Target(Circuit.OPEN, seen.output_declined)
    if state.circuit is Circuit.HALF_OPEN:
        if seen.progress:
            return _Target(Circuit.CLOSED, "progress was made")
        words = f"still no progress after {state.no_progress} iterations"
        return _Target(Circuit.OPEN, words)
    if 0 < policy.no_progress_threshold <= state.no_progress:
        reason = f"no progress in {state.no_progress} iterations in a row"
        return _Target(Circuit.OPEN if strict else Circuit.HALF_OPEN, reason)
    return _Target(state.circuit)


def _move(
    state: BreakerState, target: Circuit, reason: str, *, iteration: int, at: float | None
) -> BreakerState:
    before = state.circuit
    opened = state.opened_count
    if target is Circuit.OPEN:
        opened += 1
    entry = Transition(iteration=iteration, before=before, after=target, reason=reason, at=at)
    return replace(
        state,
        circuit=target,
        reason=reason,
        since=at,
        opened_count=opened,
        history=(*state.history, entry)[-MAX_HISTORY:],
    )
