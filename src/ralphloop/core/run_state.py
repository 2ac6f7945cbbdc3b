"""All that later decisions need of earlier iterations; every collection in it is bounded.

Nothing else remembers anything, so a run can be replayed from its journal, and a restart needs only
the last state.  The story file says what is asked and what passed, a `StoryState` what happened on
the way.  All in a `Session` is folded from iterations (`state`) or fixed at its start (`baseline`).
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Self

import msgspec

from ralphloop.core.breaker import BreakerState
from ralphloop.core.criteria import CriterionEvidence
from ralphloop.core.merging import Conflict
from ralphloop.core.model import Analysis, CheckResult, CheckStatus, Story, Usage, Value
from ralphloop.core.policy import ExtraBudget, Share
from ralphloop.core.progress import Footprint, Memory, WindowEntry
from ralphloop.core.totals import Windows

MAX_FAILURE_CHARS = 16_000
MAX_ANSWER_CHARS = 4_000
AGENT_GONE = -1.0  # not logged in, no such model: it cannot work at all


class Standing(StrEnum):
    OPEN = "open"
    PASSED = "passed"
    BLOCKED = "blocked"  # waits for a person
    SET_ASIDE = "set_aside"  # quarantined for now


class VerifySeen(Value, kw_only=True):
    """What a story's own command showed before anybody worked on it."""

    argv: tuple[str, ...]
    status: CheckStatus  # NO_TESTS: it was red, because the tests it names were yet to be written
    failed: tuple[str, ...] = ()  # tests that ran and were red, by name
    broken: tuple[str, ...] = ()  # tests, or files of them, that could not be loaded or set up


class Answer(Value, kw_only=True):
    """What a person said about a story, and the question it answers, if there was one."""

    text: str
    question: str = ""


class StoryProof(Value, kw_only=True):
    """What its pass stands on, and what speaks against one."""

    grade: str = ""
    criteria: tuple[CriterionEvidence, ...] = ()  # what shows that each one is met
    work: str = ""  # what its change was known by when it was last called done
    commit: str = ""  # that was made for it; empty: not known, or none
    commitless: bool = False  # passed without a commit that HEAD must contain
    accepted: bool = False  # a person looked at it since it passed
    # What changes that a person sent back were known by; the story itself may be open or passed.
    works_sent_back: tuple[str, ...] = msgspec.field(default=(), name="rejected")
    challenged: tuple[str, ...] = ()  # tampering that was put to the agent
    asked: tuple[Story, ...] = ()  # stories it removed or weakened, as they were


class Attempt(Value, kw_only=True):
    """What counts against a story since it was last taken up; begun anew, it is `Attempt()`."""

    failed: int = msgspec.field(default=0, name="attempts")
    share: Share = Share()  # what it used
    refusals: int = 0  # requests in a row that were refused before the model saw them
    saturated: bool = False  # its last iteration completed a row that only worked on tests
    second_chance: bool = False  # it was given


class Streak(Value, kw_only=True):
    """What its iterations did in a row: it goes on while its work lies in the work tree."""

    unclaimed: int = 0  # iterations that did not call it done
    trail: tuple[Footprint, ...] = ()  # the last of those that brought nothing but changes
    test_row: int = 0  # iterations that only worked on tests


class Conversation(Value, kw_only=True):
    """The agent's own conversation, which a start may go on with."""

    id: str = msgspec.field(default="", name="session_id")
    agent: str = msgspec.field(default="", name="session_agent")  # whose it is
    usage: Usage = msgspec.field(default=Usage(), name="session_usage")  # it reported so far


class StoryBase(Value, kw_only=True):
    """What the story is compared with: where it began, and all that others changed since."""

    start_tree: str = ""
    start_head: str = ""
    left_tree: str = ""  # how its last start left the work tree; empty: nobody knows
    verify_before: VerifySeen | None = None
    verify_again: bool = False  # others worked since that was seen
    lost: dict[str, str] = msgspec.field(default_factory=dict)  # heads that left the branch: words
    saved_ref: str = ""  # where the leftovers of a story set aside are

    def moved(self, tree: str = "", head: str = "", left: str = "") -> Self:
        """Begun elsewhere; what its own command showed and what was saved of it stays known."""
        return msgspec.structs.replace(self, start_tree=tree, start_head=head, left_tree=left)


class StoryNotes(Value, kw_only=True):
    """What the next prompt tells."""

    failure: str = ""  # output of the checks that failed last
    findings: tuple[str, ...] = ()
    answers: tuple[Answer, ...] = ()  # a person's words, for every prompt to come
    leftovers: tuple[str, ...] = ()  # processes that had to be stopped
    failing: tuple[str, ...] = ()  # tests that failed last, by name
    met: tuple[int, ...] = ()  # criteria seen as met when the checks ran last, from 1 on
    said: str = ""  # the agent's last answer, without its status block
    advised: str = ""  # what it says should be done next
    doubted: tuple[str, ...] = ()  # what the agent marked for a person to look at
    changed: tuple[str, ...] = ()  # files that its starts changed


class LandingReturns(Value, kw_only=True):
    """How often it came back from landing; these are no attempts."""

    count: int = msgspec.field(default=0, name="returns")
    collided: tuple[str, ...] = ()  # what had landed meanwhile when it did


class StoryTotals(Value, kw_only=True):
    """All that was ever made and paid for it."""

    iterations: int = 0
    failed: int = 0  # attempts
    cost_usd: float = 0.0
    unpriced: int = 0  # starts whose cost nobody knows


class StoryState(Value, kw_only=True):
    """A story in parts; stored, their keys stand side by side (`journal.story_shape`)."""

    standing: Standing = Standing.OPEN
    reason: str = ""  # why it stands so
    proof: StoryProof = StoryProof()
    attempt: Attempt = Attempt()
    streak: Streak = Streak()
    conversation: Conversation = Conversation()
    base: StoryBase = StoryBase()
    notes: StoryNotes = StoryNotes()
    landing: LandingReturns = LandingReturns()
    totals: StoryTotals = StoryTotals()

    @property
    def is_apart(self) -> bool:
        """Nobody works on it for now."""
        return self.attempt.saturated or self.standing in (Standing.BLOCKED, Standing.SET_ASIDE)

    @property
    def is_same_as_sent_back(self) -> bool:
        """It was called done with a change that a person had sent back."""
        has_passed = self.standing is Standing.PASSED
        return not has_passed and self.proof.work in self.proof.works_sent_back

    @property
    def has_a_chance(self) -> bool:
        """Set aside, and its second chance is yet to come."""
        return self.standing is Standing.SET_ASIDE and not self.attempt.second_chance

    def fresh_conversation(self) -> Self:
        """The state for a start that does not go on with the agent's own conversation."""
        return msgspec.structs.replace(self, conversation=Conversation())

    def taken_up(self, answer: Answer) -> Self:
        """Begun anew with a person's words: nothing that was before counts against it.

        Its work, where that began, what was found and what it cost are still true.
        """
        answers = (*self.notes.answers, answer)[-5:]
        return msgspec.structs.replace(
            self,
            standing=Standing.OPEN,
            reason="",
            proof=msgspec.structs.replace(self.proof, grade="", accepted=False),
            attempt=Attempt(),
            streak=Streak(),
            notes=msgspec.structs.replace(self.notes, answers=answers),
        )

    def with_failed_attempt(self) -> Self:
        """One more, of this attempt and of all."""
        attempt = msgspec.structs.replace(self.attempt, failed=self.attempt.failed + 1)
        totals = msgspec.structs.replace(self.totals, failed=self.totals.failed + 1)
        return msgspec.structs.replace(self, attempt=attempt, totals=totals)

    def put_aside(self, reason: str, *, others: bool) -> Self:
        """Set aside; where no other story can run, its second chance comes first."""
        if not others and not self.attempt.second_chance:
            # It is not begun anew, it goes on at once: only the failed ones are forgiven.
            again = msgspec.structs.replace(self.attempt, failed=0, second_chance=True)
            return msgspec.structs.replace(self, attempt=again)
        detail = f"{reason}: {self.reason}" if self.reason else reason
        return msgspec.structs.replace(self, standing=Standing.SET_ASIDE, reason=detail)


States = Mapping[str, StoryState]
_FRESH = StoryState()


def state_of(states: States, story_id: str | None) -> StoryState:
    """What is known of a story; a fresh one starts open."""
    return states.get(story_id or "", _FRESH)


def verify_was(state: StoryState, story: Story) -> CheckStatus | None:
    """What this very command showed before the first start; another one tells nothing."""
    seen = state.base.verify_before
    return seen.status if seen and seen.argv == story.verify else None


def is_failed_attempt(analysis: Analysis, *, passed: bool) -> bool:
    """A start that moved the story forward is none, unless it claimed done and was not; nor is one
    that our own ceiling ended."""
    if passed or analysis.says_nothing or analysis.capped:
        return False
    return analysis.story_claimed or not analysis.progress


class RunState(Value, kw_only=True):
    starts: int = 0  # every start of the agent
    iterations: int = 0  # those that count: the agent worked, or it was paid for
    cost_usd: float = 0.0
    tokens: int = 0  # without cache reads
    active_s: float = 0.0
    breaker: BreakerState = BreakerState()
    memory: Memory = Memory()
    window: tuple[WindowEntry, ...] = ()
    stuck: tuple[str, ...] = ()  # signs of going in circles, for the next prompt
    lengths: tuple[int, ...] = ()  # characters of own text, agent iterations only
    startup_errors: int = 0
    paid_failures: int = 0
    unanswered: int = 0  # times a missing status block was asked for and did not come
    silent_stalls: int = 0  # starts in a row that said nothing until the stall clock ran out
    # The newest word of every agent about its subscription.
    usage_windows: Windows = msgspec.field(default=(), name="quota")
    # When each agent may be started again, by its clocks; AGENT_GONE: not in this run.
    agent_available_at: dict[str, float] = msgspec.field(default_factory=dict, name="available_at")
    outages: int = 0  # infrastructure endings in a row: how long to back off
    idle_set_asides: int = 0  # stories set aside in a row without progress between
    commits: int = 0  # made for passed stories, beside those of the agent
    refused: int = 0  # stories in a row that were set aside because nothing can be committed
    stories: dict[str, StoryState] = msgspec.field(default_factory=dict)

    def story(self, story_id: str | None) -> StoryState:
        return state_of(self.stories, story_id)

    def with_stories(self, changed: dict[str, StoryState]) -> Self:
        if not changed:
            return self
        return msgspec.structs.replace(self, stories={**self.stories, **changed})


class RunBaseline(Value, kw_only=True):
    checks: tuple[tuple[str, ...], ...] = ()
    results: tuple[CheckResult, ...] = msgspec.field(default=(), name="baseline")
    dirty: tuple[str, ...] = ()  # paths with changes that are not the agent's
    start_head: str = ""
    start_tree: str = ""
    branch: str = ""
    filters: tuple[str, ...] | None = None  # of git, as they were set; None: nobody wrote it down
    in_clean_tree: bool = False  # the checks ran on what a fresh clone has, and so they do later
    sealed: tuple[str, ...] = ()  # names of tests that nobody but the judge can read


class LaneNote(Value, kw_only=True):
    story: str = ""  # empty: nothing that anybody needs
    base: str = ""  # the commit its work stands on
    work: str = ""  # the commit its work was saved as last
    onto: str = ""  # `work` is about to be put onto this
    machine: str = ""  # where its agent works; empty: here
    # By the commit of its work: where that met what had landed, and could not stand beside it.
    met: dict[str, tuple[Conflict, ...]] = msgspec.field(default_factory=dict)


class LanesState(Value, kw_only=True):
    """What a successor has to know of the lanes of a run."""

    branch: str = ""  # what stories land on
    kept_at: str = ""  # the ref of ours that moves with it
    left: tuple[str, ...] = ()  # what they landed on before, and is somebody's now
    origin: str = ""  # the branch of the checkout, and where it was
    origin_head: str = ""
    on: str = ""  # the branch of the checkout, also where nothing is to follow
    own_list: bool | None = None  # the story file is the user's alone: no commit has it as it is
    seen: str = ""  # the digest of the checkout's story file as it was taken over last
    edited: tuple[str, ...] = ()  # what was said of its last edit
    count: int = 1
    lanes: dict[int, LaneNote] = msgspec.field(default_factory=dict)
    kept: dict[str, str] = msgspec.field(default_factory=dict)  # story → work whose lane is gone
    ended: str = ""  # where the work is, in words
    fleet: str = ""  # who carries its starts to other machines; empty: all are made here

    def lane_of(self, story: str | None) -> int:
        """The lane that holds the work of a story; 0: none."""
        return next((n for n, note in self.lanes.items() if note.story == story), 0)


class OperatorOverrides(Value, kw_only=True):
    """What a person changed while the run went on."""

    extra: ExtraBudget = ExtraBudget()
    notes: tuple[str, ...] = ()
    own: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)  # notes for one story
    paused: str = ""

    def noted(self, text: str, story: str = "") -> Self:
        """With a note for the prompts to come, of one story or of all."""
        before = self.own.get(story, ()) if story else self.notes
        notes = tuple(dict.fromkeys((*before, text)))[-10:]
        told = {"own": {**self.own, story: notes}} if story else {"notes": notes}
        return msgspec.structs.replace(self, **told)


class Session(msgspec.Struct):
    run: str
    state: RunState = msgspec.field(default_factory=RunState)
    baseline: RunBaseline = RunBaseline()
    overrides: OperatorOverrides = OperatorOverrides()
    number: int = 0  # of the last start

    @property
    def stories(self) -> dict[str, StoryState]:
        return self.state.stories

    def story(self, story_id: str | None) -> StoryState:
        return self.state.story(story_id)


def first_state(
    baseline: RunBaseline, circuit: BreakerState, stories: dict[str, StoryState]
) -> RunState:
    """Before the first iteration: the tree, the checks and the stories as they were found."""
    trees = (baseline.start_tree,) if baseline.start_tree else ()
    checks = {result.name: result.status for result in baseline.results}
    memory = Memory(trees=trees, checks=checks)
    return RunState(breaker=circuit, memory=memory, stories=stories)
