"""A plan on a terminal: the stories as a table, and which waits for which as a tree.  Pure.

Every story stands once, below the last of those it waits for; the others are named beside it.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ralphloop.core.story import Story
from ralphloop.stories.lint import Remark
from ralphloop.stories.names import label
from ralphloop.text.plain import one_line

_TITLE = 54
_LONGEST = 100


def table(
    stories: Sequence[Story], sizes: Sequence[str], remarks: Sequence[Remark]
) -> Iterator[str]:
    """One line a story, its command below it."""
    doubts = Counter(remark.story for remark in remarks)
    wide = max((len(label(story.id)) for story in stories), default=0)
    for story, size in zip(stories, sizes, strict=True):
        mark = "!" if doubts[story.id] else " "
        number = len(story.criteria)
        criteria = "1 criterion" if number == 1 else f"{number or 'no'} criteria"
        name = f"{label(story.id):<{wide}}"
        yield f"{mark} {name}  {one_line(story.title, _TITLE):<{_TITLE}}  {size}  {criteria}"
        if story.verify:
            yield f"  {'':{wide}}  verify: {one_line(shlex.join(story.verify), _LONGEST)}"
        else:
            yield f"  {'':{wide}}  no verify: the checks alone decide"


def tree(stories: Sequence[Story]) -> Iterator[str]:
    """Which story waits for which."""
    own = {story.id for story in stories}
    depth = _depths(stories)
    below: dict[str, list[Story]] = {}
    for story in stories:
        below.setdefault(_shown_above(story, own, depth), []).append(story)
    stack = [(story, "", "") for story in reversed(below.get("", []))]
    while stack:
        story, branch, margin = stack.pop()
        above = _shown_above(story, own, depth)
        also = [label(name) for name in story.depends_on if name != above]
        words = f" (also after {', '.join(also)})" if above and also else ""
        words = words or (f" (after {', '.join(also)})" if also else "")
        yield f"{branch}{label(story.id)} {one_line(story.title, _TITLE)}{words}"
        children = below.get(story.id, [])
        last = children[-1:] and children[-1]
        for child in reversed(children):
            turn, bar = ("└─ ", "   ") if child is last else ("├─ ", "│  ")
            stack.append((child, f"{margin}{turn}", f"{margin}{bar}"))


def _shown_above(story: Story, own: set[str], depth: Mapping[str, int]) -> str:
    needs = [name for name in story.depends_on if name in own]
    return max(needs, key=lambda name: depth[name]) if needs else ""


def _depths(stories: Sequence[Story]) -> dict[str, int]:
    """How many stand before each; they come in dependency order."""
    depth: dict[str, int] = {}
    for story in stories:
        depth[story.id] = 1 + max((depth.get(name, 0) for name in story.depends_on), default=0)
    return depth
