"""What the work tree holds, as one tree hash: tracked and untracked, never ignored, never ours.

One `git status` against our private index says what changed since the last look; if nothing did,
that is the whole cost.  Otherwise the changed paths are hashed into `.ralph/objects` and a tree is
written there, so that two moments can be compared and restored although nobody committed.

Bounds: a file over 5 MB is not read but known by size and time (a placeholder blob), and so is
whatever goes beyond a budget of bytes for one look; where very many files are new their hashes
are taken without keeping their content.  A repository inside this one, and a submodule with changes
of its own, are known by head and state.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ralphloop.errors import RepositoryError
from ralphloop.workspace import object_store, placeholders
from ralphloop.workspace.git import Git
from ralphloop.workspace.measures import (
    MAX_CHANGES,
    Change,
    Changed,
    Commits,
    Snapshot,
    printable,
)
from ralphloop.workspace.own_files import OwnFiles, never_progress, project_prefix
from ralphloop.workspace.porcelain import Entry, StatusReport
from ralphloop.workspace.private_index import PrivateIndex, object_variables
from ralphloop.workspace.repo import Repository

LARGE_FILE = 5 * 1024 * 1024
MAX_READ = 256 * 1024 * 1024
MAX_KEPT_FILES = 5_000
MAX_KEPT_BYTES = 64 * 1024 * 1024
MAX_INNER_REPOSITORIES = 20
_MAX_COUNTED_LINES_IN = 2_000
_MAX_SUBJECTS = 20


class Work(NamedTuple):
    """What has to be done to bring the private index up to date."""

    add: list[bytes]
    remove: list[bytes]
    unread: dict[bytes, bytes]  # path to placeholder
    keep_content: bool
    notes: tuple[str, ...]

    @property
    def touches_ignore_rules(self) -> bool:
        return any(path.rpartition(b"/")[2] == b".gitignore" for path in (*self.add, *self.remove))


class Snapshotter:
    """Measures one git work tree."""

    def __init__(self, repo: Repository, store: Path, own: OwnFiles | None = None) -> None:
        """Measure `repo`; `store` is `.ralph/objects`, `own` what never counts as progress."""
        self._repo = repo
        self._store = store.resolve()  # git runs in the root, wherever we were started
        project = self._store.parent.parent
        self._own = own or never_progress(project_prefix(repo.root, project))
        self._index = PrivateIndex(repo, self._store, self._own)
        self._root = os.fsencode(repo.root)
        self._indexed: str | None = None  # tree of the private index as it stands
        self._finished: tuple[str, dict[bytes, bytes], str] | None = None

    def tree(self) -> Snapshot:
        """The content as it is now."""
        try:
            object_store.prepare(self._store)
            return self._measure_or_rebuild()
        except OSError as error:
            raise RepositoryError(
                f"the work tree cannot be measured: {error}",
                f"make sure that {self._store.parent} can be written to and that the disk has room",
            ) from error

    def diff(self, before: Snapshot, after: Snapshot) -> Changed:
        """What differs between two moments."""
        if before.tree == after.tree:
            return Changed(insertions=0, deletions=0)
        changes = self.changes(before.tree, after.tree)
        few = len(changes) <= _MAX_COUNTED_LINES_IN
        lines = self._changed_lines((before.tree, after.tree)) if few else None
        return Changed(
            count=len(changes),
            changes=tuple(changes[:MAX_CHANGES]),
            insertions=lines[0] if lines else None,
            deletions=lines[1] if lines else None,
        )

    def changes(self, before: str, after: str) -> list[Change]:
        """Every path in which two trees differ, however many there are."""
        args = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames")
        return _raw_changes(self._index.git().run(*args, before, after))

    def commits(self, before: str | None, after: str | None) -> Commits:
        """What was committed between two heads."""
        if after is None or before == after:
            return Commits()
        span = after if before is None else f"{before}..{after}"
        git = self._repo.git
        count = int(git.line("rev-list", "--count", span, "--"))
        said = git.run("log", "-z", "--format=%s", f"--max-count={_MAX_SUBJECTS}", span, "--")
        subjects = [line.decode("utf-8", "replace")[:200] for line in said.split(b"\0") if line]
        return Commits(count=count, subjects=tuple(subjects))

    def contents(self, names: Iterable[str]) -> dict[str, bytes]:
        """The contents behind a change, as far as they are kept and not too large."""
        return object_store.contents(self._index.git(), names)

    def git(self) -> Git:
        """Git that sees everything measured and writes nothing of the user's."""
        return self._index.git()

    def object_variables(self) -> dict[str, str]:
        """Environment with which any git sees the objects of our snapshots."""
        return object_variables(self._store, self._repo.objects)

    def prune(self, keep: Iterable[Snapshot | str]) -> None:
        """Keep the store small: only what the given snapshots need stays, once it has grown."""
        trees = [item if isinstance(item, str) else item.tree for item in keep]
        if self._indexed is not None:
            trees.append(self._indexed)
        object_store.prune(self._index.git(), self._store, trees)

    def _measure_or_rebuild(self) -> Snapshot:
        try:
            return self._measure()
        except RepositoryError:
            # A damaged private index, or a lock a killed git left: ours to rebuild, once.
            self._index.discard()
            return self._measure()

    def _measure(self) -> Snapshot:
        fresh = self._index.ensure()
        if fresh:
            self._indexed = None
        report = self._index.status()
        work = self._work(report)
        if work.touches_ignore_rules and not fresh:
            # Files taken in as untracked may be ignored now: look again from the start.
            self._index.discard()
            return self._measure()
        if work.add or work.remove:
            self._indexed = None
            self._index.update(work.add, work.remove, keep_content=work.keep_content)
        if self._indexed is None:
            self._indexed = self._index.write_tree()
        tree = self._tree_with(work.unread)
        return Snapshot(tree=tree, head=report.head, branch=report.branch, notes=work.notes)

    def _tree_with(self, unread: dict[bytes, bytes]) -> str:
        assert self._indexed is not None  # noqa: S101 - for the type checker
        if not unread:
            return self._indexed
        if self._finished is not None and self._finished[:2] == (self._indexed, unread):
            return self._finished[2]
        entries = {
            path: placeholders.store_blob(self._store, self._repo.object_format, content)
            for path, content in unread.items()
        }
        tree = self._index.write_tree_with(entries)
        self._finished = (self._indexed, unread, tree)
        return tree

    def _work(self, report: StatusReport) -> Work:
        sorting = _Sorting(self._root)
        for entry in report.entries:
            if os.fsdecode(entry.path) not in self._own:
                sorting.take(entry)
        return sorting.work()

    def _changed_lines(self, trees: tuple[str, str]) -> tuple[int, int] | None:
        args = ("--numstat", "--no-renames", "--no-ext-diff", "--no-textconv")
        ended = self._index.git().attempt("diff-tree", "-r", "-z", *args, *trees, timeout_s=30)
        if ended.returncode != 0 or ended.timed_out:
            return None  # content that was never kept cannot be counted
        counts = [record.split(b"\t", 2)[:2] for record in ended.stdout.split(b"\0") if record]
        numbers = [(int(plus), int(minus)) for plus, minus in counts if plus != b"-"]
        return sum(n[0] for n in numbers), sum(n[1] for n in numbers)


class _Sorting:
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
                self._unread[path] = placeholders.for_file(info)
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
        return {path: placeholders.for_repository(base / os.fsdecode(path)) for path in seen}


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


def _raw_changes(output: bytes) -> list[Change]:
    fields = output.split(b"\0")
    changes = []
    for meta, path in zip(fields[0::2], fields[1::2], strict=False):
        _, _, before, after, status = meta.decode().split(" ")
        changes.append(
            Change(
                path=os.fsdecode(path),
                status="M" if status[0] == "T" else status[0],
                before=None if status[0] == "A" else before,
                after=None if status[0] == "D" else after,
            )
        )
    return changes
