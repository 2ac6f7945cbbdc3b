"""The story list after an agent had it in its hands.

A mark it set is a claim and is put back.  A file it made unreadable is put back as a whole.  What
it removed or made weaker stays as it is, but is not forgotten: the stories as they were asked are
kept with the story that was worked on, so that a later claim is held against them too.
"""

from __future__ import annotations

import msgspec

from ralphloop.atomic import write_atomic
from ralphloop.core.model import Value
from ralphloop.core.story import Story, StoryList
from ralphloop.errors import InputError
from ralphloop.loop.runner import Runner
from ralphloop.stories.guard import Changes, compare

MAX_ASKED = 50


class ListAfter(Value, kw_only=True):
    """The list as it is now, and what was done to it."""

    stories: StoryList | None = None
    changes: Changes = Changes()
    asked: tuple[Story, ...] = ()  # as they were, where they were removed or weakened
    findings: tuple[str, ...] = ()


def read_back(
    runner: Runner, before: StoryList | None, content: bytes, asked: tuple[Story, ...]
) -> ListAfter:
    """Read the list again; `before` and `content` are from before the agent started."""
    if before is None:
        return ListAfter()
    try:
        file = runner.stories()
    except InputError as error:
        return _put_back(runner, before, content, asked, error)
    if file is None:
        return ListAfter()
    wanted = _as_asked(before, asked)
    changes = compare(wanted, file.list)
    if changes.marks_to_restore:
        file.mark_all(changes.marks_to_restore)
    less = {*changes.removed, *changes.weakened}
    return ListAfter(
        stories=file.list.with_passes(changes.marks_to_restore),
        changes=changes,
        asked=tuple(story for story in wanted.stories if story.id in less)[:MAX_ASKED],
    )


def _as_asked(before: StoryList, asked: tuple[Story, ...]) -> StoryList:
    """The list before the agent, with what was taken from it earlier as it was."""
    first = {story.id: story for story in asked}
    there = tuple(
        msgspec.structs.replace(first.pop(story.id), passes=story.passes)
        if story.id in first
        else story
        for story in before.stories
    )
    return msgspec.structs.replace(before, stories=(*there, *first.values()))


def _put_back(
    runner: Runner,
    before: StoryList,
    content: bytes,
    asked: tuple[Story, ...],
    error: InputError,
) -> ListAfter:
    path = runner.setup.stories.path if runner.setup.stories else None
    within = runner.setup.within
    if path is not None:
        if path.is_symlink() and not path.resolve().is_relative_to(within):
            path.unlink()  # what it leads to is not ours, the name is
        write_atomic(path, content, within=within)
    finding = f"the story file was made unreadable and was put back ({error.message})"
    return ListAfter(stories=before, asked=asked, findings=(finding,))
