"""When each story runs and why then, or why it does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ralphloop.core.story import StoryList
from ralphloop.core.story_state import Standing, States, StoryState
from ralphloop.night.values import StoryLook
from ralphloop.stories.graph import plan


class Placed(NamedTuple):
    """One story of the list and its turn."""

    look: StoryLook
    position: int | None  # in which order it runs; None: it does not, or has passed
    why: str  # the position's reason, or why there is none


def arranged(story_list: StoryList, states: States) -> Iterator[Placed]:
    """The open stories in the order they run, those that cannot, then the passed ones."""
    position = 0
    for step in plan(story_list, unavailable=dict(_unavailable(states))):
        position += step.runs
        look = StoryLook(step.story, states.get(step.story.id, StoryState()))
        yield Placed(look, position if step.runs else None, step.reason)
    for story in story_list.stories:
        if story.passes:
            state = states.get(story.id, StoryState())
            why = state.reason if state.standing is Standing.PASSED else "marked by a person"
            yield Placed(StoryLook(story, state), None, why)


def _unavailable(states: States) -> Iterator[tuple[str, str]]:
    for story, state in states.items():
        if state.standing is Standing.BLOCKED:
            yield story, f"waits for a person: {state.reason or 'no reason was given'}"
        elif state.standing is Standing.SET_ASIDE:
            chance = "" if state.second_chance else "; one more chance when all else is done"
            yield story, f"set aside: {state.reason or 'no reason was given'}{chance}"
