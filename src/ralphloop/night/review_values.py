"""What a person sees of a story they decide about: what its agent claims, and what was found.

One value serves the terminal, the page, the plain list and other programs.  Nothing in it acts.
"""

from enum import StrEnum
from typing import NamedTuple

from msgspec.structs import replace

from ralphloop.core import Value
from ralphloop.core.criteria import Coverage, CriterionEvidence
from ralphloop.core.grading import Grade
from ralphloop.core.proposals import Proposal
from ralphloop.core.totals import short_cost
from ralphloop.core.work_diff import WorkDiff
from ralphloop.text.durations import format_duration
from ralphloop.text.plain import counted


class Doubt(StrEnum):
    """How much a story needs a person's eyes, most first; the words are headings."""

    SENT_BACK = "again what you sent back"
    ASKED = "needs review"
    CLAIMED = "only claimed"
    CHECKED = "checked"
    BY_HAND = "by hand"
    VERIFIED = "verified"


DOUBT_OF: dict[str, Doubt] = {
    "": Doubt.SENT_BACK,  # it did not pass
    Grade.NEEDS_REVIEW: Doubt.ASKED,
    Grade.CLAIMED: Doubt.CLAIMED,
    Grade.CHECKED: Doubt.CHECKED,
    Grade.BY_HAND: Doubt.BY_HAND,
    Grade.VERIFIED: Doubt.VERIFIED,
}
_MARKS = {
    Doubt.SENT_BACK: "!",
    Doubt.ASKED: "!",
    Doubt.CLAIMED: "~",
    Doubt.CHECKED: "✓",
    Doubt.BY_HAND: "☞",
    Doubt.VERIFIED: "✓✓",
}
_PROVEN_IN_PART = "✓▲"  # what is tested is proven, and a criterion has no test


class FindingKind(StrEnum):
    """What was found, without a name of anything: it may be shown to anybody."""

    WEAKENED = "a test was weakened"
    REPEATED = "its code hands out what its own tests expect"
    IN_VAIN = "no test notices what its code does"
    VACUOUS = "new tests pass without it"
    UNSPOKEN = "a criterion has no test"
    UNWATCHED = "lines that no test watches"
    DOUBTED = "its agent has a doubt"


class ReviewEntry(Value, frozen=True, kw_only=True):
    """A story in the list of those that wait for a person."""

    story: str
    title: str
    doubt: Doubt
    finding: str  # in one sentence
    hints: tuple[str, ...] = ()  # what else speaks for a look, in a few words each
    kinds: tuple[FindingKind, ...] = ()  # of these
    coverage: Coverage = Coverage()  # of its criteria by tests
    is_accepted: bool = False
    run: str = ""  # in which it passed
    is_earlier: bool = False  # that was before the run that is looked at
    iteration: int = 0  # that was judged; 0: nobody knows
    starts: int = 0  # all that were ever made for it
    failed: int = 0  # attempts that came to nothing
    cost_usd: float = 0.0
    unpriced: int = 0
    took_s: float = 0.0  # its agent and its checks, in that run

    @property
    def mark(self) -> str:
        is_proven = self.doubt is Doubt.VERIFIED
        return _PROVEN_IN_PART if is_proven and self.coverage.has_gap else _MARKS[self.doubt]

    @property
    def needs_review(self) -> bool:
        """Something was found that a person should look at, and nobody has yet."""
        return self.doubt in (Doubt.ASKED, Doubt.SENT_BACK) and not self.is_accepted

    @property
    def has_passed(self) -> bool:
        """Otherwise it can be accepted, and there is nothing to send back."""
        return self.doubt is not Doubt.SENT_BACK

    @property
    def spent(self) -> str:
        """What it took, in words: `$0.31 · 2 starts, 1 failed · 1m 12s`."""
        parts = [short_cost(self.cost_usd, self.unpriced)]
        if self.starts:
            failed = f", {self.failed} failed" if self.failed else ""
            parts.append(f"{counted(self.starts, 'start')}{failed}")
        if self.took_s:
            parts.append(format_duration(self.took_s))
        return " · ".join(parts)


class ReviewList(Value, frozen=True, kw_only=True):
    """The stories that wait for a person's eyes, what most needs them first."""

    run: str = ""
    headline: str = ""  # the night in one line
    items: tuple[ReviewEntry, ...] = ()
    accepted: tuple[ReviewEntry, ...] = ()  # a person looked at them already
    proposals: tuple[Proposal, ...] = ()  # found on the way, and nobody decided on
    is_live: bool = False  # a run goes on: nothing can be decided now

    def only(self, entry: ReviewEntry) -> "ReviewList":
        """One story of it, whether it was accepted or not."""
        return replace(self, items=(entry,), accepted=(), proposals=())

    def with_accepted(self) -> "ReviewList":
        """The same with what was accepted among the rest, at the end."""
        return replace(self, items=(*self.items, *self.accepted), accepted=())

    def item(self, story: str) -> ReviewEntry | None:
        """The story of this id, in any case."""
        wanted = story.casefold()
        every = (*self.items, *self.accepted)
        return next((one for one in every if one.story.casefold() == wanted), None)


class Claim(Value, frozen=True, kw_only=True):
    """What the agent says."""

    said: str = ""  # its summary, in its own words
    doubts: tuple[str, ...] = ()
    found: tuple[str, ...] = ()  # outside of the story
    by: str = ""  # the agent and its model


class Worth(StrEnum):
    GOOD = "good"
    WEAK = "weak"
    BAD = "bad"


class CriterionLook(NamedTuple):
    """A criterion with what shows that it is met."""

    evidence: CriterionEvidence
    worth: Worth
    but: str = ""  # what takes its worth away

    @property
    def criterion(self) -> str:
        return self.evidence.criterion

    @property
    def words(self) -> str:
        """What speaks of it, before and after; or that nothing does."""
        if not self.evidence.source:
            return "none: no test speaks of it"
        words = self.evidence.words.replace("misses what is new before", "cannot run before")
        return f"{words}, {self.but}" if self.but else words


class StoryReview(Value, frozen=True, kw_only=True):
    """All that one decides by: the claim, the evidence, the change."""

    entry: ReviewEntry
    description: str = ""
    claim: Claim = Claim()
    criteria: tuple[CriterionEvidence, ...] = ()
    is_judged: bool = True  # False: an older version did not look at single criteria
    finding: str = ""
    worth: Worth = Worth.WEAK
    shown_by: tuple[str, ...] = ()  # two or three lines that show the finding
    look_at: tuple[str, ...] = ()  # for a person, with names and values
    remarks: tuple[str, ...] = ()  # the rest of what was found out
    checks: tuple[str, ...] = ()  # what ran at the end, in words
    doubted_tests: tuple[str, ...] = ()  # that were weakened or taken away, by name
    noticing_tests: tuple[str, ...] = ()  # that fail where its code does something else, by name
    unwatched: tuple[str, ...] = ()  # lines that no test watches, as path:line
    is_in_vain: bool = False  # its own tests run its code, and notice nothing of what it does
    repeats_answers: bool = False  # its code hands out what its own tests expect
    diff: WorkDiff = WorkDiff()
    diff_problem: str = ""  # why there is none
    commands: tuple[str, ...] = ()  # that show the same in a shell

    @property
    def criteria_looks(self) -> tuple[CriterionLook, ...]:
        return tuple(
            CriterionLook(one, self._worth_of(one), self._but(one)) for one in self.criteria
        )

    def _but(self, one: CriterionEvidence) -> str:
        """What takes the worth from a test that speaks of a criterion."""
        if one.source in self.doubted_tests:
            return "but it was weakened"
        return "whatever the code does" if self.is_in_vain else ""

    def _worth_of(self, one: CriterionEvidence) -> Worth:
        """How much the evidence for a criterion is worth."""
        if not self.is_judged:
            return Worth.WEAK
        if not one.source or one.source in self.doubted_tests or self.is_in_vain:
            return Worth.BAD
        is_shown = one.before in ("fails", "red") or one.source in self.noticing_tests
        return Worth.GOOD if is_shown and not self.repeats_answers else Worth.WEAK
