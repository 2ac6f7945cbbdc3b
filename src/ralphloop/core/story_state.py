"""What a run knows of each story.

The story file says what is asked and what passed; this says what happened on the way: attempts,
reasons, leftovers.  It lives in the journal, never in the user's file.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Self

import msgspec

from ralphloop.core.model import Analysis, CheckStatus, Usage, Value
from ralphloop.core.policy import Share
from ralphloop.core.progress import Footprint
from ralphloop.core.story import Story

MAX_FAILURE_CHARS = 16_000
MAX_ANSWERS = 5
MAX_ANSWER_CHARS = 4_000


class Standing(StrEnum):
    OPEN = "open"
    PASSED = "passed"
    BLOCKED = "blocked"  # waits for a person
    SET_ASIDE = "set_aside"  # quarantined for now


class VerifySeen(Value, kw_only=True):
    argv: tuple[str, ...]
    status: CheckStatus


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
    start_tree: str = ""
    start_head: str = ""
    verify_before: VerifySeen | None = None
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
    lost: dict[str, str] = msgspec.field(
        default_factory=dict
    )  # heads that left the branch while it was worked on, each in words
    accepted: bool = False  # a person looked at it since it passed
    commitless: bool = False  # passed without a commit that HEAD must contain
    saved_ref: str = ""  # where the leftovers of a story set aside are
    cost_usd: float = 0.0
    unpriced: int = 0  # starts whose cost nobody knows

    @property
    def is_apart(self) -> bool:
        """Nobody works on it for now."""
        return self.saturated or self.standing in (Standing.BLOCKED, Standing.SET_ASIDE)

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
            answers=(*self.answers, answer)[-MAX_ANSWERS:],
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


def load_states(saved: Mapping[str, object]) -> dict[str, StoryState]:
    return {story: msgspec.convert(state, type=StoryState) for story, state in saved.items()}


def verify_was(state: StoryState, story: Story) -> CheckStatus | None:
    """What this very command showed before the first start; another one tells nothing."""
    seen = state.verify_before
    return seen.status if seen and seen.argv == story.verify else None


def is_failed_attempt(analysis: Analysis, *, passed: bool) -> bool:
    """A start that moved the story forward is none, unless it claimed done and was not."""
    if passed or analysis.says_nothing:
        return False
    return analysis.story_claimed or not analysis.progress
