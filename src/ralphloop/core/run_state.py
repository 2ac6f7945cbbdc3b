"""All that later decisions need of earlier iterations; every collection in it is bounded.

Nothing else remembers anything, so a run can be replayed from its journal, and a restart needs only
the last state.  The story file says what is asked and what passed, a `StoryState` what happened on
the way.  All in a `Session` is folded from iterations (`state`) or fixed at its start (`frozen`).
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Self

import msgspec

from ralphloop.core.breaker import BreakerState
from ralphloop.core.merging import Conflict
from ralphloop.core.model import Analysis, CheckResult, CheckStatus, Story, Usage, Value
from ralphloop.core.policy import Extra, Share
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


class StoryState(Value, kw_only=True):
    standing: Standing = Standing.OPEN
    grade: str = ""
    reason: str = ""
    attempts: int = 0  # failed ones, since it was last taken up
    failed: int = 0  # all of them
    iterations: int = 0
    share: Share = Share()  # what it used since it was last taken up
    unclaimed: int = 0  # iterations in a row that did not call it done
    trail: tuple[Footprint, ...] = ()  # the last of those that brought nothing but changes
    # What it is compared with: where it began, and all that others changed since.
    start_tree: str = ""
    start_head: str = ""
    left_tree: str = ""  # how its last start left the work tree; empty: nobody knows
    verify_before: VerifySeen | None = None
    verify_again: bool = False  # others worked since that was seen
    refusals: int = 0  # requests in a row that were refused before the model saw them
    test_row: int = 0  # iterations in a row that only worked on tests
    saturated: bool = False  # its last iteration completed such a row
    second_chance: bool = False  # it was given
    failure: str = ""  # output of the checks that failed last
    findings: tuple[str, ...] = ()  # for the next prompt
    challenged: tuple[str, ...] = ()  # tampering that was put to the agent
    asked: tuple[Story, ...] = ()  # stories it removed or weakened, as they were
    answers: tuple[Answer, ...] = ()  # a person's words, for every prompt to come
    leftovers: tuple[str, ...] = ()  # processes that had to be stopped
    session_id: str = ""  # of the agent's own conversation
    session_agent: str = ""  # whose conversation that is
    session_usage: Usage = Usage()  # what that conversation reported so far
    returns: int = 0  # times it came back from landing; these are no attempts
    collided: tuple[str, ...] = ()  # what had landed meanwhile when it did
    lost: dict[str, str] = msgspec.field(default_factory=dict)  # heads that left the branch: words
    work: str = ""  # what its change was known by when it was last called done
    rejected: tuple[str, ...] = ()  # the same of what a person sent back
    accepted: bool = False  # a person looked at it since it passed
    commitless: bool = False  # passed without a commit that HEAD must contain
    commit: str = ""  # that was made for it; empty: not known, or none
    saved_ref: str = ""  # where the leftovers of a story set aside are
    cost_usd: float = 0.0
    unpriced: int = 0  # starts whose cost nobody knows

    @property
    def is_apart(self) -> bool:
        """Nobody works on it for now."""
        return self.saturated or self.standing in (Standing.BLOCKED, Standing.SET_ASIDE)

    @property
    def is_rejected_again(self) -> bool:
        """It was called done with a change that a person had sent back."""
        return self.standing is not Standing.PASSED and self.work in self.rejected

    @property
    def has_a_chance(self) -> bool:
        """Set aside, and its second chance is yet to come."""
        return self.standing is Standing.SET_ASIDE and not self.second_chance

    def fresh_conversation(self) -> Self:
        """The state for a start that does not go on with the agent's own conversation."""
        return msgspec.structs.replace(self, session_id="", session_agent="", session_usage=Usage())

    def taken_up(self, answer: Answer) -> Self:
        """Open again with a person's words; nothing that was before counts against it."""
        return msgspec.structs.replace(
            self,
            standing=Standing.OPEN,
            grade="",
            reason="",
            attempts=0,
            share=Share(),
            unclaimed=0,
            trail=(),
            refusals=0,
            test_row=0,
            saturated=False,
            second_chance=False,
            accepted=False,
            answers=(*self.answers, answer)[-5:],
        )

    def put_aside(self, reason: str, *, others: bool) -> Self:
        """Set aside; where no other story can run, its second chance comes first."""
        if not others and not self.second_chance:
            return msgspec.structs.replace(self, second_chance=True, attempts=0)
        detail = f"{reason}: {self.reason}" if self.reason else reason
        return msgspec.structs.replace(self, standing=Standing.SET_ASIDE, reason=detail)


States = Mapping[str, StoryState]


def state_of(states: States, story_id: str | None) -> StoryState:
    """What is known of a story; a fresh one starts open."""
    return states.get(story_id or "", StoryState())


def verify_was(state: StoryState, story: Story) -> CheckStatus | None:
    """What this very command showed before the first start; another one tells nothing."""
    seen = state.verify_before
    return seen.status if seen and seen.argv == story.verify else None


def is_failed_attempt(analysis: Analysis, *, passed: bool) -> bool:
    """A start that moved the story forward is none, unless it claimed done and was not."""
    if passed or analysis.says_nothing:
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
    stuck: tuple[str, ...] = ()  # signs of going in circles that the last iteration showed
    lengths: tuple[int, ...] = ()  # characters of own text, agent iterations only
    startup_errors: int = 0
    paid_failures: int = 0
    unanswered: int = 0  # times a missing status block was asked for and did not come
    silent_stalls: int = 0  # starts in a row that said nothing until the stall clock ran out
    quota: Windows = ()  # the newest word of every agent about its subscription
    # When each agent may be started again, by its clocks; AGENT_GONE: not in this run.
    available_at: dict[str, float] = msgspec.field(default_factory=dict)
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


class Basis(Value, kw_only=True):
    checks: tuple[tuple[str, ...], ...] = ()
    baseline: tuple[CheckResult, ...] = ()
    dirty: tuple[str, ...] = ()  # paths with changes that are not the agent's
    start_head: str = ""
    start_tree: str = ""
    branch: str = ""
    filters: tuple[str, ...] | None = None  # of git, as they were set; None: nobody wrote it down


class LaneNote(Value, kw_only=True):
    story: str = ""  # empty: nothing that anybody needs
    base: str = ""  # the commit its work stands on
    work: str = ""  # the commit its work was saved as last
    onto: str = ""  # `work` is about to be put onto this
    # By the commit of its work: where that met what had landed, and could not stand beside it.
    met: dict[str, tuple[Conflict, ...]] = msgspec.field(default_factory=dict)


class Book(Value, kw_only=True):
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

    def lane_of(self, story: str | None) -> int:
        """The lane that holds the work of a story; 0: none."""
        return next((n for n, note in self.lanes.items() if note.story == story), 0)


class Desk(Value, kw_only=True):
    """What a person changed while the run went on."""

    extra: Extra = Extra()
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
    frozen: Basis = Basis()
    desk: Desk = Desk()
    number: int = 0  # of the last start

    @property
    def stories(self) -> dict[str, StoryState]:
        return self.state.stories

    def story(self, story_id: str | None) -> StoryState:
        return self.state.story(story_id)


def first_state(frozen: Basis, circuit: BreakerState, stories: dict[str, StoryState]) -> RunState:
    """Before the first iteration: the tree, the checks and the stories as they were found."""
    trees = (frozen.start_tree,) if frozen.start_tree else ()
    checks = {result.name: result.status for result in frozen.baseline}
    memory = Memory(trees=trees, checks=checks)
    return RunState(breaker=circuit, memory=memory, stories=stories)
