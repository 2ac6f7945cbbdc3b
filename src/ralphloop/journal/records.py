"""What goes into the journal and what comes out: plain frozen values; times are epoch seconds.

`record` and `effects` are stored as JSON without their defaults; of a record that another version
wrote only what is known here is read.  Values come from agents and files we do not control (half
surrogate pairs, endless numbers): a night must not end because one could not be stored.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal, NamedTuple

import msgspec

from ralphloop.core import Value
from ralphloop.core.events import LoopEvent
from ralphloop.core.interventions import AnyIntervention
from ralphloop.core.iteration import AnyEffect, Iteration
from ralphloop.core.model import CheckResult, RunLimit
from ralphloop.core.policy import Mode
from ralphloop.core.run_state import RunState
from ralphloop.core.totals import Expense, Totals, Usage

JsonValues = dict[str, object]  # documented keys, each with a value that has a type


class RunStatus(StrEnum):
    RUNNING = "running"  # also a run whose process died: the lock tells the two apart
    STOPPED = "stopped"  # interrupted, halted or out of budget; can be continued
    COMPLETE = "complete"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"  # a newer run began beside it

    @property
    def is_unfinished(self) -> bool:
        """True where `--continue` has something to go on with."""
        return self in (RunStatus.RUNNING, RunStatus.STOPPED)


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    started_at: float
    mode: Mode = "script"
    session: str = ""  # hook mode: the agent session that carries the loop
    prd_path: str = ""
    branch: str = ""
    head: str = ""
    pid: int = 0
    pid_started: float = 0.0
    config: JsonValues = msgspec.field(default_factory=dict)
    continues: str | None = None  # the run whose story states this one takes over
    # From here on the journal itself says it.
    status: RunStatus = RunStatus.RUNNING
    last_activity: float = 0.0
    ended_at: float | None = None
    decision: str = ""
    reason: str = ""
    used_up: RunLimit | None = None  # the limit that ended it
    totals: Totals = Totals()


class IterationRecord(Expense, frozen=True, kw_only=True):
    """An iteration; what stands before `finished_at` is written before the agent is started."""

    run: str
    n: int
    story: str | None = None
    attempt: int = 1
    started_at: float
    head: str = ""
    tree: str = ""
    prompt_digest: str = ""
    prompt_path: str = ""
    pid: int | None = None  # once it runs
    pid_started: float | None = None
    finished_at: float | None = None
    outcome: str = ""
    decision: str = ""
    status: str = ""  # the agent's own STATUS, if it gave one
    end_tree: str = ""
    record: Iteration = Iteration()
    effects: tuple[AnyEffect, ...] = ()

    @property
    def checks(self) -> tuple[CheckResult, ...]:
        return self.record.evidence.checks or ()

    def owes(self, kind: type[AnyEffect]) -> bool:
        return any(isinstance(effect, kind) for effect in self.effects)


class FinishedIteration(msgspec.Struct, frozen=True, kw_only=True):
    """Everything known afterwards, with the effects it owes; one transaction writes it all."""

    run: str
    n: int
    finished_at: float
    outcome: str
    decision: str
    status: str = ""
    end_tree: str = ""
    spent: Expense = Expense()
    record: Iteration = Iteration()
    effects: tuple[AnyEffect, ...] = ()
    state: RunState | None = None
    stories: Mapping[str, object] = msgspec.field(default_factory=dict)
    meta: Mapping[str, object] = msgspec.field(default_factory=dict)
    events: tuple[LoopEvent, ...] = ()


class InterventionRecord(msgspec.Struct, frozen=True, kw_only=True):
    after: int
    at: float
    change: AnyIntervention


class AgentThrough(NamedTuple):
    """An agent that has ended while its iteration goes on."""

    since: float
    lands: bool  # it is about to land, or waits for its turn
    on: tuple[str, ...] | None = (
        None  # it is judged on top of these stories; None: not before its turn
    )


class HeardOfStart(Value, kw_only=True):
    """What is known of a start on another machine, as far as that was heard."""

    machine: str = ""
    account: str = ""
    usd: float = 0.0
    tokens: int = 0
    has_answered: bool = False

    @property
    def usage(self) -> Usage:
        """What it used by then, which is the least that was paid."""
        if not (self.usd or self.tokens):
            return Usage()
        return Usage(cost_usd=self.usd or None, input_tokens=self.tokens, estimated=True)


class KnownResults(Value, kw_only=True):
    """What the checks of a run showed in one state of the work tree, test by test."""

    number: int = 0  # of the iteration; 0: the baseline
    trees: tuple[str, ...] = ()  # that state, before the checks ran and after
    checks: tuple[CheckResult, ...] = ()


class Wish(Value, kw_only=True):
    """What is asked, as far as the kind of request needs it, and who asks."""

    by: tuple[int, float] | None = None  # pid and start time; an agent is not named here
    text: str = ""
    story: str = ""
    cost_usd: float = 0.0
    tokens: int = 0
    time: float = 0.0  # seconds
    iterations: int = 0
    problem: str = ""  # why not all of it can be read


class Request(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    kind: str
    payload: Wish
    # A refused one is answered too, and nothing was done.
    status: Literal["pending", "answered", "refused", "void"]
    answer: str


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    run: str
    kind: str
    reason: str
    started_at: float
    until: float
    ended_at: float | None


class ResumeCandidate(msgspec.Struct, frozen=True, kw_only=True):
    run: RunRecord
    expired: bool


def storable(value: Any) -> Any:
    """The same without half surrogate pairs, which undecodable output leaves behind."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return [storable(item) for item in value] if isinstance(value, list | tuple) else value


def json_text(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return msgspec.json.encode(storable(msgspec.to_builtins(value))).decode()
