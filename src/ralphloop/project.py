"""Where things are in the user's repository."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

RALPH_DIR = ".ralph"
CONFIG_NAME = "ralph.toml"
_MARKS = (RALPH_DIR, CONFIG_NAME, ".git")


class Project(NamedTuple):
    """The paths of one project; nothing here touches the disk."""

    root: Path

    @property
    def directory(self) -> Path:
        return self.root / RALPH_DIR

    @property
    def journal(self) -> Path:
        return self.directory / "journal.db"

    @property
    def transcripts(self) -> Path:
        return self.directory / "transcripts"

    @property
    def log(self) -> Path:
        return self.directory / "ralph.log"


def find_project(start: Path) -> Project:
    """The nearest directory upwards that carries a mark of ours or of git; else `start`."""
    start = start.resolve()
    for directory in (start, *start.parents):
        if any((directory / mark).exists() for mark in _MARKS):
            return Project(directory)
    return Project(start)
