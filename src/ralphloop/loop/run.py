"""One run of ralph: what is decided, written down and told, wherever the work is done.

A `Run` exists once for each `ralph run`, or once for each turn of a session's loop.  It knows no
directory: whatever lies in files is a `Workspace`.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Self

import msgspec

from ralphloop.config.model import Config
from ralphloop.core.breaker import BreakerState, moves
from ralphloop.core.events import CircuitChanged, Event, LoopEvent, Waiting
from ralphloop.core.interventions import AnyIntervention
from ralphloop.core.model import Decision, ExitDecision, StoryList
from ralphloop.core.policy import HOUR, Limits, Policy, money_left, raised
from ralphloop.core.run_state import OperatorOverrides, Session, Standing
from ralphloop.core.totals import Totals
from ralphloop.errors import RalphError
from ralphloop.journal.journal import Journal
from ralphloop.loop.patience import Patience
from ralphloop.loop.prepare import Setup, Worker, on_accounts
from ralphloop.proc.threads import StopSignal
from ralphloop.text.durations import iso

_BEAT_S = 1.0
Sink = Callable[[LoopEvent], None]  # whoever wants to see events; it must not raise
Tell = Callable[[str], None]  # words for whoever started the run


Asks = Callable[[str, Callable[[], bool]], bool]  # a question, when to stop asking: was it a yes?


def nobody(_: object) -> None:
    """Nobody looks."""


def nobody_says_yes(_question: str, _over: Callable[[], bool]) -> bool:
    """Nobody is there to be asked."""
    return False


class Audience(msgspec.Struct, frozen=True):
    """Who sees and hears what happens in a run, and may be asked."""

    sink: Sink = nobody
    tell: Tell = nobody
    asks: Asks = nobody_says_yes


class StandIn(msgspec.Struct, frozen=True):
    """Who works instead of an agent that is away."""

    away: str = ""
    instead: str = ""


class Run:
    def __init__(
        self,
        setup: Setup,
        session: Session,
        journal: Journal,
        stop: StopSignal,
        audience: Audience = Audience(),  # noqa: B008 - it never changes
        *,
        patience: Patience | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.setup = setup
        self.session = session
        self.journal = journal
        self.stop = stop
        self.audience = audience
        self.sink = audience.sink
        self.tell = audience.tell
        self.asks = audience.asks
        self.patience = patience  # where a session waits for the turn to end
        self.clock = clock
        self._last_beat = 0.0
        self.owed_usd = 0.0  # what an agent cost whose checks are still to be run
        self.stands_in = StandIn()
        self.held_for = ""  # what the run is held for, said once
        self.accounts_away: set[str] = set()  # of those, the accounts that were said to wait

    def of_session(self, session: Session) -> Self:
        """Another run of the same project, with the same journal and the same listeners."""
        return type(self)(
            self.setup,
            session,
            self.journal,
            self.stop,
            self.audience,
            patience=self.patience,
            clock=self.clock,
        )

    @property
    def id(self) -> str:
        return self.session.run

    @property
    def workers(self) -> list[Worker]:
        """Who can be started, in order: the agents of the settings, with each of their accounts."""
        return on_accounts(self.setup.workers, self.setup.places.values())

    @property
    def config(self) -> Config:
        return self.setup.config

    @property
    def limits(self) -> Limits:
        """The limits in force: those of the settings, and what a person added since."""
        return raised(self.setup.policy.limits, self.session.overrides.extra)

    @property
    def policy(self) -> Policy:
        return msgspec.structs.replace(self.setup.policy, limits=self.limits)

    @property
    def interrupted(self) -> Decision:
        return Decision(word=ExitDecision.INTERRUPTED, reasons=(self.stop.reason or "stopped",))

    # What is told

    def new_event(self, what: Event, iteration: int | None = None) -> LoopEvent:
        """An event of now, for a caller that writes it with something else."""
        return LoopEvent(run=self.id, at=self.clock(), what=what, iteration=iteration)

    def emit(self, what: Event, iteration: int | None = None) -> None:
        """Write an event down, then show it."""
        event = self.new_event(what, iteration)
        self.journal.append_events([event])
        self.sink(event)

    def tell_circuit(self, before: BreakerState) -> None:
        """Tell every move of the circuit since it was as `before`."""
        for moved in moves(before, self.session.state.breaker):
            change = CircuitChanged(before=moved.before, after=moved.after, reason=moved.reason)
            self.emit(change, self.session.number or None)

    # What was used, and what is left

    def beat(self) -> None:
        """Show that somebody is at work on this run, once a second at most."""
        now = self.clock()
        if 0 <= now - self._last_beat < _BEAT_S:
            return
        self.journal.heartbeat(self.id, now=now)
        self._last_beat = now

    def totals(self) -> Totals:
        return self.journal.totals(self.id)

    def money_left(self) -> float | None:
        """Dollars that the limits leave, or None without a limit."""
        return money_left(self.limits, self.totals())

    def free_at(self) -> float | None:
        """When the hour allows for another start; None: now."""
        most = self.config.limits.calls_per_hour
        now = self.clock()
        if not most or self.journal.starts_since(now - HOUR) < most:
            return None
        return (self.journal.nth_newest_start(most) or now) + HOUR

    # What changes outside of an iteration

    def intervene(self, change: AnyIntervention) -> None:
        """Change the state outside of an iteration, here and in the journal."""
        before = self.session.state.breaker
        self.journal.intervene(self.session, change, self.policy, now=self.clock())
        self.tell_circuit(before)

    def change_overrides(self, overrides: OperatorOverrides) -> None:
        """Keep what a person changed, here and in the journal."""
        self.session.overrides = overrides
        self.journal.save_part(self.id, overrides)

    def add_note(self, text: str, story: str = "") -> None:
        """Keep something for the prompts to come, once."""
        self.change_overrides(self.session.overrides.noted(text, story))

    @contextmanager
    def waiting(
        self, kind: str, reason: str, until: float, *, aloud: bool = True, needs_you: bool = False
    ) -> Iterator[None]:
        """A wait that is written down before it begins, so that a restart goes on waiting.

        Only who is killed leaves it open: after an error that was said nobody sits out its rest.
        """
        now = self.clock()
        self.journal.begin_wait(self.id, kind=kind, reason=reason, now=now, until=until)
        if aloud:
            ends = iso(until)
            seconds = until - now
            self.emit(
                Waiting(kind=kind, reason=reason, until=ends, seconds=seconds, needs_you=needs_you)
            )
        try:
            yield
        except BaseException:  # also where the wait was cancelled; it goes on as it came
            with suppress(RalphError):  # what went wrong first is what is said
                self._end_wait(kind)
            raise
        self._end_wait(kind)

    def _end_wait(self, kind: str) -> None:
        """Write down that a wait is over, and say so."""
        self.journal.end_wait(self.id, now=self.clock())
        self.emit(Waiting(kind=kind, reason="over"))

    def as_known(self, stories: StoryList | None) -> StoryList | None:
        """The list with the marks the journal knows: a lane's own file is as old as its start."""
        if stories is None:
            return None
        states = self.session.stories.items()
        passed = {name: True for name, one in states if one.standing is Standing.PASSED}
        return stories.with_passes(passed)
