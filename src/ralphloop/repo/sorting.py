"""Deciding what to do with each changed path: hash it, drop it, or know it without reading.

A file over 5 MB, and what goes beyond a budget of bytes for one look, is known by size and time, a
repository inside this one and a dirty submodule by head and state.  A placeholder blob says so in
the tree: a change of the real thing changes the tree, at the cost of one `lstat`.
"""

import hashlib
import os
import stat
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from ralphloop.errors import GitDisturbed, RepositoryError
from ralphloop.repo.git import StatusEntry, printable
from ralphloop.repo.inner import state_of
from ralphloop.text.plain import some

LARGE_FILE = 5 * 1024 * 1024
MAX_READ = 256 * 1024 * 1024
MAX_KEPT_FILES = 5_000
MAX_KEPT_BYTES = 64 * 1024 * 1024
MAX_INNER_REPOSITORIES = 20
LONGEST_STANDIN = 200
STANDIN = b"ralph: content not measured\n"  # what a placeholder begins with


class StoredFile(NamedTuple):
    """A file as a tree holds it."""

    mode: bytes
    content: bytes


Files = dict[bytes, StoredFile | None]  # by path; None where there is no file any more


class Work(msgspec.Struct, frozen=True):
    add: list[bytes]
    remove: list[bytes]
    unread: Files  # placeholders
    keep_content: bool
    notes: tuple[str, ...]


def sort(
    root: bytes,
    entries: Iterable[StatusEntry],
    dropped: Collection[bytes] = (),
    keeps: Path = Path("/dev/null"),
) -> Work:
    """Sort changed paths by what has to be done; `dropped` ones do not count any more.

    `keeps` is where git keeps what belongs to submodules.
    """
    files: dict[bytes, os.stat_result] = {}
    links: list[bytes] = []  # submodules that stand on another commit
    inner: list[bytes] = []
    removed: list[bytes] = []
    for entry in entries:
        path = entry.path
        is_gone = entry.unstaged == "D" and not entry.is_unmerged
        if path in dropped or is_gone:
            removed.append(path)
        elif entry.submodule.startswith("S"):
            if "C" in entry.submodule:
                links.append(path)
            if entry.submodule[2:] != "..":
                inner.append(path)
        elif entry.is_untracked and path.endswith(b"/"):
            inner.append(path.rstrip(b"/"))
        elif entry.unstaged != "." or entry.staged == "D":
            # "D." is in HEAD and not in our index: deleted, or ignored and yet committed
            if (info := _content_at(root, path)) is not None:
                files[path] = info
            elif entry.unstaged != "." and not entry.is_untracked:
                removed.append(path)
    return _within_budgets(root, files, links, removed, inner, keeps)


def _within_budgets(
    root: bytes,
    files: dict[bytes, os.stat_result],
    links: list[bytes],
    removed: list[bytes],
    inner: list[bytes],
    keeps: Path,
) -> Work:
    add: list[bytes] = []
    unread: Files = {}
    total = 0
    # Smallest first, so that source comes before artefacts.
    for path, info in sorted(files.items(), key=lambda item: item[1].st_size):
        fits = info.st_size <= LARGE_FILE and total + info.st_size <= MAX_READ
        if fits and (stat.S_ISLNK(info.st_mode) or os.access(_join(root, path), os.R_OK)):
            add.append(path)
            total += info.st_size
        else:
            unread[path] = _placeholder(b"file %d %d" % (info.st_size, info.st_mtime_ns))
    seen = inner[:MAX_INNER_REPOSITORIES]
    unseen = inner[MAX_INNER_REPOSITORIES:]
    said = {
        "not read, known by size and time": tuple(unread),
        "inner repositories, known by head and state": seen,
        "inner repositories, not looked at": unseen,
    }
    unread |= {path: _state_of(Path(os.fsdecode(_join(root, path))), keeps) for path in seen}
    keep = len(add) <= MAX_KEPT_FILES and total <= MAX_KEPT_BYTES
    notes = tuple(
        f"{words}: {some([printable(os.fsdecode(path)) for path in paths], 3)}"
        for words, paths in said.items()
        if paths
    )
    return Work([*add, *links], removed, unread, keep, notes)


def _join(root: bytes, path: bytes) -> bytes:
    return os.path.join(root, path)  # noqa: PTH118 - names that are no text need bytes


def _content_at(root: bytes, path: bytes) -> os.stat_result | None:
    """A file or a link, unless git would not look there: beyond a directory that is a link."""
    parent = path.rpartition(b"/")[0]
    while parent:
        if os.path.islink(_join(root, parent)):  # noqa: PTH114 - bytes path
            return None
        parent = parent.rpartition(b"/")[0]
    try:
        info = os.lstat(_join(root, path))
    except OSError:
        return None
    return info if stat.S_ISREG(info.st_mode) or stat.S_ISLNK(info.st_mode) else None


def _state_of(path: Path, keeps: Path) -> StoredFile:
    """What is known of a repository inside this one: its head and what differs from it."""
    try:
        found = state_of(path, keeps)
    except GitDisturbed:
        raise
    except (RepositoryError, OSError):
        return _placeholder(b"repository that git cannot read")
    digest = hashlib.sha256()
    for entry in found.entries[:2_000]:
        try:
            info = os.lstat(_join(os.fsencode(path), entry.path))
            stamp = b"%d %d" % (info.st_size, info.st_mtime_ns)
        except OSError:
            stamp = b"absent"
        digest.update(b"%s\0%s\0" % (entry.path, stamp))
    return _placeholder(f"repository {found.head or None} {digest.hexdigest()}".encode())


def _placeholder(words: bytes) -> StoredFile:
    return StoredFile(b"100644", b"%s%s\n" % (STANDIN, words))
