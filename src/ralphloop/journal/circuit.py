"""The circuit in the journal: it outlives runs, and its file is only a view of it."""

from __future__ import annotations

from typing import Any

import msgspec

from ralphloop.core.breaker import BreakerState
from ralphloop.core.policy import Policy
from ralphloop.errors import JournalError
from ralphloop.journal.queries import Queries
from ralphloop.journal.views import CircuitChange, CircuitFacts

CIRCUIT_KEY = "circuit"


def load_circuit(journal: Queries) -> BreakerState:
    """The circuit as last written; a fresh project starts CLOSED."""
    saved = journal.meta(CIRCUIT_KEY)
    if saved is None:
        return BreakerState()
    try:
        return msgspec.convert(saved, type=BreakerState)
    except msgspec.ValidationError as error:
        raise JournalError(
            f"the circuit's state in {journal.path} cannot be read: {error}",
            "ralph circuit reset writes it anew.",
        ) from None


def circuit_value(state: BreakerState) -> Any:
    """The circuit as the journal keeps it."""
    return msgspec.to_builtins(state)


def circuit_facts(state: BreakerState, policy: Policy) -> CircuitFacts:
    """The circuit for its published view."""
    return CircuitFacts(
        state=str(state.circuit),
        reason=state.reason,
        since=state.since,
        no_progress=state.no_progress,
        same_error=state.same_error,
        last_error=state.last_error,
        thresholds={
            "preset": str(policy.preset),
            "no_progress": policy.no_progress_threshold,
            "same_error": policy.same_error_threshold,
            "output_decline_percent": policy.output_decline_percent,
            "cooldown_minutes": policy.cooldown_minutes,
        },
        opened_count=state.opened_count,
        history=[
            CircuitChange(
                at=entry.at,
                before=str(entry.before),
                after=str(entry.after),
                reason=entry.reason,
                iteration=entry.iteration,
            )
            for entry in state.history
        ],
    )
