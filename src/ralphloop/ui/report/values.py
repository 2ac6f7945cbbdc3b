"""What a report says, as frozen values; encoded as JSON they are what `ralph report --json` prints.

Times are epoch seconds, money is dollars, texts are one bounded line without secrets.
"""

from collections.abc import Iterable
from typing import dataclass_transform

import msgspec

from ralphloop.core.totals import Totals
from ralphloop.redaction import redact
from ralphloop.text.plain import one_line

MOST_SPANS = 100


class Teller:
    """Turns what agents and files say into one bounded line without secrets."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = tuple(secrets)

    def __call__(self, text: object, limit: int = 300) -> str:
        # Generously cut first: redaction must see whole secrets, not megabytes.
        return one_line(redact(str(text)[: limit * 8], self._secrets), limit)


@dataclass_transform(frozen_default=True)
class Fact(msgspec.Struct, frozen=True):
    """Base of the report's values; unlike the core's they are written with their defaults."""


class Used(Fact, kw_only=True):
    """What iterations of this run have used; they can be added up."""

    iterations: int = 0
    passed: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0  # starts whose cost nobody knows
    tokens: int = 0
    seconds: float = 0.0

    def __add__(self, other: "Used") -> "Used":
        names = Used.__struct_fields__
        return Used(**{name: getattr(self, name) + getattr(other, name) for name in names})

    def of(self, name: str) -> "UsedBy":
        return UsedBy(name, **{field: getattr(self, field) for field in Used.__struct_fields__})


class UsedBy(Used):
    """What an iteration (or neighbouring ones), a story, a machine, or an agent with its model has
    used."""

    name: str


class StoryLine(Used):
    """One story, and how to see for oneself what became of it."""

    id: str
    title: str
    reason: str  # why it stands where it stands, or what it asks
    attempts: int  # failed ones
    look: str  # the command that shows its commits; empty where there are none
    proof: tuple[str, ...]  # the commands that reproduce the checks
    bring_back: str  # the command that restores work that was set aside
    look_at: tuple[str, ...] = ()  # tests that expect something else now, or are gone
    remarks: tuple[str, ...] = ()  # what else was seen of its tests
    gap: str = ""  # where a criterion has no test: how many have one
    criteria: tuple[str, ...] = ()  # each with what shows that it is met
    last_lines: tuple[str, ...] = ()  # of what failed last, or was said last
    said: str = ""  # what the agent says it did; a claim
    doubts: tuple[str, ...] = ()  # what the agent wants a person to look at
    accepted: bool = False  # a person looked at it since it passed
    changed: str = ""  # the files it changed so far, of one that has begun and is not done
    machines: tuple[str, ...] = ()  # that worked on it in this run; none: this one


class Group(Fact):
    key: str
    title: str
    mark: str  # readable without colour
    meaning: str
    count: int
    stories: tuple[StoryLine, ...]
    more: int  # left out, so that the page stays a page


class Spending(Fact):
    """What was used, against what was allowed; 0 means no limit."""

    totals: Totals
    total_tokens: int
    fresh_tokens: int  # without cache reads
    max_tokens: int
    max_cost_usd: float
    cost_share: float | None  # of the limit
    max_iterations: int
    unanswered: int  # starts that came to nothing, and are no iterations
    quota: str  # how much of the usage windows was used at the end
    cost_per_pass_usd: float | None


class ReportNote(Fact):
    words: str
    at: float | None = None
    iteration: int | None = None
    story: str = ""


class NearMiss(Fact):
    key: str
    title: str
    count: int
    examples: tuple[ReportNote, ...]


class NextStep(Fact):
    words: str
    command: str = ""


class PassPoint(Fact):
    """A moment at which so many stories had passed in this run."""

    at: float
    count: int
    story: str
    grade: str


class Span(Fact):
    """The circuit in one state, one wait, or a story in a lane."""

    kind: str  # in a lane: working, queued, landing or returned
    reason: str
    start: float
    end: float
    lane: int = 0


class Series(Fact):
    passed: tuple[PassPoint, ...]
    iterations: tuple[UsedBy, ...]
    stories: tuple[UsedBy, ...]  # the dearest
    other_stories: UsedBy | None  # all others together
    circuit: tuple[Span, ...]
    circuit_changes: int
    waits: tuple[Span, ...]
    lanes: tuple[Span, ...] = ()  # the newest; none: the run had no lanes


class Report(Fact):
    run: str
    project: str
    branch: str
    agent: str
    started_at: float
    ended_at: float | None  # None: it is still going on
    as_of: float  # the last sign of life
    decision: str
    reason: str
    headline: str
    passed: int
    total: int
    groups: tuple[Group, ...]
    next_steps: tuple[NextStep, ...]
    spending: Spending
    rungs: tuple[UsedBy, ...]  # of the ladder, or several agents that worked
    times: dict[str, float]  # where the night went: working_s, checking_s, waiting_s …
    decisions: tuple[ReportNote, ...]
    decisions_left_out: int
    near_misses: tuple[NearMiss, ...]
    tampering: tuple[ReportNote, ...]
    tampering_left_out: int
    learnings: tuple[str, ...]
    warnings: tuple[str, ...]
    series: Series
    proof: dict[str, int]  # of the stories that passed: proven, not_proven, look_at, needs_review
    proposed: tuple[str, ...] = ()  # stories that somebody proposes, with where they come from
    machines: tuple[UsedBy, ...] = ()  # of a fleet, by name
    v: int = 1  # of this shape
