"""Checks across stories: ids are unique, dependencies exist and can be worked off.

Everything is linear in stories plus dependencies; suggestions for misspelt ids are bounded because
comparing texts is not.  The order in which stories will run is told here, too, and why.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from ralphloop.core.planning import rank, ready
from ralphloop.core.story import Story, StoryList
from ralphloop.stories.fields import Problems
from ralphloop.stories.names import label, labels, quoted
from ralphloop.stories.shapes import Listing, dependency_place

_MAX_COMPARED = 1000
_MAX_COMPARED_LENGTH = 60
_MAX_CYCLE_SHOWN = 10


def check(stories: Sequence[Story], listing: Listing, problems: Problems) -> None:
    """Name duplicate ids, dependencies on nobody or oneself, and cycles."""
    key = listing.key
    by_id = _unique(stories, key, problems)
    for story in stories:
        for name in story.depends_on:
            if name == story.id or name not in by_id:
                place = (
                    dependency_place(listing, story.index, name) if problems.wants_detail else ""
                )
                problems.add(place, _reason(story, name, by_id, problems))
    for cycle in _cycles(by_id):
        problems.add(
            f"{key}[{by_id[cycle[0]].index}]", f"dependencies in a circle: {_drawn(cycle)}"
        )


def _unique(stories: Sequence[Story], key: str, problems: Problems) -> dict[str, Story]:
    by_id: dict[str, Story] = {}
    for story in stories:
        first = by_id.setdefault(story.id, story)
        if first is not story and story.id:
            reason = f"{quoted(story.id)} is already the id of {key}[{first.index}]"
            problems.add(f"{key}[{story.index}].id", reason)
    return by_id


def _reason(story: Story, name: str, by_id: Mapping[str, Story], problems: Problems) -> str:
    if name == story.id:
        return "the story depends on itself"
    hint = _suggestion(name, by_id) if problems.wants_detail else ""
    return f"no story has the id {quoted(name)}{hint}"


def _suggestion(name: str, by_id: Mapping[str, Story]) -> str:
    if len(name) > _MAX_COMPARED_LENGTH:
        return ""
    known = {
        story_id.casefold(): story_id
        for story_id in list(by_id)[:_MAX_COMPARED]
        if len(story_id) <= _MAX_COMPARED_LENGTH
    }
    from difflib import get_close_matches

    close = get_close_matches(name.casefold(), known, n=1)
    return f"; did you mean {quoted(known[close[0]])}?" if close else ""


def _cycles(by_id: Mapping[str, Story]) -> Iterator[list[str]]:
    """Every story that can never become ready leads into a cycle: follow it there once."""
    stuck = _never_ready(by_id)
    visited: set[str] = set()
    for start in stuck:
        trail: dict[str, None] = {}
        name = start
        while name not in visited:
            visited.add(name)
            trail[name] = None
            name = next(
                other for other in by_id[name].depends_on if other in stuck and other != name
            )
        if name in trail:
            walked = list(trail)
            yield walked[walked.index(name) :]


def _never_ready(by_id: Mapping[str, Story]) -> dict[str, None]:
    """Stories left over when all that can be worked off has been; in file order."""
    open_count: dict[str, int] = {}
    dependents: dict[str, list[str]] = {}
    for story in by_id.values():
        names = [name for name in story.depends_on if name in by_id and name != story.id]
        open_count[story.id] = len(names)
        for name in names:
            dependents.setdefault(name, []).append(story.id)
    ready = [name for name, count in open_count.items() if not count]
    while ready:
        for name in dependents.get(ready.pop(), ()):
            open_count[name] -= 1
            if not open_count[name]:
                ready.append(name)
    return {name: None for name, count in open_count.items() if count}


def _drawn(cycle: list[str]) -> str:
    shown = [label(name) for name in cycle[:_MAX_CYCLE_SHOWN]]
    if len(cycle) > _MAX_CYCLE_SHOWN:
        shown.append(f"… ({len(cycle) - _MAX_CYCLE_SHOWN} more)")
    return " → ".join([*shown, label(cycle[0])])


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
