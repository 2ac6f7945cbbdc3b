"""What the work tree holds, as one tree hash: tracked and untracked, never ignored, never ours.

One `git status` against our private index says what changed since the last look; if nothing did,
that is the whole cost.  Otherwise the changed paths are hashed into `.ralph/objects` and a tree is
written there, so that two moments can be compared and restored although nobody committed.

What is too large or too much to read is known by size and time, as `sorting` decides.  Tracked is
what HEAD holds; a file that is ignored and merely staged does not count yet.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from ralphloop.errors import RepositoryError
from ralphloop.repo import object_store
from ralphloop.repo.git import Git, StatusReport
from ralphloop.repo.measures import (
    MAX_CHANGES,
    Change,
    Changed,
    Commits,
    Snapshot,
)
from ralphloop.repo.own_files import OwnFiles, never_progress, project_prefix
from ralphloop.repo.private_index import PrivateIndex, object_variables
from ralphloop.repo.sorting import Sorting, Work, store_blob
from ralphloop.repo.work_tree import Repository

_MAX_COUNTED_LINES_IN = 2_000
_MAX_SUBJECTS = 20
_RAW = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames")


class Snapshotter:
    """Measures one git work tree."""

    def __init__(
        self, repo: Repository, store: Path, own: OwnFiles | None = None, *, kept: bool = False
    ) -> None:
        """Measure `repo`; `store` is `.ralph/objects`, `own` what never counts as progress.

        `kept` goes on with the index of the process before, and leaves it to the next one.
        """
        self._repo = repo
        self._store = store.resolve()  # git runs in the root, wherever we were started
        project = self._store.parent.parent
        self.own = own or never_progress(project_prefix(repo.root, project))
        self._index = PrivateIndex(repo, self._store, self.own, kept=kept)
        self._root = os.fsencode(repo.root)
        left = self._index.take_up()
        self._indexed = left.tree if left else None  # tree of the private index as it stands
        self._head = left.head if left else None  # at the last look
        self._finished: tuple[str, dict[bytes, bytes], str] | None = None
        self._differing = 0  # paths git listed at the last look

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
        # Counting lines takes long where very much has changed: looked at before, where likely.
        likely_few = before.head == after.head and self._differing <= _MAX_COUNTED_LINES_IN
        counted = self._counted(before.tree, after.tree) if likely_few else None
        if counted is None:
            before, changes = self._listed(before, after)
            few = len(changes) <= _MAX_COUNTED_LINES_IN
            counted = (self._counted(before.tree, after.tree) if few else None) or (changes, None)
        changes, lines = counted
        return Changed(
            count=len(changes),
            changes=tuple(changes[:MAX_CHANGES]),
            insertions=lines[0] if lines else None,
            deletions=lines[1] if lines else None,
        )

    def _listed(self, before: Snapshot, after: Snapshot) -> tuple[Snapshot, list[Change]]:
        try:
            return before, self.changes(before.tree, after.tree)
        except RepositoryError:
            before = self.known(before)
            return before, self.changes(before.tree, after.tree)

    def known(self, moment: Snapshot) -> Snapshot:
        """The same moment; where what we kept of it was deleted, the commit it stood on."""
        if self._index.git().attempt("cat-file", "-e", moment.tree).returncode == 0:
            return moment
        scratch = PrivateIndex(self._repo, self._store, self.own)
        try:
            return msgspec.structs.replace(moment, tree=scratch.tree_of(moment.head))
        finally:
            scratch.discard()

    def changes(self, before: str, after: str) -> list[Change]:
        """Every path in which two trees differ, however many there are."""
        return _raw_changes(self._index.git().run(*_RAW, before, after).split(b"\0"))

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
            if not self._repo.git_dir.exists():
                raise RepositoryError(
                    f"the repository is gone: {self._repo.git_dir} was there when the run began",
                    "Bring it back from a backup or a clone, then: ralph run --continue",
                ) from None
            # A damaged private index, or a lock a killed git left: ours to rebuild, once.
            self._index.discard()
            return self._measure()

    def _measure(self) -> Snapshot:
        fresh = self._index.ensure()
        if fresh:
            self._indexed = None
        report = self._index.status()
        work = self._work(report, self._dropped(report, fresh=fresh))
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
        self._head, self._differing = report.head, len(report.entries)
        self._index.leave(self._indexed, report.head)
        return Snapshot(tree=tree, head=report.head, branch=report.branch, notes=work.notes)

    def _tree_with(self, unread: dict[bytes, bytes]) -> str:
        assert self._indexed is not None  # noqa: S101 - for the type checker
        if not unread:
            return self._indexed
        if self._finished is not None and self._finished[:2] == (self._indexed, unread):
            return self._finished[2]
        entries = {
            path: store_blob(self._store, self._repo.object_format, content)
            for path, content in unread.items()
        }
        tree = self._index.write_tree_with(entries)
        self._finished = (self._indexed, unread, tree)
        return tree

    def _work(self, report: StatusReport, dropped: frozenset[bytes]) -> Work:
        sorting = Sorting(self._root)
        for entry in report.entries:
            if entry.path in dropped:
                sorting.drop(entry.path)
            elif os.fsdecode(entry.path) not in self.own:
                sorting.take(entry)
        return sorting.work()

    def _dropped(self, report: StatusReport, *, fresh: bool) -> frozenset[bytes]:
        """Ignored paths that our index still holds although HEAD does not."""
        if report.head == self._head and not fresh:
            return frozenset()
        unknown_to_head = {entry.path for entry in report.entries if entry.staged == "A"}
        return self._index.ignored() & unknown_to_head if unknown_to_head else frozenset()

    def _counted(
        self, before: str, after: str
    ) -> tuple[list[Change], tuple[int, int] | None] | None:
        """What differs, with added and deleted lines, by one command; None where it fails."""
        args = (*_RAW, "--numstat", "--no-ext-diff", "--no-textconv")
        ended = self._index.git().attempt(*args, before, after, timeout_s=30)
        if ended.returncode != 0 or ended.timed_out or ended.overflowed:
            return None  # content that was never kept cannot be counted
        # All raw records come first, a path behind each; then one field for each path.
        fields = ended.stdout.split(b"\0")
        raw = 2 * sum(field.startswith(b":") for field in fields[0::2])
        changes = _raw_changes(fields[:raw])
        few = len(changes) <= _MAX_COUNTED_LINES_IN
        return changes, _changed_lines(fields[raw:]) if few else None


def _changed_lines(records: list[bytes]) -> tuple[int, int]:
    counts = [record.split(b"\t", 2)[:2] for record in records if record]
    numbers = [(int(plus), int(minus)) for plus, minus in counts if plus != b"-"]
    return sum(n[0] for n in numbers), sum(n[1] for n in numbers)


def _raw_changes(fields: list[bytes]) -> list[Change]:
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
