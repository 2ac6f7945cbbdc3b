"""What the monitor knows (`Facts`) and what it shows (`Screen`): frozen values.

Everything shown is lines of words with a tone, before any toolkit; texts that come from agents
and files are one bounded line without control characters by then.  Times are epoch seconds.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, dataclass_transform

import msgspec

from ralphloop.core.model import Usage
from ralphloop.night.values import Night
from ralphloop.night.watch import Learned


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


class Headline(NamedTuple):
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


class Facts(Shown):
    """Everything that was read, at one moment; the clock is not among it."""

    night: Night
    trouble: str = ""  # why the journal cannot be read
    way_out: str = ""
    stories: tuple[StoryRow, ...] = ()
    log: tuple[LogLine, ...] = ()
    actions: tuple[Action, ...] = ()
    answered: bool = False  # the agent gave its result; what follows is ours
    last_output: float | None = None
    usage: Usage = Usage()  # of the running agent, so far
    limit_words: str = ""  # the newest word about quota
    learned: Learned = Learned()

    def count(self, *marks: str) -> int:
        """Stories with these marks."""
        return sum(row.mark in marks for row in self.stories)


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
