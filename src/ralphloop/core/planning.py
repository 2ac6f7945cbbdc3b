"""Which story is worked on next.

A story is ready when it is open, not unavailable (set aside, waiting for a person) and everything
it depends on has passed.  Among the ready ones the lowest priority number comes first, stories
without a number last, then file order.
"""

from __future__ import annotations

from collections.abc import Collection

from ralphloop.core.model import Value
from ralphloop.core.story import Story, StoryList
from ralphloop.core.story_state import Standing, States, StoryState


def ready(stories: StoryList, *, unavailable: Collection[str] = ()) -> list[Story]:
    """All stories that could run now, in order."""
    passed = {story.id for story in stories.stories if story.passes}
    apart = frozenset(unavailable)
    found = (
        story
        for story in stories.stories
        if not story.passes and story.id not in apart and passed.issuperset(story.depends_on)
    )
    return sorted(found, key=rank)


def rank(story: Story) -> tuple[bool, int | float, int]:
    """What stories are ordered by."""
    return (story.priority is None, story.priority or 0, story.index)


class Choice(Value, kw_only=True):
    """The story to work on, and whether it is its second chance."""

    story: Story
    second_chance: bool = False


def choose(stories: StoryList, states: States, *, only: str | None = None) -> Choice | None:
    """Dependency-ready, by priority, by file order; then stories set aside, once more each.

    One that rewrote history answers for it first: its work must not go into another story's commit.
    """
    fresh = [s for s in ready(stories, unavailable=_unavailable(states)) if _wanted(s, only)]
    fresh.sort(key=lambda story: not (story.id in states and states[story.id].lost))
    if fresh:
        return Choice(story=fresh[0])
    for story in ready(stories, unavailable=_blocked(states)):
        state = states.get(story.id)
        if state and _has_second_chance(state) and _wanted(story, only):
            return Choice(story=story, second_chance=True)
    return None


def runnable_besides(stories: StoryList, states: States, story_id: str | None) -> int:
    """How many other stories could be worked on now, second chances included."""
    return sum(
        story.id != story_id and ((state := states.get(story.id)) is None or _can_run(state))
        for story in ready(stories, unavailable=_blocked(states))
    )


def _can_run(state: StoryState) -> bool:
    return state.standing is Standing.OPEN or _has_second_chance(state)


def _has_second_chance(state: StoryState) -> bool:
    return state.standing is Standing.SET_ASIDE and not state.second_chance


def _unavailable(states: States) -> set[str]:
    waiting = (Standing.BLOCKED, Standing.SET_ASIDE)
    return {story for story, state in states.items() if state.standing in waiting}


def _blocked(states: States) -> set[str]:
    return {story for story, state in states.items() if state.standing is Standing.BLOCKED}


def _wanted(story: Story, only: str | None) -> bool:
    return only is None or story.id == only
