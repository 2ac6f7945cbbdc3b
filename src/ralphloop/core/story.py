"""The story list as frozen values.

A `StoryList` is a *view* of a file that belongs to somebody else.  The file itself stays raw text:
we read these values out of it, and when a story is marked we splice one value into that text
(`source.StoryFile.mark`).  Nothing is ever written back from the values, so keys we do not know
survive.
"""

from collections.abc import Mapping
from typing import Literal, Self

import msgspec

from ralphloop.core import Value

Kind = Literal["prd", "tasks"]


class Story(Value, frozen=True, kw_only=True):
    """One unit of work; texts are clean Unicode without NUL, the id may hold anything else."""

    id: str
    title: str
    index: int  # position in the file, the last word on order
    description: str = ""
    criteria: tuple[str, ...] = ()
    priority: int | float | None = None  # lowest first; None comes last
    passes: bool = False
    notes: str = ""
    depends_on: tuple[str, ...] = ()
    parent_spec: str | None = None
    verify: tuple[str, ...] | None = None  # argv, never run by a shell
    exit_signal: bool = False  # tasks files: passing this one may end the run
    about_tests: bool = False
    touches: tuple[str, ...] = ()  # path patterns it is expected to change


class StoryList(Value, frozen=True, kw_only=True):
    stories: tuple[Story, ...]
    source: str
    kind: Kind = "prd"
    project: str = ""
    description: str = ""
    branch_name: str | None = None

    @property
    def total(self) -> int:
        return len(self.stories)

    @property
    def passed(self) -> int:
        return sum(story.passes for story in self.stories)

    def get(self, story_id: str) -> Story | None:
        return next((story for story in self.stories if story.id == story_id), None)

    def with_passes(self, wanted: Mapping[str, bool]) -> Self:
        stories = tuple(
            msgspec.structs.replace(story, passes=wanted[story.id]) if story.id in wanted else story
            for story in self.stories
        )
        return msgspec.structs.replace(self, stories=stories)
