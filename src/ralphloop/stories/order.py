"""Which story comes next, and why.  Pure.

A story is ready when it is open, not unavailable (set aside, waiting for a person) and everything
it depends on has passed.  Among the ready ones the lowest priority number comes first, stories
without a number last, then file order.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping

import msgspec

from ralphloop.stories.model import Story, StoryList
from ralphloop.stories.names import labels

_Rank = tuple[bool, int | float, int]


class Step(msgspec.Struct, frozen=True):
    """One open story in the plan: when it runs and why then, or why it does not."""

    story: Story
    reason: str
    runs: bool


def ready(story_list: StoryList, *, unavailable: Collection[str] = ()) -> list[Story]:
    """All stories that could run now, in order."""
    return sorted(_ready(story_list, unavailable), key=_rank)


def plan(story_list: StoryList, *, unavailable: Mapping[str, str] | None = None) -> list[Step]:
    """Every open story: first those that run, in order if each passes, then those that cannot.

    `unavailable` says in words why a story does not run.
    """
    apart = unavailable or {}
    running = _simulate(story_list, apart)
    steps = [Step(story, _why_now(story), True) for story in running]
    done = {story.id for story in story_list.stories if story.passes}
    done.update(story.id for story in running)
    for story in story_list.stories:
        if story.id not in done:
            reason = apart.get(story.id) or _waits(story, done)
            steps.append(Step(story, reason, False))
    return steps


def _ready(story_list: StoryList, unavailable: Collection[str]) -> Iterator[Story]:
    passed = {story.id for story in story_list.stories if story.passes}
    apart = frozenset(unavailable)
    return (
        story
        for story in story_list.stories
        if not story.passes and story.id not in apart and passed.issuperset(story.depends_on)
    )


def _rank(story: Story) -> _Rank:
    return (story.priority is None, story.priority or 0, story.index)


def _simulate(story_list: StoryList, unavailable: Collection[str]) -> list[Story]:
    """The order in which stories run if every one of them passes."""
    passed = {story.id for story in story_list.stories if story.passes}
    missing = {story.id: len(set(story.depends_on) - passed) for story in story_list.stories}
    direct = _dependents(story_list)
    heap = [(_rank(story), story) for story in _ready(story_list, unavailable)]
    heapq.heapify(heap)
    order: list[Story] = []
    while heap:
        story = heapq.heappop(heap)[1]
        order.append(story)
        for other in direct.get(story.id, ()):
            missing[other.id] -= 1
            if not missing[other.id] and not other.passes and other.id not in unavailable:
                heapq.heappush(heap, (_rank(other), other))
    return order


def _dependents(story_list: StoryList) -> dict[str, list[Story]]:
    direct: dict[str, list[Story]] = {}
    for story in story_list.stories:
        for name in story.depends_on:
            direct.setdefault(name, []).append(story)
    return direct


def _why_now(story: Story) -> str:
    rank = "no priority" if story.priority is None else f"priority {story.priority:.15g}"
    return f"{rank}, after {labels(story.depends_on)}" if story.depends_on else rank


def _waits(story: Story, done: Collection[str]) -> str:
    return f"waits for {labels([name for name in story.depends_on if name not in done])}"
