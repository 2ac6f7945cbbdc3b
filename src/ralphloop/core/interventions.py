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
    RunState,
    Standing,
    StoryState,
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
            standing = Standing.OPEN
            grade = ""
            reason = ""
            if is_marked:
                standing = Standing.PASSED
                grade = str(Grade.BY_HAND)
                reason = "marked by a person"
            known = state.story(name)
            if is_marked:  # their word is the last one, also about what they sent back
                known = replace(known, rejected=(), work="")
            stories[name] = replace(known, standing=standing, grade=grade, reason=reason)
        return state.with_stories(stories)


class Reopened(Intervention, kw_only=True):
    """A person started again: what waited for them is open, and what was aside has a chance."""

    waiting_only: bool = False

    def applied(self, state: RunState, policy: Policy) -> RunState:
        stories = {}
        for name, story in state.stories.items():
            if self.waiting_only and story.standing is Standing.SET_ASIDE:
                continue
            share = story.share if self.waiting_only else Share()  # of a new session's limits
            change: dict[str, object] = {"saturated": False, "share": share}
            if story.standing is Standing.PASSED:
                change["asked"] = ()  # a person has seen what it took away
            elif story.standing is not Standing.OPEN:
                change |= {"attempts": 0, "refusals": 0, "second_chance": False}
            if story.standing is Standing.BLOCKED:
                change["standing"] = Standing.OPEN
            stories[name] = replace(story, **change)
        return state.with_stories(stories)


class PassTakenBack(Intervention, kw_only=True):
    """Passes that nothing upholds any more, each with the reason."""

    reasons: dict[str, str]

    def applied(self, state: RunState, policy: Policy) -> RunState:
        stories = {}
        for name, why in self.reasons.items():
            was = state.story(name)
            stories[name] = StoryState(
                reason=why,
                findings=(why,),
                iterations=was.iterations,
                rejected=was.rejected,
                cost_usd=was.cost_usd,
                unpriced=was.unpriced,
            )
        return state.with_stories(stories)


class PassKeptByPerson(Intervention, kw_only=True, tag="vouched"):
    """Passed stories whose commits a person squashed: their word stands for them."""

    stories: tuple[str, ...]

    def applied(self, state: RunState, policy: Policy) -> RunState:
        known = {name: state.story(name) for name in self.stories}
        return state.with_stories({n: replace(it, commitless=True) for n, it in known.items()})


class OfStory(Intervention, kw_only=True):
    story: str

    def applied(self, state: RunState, policy: Policy) -> RunState:
        return state.with_stories({self.story: self.after(state.story(self.story))})

    def after(self, story: StoryState) -> StoryState:
        raise NotImplementedError


class StoryMoved(OfStory, kw_only=True):
    """A person set a story aside, or opened it again."""

    aside: str = ""  # why; empty: it is open again

    def after(self, story: StoryState) -> StoryState:
        standing = Standing.SET_ASIDE if self.aside else Standing.OPEN
        chance = bool(self.aside)
        fresh = {"attempts": 0, "saturated": False, "share": Share(), "refusals": 0}
        return replace(story, **fresh, standing=standing, second_chance=chance, reason=self.aside)


class Spoken(OfStory, kw_only=True):
    """A person's words about a story: what was tried without them says nothing now."""

    at: float | None = None

    def applied(self, state: RunState, policy: Policy) -> RunState:
        state = super().applied(state, policy)
        if state.breaker.circuit is Circuit.OPEN:
            return state
        words = f"a person spoke about {self.story}"
        fresh = breaker.reset(state.breaker, iteration=state.starts, at=self.at, reason=words)
        return replace(state, breaker=fresh)


class Answered(Spoken, kw_only=True):
    """A person answered what a story waits for, or told more about it."""

    text: str

    def after(self, story: StoryState) -> StoryState:
        question = story.reason if story.standing is Standing.BLOCKED else ""
        return story.taken_up(Answer(text=self.text, question=question))


class StoryRejected(Spoken, kw_only=True, tag="sent_back"):
    """A person looked at a passed story and wants it done again; its commits are taken out."""

    why: str
    kept: str = ""  # the ref of the attempt
    work: str = ""  # what the change of the commits that were taken out is known by

    def after(self, story: StoryState) -> StoryState:
        words = f"This story was done and sent back: {self.why}"
        if self.kept:
            words += f"\n\nThe earlier attempt is out of the branch and kept: git show {self.kept}"
        # All that was its own, and what its commits held: some may stand in another's commit.
        works = filter(None, (story.work, self.work))
        rejected = tuple(dict.fromkeys((*story.rejected, *works)))
        story = replace(story, rejected=rejected[-_MOST_REJECTED:], work="")
        if self.kept or not story.left_tree:  # else its work still lies in the work tree
            story = replace(story, start_tree="", start_head="", left_tree="")
        fresh = replace(story, challenged=(), commitless=False, commit="")
        return fresh.taken_up(Answer(text=words))


class Accepted(OfStory, kw_only=True):
    """A person looked at a story and takes it; what they had sent back may then pass as it is."""

    def after(self, story: StoryState) -> StoryState:
        if not story.is_rejected_again:
            return replace(story, accepted=True)
        others = tuple(work for work in story.rejected if work != story.work)
        told = "A person looked at this change again and takes it as it is. Report it as done."
        # One that was set aside comes back with its work.
        fresh = {"attempts": 0, "second_chance": False, "findings": (told,)}
        return replace(story, rejected=others, **fresh)


class SecondChance(OfStory, kw_only=True):
    """Open once more; what was put back is its own work and not where it begins."""

    told: str = ""  # what became of what it left behind, for its prompt
    tree: str = ""  # as it was before that was put back
    head: str = ""
    left: str = ""  # the work tree after that

    def after(self, story: StoryState) -> StoryState:
        fresh = {"standing": Standing.OPEN, "attempts": 0, "saturated": False, "share": Share()}
        story = replace(story, **fresh, second_chance=True)
        if not self.told:
            return story
        began = {"start_tree": self.tree, "start_head": self.head, "left_tree": self.left}
        return replace(story, **began, findings=(self.told, *story.findings))


class OthersWorked(OfStory, kw_only=True):
    """Something else changed the work tree since a story's last start: none of that is its own."""

    tree: str  # what stands without the story now
    head: str
    left: str  # the work tree as it is, with what is the story's own

    def after(self, story: StoryState) -> StoryState:
        return replace(
            story,
            start_tree=self.tree,
            start_head=self.head,
            left_tree=self.left,
            verify_again=story.verify_before is not None,
        )


class VerifyRan(OfStory, kw_only=True):
    """A story's own command, run before its first start, and again once others have worked."""

    seen: VerifySeen | None  # None: what it shows now may be the story's own doing

    def after(self, story: StoryState) -> StoryState:
        return replace(story, verify_before=self.seen, verify_again=False)


class TakenIntoLane(OfStory, kw_only=True):
    """A story is worked on in a fresh work tree: what it began with elsewhere is not there."""

    tree: str = ""  # where it begins now; empty: with its next start
    head: str = ""

    def after(self, story: StoryState) -> StoryState:
        began = {"start_tree": self.tree, "start_head": self.head, "left_tree": ""}
        return replace(story, **began, trail=())


class PutOntoLanded(OfStory, kw_only=True):
    """The work of a story stands on what has landed since, and does not fit everywhere."""

    told: str  # to the agent: what is in conflict, and what to do

    def after(self, story: StoryState) -> StoryState:
        if any(self.told in finding for finding in story.findings):
            return story  # when it was sent back
        return replace(story, findings=(self.told, *story.findings))


class LeftoversSaved(OfStory, kw_only=True):
    ref: str
    files: tuple[str, ...] = ()  # what went from the work tree: a person's may be among them
    left: str = ""  # the work tree after that

    def after(self, story: StoryState) -> StoryState:
        kept = f"kept: {some(self.files)}"
        is_news = self.files and not story.reason.endswith(kept)  # done twice, it is said once
        reason = "; ".join(filter(None, (story.reason, kept if is_news else "")))
        began = story.start_tree if self.left else ""
        found = {"saved_ref": self.ref, "start_tree": began, "left_tree": self.left}
        return replace(story, **found, reason=reason)


class Committed(OfStory, kw_only=True):
    """A story's commit was made, or there was nothing to commit."""

    notes: tuple[str, ...] = ()
    commitless: bool = False
    differs: str = ""  # from what was checked, in words: a person should look
    commit: str = ""  # its name: a hook may have taken our trailers from its message
    iteration: int = 0  # it was made for

    def applied(self, state: RunState, policy: Policy) -> RunState:
        commits = state.commits + (not self.commitless)
        return replace(super().applied(state, policy), refused=0, commits=commits)

    def after(self, story: StoryState) -> StoryState:
        reason = "; ".join(filter(None, (self.differs, story.reason, *self.notes)))
        grade = str(Grade.NEEDS_REVIEW) if self.differs else story.grade
        return replace(
            story, reason=reason, grade=grade, commitless=self.commitless, commit=self.commit
        )


class CommitRefused(OfStory, kw_only=True):
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
            grade="",
            attempts=story.attempts + 1,
            failed=story.failed + 1,
            failure=self.failure[-MAX_FAILURE_CHARS:],
            reason=one_line(self.failure, 160),
        )
        if 0 < policy.limits.max_attempts <= story.attempts:
            words = f"{counted(story.attempts, 'attempt')} failed"
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


_KINDS = (*Intervention.__subclasses__(), *OfStory.__subclasses__(), *Spoken.__subclasses__())
if TYPE_CHECKING:
    AnyIntervention = Intervention
else:  # what the journal reads one as, by its kind
    AnyIntervention = Union[tuple(kind for kind in _KINDS if not kind.__subclasses__())]  # noqa: UP007
