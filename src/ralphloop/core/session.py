"""One session: what a run remembers, and how it goes on.

A session begins new, or continues where the journal left off.  Everything in it is either folded
from iterations (`state`) or fixed at its start (`frozen`); both are in the journal.
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
    frozen: Frozen = Frozen()
    desk: Desk = Desk()
    number: int = 0  # of the last start
    quota: dict[str, float] = msgspec.field(
        default_factory=dict
    )  # agent -> when it may start again
    expected_head: str = ""  # where we left HEAD; empty: not known yet
    left_open: str = ""  # a merge or the like that the agent began and did not end

    @property
    def stories(self) -> dict[str, StoryState]:
        return self.state.stories

    def story(self, story_id: str | None) -> StoryState:
        """What is known of a story; a fresh one starts open."""
        return self.state.story(story_id)

    def count(self, standing: Standing) -> int:
        return self.state.count(standing)


def first_state(
    frozen: Frozen, circuit: BreakerState, stories: dict[str, StoryState] | None = None
) -> RunState:
    """Before the first iteration: the tree, the checks and the stories as they were found."""
    memory = Memory(
        trees=(frozen.start_tree,) if frozen.start_tree else (),
        checks={result.name: result.status for result in frozen.baseline},
    )
    return RunState(breaker=circuit, memory=memory, stories=stories or {})
