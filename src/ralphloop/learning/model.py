"""What is learned, as values.

A `Learning` is what one attempt at a story taught: a few `Note`s with their provenance.  It is
stored as one YAML file and never changed.  A `Pattern` is what several learnings say together,
counted and scored; patterns are derived, and the `Index` that holds them can be rebuilt from the
YAML files at any time.

Notes hold text of models, tools and file names.  That text is data: it is redacted and bounded
before it gets here, and `wording` says how far it may travel.
"""

from __future__ import annotations

from enum import StrEnum

from ralphloop.core.model import Value

MAX_TEXT = 300


class NoteKind(StrEnum):
    SUCCESS = "success"
    FAILURE = "failure"
    DISCOVERY = "discovery"


class NoteSource(StrEnum):
    """Where a note comes from; the last two are words of a model."""

    CHECK = "check"  # a check of ours failed
    ERROR = "error"  # the attempt ended in an error
    COMMAND = "command"  # a command the agent ran with success, in older files
    FILES = "files"  # which files changed
    AGENT = "agent"  # the agent's own words
    ASKED = "asked"  # its answer to a question of its own, in older files

    @property
    def is_free_text(self) -> bool:
        return self in (NoteSource.AGENT, NoteSource.ASKED)


class Saying(Value, kw_only=True):
    """What somebody may want to know."""

    kind: NoteKind = NoteKind.DISCOVERY
    text: str
    lesson: str = ""  # what to do instead, for failures
    source: NoteSource = NoteSource.AGENT

    @property
    def sentence(self) -> str:
        return f"{self.text} → {self.lesson}" if self.lesson else self.text


class Note(Saying, kw_only=True):
    """What one attempt says."""

    category: str = "general"
    evidence: tuple[str, ...] = ()  # "file …", "check …", "error …", "commit …": seen by us


class Learning(Value, kw_only=True):
    """What one attempt taught."""

    task_id: str
    outcome: str  # passed, failed, blocked, set_aside
    timestamp: str  # ISO 8601
    notes: tuple[Note, ...] = ()
    captured: bool = False  # a note stands on evidence, or it shows which files belong together
    run: str = ""
    iteration: int = 0
    commit: str = ""
    files: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()  # ids of the patterns the attempt was given


class PatternStanding(StrEnum):
    NOTED = "noted"  # one story said so
    ESTABLISHED = "established"  # two different stories did
    APPROVED = "approved"  # a person did
    HELD_BACK = "held back"  # it speaks of things no note should decide; a person may approve it


class Pattern(Saying, kw_only=True):
    """What learnings say together."""

    id: str
    category: str = "general"
    standing: PatternStanding = PatternStanding.NOTED
    reason: str = ""  # why it is held back
    stories: tuple[str, ...] = ()  # that yielded it, the first few
    story_count: int = 0
    last_seen: str = ""
    evident: bool = False  # some note of it stands on evidence
    files: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()  # of the first and the last story that found it
    carried: int = 0  # attempts that were given it …
    carried_passed: int = 0  # … and passed
    score: float = 0.0
    words: tuple[str, ...] = ()

    @property
    def is_trusted(self) -> bool:
        """More than one story's word."""
        return self.standing in (PatternStanding.ESTABLISHED, PatternStanding.APPROVED)

    @property
    def is_published(self) -> bool:
        """Fit for files that an agent takes as its instructions: measured, or a person's word."""
        approved = self.standing is PatternStanding.APPROVED
        return approved or (self.is_trusted and not self.source.is_free_text)


class Index(Value, kw_only=True):
    """All patterns, best first."""

    version: int = 1
    learnings: int = 0
    patterns: tuple[Pattern, ...] = ()
    problems: tuple[str, ...] = ()  # files that could not be read, in words


class Decided(Saying, kw_only=True):
    """A person's word about a pattern."""

    id: str
    word: str  # approved or forgotten
