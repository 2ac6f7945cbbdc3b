"""What the monitor knows (`Facts`) and what it shows (`Screen`): frozen values.

Everything shown is lines of words with a tone, before any toolkit; texts that come from agents
and files are one bounded line without control characters by then.  Times are epoch seconds.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple, dataclass_transform

import msgspec

from ralphloop.config.model import Config
from ralphloop.core.breaker import BreakerState
from ralphloop.core.model import CheckResult, Usage
from ralphloop.journal.records import IterationRecord, Request, RunRecord, Wait

_DEFAULTS = Config()


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the monitor's values."""


class Tone(StrEnum):
    """What words mean, not how they look."""

    PLAIN = ""
    STRONG = "strong"
    QUIET = "quiet"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    BUSY = "busy"
    FOUND = "found"  # what was searched for


Span = tuple[str, Tone]
Line = tuple[Span, ...]


class State(NamedTuple):
    """How a run stands, why, and what a person can do."""

    mark: str
    name: str
    tone: Tone
    reason: str = ""
    advice: str = ""


class StoryRow(Shown):
    key: str  # the id as it is in the file
    id: str  # as it can be shown
    title: str
    mark: str
    standing: str  # in words: the grade, "waits for you", "waits on US-2"
    tone: Tone
    attempts: int  # failed ones
    verdict: str  # what the last iteration came to


class LogLine(Shown):
    at: float
    text: str
    tone: Tone


class Action(Shown):
    """Something the agent did."""

    kind: str  # tool, text, retry, limit …
    words: str
    ok: bool | None = None


class Learned(Shown):
    """What was learned so far, as the files say."""

    captured: int = 0
    categories: tuple[tuple[str, int], ...] = ()  # most frequent first
    skills: int = 0


class Facts(Shown):
    """Everything that was read, at one moment; the clock is not among it."""

    project: str
    trouble: str = ""  # why the journal cannot be read
    way_out: str = ""
    run: RunRecord | None = None
    live: bool = False  # a process carries the run
    starting: bool = False  # a process holds the project and has not begun its run yet
    paused: str = ""
    extra_cost: float = 0.0  # what a person added to the budgets
    extra_time: float = 0.0
    wait: Wait | None = None
    newest: IterationRecord | None = None
    checks: tuple[tuple[CheckResult, int], ...] = ()  # with the iteration; 0: before the first
    circuit: BreakerState = BreakerState()
    lengths: tuple[int, ...] = ()  # characters of the agent's own text, iteration by iteration
    stories: tuple[StoryRow, ...] = ()
    story_cost: float = 0.0
    story_unpriced: int = 0
    list_problem: str = ""
    log: tuple[LogLine, ...] = ()
    actions: tuple[Action, ...] = ()
    answered: bool = False  # the agent gave its result; what follows is ours
    last_output: float | None = None
    usage: Usage = Usage()  # of the running agent, so far
    limit_words: str = ""  # the newest word about quota
    calls: int = 0  # starts in the last hour
    pending: tuple[Request, ...] = ()
    learned: Learned = Learned()

    @property
    def is_working(self) -> bool:
        """An agent runs now."""
        return self.live and self.newest is not None and self.newest.finished_at is None

    @property
    def is_paused(self) -> bool:
        return bool(self.paused or (self.wait and self.wait.kind == "pause"))

    @property
    def run_id(self) -> str:
        return self.run.id if self.run else ""

    def count(self, *marks: str) -> int:
        """Stories with these marks."""
        return sum(row.mark in marks for row in self.stories)

    def setting(self, section: str, key: str) -> Any:
        """What the run was started with; the default where it does not say."""
        values = self.run.config.get(section) if self.run else None
        value = values.get(key) if isinstance(values, dict) else None
        known = type(value) in (bool, int, float, str)
        return value if known else getattr(getattr(_DEFAULTS, section), key)


class Screen(Shown):
    """What is computed for the screen, and what it was computed of."""

    header: tuple[tuple[Line, Line], ...]  # what stands left and right in each of its lines
    now: tuple[Line, ...]
    actions: tuple[Line, ...]  # of the agent, newest last
    checks: tuple[Line, ...]
    circuit: tuple[Line, ...]
    quota: tuple[Line, ...]
    learned: tuple[Line, ...]
    health: tuple[Line, ...]  # the last four in short, for narrow windows
    stories_note: str
    facts: Facts
