"""What changes a run between two iterations, as data, and what it changes.

A person moves a story or resets the circuit, a commit is refused, a story file is marked by hand, a
pass turns out to be upheld by nothing.  Each is written down with the iteration it came after, so
that a replay of the night meets it at the same place.
"""

from msgspec.structs import replace

from ralphloop.core import breaker
from ralphloop.core.grading import Grade
from ralphloop.core.model import Circuit, Value
from ralphloop.core.policy import Policy, Share
from ralphloop.core.run_state import RunState
from ralphloop.core.story_state import (
    MAX_FAILURE_CHARS,
    Answer,
    Standing,
    StoryState,
    VerifySeen,
)
from ralphloop.text.plain import counted, one_line, some

MOST_REFUSED = 2  # stories in a row


class Intervention(Value, tag_field="kind"):
    """One change of the state that no iteration made."""


class CircuitReset(Intervention, kw_only=True, tag="circuit_reset"):
    at: float | None = None


class CooledDown(Intervention, kw_only=True, tag="cooled_down"):
    at: float | None = None


class StoryMoved(Intervention, kw_only=True, tag="story_moved"):
    """A person set a story aside, or opened it again."""

    story: str
    aside: str = ""  # why; empty: it is open again


class Answered(Intervention, kw_only=True, tag="answered"):
    """A person answered what a story waits for, or told more about it."""

    story: str
    text: str
    at: float | None = None


class SentBack(Intervention, kw_only=True, tag="sent_back"):
    """A person looked at a passed story and wants it done again; its commits are taken out."""

    story: str
    why: str
    kept: str = ""  # the ref of the attempt
    at: float | None = None


class Accepted(Intervention, kw_only=True, tag="accepted"):
    story: str


class MarkedByHand(Intervention, kw_only=True, tag="marked_by_hand"):
    """Marks in the story file that changed while no agent ran."""

    marks: dict[str, bool]


class SecondChance(Intervention, kw_only=True, tag="second_chance"):
    story: str
    told: str = ""  # what became of what it left behind, for its prompt
    tree: str = ""  # as it was before that was put back
    head: str = ""


class Reopened(Intervention, kw_only=True, tag="reopened"):
    """A person started again: what waited for them is open, and what was aside has a chance."""

    waiting_only: bool = False


class PassTakenBack(Intervention, kw_only=True, tag="pass_taken_back"):
    """Passes that nothing upholds any more, each with the reason."""

    reasons: dict[str, str]


class VerifyRan(Intervention, kw_only=True, tag="verify_ran"):
    """A story's own command, run before its first start."""

    story: str
    seen: VerifySeen


class Committed(Intervention, kw_only=True, tag="committed"):
    """A story's commit was made, or there was nothing to commit."""

    story: str
    notes: tuple[str, ...] = ()
    commitless: bool = False
    differs: str = ""  # from what was checked, in words: a person should look


class Vouched(Intervention, kw_only=True, tag="vouched"):
    """Passed stories whose commits a person squashed: their word stands for them."""

    stories: tuple[str, ...]


class CommitRefused(Intervention, kw_only=True, tag="commit_refused"):
    """What could not be committed has not passed: the agent gets the message."""

    story: str
    failure: str
    others: bool  # another story can run
    at: float | None = None


class TakenIntoLane(Intervention, kw_only=True, tag="taken_into_lane"):
    """A story is worked on in a fresh work tree: what it began with elsewhere is not there."""

    story: str
    tree: str = ""  # where it begins now; empty: with its next start
    head: str = ""


class LeftoversSaved(Intervention, kw_only=True, tag="leftovers_saved"):
    story: str
    ref: str
    files: tuple[str, ...] = ()  # what went from the work tree: a person's may be among them


AnyIntervention = (
    CircuitReset
    | CooledDown
    | StoryMoved
    | Answered
    | SentBack
    | Accepted
    | MarkedByHand
    | SecondChance
    | Reopened
    | PassTakenBack
    | VerifyRan
    | Committed
    | Vouched
    | CommitRefused
    | LeftoversSaved
    | TakenIntoLane
)


def intervene(state: RunState, change: AnyIntervention, policy: Policy) -> RunState:
    match change:
        case CircuitReset():
            cleared = breaker.reset(state.breaker, iteration=state.starts, at=change.at)
            return replace(state, breaker=cleared, idle_set_asides=0)
        case CooledDown():
            cooled = breaker.cool_down(
                state.breaker, iteration=state.starts, at=change.at, policy=policy
            )
            return replace(state, breaker=cooled)
        case CommitRefused():
            return _refused(state, change, policy)
        case Answered(story=story) | SentBack(story=story) if (
            state.breaker.circuit is not Circuit.OPEN
        ):
            words = f"a person spoke about {story}"  # what was tried without it says nothing now
            fresh = breaker.reset(state.breaker, iteration=state.starts, at=change.at, reason=words)
            state = replace(state, breaker=fresh)
        case Committed():
            commits = state.commits + (not change.commitless)
            state = replace(state, refused=0, commits=commits)
    return state.with_stories(_stories(state, change))


def _stories(state: RunState, change: AnyIntervention) -> dict[str, StoryState]:  # noqa: C901, PLR0911, PLR0912
    """The stories that a change moves, as they are after it."""
    match change:
        case StoryMoved(story=story):
            return {story: _moved(state.story(story), change)}
        case Answered(story=story):
            return {story: _answered(state.story(story), change)}
        case SentBack(story=story):
            return {story: _sent_back(state.story(story), change)}
        case Accepted(story=story):
            return {story: replace(state.story(story), accepted=True)}
        case MarkedByHand(marks=marks):
            return {story: _by_hand(state.story(story), mark) for story, mark in marks.items()}
        case SecondChance(story=story):
            return {story: _second_chance(state.story(story), change)}
        case Reopened():
            return {name: _reopened(one, change) for name, one in state.stories.items()}
        case PassTakenBack(reasons=reasons):
            return {
                story: StoryState(
                    reason=why,
                    findings=(why,),
                    iterations=state.story(story).iterations,
                    cost_usd=state.story(story).cost_usd,
                    unpriced=state.story(story).unpriced,
                )
                for story, why in reasons.items()
            }
        case TakenIntoLane(story=story):
            anew = {"start_tree": change.tree, "start_head": change.head, "trail": ()}
            return {story: replace(state.story(story), **anew)}
        case VerifyRan(story=story, seen=seen):
            return {story: replace(state.story(story), verify_before=seen)}
        case Committed(story=story):
            one = state.story(story)
            reason = "; ".join(filter(None, (change.differs, one.reason, *change.notes)))
            grade = str(Grade.NEEDS_REVIEW) if change.differs else one.grade
            told = {"reason": reason, "grade": grade, "commitless": change.commitless}
            return {story: replace(one, **told)}
        case Vouched(stories=stories):
            return {story: replace(state.story(story), commitless=True) for story in stories}
        case LeftoversSaved(story=story, ref=ref):
            one, kept = state.story(story), f"kept: {some(change.files)}"
            is_news = change.files and not one.reason.endswith(kept)  # done twice, it is said once
            reason = "; ".join(filter(None, (one.reason, kept if is_news else "")))
            return {story: replace(one, saved_ref=ref, start_tree="", reason=reason)}
    return {}


def _moved(state: StoryState, change: StoryMoved) -> StoryState:
    standing = Standing.SET_ASIDE if change.aside else Standing.OPEN
    fresh = {"attempts": 0, "saturated": False, "share": Share(), "refusals": 0}
    chance = bool(change.aside)
    return replace(state, **fresh, standing=standing, second_chance=chance, reason=change.aside)


def _answered(state: StoryState, change: Answered) -> StoryState:
    question = state.reason if state.standing is Standing.BLOCKED else ""
    return state.taken_up(Answer(text=change.text, question=question))


def _sent_back(state: StoryState, change: SentBack) -> StoryState:
    words = f"This story was done and sent back: {change.why}"
    if change.kept:
        words += f"\n\nThe earlier attempt is out of the branch and kept: git show {change.kept}"
    fresh = replace(state, start_tree="", start_head="", challenged=(), commitless=False)
    return fresh.taken_up(Answer(text=words))


def _second_chance(state: StoryState, change: SecondChance) -> StoryState:
    """Open once more; what was put back is its own work and not where it begins."""
    fresh = {"standing": Standing.OPEN, "attempts": 0, "saturated": False, "share": Share()}
    state = replace(state, **fresh, second_chance=True)
    if not change.told:
        return state
    began = {"start_tree": change.tree, "start_head": change.head}
    return replace(state, **began, findings=(change.told, *state.findings))


def _by_hand(state: StoryState, passes: bool) -> StoryState:
    if not passes:
        return replace(state, standing=Standing.OPEN, grade="", reason="")
    grade = str(Grade.BY_HAND)
    return replace(state, standing=Standing.PASSED, grade=grade, reason="marked by a person")


def _reopened(state: StoryState, change: Reopened) -> StoryState:
    if change.waiting_only and state.standing is Standing.SET_ASIDE:
        return state
    share = state.share if change.waiting_only else Share()  # of a new session's limits
    state = replace(state, saturated=False, share=share)
    if state.standing is Standing.PASSED:
        return replace(state, asked=())  # a person has seen what it took away
    if state.standing is Standing.OPEN:
        return state
    standing = Standing.OPEN if state.standing is Standing.BLOCKED else state.standing
    return replace(state, standing=standing, attempts=0, refusals=0, second_chance=False)


def _refused(state: RunState, change: CommitRefused, policy: Policy) -> RunState:
    """The story is open again; a second one in a row that is set aside for it opens the circuit."""
    story = state.story(change.story)
    if story.standing is not Standing.PASSED:
        return state  # a predecessor came this far
    story = replace(
        story,
        standing=Standing.OPEN,
        grade="",
        attempts=story.attempts + 1,
        failed=story.failed + 1,
        failure=change.failure[-MAX_FAILURE_CHARS:],
        reason=one_line(change.failure, 160),
    )
    if 0 < policy.limits.max_attempts <= story.attempts:
        words = f"{counted(story.attempts, 'attempt')} failed"
        story = story.put_aside(words, others=change.others)
    state = state.with_stories({change.story: story})
    if story.standing is not Standing.SET_ASIDE:
        return state
    state = replace(state, refused=state.refused + 1)
    if state.refused < MOST_REFUSED:
        return state
    words = f"two stories in a row could not be committed; the last: {story.reason}"
    opened = breaker.open_now(state.breaker, words, iteration=state.starts, at=change.at)
    return replace(state, breaker=opened)  # no third one could be committed, so stop paying
