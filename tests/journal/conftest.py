"""A journal in a directory of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ralphloop.journal.journal import Journal
from ralphloop.project import Project


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the journal will be; its directory does not exist yet."""
    return Project(tmp_path).journal


@pytest.fixture
def journal(path: Path) -> Iterator[Journal]:
    """A new, empty journal."""
    with Journal.open(path) as opened:
        yield opened
