"""Deciding what to do with each changed path: hash it, drop it, or know it without reading.

Bounds: a file over 5 MB is not read but known by size and time (a placeholder blob), and so is
whatever goes beyond a budget of bytes for one look, smallest files first; where very many files are
new, hashes are taken without keeping content.  A repository inside this one, and a submodule with
changes of its own, are known by head and state.

Stand-ins for content that is not hashed: large files, unreadable ones, repositories inside.  A
placeholder is a small blob in our own object store that says size and time (or head and state), so
that a change of the real thing changes the tree, at the cost of one `lstat`.
"""

from __future__ import annotations

import hashlib
import os
import stat
import zlib
from collections.abc import Collection
from itertools import islice
from pathlib import Path

import msgspec

from ralphloop.errors import RepositoryError
from ralphloop.repo.git import STATUS_ARGS, Entry, Git, parse_status
from ralphloop.repo.measures import printable

LARGE_FILE = 5 * 1024 * 1024
MAX_READ = 256 * 1024 * 1024
MAX_KEPT_FILES = 5_000
MAX_KEPT_BYTES = 64 * 1024 * 1024
MAX_INNER_REPOSITORIES = 20


class Work(msgspec.Struct, frozen=True):
    """What has to be done to bring the private index up to date."""

    add: list[bytes]
    remove: list[bytes]
    unread: dict[bytes, bytes]  # path to placeholder
    keep_content: bool
    notes: tuple[str, ...]

    @property
    def touches_ignore_rules(self) -> bool:
        return any(path.rpartition(b"/")[2] == b".gitignore" for path in (*self.add, *self.remove))


class Sorting:
    """Sorts changed paths by what has to be done with each."""

    def __init__(self, root: bytes) -> None:
        self._root = root
        self._files: dict[bytes, os.stat_result] = {}
        self._links: list[bytes] = []  # submodules that stand on another commit
        self._removed: list[bytes] = []
        self._unread: dict[bytes, bytes] = {}
        self._inner: list[bytes] = []
        self._notes: list[str] = []

    def take(self, entry: Entry) -> None:
        """Sort one status entry in."""
        if entry.submodule.startswith("S"):
            self._take_submodule(entry)
        elif entry.is_untracked and entry.path.endswith(b"/"):
            self._inner.append(entry.path.rstrip(b"/"))
        elif entry.unstaged == "D" and not entry.is_unmerged:
            self._removed.append(entry.path)
        elif entry.unstaged != "." or entry.staged == "D":
            # "D." is in HEAD and not in our index: deleted, or ignored and yet committed
            self._take_file(entry)

    def drop(self, path: bytes) -> None:
        """Sort out a path that does not count any more."""
        self._removed.append(path)

    def work(self) -> Work:
        """Everything sorted, within the budgets."""
        add, kept_bytes = self._within_budget()
        if self._unread:
            self._notes.append(f"not read, known by size and time: {_some(self._unread)}")
        self._unread.update(self._inner_repositories())
        keep = len(add) <= MAX_KEPT_FILES and kept_bytes <= MAX_KEPT_BYTES
        return Work([*add, *self._links], self._removed, self._unread, keep, tuple(self._notes))

    def _take_submodule(self, entry: Entry) -> None:
        if entry.unstaged == "D":
            self._removed.append(entry.path)
            return
        if "C" in entry.submodule:
            self._links.append(entry.path)
        if entry.submodule[2:] != "..":
            self._inner.append(entry.path)

    def _take_file(self, entry: Entry) -> None:
        info = self._lstat(entry.path)
        if info is None or not (stat.S_ISREG(info.st_mode) or stat.S_ISLNK(info.st_mode)):
            if entry.unstaged != "." and not entry.is_untracked:
                self._removed.append(entry.path)
            return
        self._files[entry.path] = info

    def _lstat(self, path: bytes) -> os.stat_result | None:
        try:
            if _beyond_symlink(self._root, path):
                return None
            return os.lstat(_join(self._root, path))
        except OSError:
            return None

    def _within_budget(self) -> tuple[list[bytes], int]:
        """Paths to hash, smallest first, so that source comes before artefacts; their bytes."""
        add: list[bytes] = []
        total = 0
        for path, info in sorted(self._files.items(), key=lambda item: item[1].st_size):
            fits = info.st_size <= LARGE_FILE and total + info.st_size <= MAX_READ
            if fits and self._is_readable(path, info):
                add.append(path)
                total += info.st_size
            else:
                self._unread[path] = for_file(info)
        return add, total

    def _is_readable(self, path: bytes, info: os.stat_result) -> bool:
        return stat.S_ISLNK(info.st_mode) or os.access(_join(self._root, path), os.R_OK)

    def _inner_repositories(self) -> dict[bytes, bytes]:
        seen, unseen = self._inner[:MAX_INNER_REPOSITORIES], self._inner[MAX_INNER_REPOSITORIES:]
        if seen:
            self._notes.append(f"inner repositories, known by head and state: {_some(seen)}")
        if unseen:
            self._notes.append(f"inner repositories, not looked at: {_some(unseen)}")
        base = Path(os.fsdecode(self._root))
        return {path: for_repository(base / os.fsdecode(path)) for path in seen}


def _some(paths: Collection[bytes]) -> str:
    """The first few of many paths, and how many more there are."""
    named = ", ".join(printable(os.fsdecode(path)) for path in islice(paths, 3))
    return named if len(paths) <= 3 else f"{named} and {len(paths) - 3} more"


def _join(root: bytes, path: bytes) -> bytes:
    return os.path.join(root, path)  # noqa: PTH118 - names that are no text need bytes


def _beyond_symlink(root: bytes, path: bytes) -> bool:
    """True where a parent of the path is a symbolic link, so that git would not look there."""
    parent = path.rpartition(b"/")[0]
    while parent:
        if os.path.islink(_join(root, parent)):  # noqa: PTH114 - bytes path
            return True
        parent = parent.rpartition(b"/")[0]
    return False


LONGEST_STANDIN = 200
_PREFIX = b"ralph: content not measured\n"
_MAX_INNER_PATHS = 2_000
_INNER_TIMEOUT_S = 20.0


def for_file(info: os.stat_result) -> bytes:
    """What is known of a file without reading it."""
    return _PREFIX + b"file %d %d\n" % (info.st_size, info.st_mtime_ns)


def for_repository(path: Path) -> bytes:
    """What is known of a repository inside this one: its head and what differs from it."""
    try:
        git = Git(path, config=(f"core.hooksPath={os.devnull}",))
        report = parse_status(git.run(*STATUS_ARGS, timeout_s=_INNER_TIMEOUT_S))
    except RepositoryError:
        return _PREFIX + b"repository that git cannot read\n"
    digest = hashlib.sha256()
    for entry in report.entries[:_MAX_INNER_PATHS]:
        digest.update(b"%s\0%s\0" % (entry.path, _stamp(path, entry.path)))
    return _PREFIX + f"repository {report.head} {digest.hexdigest()}\n".encode()


def is_placeholder(content: bytes) -> bool:
    """True for a stand-in."""
    return content.startswith(_PREFIX)


def store_blob(store: Path, object_format: str, content: bytes) -> str:
    """Write a loose blob; cheaper than a process for each."""
    body = b"blob %d\0%s" % (len(content), content)
    name = hashlib.new(object_format, body, usedforsecurity=False).hexdigest()
    target = store / name[:2] / name[2:]
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f"tmp_{os.getpid()}_{name[2:10]}")
        temporary.write_bytes(zlib.compress(body, 1))
        temporary.replace(target)
    return name


def _stamp(root: Path, path: bytes) -> bytes:
    try:
        info = os.lstat(os.path.join(os.fsencode(root), path))  # noqa: PTH118 - bytes paths
    except OSError:
        return b"absent"
    return b"%d %d" % (info.st_size, info.st_mtime_ns)
