"""The session in the journal: what was fixed, what a person changed, the folded state."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from ralphloop.core.model import Value
from ralphloop.core.run_state import RunState
from ralphloop.core.session import Desk, Frozen, Session, first_state
from ralphloop.core.story_state import load_states
from ralphloop.errors import JournalError
from ralphloop.journal.circuit import load_circuit
from ralphloop.journal.queries import Queries
from ralphloop.journal.store import Journal

_Kept = TypeVar("_Kept", bound=Value)


def save_frozen(journal: Journal, session: Session) -> None:
    """Keep what was fixed, for a successor."""
    journal.set_meta(_key(session.run, "frozen"), session.frozen)


def save_desk(journal: Journal, session: Session) -> None:
    """Keep what a person changed, for a successor."""
    journal.set_meta(_key(session.run, "desk"), session.desk)


def load_session(journal: Queries, run: str) -> Session:
    """The session as the journal left it; the circuit is the one that outlives sessions."""
    saved = journal.saved_state(run)
    try:
        frozen = _loaded(journal, run, "frozen", Frozen)
        state = first_state(frozen, load_circuit(journal))
        if saved is not None:
            kept = msgspec.json.decode(saved.state, type=RunState)
            state = msgspec.structs.replace(kept, breaker=state.breaker)
        session = Session(
            run=run,
            state=state,
            stories=load_states(journal.story_states(run)),
            frozen=frozen,
            desk=_loaded(journal, run, "desk", Desk),
            number=journal.next_number(run) - 1,
            quota=dict(journal.meta(quota_key(run)) or {}),
        )
    except msgspec.DecodeError as error:
        raise JournalError(
            f"the state of run {run} in {journal.path} cannot be read: {error}",
            "Start a new session with `ralph run`; story states are kept.",
        ) from None
    return session


def _loaded(journal: Queries, run: str, name: str, kind: type[_Kept]) -> _Kept:
    saved = journal.meta(_key(run, name))
    return kind() if saved is None else msgspec.convert(saved, type=kind)


def quota_key(run: str) -> str:
    """Where the journal keeps the agents' quota clocks."""
    return _key(run, "quota")


def _key(run: str, name: str) -> str:
    return f"{name}:{run}"
