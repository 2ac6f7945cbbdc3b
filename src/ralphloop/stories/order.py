"""The order in which stories will run, and why, in words.  Pure."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping

import msgspec

from ralphloop.core.planning import rank, ready
from ralphloop.core.story import Story, StoryList
from ralphloop.stories.names import labels


class Step(msgspec.Struct, frozen=True):
    """One open story in the plan: when it runs and why then, or why it does not."""

    story: Story
    reason: str
    runs: bool


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


def _simulate(story_list: StoryList, unavailable: Collection[str]) -> list[Story]:
    """The order in which stories run if every one of them passes."""
    passed = {story.id for story in story_list.stories if story.passes}
    missing = {story.id: len(set(story.depends_on) - passed) for story in story_list.stories}
    direct = _dependents(story_list)
    heap = [(rank(story), story) for story in ready(story_list, unavailable=unavailable)]
    heapq.heapify(heap)
    order: list[Story] = []
    while heap:
        story = heapq.heappop(heap)[1]
        order.append(story)
        for other in direct.get(story.id, ()):
            missing[other.id] -= 1
            if not missing[other.id] and not other.passes and other.id not in unavailable:
                heapq.heappush(heap, (rank(other), other))
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
