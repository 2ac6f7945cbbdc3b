"""The circuit in the journal: it outlives runs, and its file is only a view of it."""

from __future__ import annotations

import msgspec

from ralphloop.core.breaker import BreakerState
from ralphloop.errors import JournalError
from ralphloop.journal.queries import Queries
from ralphloop.journal.store import Journal

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


def save_circuit(journal: Journal, state: BreakerState) -> None:
    """Keep the circuit outside of an iteration's end, which writes it by itself."""
    journal.set_meta(CIRCUIT_KEY, state)
