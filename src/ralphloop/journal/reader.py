"""The journal for those who only look: status, monitor, report.

The connection cannot write, every question is a read of its own, and `changed` costs one pragma,
so a screen may ask it several times a second through a whole night.
"""

from __future__ import annotations

from pathlib import Path
from typing import Self

from ralphloop.journal.database import Database, empty, open_for_reading
from ralphloop.journal.queries import Queries


class JournalReader(Queries):
    """A journal seen from beside a run."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._seen: object = None

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the journal for reading; one that is not there yet reads as an empty one."""
        return cls(open_for_reading(path) if path.exists() else empty(path))

    def changed(self) -> bool:
        """True the first time, and whenever something was written since the last call."""
        row = self._db.row("PRAGMA data_version")
        version = row[0] if row else None
        is_new, self._seen = version != self._seen, version
        return is_new
