"""What changes a run between two iterations, as data; each is written down with the iteration it
came after, so that a replay meets it at the same place."""

from typing import TYPE_CHECKING, Union

from msgspec.structs import replace

from ralphloop.core import Value, breaker, snake_case
from ralphloop.core.grading import Grade
from ralphloop.core.model import Circuit
from ralphloop.core.policy import Policy, Share
from ralphloop.core.run_state import (
    MAX_FAILURE_CHARS,
    Answer,
    Attempt,
    RunState,
    Standing,
    StoryNotes,
    StoryProof,
    StoryState,
    StoryTotals,
    VerifySeen,
)
from ralphloop.text.plain import counted, one_line, some

_MOST_REJECTED = 20


class Intervention(Value, tag_field="kind", tag=snake_case):
    def applied(self, state: RunState, policy: Policy) -> RunState:
        raise NotImplementedError


class CircuitReset(Intervention, kw_only=True):
    at: float | None = None

    def applied(self, state: RunState, policy: Policy) -> RunState:
        cleared = breaker.reset(state.breaker, iteration=state.starts, at=self.at)
        return replace(state, breaker=cleared, idle_set_asides=0)


class CooledDown(Intervention, kw_only=True):
    at: float | None = None

    def applied(self, state: RunState, policy: Policy) -> RunState:
        cooled = breaker.cool_down(state.breaker, iteration=state.starts, at=self.at, policy=policy)
        return replace(state, breaker=cooled)


class MarkedByHand(Intervention, kw_only=True):
    """Marks in the story file that changed while no agent ran."""

    marks: dict[str, bool]

    def applied(self, state: RunState, policy: Policy) -> RunState:
        stories = {}
        for name, is_marked in self.marks.items():
            known = state.story(name)
            stories[name] = _passed_by_hand(known) if is_marked else _opened_by_hand(known)
        return state.with_stories(stories)


def _passed_by_hand(story: StoryState) -> StoryState:
    """Their word is the last one, also about what they sent back."""
    proof = replace(story.proof, grade=str(Grade.BY_HAND), works_sent_back=(), work="")
    return replace(story, standing=Standing.PASSED, reason="marked by a person", proof=proof)


def _opened_by_hand(story: StoryState) -> StoryState:
    """Only the mark went: what counts against the story still does, nobody spoke about it."""
    proof = replace(story.proof, grade="")
    return replace(story, standing=Standing.OPEN, reason="", proof=proof)


class Reopened(Intervention, kw_only=True):
    """A person started again: what waited for them is open, and what was aside has a chance."""

    waiting_only: bool = False

    def applied(self, state: RunState, policy: Policy) -> RunState:
        stories = {}
        for name, story in state.stories.items():
            if self.waiting_only and story.standing is Standing.SET_ASIDE:
                continue
            stories[name] = self._opened(story)
        return state.with_stories(stories)

    def _opened(self, story: StoryState) -> StoryState:
        # A share is of the limits, and a new session has its own.
        share = story.attempt.share if self.waiting_only else Share()
        if story.standing in (Standing.BLOCKED, Standing.SET_ASIDE):
            # Its streak goes on: nobody touched its work.
            story = replace(story, attempt=Attempt(share=share))
        else:
            # It is not begun anew: nothing kept it from being worked on.
            attempt = replace(story.attempt, saturated=False, share=share)
            story = replace(story, attempt=attempt)
        if story.standing is Standing.PASSED:  # a person has seen what it took away
            return replace(story, proof=replace(story.proof, asked=()))
        if story.standing is Standing.BLOCKED:
            return replace(story, standing=Standing.OPEN)
        return story


class PassTakenBack(Intervention, kw_only=True):
    """Passes that nothing upholds any more, each with the reason."""

    reasons: dict[str, str]

    def applied(self, state: RunState, policy: Policy) -> RunState:
        stories = {}
        for name, why in self.reasons.items():
            was = state.story(name)
            paid = was.totals
            # What upheld it is gone, so nothing is known but what a person sent back and what was
            # paid: failed attempts were those of other work.
            stories[name] = StoryState(
                reason=why,
                notes=StoryNotes(findings=(why,)),
                proof=StoryProof(works_sent_back=was.proof.works_sent_back),
                totals=StoryTotals(
                    iterations=paid.iterations, cost_usd=paid.cost_usd, unpriced=paid.unpriced
                ),
            )
        return state.with_stories(stories)


class PassKeptByPerson(Intervention, kw_only=True, tag="vouched"):
    """Passed stories whose commits a person squashed: their word stands for them."""

    stories: tuple[str, ...]

    def applied(self, state: RunState, policy: Policy) -> RunState:
        stories = {}
        for name in self.stories:
            known = state.story(name)
            stories[name] = replace(known, proof=replace(known.proof, commitless=True))
        return state.with_stories(stories)


class StoryIntervention(Intervention, kw_only=True):
    story: str

    def applied(self, state: RunState, policy: Policy) -> RunState:
        return state.with_stories({self.story: self.after(state.story(self.story))})

    def after(self, story: StoryState) -> StoryState:
        raise NotImplementedError


class StoryMoved(StoryIntervention, kw_only=True):
    """A person set a story aside, or opened it again."""

    aside: str = ""  # why; empty: it is open again

    def after(self, story: StoryState) -> StoryState:
        # Its streak goes on: its work is where it was.
        return replace(
            story,
            standing=Standing.SET_ASIDE if self.aside else Standing.OPEN,
            reason=self.aside,
            attempt=Attempt(second_chance=bool(self.aside)),
        )


class PersonFeedback(StoryIntervention, kw_only=True):
    """A person's words about a story: what was tried without them says nothing now."""

    at: float | None = None
    half_opens: bool = False  # an open circuit too; journals of earlier versions did not say so

    def applied(self, state: RunState, policy: Policy) -> RunState:
        state = super().applied(state, policy)
        words = f"a person spoke about {self.story}"
        if state.breaker.circuit is Circuit.OPEN:
            if not self.half_opens:
                return state
            # Their words may be what was missing: the next start shows whether something moves.
            tried = breaker.half_open(state.breaker, words, iteration=state.starts, at=self.at)
            return replace(state, breaker=tried, idle_set_asides=0)
        fresh = breaker.reset(state.breaker, iteration=state.starts, at=self.at, reason=words)
        return replace(state, breaker=fresh)


class Answered(PersonFeedback, kw_only=True):
    """A person answered what a story waits for, or told more about it."""

    text: str

    def after(self, story: StoryState) -> StoryState:
        question = story.reason if story.standing is Standing.BLOCKED else ""
        return story.taken_up(Answer(text=self.text, question=question))


class StoryRejected(PersonFeedback, kw_only=True, tag="sent_back"):  # as journals have it
    """A person looked at a passed story and wants it done again; its commits are taken out."""

    why: str
    kept: str = ""  # the ref of the attempt
    work: str = ""  # what the change of the commits that were taken out is known by

    def after(self, story: StoryState) -> StoryState:
        words = f"This story was done and sent back: {self.why}"
        if self.kept:
            words += f"\n\nThe earlier attempt is out of the branch and kept: git show {self.kept}"
        # All that was its own, and what its commits held: some may stand in another's commit.
        works = filter(None, (story.proof.work, self.work))
        sent_back = tuple(dict.fromkeys((*story.proof.works_sent_back, *works)))
        # What it took from the list stays asked: nobody said anything about that.
        proof = StoryProof(works_sent_back=sent_back[-_MOST_REJECTED:], asked=story.proof.asked)
        base = story.base
        if self.kept or not base.left_tree:  # else its work still lies in the work tree
            base = base.moved()
        return replace(story, proof=proof, base=base).taken_up(Answer(text=words))


class RejectionTakenBack(StoryIntervention, kw_only=True):
    """A person has second thoughts about a story they sent back: it stands as it stood before."""

    before: StoryState

    def after(self, story: StoryState) -> StoryState:
        return self.before


class Accepted(StoryIntervention, kw_only=True):
    """A person looked at a story and takes it; what they had sent back may then pass as it is."""

    def after(self, story: StoryState) -> StoryState:
        if not story.is_same_as_sent_back:
            return replace(story, proof=replace(story.proof, accepted=True))
        others = tuple(work for work in story.proof.works_sent_back if work != story.proof.work)
        told = "A person looked at this change again and takes it as it is. Report it as done."
        # One that was set aside comes back with its work.  It is not begun anew: what is left to
        # do is to call it done, and its share and its streak are of the same work.
        return replace(
            story,
            proof=replace(story.proof, works_sent_back=others),
            attempt=replace(story.attempt, failed=0, second_chance=False),
            notes=replace(story.notes, findings=(told,)),
        )


class AcceptanceTakenBack(StoryIntervention, kw_only=True):
    """A person has second thoughts about a story they took: it waits for their eyes again."""

    def after(self, story: StoryState) -> StoryState:
        return replace(story, proof=replace(story.proof, accepted=False))


class SecondChance(StoryIntervention, kw_only=True):
    """Open once more; what was put back is its own work and not where it begins."""

    told: str = ""  # what became of what it left behind, for its prompt
    tree: str = ""  # as it was before that was put back
    head: str = ""
    left: str = ""  # the work tree after that
    put_back: bool = False  # all of it is in the work tree: nothing waits elsewhere

    def after(self, story: StoryState) -> StoryState:
        # A request that is refused is no matter of chances, and its streak is of the same work.
        attempt = Attempt(second_chance=True, refusals=story.attempt.refusals)
        story = replace(story, standing=Standing.OPEN, attempt=attempt)
        if not self.told:
            return story
        base = story.base.moved(self.tree, self.head, self.left)
        if self.put_back:
            base = replace(base, saved_ref="")
        findings = (self.told, *story.notes.findings)
        return replace(story, base=base, notes=replace(story.notes, findings=findings))


class OthersWorked(StoryIntervention, kw_only=True):
    """Something else changed the work tree since a story's last start: none of that is its own."""

    tree: str  # what stands without the story now
    head: str
    left: str  # the work tree as it is, with what is the story's own

    def after(self, story: StoryState) -> StoryState:
        base = story.base.moved(self.tree, self.head, self.left)
        is_known = base.verify_before is not None
        return replace(story, base=replace(base, verify_again=is_known))


class VerifyRan(StoryIntervention, kw_only=True):
    """A story's own command, run before its first start, and again once others have worked."""

    seen: VerifySeen | None  # None: what it shows now may be the story's own doing

    def after(self, story: StoryState) -> StoryState:
        base = replace(story.base, verify_before=self.seen, verify_again=False)
        return replace(story, base=base)


class TakenIntoLane(StoryIntervention, kw_only=True):
    """A story is worked on in a fresh work tree: what it began with elsewhere is not there."""

    tree: str = ""  # where it begins now; empty: with its next start
    head: str = ""

    def after(self, story: StoryState) -> StoryState:
        # Trees of elsewhere are no trail here; that it was not called done is as true as before.
        streak = replace(story.streak, trail=())
        return replace(story, base=story.base.moved(self.tree, self.head), streak=streak)


class PutOntoLanded(StoryIntervention, kw_only=True):
    """The work of a story stands on what has landed since, and does not fit everywhere."""

    told: str  # to the agent: what is in conflict, and what to do

    def after(self, story: StoryState) -> StoryState:
        if any(self.told in finding for finding in story.notes.findings):
            return story  # when it was sent back
        findings = (self.told, *story.notes.findings)
        return replace(story, notes=replace(story.notes, findings=findings))


class LeftoversSaved(StoryIntervention, kw_only=True):
    ref: str
    files: tuple[str, ...] = ()  # what went from the work tree: a person's may be among them
    left: str = ""  # the work tree after that

    def after(self, story: StoryState) -> StoryState:
        reason = story.reason
        is_done_again = story.base.saved_ref == self.ref  # then it was said before
        if self.files and not is_done_again:
            kept = f"kept: {some(self.files)}"
            reason = f"{reason}; {kept}" if reason else kept
        began = story.base.start_tree if self.left else ""
        # Its head stays: it says what was committed since, wherever the leftovers are.
        base = replace(story.base, saved_ref=self.ref, start_tree=began, left_tree=self.left)
        return replace(story, base=base, reason=reason)


class Committed(StoryIntervention, kw_only=True):
    """A story's commit was made, or there was nothing to commit."""

    notes: tuple[str, ...] = ()
    commitless: bool = False
    differs: str = ""  # from what was checked, in words: a person should look
    commit: str = ""  # its name: a hook may have taken our trailers from its message
    iteration: int = 0  # it was made for

    def applied(self, state: RunState, policy: Policy) -> RunState:
        state = replace(super().applied(state, policy), refused=0)
        if self.commitless:
            return state
        return replace(state, commits=state.commits + 1)

    def after(self, story: StoryState) -> StoryState:
        reason = "; ".join(filter(None, (self.differs, story.reason, *self.notes)))
        proof = replace(story.proof, commitless=self.commitless, commit=self.commit)
        if self.differs:
            proof = replace(proof, grade=str(Grade.NEEDS_REVIEW))
        return replace(story, reason=reason, proof=proof)


class CommitRefused(StoryIntervention, kw_only=True):
    """What could not be committed has not passed: the agent gets the message.  A second story in a
    row that is set aside for it opens the circuit."""

    failure: str
    others: bool  # another story can run
    at: float | None = None

    def applied(self, state: RunState, policy: Policy) -> RunState:
        story = state.story(self.story)
        if story.standing is not Standing.PASSED:
            return state  # a predecessor came this far
        story = replace(
            story,
            standing=Standing.OPEN,
            reason=one_line(self.failure, 160),
            proof=replace(story.proof, grade=""),
            notes=replace(story.notes, failure=self.failure[-MAX_FAILURE_CHARS:]),
        ).with_failed_attempt()
        if 0 < policy.limits.max_attempts <= story.attempt.failed:
            words = f"{counted(story.attempt.failed, 'attempt')} failed"
            story = story.put_aside(words, others=self.others)
        state = state.with_stories({self.story: story})
        if story.standing is not Standing.SET_ASIDE:
            return state
        state = replace(state, refused=state.refused + 1)
        if state.refused < 2:
            return state
        words = f"two stories in a row could not be committed; the last: {story.reason}"
        opened = breaker.open_now(state.breaker, words, iteration=state.starts, at=self.at)
        return replace(state, breaker=opened)  # no third one could be committed, so stop paying


_KINDS = (
    *Intervention.__subclasses__(),
    *StoryIntervention.__subclasses__(),
    *PersonFeedback.__subclasses__(),
)
if TYPE_CHECKING:
    AnyIntervention = Intervention
else:  # what the journal reads one as, by its kind
    AnyIntervention = Union[tuple(kind for kind in _KINDS if not kind.__subclasses__())]  # noqa: UP007
