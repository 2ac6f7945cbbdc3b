"""The values a measurement gives.

A `Snapshot` names the content of a work tree by a hash: equal hashes, equal content.  Two of them
make a `Changed`.  Everything that cannot be measured is said in `notes`.
"""

from __future__ import annotations

import re

from ralphloop.core.model import Value
from ralphloop.text.test_paths import is_test_path

MAX_CHANGES = 10_000
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Snapshot(Value, frozen=True, kw_only=True):
    """The content of a work tree at one moment."""

    tree: str
    head: str | None = None  # None: no commit yet, or no git
    branch: str | None = None  # None: detached, or no git
    notes: tuple[str, ...] = ()  # what this measurement cannot see


class Change(Value, frozen=True, kw_only=True):
    """One path that differs between two snapshots."""

    path: str  # bytes that are no UTF-8 are surrogates, as `os.fsencode` wants them
    status: str  # A added, M modified, D deleted
    before: str | None = None  # name of the content, for `contents`
    after: str | None = None


class Changed(Value, frozen=True, kw_only=True):
    """What differs between two snapshots."""

    count: int = 0
    changes: tuple[Change, ...] = ()  # the first MAX_CHANGES of them
    insertions: int | None = None  # None: too many to count, or no git
    deletions: int | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(change.path for change in self.changes)

    def work_files(self, limit: int = 500) -> tuple[str, ...]:
        """Changed paths fit to be stored as text; source first, so that a cut never hides it."""
        ordered = sorted(self.paths, key=is_test_path)
        return tuple(printable(path) for path in ordered[:limit])


class Commits(Value, frozen=True, kw_only=True):
    """Commits that one head has and another has not."""

    count: int = 0
    subjects: tuple[str, ...] = ()  # newest first, bounded


def printable(path: str) -> str:
    """A path as one line of text that any encoder takes."""
    text = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
