"""Checks across stories: ids are unique, dependencies exist and can be worked off.

Everything is linear in stories plus dependencies; suggestions for misspelt ids are bounded because
comparing texts is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ralphloop.core.story import Story
from ralphloop.stories.names import label, quoted
from ralphloop.stories.problems import Problems
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
