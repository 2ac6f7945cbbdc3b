"""What is learned, as values.

A `Learning`, what one attempt at a story taught, is one YAML file and never changed.  A
`SharedEntry` is what everybody has: an established pattern, or a person's word.  A `Pattern` is
what both say together; the `Index` of them is derived and can be rebuilt at any time.

What was *measured* (a check that failed and what changed when it turned green, files that change
together) is evidence, and two passed stories establish it.  What an agent *said* is a proposal,
however many stories say it, until a person says yes.  Text in notes is data: redacted and bounded
before it gets here, and `wording` says how far it may travel.
"""

from collections.abc import Iterable
from enum import StrEnum

from ralphloop.core.model import Value
from ralphloop.text.plain import counted

MAX_TEXT = 300


class NoteKind(StrEnum):
    SUCCESS = "success"
    FAILURE = "failure"
    DISCOVERY = "discovery"


class NoteSource(StrEnum):
    """Where a note comes from; the last three are words."""

    CHECK = "check"  # a check of ours failed
    ERROR = "error"  # the attempt ended in an error
    COMMAND = "command"  # a command the agent ran with success, in older files
    FILES = "files"  # which files changed
    AGENT = "agent"  # the agent's own words
    ASKED = "asked"  # its answer to a question of its own, in older files
    PERSON = "person"  # somebody's own words

    @property
    def is_free_text(self) -> bool:
        return self in (NoteSource.AGENT, NoteSource.ASKED, NoteSource.PERSON)


class Saying(Value, kw_only=True):
    kind: NoteKind = NoteKind.DISCOVERY
    text: str
    lesson: str = ""  # what to do instead, for failures
    source: NoteSource = NoteSource.AGENT

    @property
    def sentence(self) -> str:
        return f"{self.text} → {self.lesson}" if self.lesson else self.text


class Note(Saying, kw_only=True):
    category: str = "general"
    evidence: tuple[str, ...] = ()  # "file …", "check …", "error …", "commit …": seen by us


class Learning(Value, kw_only=True):
    task_id: str
    outcome: str  # passed, failed, blocked, set_aside
    timestamp: str  # ISO 8601
    notes: tuple[Note, ...] = ()
    captured: bool = False  # a note stands on evidence
    run: str = ""
    iteration: int = 0
    commit: str = ""  # the story's own
    files: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()  # ids of the patterns the attempt was given
    content: str = ""  # a digest of what the story asks for
    asked: tuple[str, ...] = ()  # files of those that the story itself asks for

    @property
    def story(self) -> str:
        """Tells stories apart: ids return in every list, and a story tried again is the same."""
        return self.content or f"{self.run}/{self.task_id}"


class PatternStanding(StrEnum):
    NOTED = "noted"  # measured in one story
    PROPOSED = "proposed"  # words of agents: a person decides
    ESTABLISHED = "established"  # measured in two passed stories
    APPROVED = "approved"  # a person did
    DISPUTED = "disputed"  # something else says the contrary: neither is carried
    HELD_BACK = "held back"  # it speaks of things no note should decide; a person may approve it
    RETIRED = "retired"  # it did harm, was refuted, or its file is gone


class EntryWord(StrEnum):
    """What stands about a pattern, for everybody."""

    ESTABLISHED = "established"
    APPROVED = "approved"
    FORGOTTEN = "forgotten"
    RETIRED = "retired"
    OPEN = ""  # a word that was taken back


class SharedEntry(Saying, kw_only=True):
    """One line of the shared file; what agents said is in it only after a person's yes."""

    id: str
    word: EntryWord
    text: str = ""
    at: str = ""  # ISO 8601: of two lines about one pattern the later one holds
    reason: str = ""
    category: str = ""
    files: tuple[str, ...] = ()
    commit: str = ""
    hunk: str = ""  # of that commit: what it looks like
    said: str = ""  # what stories say, where a person worded it anew
    before: tuple[EntryWord, str, str] | None = None  # word, text and lesson until then


class Pattern(Saying, kw_only=True):
    id: str
    category: str = "general"
    standing: PatternStanding = PatternStanding.NOTED
    reason: str = ""  # why it is held back, disputed or retired
    stories: tuple[str, ...] = ()  # that yielded it and passed, the first few
    story_count: int = 0
    last_seen: str = ""
    touched: str = ""  # when it was last found, carried or denied
    files: tuple[str, ...] = ()
    commit: str = ""  # of the first story that found it
    hunk: str = ""
    carried: int = 0  # attempts that were given it …
    carried_passed: int = 0  # … and passed
    score: float = 0.0
    words: tuple[str, ...] = ()
    stands_since: str = ""  # when somebody last said or approved it
    changed: str = ""  # which of its files was changed since, and by which commit

    @property
    def is_published(self) -> bool:
        """Fit for files that an agent takes as its instructions: measured, or a person's word."""
        return self.standing in (PatternStanding.ESTABLISHED, PatternStanding.APPROVED)

    @property
    def is_old(self) -> bool:
        """What it speaks of was changed since, and nobody has said that it still holds."""
        return bool(self.changed) and self.standing is not PatternStanding.RETIRED

    @property
    def because(self) -> str:
        speaks_of = "it speaks of " if self.standing is PatternStanding.HELD_BACK else ""
        reasons = [f"{speaks_of}{self.reason}"] if self.reason else []
        if self.is_old:
            reasons.append(f"old: {self.changed}")
        return f": {'; '.join(reasons)}" if reasons else ""

    @property
    def waits(self) -> bool:
        """A person's yes or no would settle it."""
        standings = PatternStanding.PROPOSED, PatternStanding.DISPUTED, PatternStanding.HELD_BACK
        return self.standing in standings or self.is_old


def review_hint(patterns: Iterable[Pattern]) -> list[str]:
    """How many of them wait for a person, and where; nothing where none does."""
    count = sum(pattern.waits for pattern in patterns)
    words = f"{counted(count, 'learning', 'waits')} for your yes or no: ralph learnings review"
    return [words] if count else []


class Index(Value, kw_only=True):
    learnings: int = 0
    patterns: tuple[Pattern, ...] = ()
    found_by: tuple[str, ...] = ()  # stories that some pattern stands on
    own_commits: tuple[str, ...] = ()  # of the stories that taught, the newest
    problems: tuple[str, ...] = ()  # files that could not be read, in words
