"""Carriers bring tickets to machines and beats back; what travels in an order they never see."""

from collections.abc import Callable, Container, Mapping
from typing import Literal, Protocol

import msgspec

from ralphloop.core import Value
from ralphloop.fleet.values import Beat, Ticket
from ralphloop.proc.threads import StopSignal

Hear = Callable[[Beat], None]
How = Literal["done", "refused", "lost"]


class Delivery(Value, kw_only=True):
    """How an order ended, as far as its carrier knows."""

    how: How
    beat: Beat = Beat()  # the last that was heard
    words: str = ""  # why it was refused, or what became of it
    is_unclaimed: bool = False  # no machine has it, and none will
    is_away: bool = False  # it was refused by nobody: the machine could not be reached


class Seat(Value, kw_only=True):
    """A machine as a carrier knows it."""

    name: str
    slots: int = 1
    version: str = ""
    labels: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()  # that are installed there
    accounts: Mapping[str, str] = msgspec.field(default_factory=dict)  # labels, by agent
    heard: float | None = None  # seconds since its last word; None: it was not asked
    works_on: tuple[str, ...] = ()  # tickets
    keys: tuple[str, ...] = ()  # ids of those with which it encrypts (the first) and reads
    apart: str = ""  # why it and this side cannot read each other


class Carrier(Protocol):
    async def seats(self) -> list[Seat]:
        """Who could work now."""

    async def carry(self, ticket: Ticket, hear: Hear, stop: StopSignal) -> Delivery:
        """Give an order away and wait for its end; a stop reaches the machine."""

    async def take_up(self, ticket: Ticket, hear: Hear, stop: StopSignal) -> Delivery:
        """Wait for the end of an order that a predecessor gave away."""

    async def close(self) -> None:
        """Nothing more is carried."""


class Refusals:
    """Who has refused one order, and who of them only because an account waits for a reset."""

    def __init__(self) -> None:
        self._words = dict[str, str]()  # by machine
        self._until = dict[str, float]()

    def note(self, delivery: Delivery) -> None:
        """A machine has refused it."""
        beat = delivery.beat
        self._words[beat.machine] = delivery.words
        self._until.pop(beat.machine, None)
        if beat.away_until:
            self._until[beat.machine] = beat.away_until

    def let_back(self, at: float) -> bool:
        """Forget those whose account need not wait any more then; whether there were any."""
        back = [name for name, until in self._until.items() if until <= at]
        for name in back:
            del self._words[name]
            del self._until[name]
        return bool(back)

    @property
    def machines(self) -> Container[str]:
        return self._words.keys()

    @property
    def may_pass(self) -> bool:
        """Whether one of them would take it later."""
        return bool(self._until)

    @property
    def words(self) -> str:
        """Why, machine by machine."""
        return "; ".join(self._words.values())


def ended_by(beat: Beat) -> Delivery:
    """What a hand's last words mean."""
    if beat.report:
        return Delivery(how="done", beat=beat)
    if beat.refused:
        return Delivery(how="refused", beat=beat, words=beat.refused)
    where = beat.machine or "the machine"
    words = f"{where}: {beat.failed}" if beat.failed else f"{where} did not say how it ended"
    return Delivery(how="lost", beat=beat, words=words)
