"""What an iteration owes to the user's repository, in the order in which it is done.

Written ahead with the iteration, so that a successor can do again whatever a crash cut off.
"""

from __future__ import annotations

from ralphloop.core.model import Value


class Effect(Value, tag_field="kind"):
    """One change outside of the journal; doing it twice does no harm."""

    @property
    def kind(self) -> str:
        return str(self.__struct_config__.tag)


class MarkStory(Effect, kw_only=True, tag="mark"):
    """The story's `passes` in the story file."""

    story: str = ""


class AddProgress(Effect, kw_only=True, tag="progress"):
    """An entry in progress.txt."""

    at: float = 0.0
    task: str = ""
    outcome: str = ""
    summary: str = ""


class SaveLeftovers(Effect, kw_only=True, tag="set_aside"):
    """Save what the story left behind, and clean up after it."""

    story: str = ""
    tree: str = ""  # where it began
    head: str = ""


class CommitStory(Effect, kw_only=True, tag="commit"):
    """The story's own commit."""

    story: str = ""
    title: str = ""
    grade: str = ""


AnyEffect = MarkStory | AddProgress | SaveLeftovers | CommitStory
