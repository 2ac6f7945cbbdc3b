"""All that later decisions need of earlier iterations.

Nothing else remembers anything, so a run can be replayed from its journal, with other thresholds if
one likes, and a restart only needs the last state.  Every collection in it is bounded.  What is
known of the stories is part of the state and kept apart from the rest, story by story.

A `Session` begins new, or continues where the journal left off.  Everything in it is either folded
from iterations (`state`) or fixed at its start (`frozen`); both are in the journal.
"""

from typing import Self

import msgspec

from ralphloop.core.breaker import BreakerState
from ralphloop.core.model import CheckResult, Value
from ralphloop.core.policy import Extra
from ralphloop.core.progress import Memory, WindowEntry
from ralphloop.core.quota import Windows
from ralphloop.core.story_state import Standing, StoryState, state_of

_MAX_NOTES = 10


class RunState(Value, kw_only=True):
    starts: int = 0  # every start of the agent
    iterations: int = 0  # those that count: the agent worked, or it was paid for
    cost_usd: float = 0.0
    tokens: int = 0  # without cache reads
    active_s: float = 0.0
    breaker: BreakerState = BreakerState()
    memory: Memory = Memory()
    window: tuple[WindowEntry, ...] = ()
    lengths: tuple[int, ...] = ()  # characters of own text, agent iterations only
    startup_errors: int = 0
    paid_failures: int = 0
    unanswered: int = 0  # times a missing status block was asked for and did not come
    silent_stalls: int = 0  # starts in a row that said nothing until the stall clock ran out
    quota: Windows = ()  # the newest word of every agent about its subscription
    outages: int = 0  # infrastructure endings in a row: how long to back off
    idle_set_asides: int = 0  # stories set aside in a row without progress between
    commits: int = 0  # made for passed stories, beside those of the agent
    refused: int = 0  # stories in a row that were set aside because nothing can be committed
    stories: dict[str, StoryState] = msgspec.field(default_factory=dict)

    def story(self, story_id: str | None) -> StoryState:
        """What is known of a story; a fresh one starts open."""
        return state_of(self.stories, story_id)

    def count(self, *standings: Standing) -> int:
        return sum(state.standing in standings for state in self.stories.values())

    def with_stories(self, changed: dict[str, StoryState]) -> Self:
        """The same with these stories as they are now."""
        if not changed:
            return self
        return msgspec.structs.replace(self, stories={**self.stories, **changed})


class Frozen(Value, kw_only=True):
    """What is fixed when a session begins."""

    checks: tuple[tuple[str, ...], ...] = ()
    baseline: tuple[CheckResult, ...] = ()
    dirty: tuple[str, ...] = ()  # paths with changes that are not the agent's
    start_head: str = ""
    start_tree: str = ""
    branch: str = ""


class LaneNote(Value, kw_only=True):
    """What a lane holds."""

    story: str = ""  # empty: nothing that anybody needs
    base: str = ""  # the commit its work stands on
    work: str = ""  # the commit its work was saved as last
    onto: str = ""  # `work` is about to be put onto this


class Book(Value, kw_only=True):
    """What a successor has to know of the lanes of a run."""

    branch: str = ""  # what stories land on
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
        notes = tuple(dict.fromkeys((*before, text)))[-_MAX_NOTES:]
        told = {"own": {**self.own, story: notes}} if story else {"notes": notes}
        return msgspec.structs.replace(self, **told)

    def notes_for(self, story: str) -> tuple[str, ...]:
        return (*self.notes, *self.own.get(story, ()))


class Session(msgspec.Struct):
    run: str
    state: RunState = msgspec.field(default_factory=RunState)
    frozen: Frozen = Frozen()
    desk: Desk = Desk()
    number: int = 0  # of the last start
    quota: dict[str, float] = msgspec.field(
        default_factory=dict
    )  # agent -> when it may start again

    @property
    def stories(self) -> dict[str, StoryState]:
        return self.state.stories

    def story(self, story_id: str | None) -> StoryState:
        """What is known of a story; a fresh one starts open."""
        return self.state.story(story_id)


def first_state(
    frozen: Frozen, circuit: BreakerState, stories: dict[str, StoryState] | None = None
) -> RunState:
    """Before the first iteration: the tree, the checks and the stories as they were found."""
    memory = Memory(
        trees=(frozen.start_tree,) if frozen.start_tree else (),
        checks={result.name: result.status for result in frozen.baseline},
    )
    return RunState(breaker=circuit, memory=memory, stories=stories or {})
