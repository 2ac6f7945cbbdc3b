"""One session: what a run remembers, and how it goes on.

A session begins new, or continues where the journal left off.  Everything in it is either folded
from iterations (`state`, `stories`) or fixed at its start (`frozen`); both are in the journal.
"""

from __future__ import annotations

import msgspec

from ralphloop.core.breaker import BreakerState
from ralphloop.core.limits import Extra
from ralphloop.core.model import CheckResult, Value
from ralphloop.core.progress import Memory
from ralphloop.core.run_state import RunState
from ralphloop.core.story_state import Standing, StoryState


class Frozen(Value, kw_only=True):
    """What is fixed when a session begins."""

    checks: tuple[tuple[str, ...], ...] = ()
    baseline: tuple[CheckResult, ...] = ()
    dirty: tuple[str, ...] = ()  # paths with changes that are not the agent's
    start_head: str = ""
    start_tree: str = ""
    branch: str = ""


class Desk(Value, kw_only=True):
    """What a person changed while the run went on."""

    extra: Extra = Extra()
    notes: tuple[str, ...] = ()
    paused: str = ""


class Session(msgspec.Struct):
    """The moving part of a run."""

    run: str
    state: RunState = msgspec.field(default_factory=RunState)
    stories: dict[str, StoryState] = msgspec.field(default_factory=dict)
    frozen: Frozen = Frozen()
    desk: Desk = Desk()
    number: int = 0  # of the last start
    quota: dict[str, float] = msgspec.field(
        default_factory=dict
    )  # agent -> when it may start again
    expected_head: str = ""  # where we left HEAD; empty: not known yet
    refused: int = 0  # stories in a row that were set aside because nothing can be committed
    left_open: str = ""  # a merge or the like that the agent began and did not end

    def story(self, story_id: str | None) -> StoryState:
        """What is known of a story; a fresh one starts open."""
        return self.stories.get(story_id or "", StoryState())

    def count(self, standing: Standing) -> int:
        return sum(state.standing is standing for state in self.stories.values())


def first_state(frozen: Frozen, circuit: BreakerState) -> RunState:
    """Before the first iteration: the tree and the checks as they were found."""
    memory = Memory(
        trees=(frozen.start_tree,) if frozen.start_tree else (),
        checks={result.name: result.status for result in frozen.baseline},
    )
    return RunState(breaker=circuit, memory=memory)


def reopened(stories: dict[str, StoryState]) -> dict[str, StoryState]:
    """Once a person starts a run: open what waited for them, a second chance for what was aside."""
    return {story: _reopened(state) for story, state in stories.items()}


def reopen_waiting(stories: dict[str, StoryState]) -> dict[str, StoryState]:
    """Only those that waited for a person are open again."""
    return {
        story: state if state.standing is Standing.SET_ASIDE else _reopened(state)
        for story, state in stories.items()
    }


def _reopened(state: StoryState) -> StoryState:
    if state.standing is Standing.PASSED:
        return msgspec.structs.replace(state, asked=())  # a person has seen what it took away
    if state.standing not in (Standing.BLOCKED, Standing.SET_ASIDE):
        return state
    standing = Standing.OPEN if state.standing is Standing.BLOCKED else state.standing
    return msgspec.structs.replace(state, standing=standing, attempts=0, second_chance=False)
