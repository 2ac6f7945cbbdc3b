"""Reading `git status --porcelain=v2 -z --branch`: one command answers most questions.

Renames are never asked for, so every record is one path.  Paths stay bytes here; whoever shows
or stores them decodes them.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

STATUS_ARGS = (
    "status",
    "--porcelain=v2",
    "-z",
    "--branch",
    "--no-ahead-behind",
    "--no-renames",
    "--untracked-files=all",
    "--ignore-submodules=none",
)
_FIELDS_BEFORE_PATH = {b"1": 8, b"u": 10}


class Entry(msgspec.Struct, frozen=True):
    """One path that is not the same in HEAD, index and work tree."""

    path: bytes
    staged: str  # HEAD against index: one of .MTADU
    unstaged: str  # index against work tree; "?" for an untracked path
    submodule: str  # "N..." or "S" + commit, modified, untracked flags

    @property
    def is_untracked(self) -> bool:
        return self.unstaged == "?"

    @property
    def is_unmerged(self) -> bool:
        return "U" in (self.staged, self.unstaged) or self.staged == self.unstaged in ("A", "D")


class StatusReport(msgspec.Struct, frozen=True):
    head: str | None  # None: no commit yet
    branch: str | None  # None: detached
    entries: list[Entry]


def parse_status(output: bytes) -> StatusReport:
    """Head, branch and every path that differs somewhere."""
    head: str | None = None
    branch: str | None = None
    entries: list[Entry] = []
    for record in _records(output):
        if record.startswith(b"# branch.oid "):
            head = _named(record[13:], absent="(initial)")
        elif record.startswith(b"# branch.head "):
            branch = _named(record[14:], absent="(detached)")
        elif not record.startswith(b"#"):
            entries.append(_entry(record))
    return StatusReport(head, branch, entries)


def _records(output: bytes) -> Iterator[bytes]:
    return (record for record in output.split(b"\0") if record)


def _named(value: bytes, *, absent: str) -> str | None:
    text = value.decode("utf-8", "backslashreplace")
    return None if text == absent else text


def _entry(record: bytes) -> Entry:
    kind = record[:1]
    if kind == b"?":
        return Entry(record[2:], ".", "?", "N...")
    fields = record.split(b" ", _FIELDS_BEFORE_PATH[kind])
    both = fields[1].decode()
    return Entry(fields[-1], both[0], both[1], fields[2].decode())
