"""What is read beside the journal: the running agent's transcript, the story file, learnings.

All of it may be missing, half written or broken at any moment; the rest is still shown.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from ralphloop.core.model import Usage
from ralphloop.core.story import StoryList
from ralphloop.errors import RalphError
from ralphloop.project import Project
from ralphloop.readers import reader_for
from ralphloop.readers.base import Reader
from ralphloop.text.plain import one_line

_BITE = 4 * 1024 * 1024
Mark = tuple[int, int, int]


def mark_of(path: Path) -> Mark | None:
    """Changes when the file does; None where there is none."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_ino, state.st_mtime_ns, state.st_size


class Learned(NamedTuple):
    """What was learned so far, as the files say."""

    captured: int = 0
    categories: tuple[tuple[str, int], ...] = ()  # most frequent first
    skills: int = 0


class Tail:
    """The transcript of a running agent, read as it grows: its usage and last sign of life."""

    def __init__(self, path: Path, reader: str) -> None:
        self.path = path
        self._reader: Reader = reader_for(reader)
        self._offset = 0
        self._mark: Mark | None = None

    @property
    def usage(self) -> Usage:
        return self._reader.usage

    @property
    def last_output(self) -> float | None:
        """When the agent last wrote something."""
        return self._mark[1] / 1e9 if self._mark else None

    def advance(self) -> bool:
        """Take what is new, a bite at a time; True where there was something."""
        mark = mark_of(self.path)
        if mark is None or (mark == self._mark and self._offset >= mark[2]):
            return False
        self._mark = mark
        try:
            with self.path.open("rb") as file:
                file.seek(self._offset)
                chunk = file.read(_BITE)
        except OSError:
            return False
        self._offset += len(chunk)
        self._reader.feed(chunk)
        return True


class StoryWatch:
    """The story list, read again only when its file changed."""

    def __init__(self) -> None:
        self._key: tuple[Path | None, Mark | None] = (None, None)
        self.list: StoryList | None = None
        self.problem = ""

    def look(self, path: Path | None) -> bool:
        """True where the list may be another one now."""
        mark = mark_of(path) if path else None
        if (path, mark) == self._key:
            return False
        self._key, self.list, self.problem = (path, mark), None, ""
        if path is not None and mark is not None:
            self._load(path)
        return True

    def _load(self, path: Path) -> None:
        from ralphloop.stories.source import load

        try:
            self.list = load(path).list
        except RalphError as error:
            self.problem = one_line(error.message, 300)


class LearnedWatch:
    """What was learned, counted from the files."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._folder = project.directory / "learnings"
        self._skills = (
            (project.root / ".claude" / "skills", "*-learned/SKILL.md"),
            (project.root / ".claude" / "commands", "*-learned.md"),
        )
        self._key: object = None
        self.learned = Learned()

    def look(self) -> bool:
        """True where it may be different now."""
        index = self._folder / "index.json"
        key = [mark_of(path) for path in (self._folder, index, *(at for at, _ in self._skills))]
        if key == self._key:
            return False
        self._key = key
        try:
            captured = sum(1 for _ in self._folder.glob("learning-*.yaml"))
            skills = sum(1 for at, pattern in self._skills for _ in at.glob(pattern))
        except OSError:
            return False
        self.learned = Learned(captured=captured, categories=self._categories(), skills=skills)
        return True

    def _categories(self) -> tuple[tuple[str, int], ...]:
        from ralphloop.learning.store import load_index

        found = load_index(self._project).patterns
        return tuple(Counter(one_line(pattern.category, 20) for pattern in found).most_common(4))
