"""What goes to another machine and comes back: tickets and beats by the carrier, the rest by git.

An *order* is a commit that holds what is to be done, on top of a commit with the files that the
agent is to find.  A *report* is one that holds how it ended, on top of a commit with the files that
it left.  A carrier sees only *tickets* and *beats*, a few hundred bytes without any secret.
"""

from collections.abc import Mapping

import msgspec

from ralphloop.core import Value
from ralphloop.core.iteration import Result
from ralphloop.core.model import Ceiling, CheckResult
from ralphloop.core.price import Price
from ralphloop.journal.records import HeardOfStart
from ralphloop.loop.ceiling import StartLimits
from ralphloop.loop.workspace import AgentOrder

MOST_WORDS = 2_000
_WAITING = "waiting"


class Ticket(Value, kw_only=True):
    """One order, as a carrier sees it; its id is given away once and never again."""

    id: str  # run/number, and what it is about where that is no ordinary start
    order: str  # the commit
    repository: str  # by its name on the worker's list
    version: str  # of ralph
    labels: tuple[str, ...] = ()  # what the machine has to have
    lease_s: float = 30.0  # so long a hand works on without a word
    most_s: float = 0.0  # so long it may take in all; 0: nobody knows
    machine: str = ""  # only there: its conversation is on that machine
    slot: int = 0  # and only in this work tree
    agent: str = ""  # that is to be started
    away: Mapping[str, float] = msgspec.field(default_factory=dict)  # accounts of it, and till when

    @property
    def run(self) -> str:
        return self.id.partition("/")[0]

    @property
    def mark(self) -> str:
        """What every process of the start carries."""
        return self.id.partition(".")[0]


class WorkOrder(Value, kw_only=True):
    """One start with its lane checks; the prompt lies beside it."""

    start: AgentOrder
    project: str = ""  # where the project lies in the repository, as a prefix of paths
    lane: int = 0
    limits: StartLimits = StartLimits()
    ceiling: Ceiling = ""
    prices: Mapping[str, Price] = msgspec.field(default_factory=dict)
    time_left_s: float | None = None  # of the whole run
    time_words: str = ""
    checks: tuple[tuple[str, ...], ...] = ()
    check_timeout_s: float = 900.0
    verify: tuple[str, ...] | None = None
    settings: Mapping[str, str] = msgspec.field(default_factory=dict)  # harmless ones, as flags
    strictness: Mapping[str, str] = msgspec.field(
        default_factory=dict
    )  # hold where they forbid more


class WorkReport(Value, kw_only=True):
    """How a start ended, as the machine says it; the transcript lies beside it."""

    ticket: str
    machine: str
    slot: int = 0
    account: str = ""
    result: Result
    checks: tuple[CheckResult, ...] = ()  # those that ran, on the files that came with it
    verify: CheckResult | None = None


class FarStep(Value, kw_only=True):
    """One step of the agent, for whoever looks on."""

    number: int
    kind: str = ""
    summary: str = ""


class Beat(Value, kw_only=True):
    """A sign of life of a hand, and how far it is."""

    phase: str = _WAITING
    machine: str = ""
    slot: int = 0
    steps: tuple[FarStep, ...] = ()  # the last ones
    usd: float = 0.0
    tokens: int = 0  # without those read from a cache
    has_answered: bool = False  # the model has said something, so there is something to pay
    report: str = ""  # the commit, once it is sent
    refused: str = ""  # why nothing was started
    account: str = ""  # of the agent on that machine; empty: it has no label
    away_until: float = 0.0  # it refused because its account waits for a reset until then
    failed: str = ""  # why there is no report

    @property
    def has_begun(self) -> bool:
        """The hand has a place of its own and works on the order."""
        return self.phase != _WAITING

    @property
    def is_last(self) -> bool:
        return bool(self.report or self.refused or self.failed)


class Word(Value, kw_only=True):
    """What a hand is told while it works: somebody is there, or that it has to stop."""

    stop: str = ""  # why; empty: somebody is there


class GivenOrder(HeardOfStart, kw_only=True):
    """An order that was given away, in the journal before anybody has it."""

    ticket: Ticket
    lane: int
    log: str  # the name of its transcript
    files: str = ""  # the commit with the files it went out with


def refs_of(ticket: str) -> tuple[str, str]:
    """Where order and report of a ticket lie on the shared remote."""
    return f"refs/ralph/orders/{ticket}", f"refs/ralph/reports/{ticket}"
