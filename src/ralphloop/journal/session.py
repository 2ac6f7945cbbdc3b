"""The session in the journal: what was fixed, what a person changed, the folded state."""

from collections.abc import Callable
from typing import Any

import msgspec

from ralphloop.core import readable
from ralphloop.core.breaker import BreakerState
from ralphloop.core.interventions import AnyIntervention
from ralphloop.core.policy import Policy
from ralphloop.core.proof import TestReport
from ralphloop.core.run_state import Book, Desk, Frozen, RunState, Session, first_state
from ralphloop.core.story_state import StoryState
from ralphloop.errors import JournalError
from ralphloop.journal.journal import Journal
from ralphloop.journal.queries import CIRCUIT_KEY, Queries

NOTES_KEY = "notes"  # said between two runs, for the next
_PARTS = {Frozen: "frozen", Desk: "desk", RunState: "beginning"}


def save_part(journal: Journal, session: Session, part: Frozen | Desk | RunState) -> None:
    """Keep what was fixed and what a person changed, and for a replay the first state."""
    journal.set_meta(f"{_PARTS[type(part)]}:{session.run}", part)


def change_desk(journal: Journal, session: Session, desk: Desk) -> None:
    """What a person changed of the run itself, here and in the journal."""
    session.desk = desk
    save_part(journal, session, desk)


def reports_key(run: str) -> str:
    """Where the named results of the newest passed story stand, or of the baseline."""
    return f"reports:{run}"


def book_key(run: str) -> str:
    """Where the lanes of a run are written down."""
    return f"lanes:{run}"


def load_book(journal: Queries, run: str) -> Book | None:
    """The lanes of a run; None where it had none."""
    saved = journal.meta(book_key(run))
    return None if saved is None else msgspec.convert(saved, type=Book, strict=False)


def load_reports(journal: Queries, run: str) -> dict[str, TestReport]:
    try:
        return msgspec.convert(journal.meta(reports_key(run)) or {}, dict[str, TestReport])
    except msgspec.ValidationError:
        return {}  # another version's: then nothing is compared


def load_beginning(journal: Queries, run: str) -> RunState | None:
    """The state a run began with; None where an older version began it."""
    saved = journal.meta(f"beginning:{run}")
    return None if saved is None else msgspec.convert(saved, type=RunState)


def load_session(journal: Queries, run: str) -> Session:
    """The session as the journal left it; the circuit is the one that outlives sessions."""
    try:
        return _session(journal, run, msgspec.convert)
    except msgspec.DecodeError as error:
        raise JournalError(
            f"the state of run {run} in {journal.path} cannot be read: {error}",
            "Start a new session with `ralph run`; story states are kept.",
        ) from None


def seen_session(journal: Queries, run: str) -> Session:
    """The session for those who only look: what another version wrote, as far as it goes."""
    return _session(journal, run, readable)


def _session(journal: Queries, run: str, read: Callable[[object, type[Any]], Any]) -> Session:
    saved = journal.saved_state(run)
    frozen = read(journal.meta(f"frozen:{run}") or {}, Frozen)
    states = journal.story_states(run).items()
    stories = {story: read(written, StoryState) for story, written in states}
    state = first_state(frozen, load_circuit(journal), stories)
    if saved is not None:
        kept = read(msgspec.json.decode(saved.state), RunState)
        state = msgspec.structs.replace(kept, breaker=state.breaker, stories=stories)
    return Session(
        run=run,
        state=state,
        frozen=frozen,
        desk=read(journal.meta(f"desk:{run}") or {}, Desk),
        number=journal.next_number(run) - 1,
        quota=dict(journal.meta(quota_key(run)) or {}),
    )


def change_session(
    journal: Journal, session: Session, change: AnyIntervention, policy: Policy, *, now: float
) -> None:
    """Change a session outside of an iteration, here and in the journal."""
    before = session.state
    state = change.applied(before, policy)
    if state == before:
        return
    moved = {
        name: story for name, story in state.stories.items() if before.stories.get(name) != story
    }
    journal.intervene(
        session.run, change, after=session.number, now=now, state=state, stories=moved
    )
    session.state = state


def quota_key(run: str) -> str:
    return f"quota:{run}"


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
