"""Checks across stories, all linear: ids are unique, dependencies exist and can be worked off."""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ralphloop.core.model import Story, StoryList
from ralphloop.core.planning import rank
from ralphloop.stories.names import label, quoted
from ralphloop.stories.shapes import Listing, Problems, dependency_place
from ralphloop.text.plain import closest, some

_MAX_CYCLE_SHOWN = 10


def check(stories: Sequence[Story], listing: Listing, problems: Problems) -> None:
    by_id: dict[str, Story] = {}
    for story in stories:
        first = by_id.setdefault(story.id, story)
        if first is not story and story.id:
            reason = f"{quoted(story.id)} is already the id of {listing.key}[{first.index}]"
            problems.add(f"{listing.key}[{story.index}].id", reason)
    for story in stories:
        for name in story.depends_on:
            if name != story.id and name in by_id:
                continue
            reason = place = ""
            if problems.wants_detail:
                place = dependency_place(listing, story.index, name)
                reason = f"no story has the id {quoted(name)}"
                meant = closest(name, (known for known in by_id if known != story.id))
                reason += f"; did you mean {quoted(meant)}?" if meant else ""
            problems.add(place, "the story depends on itself" if name == story.id else reason)
    for cycle in _cycles(by_id):
        place = f"{listing.key}[{by_id[cycle[0]].index}]"
        shown = [label(name) for name in cycle[:_MAX_CYCLE_SHOWN]]
        if (rest := len(cycle) - _MAX_CYCLE_SHOWN) > 0:
            shown.append(f"… ({rest} more)")
        drawn = " → ".join([*shown, label(cycle[0])])
        problems.add(place, f"dependencies in a circle: {drawn}")


def _cycles(by_id: Mapping[str, Story]) -> Iterator[list[str]]:
    """The first few cycles, each from its first story on, without what only leads into them."""
    from graphlib import CycleError, TopologicalSorter

    needs = {
        story.id: [name for name in story.depends_on if name in by_id and name != story.id]
        for story in by_id.values()
    }
    for _ in range(10):
        try:
            return TopologicalSorter(needs).prepare()
        except CycleError as error:
            # Each is needed by the next, and the last is the first again.
            cycle = error.args[1][:0:-1]
        first = cycle.index(min(cycle, key=lambda name: by_id[name].index))
        yield [*cycle[first:], *cycle[:first]]
        needs = {name: of for name, of in needs.items() if name not in set(cycle)}


class PlannedStory(NamedTuple):
    """One open story in the plan: when it runs and why then, or why it does not."""

    story: Story
    reason: str
    runs: bool


def plan(story_list: StoryList, *, unavailable: Mapping[str, str] = {}) -> list[PlannedStory]:
    """Every open story: first those that run, in order if each passes, then those that cannot."""
    from graphlib import TopologicalSorter

    done = {story.id for story in story_list.stories if story.passes}
    left = {story.id: story for story in story_list.stories if not story.passes}
    sorter = TopologicalSorter({name: {*one.depends_on} - done for name, one in left.items()})
    sorter.prepare()
    # what is able: a heap
    able = list[tuple[object, Story]]()
    steps = list[PlannedStory]()
    while True:
        for name in sorter.get_ready():
            if name in left and name not in unavailable:
                heapq.heappush(able, (rank(left[name]), left[name]))
        if not able:
            break
        _, story = heapq.heappop(able)
        sorter.done(story.id)
        done.add(story.id)
        why = "no priority" if story.priority is None else f"priority {story.priority:.15g}"
        needs = some([label(name) for name in story.depends_on])
        steps.append(PlannedStory(story, f"{why}, after {needs}" if needs else why, runs=True))
    for story in left.values():
        if story.id not in done:
            needs = some([label(name) for name in story.depends_on if name not in done])
            reason = unavailable.get(story.id) or f"waits for {needs}"
            steps.append(PlannedStory(story, reason, runs=False))
    return steps
