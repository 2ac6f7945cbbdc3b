"""An index of our own, so that measuring never writes into the user's `.git`.

It starts as a copy of the user's index (whose cached file times make the first look cheap), then
lives its own life under `.ralph/`: after each measurement it holds exactly what the work tree
holds, untracked files included.  The next `git status` against it therefore lists only what changed
since, and nothing listed means nothing to do.  New blobs go to `.ralph/objects`, with the user's
objects as alternates.

A run has an index as long as its process lives.  A session's loop is a new process every turn, so
its index is `kept`: what is known of it lies beside it and is believed only while the index file is
the very one that was left.

Hooks, split indexes, lazy fetching and external clean filters (git-lfs writes into `.git/lfs`) are
switched off; git's own conversions (line endings) are not.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from ralphloop.atomic import is_alive
from ralphloop.core.model import Value
from ralphloop.repo.git import STATUS_ARGS, Git, StatusReport, nul_ended, parse_status
from ralphloop.repo.own_files import OwnFiles
from ralphloop.repo.work_tree import Repository

_UPDATE_TIMEOUT_S = 600.0
_CONFIG = (
    f"core.hooksPath={os.devnull}",
    "core.splitIndex=false",
    "core.safecrlf=false",
    "core.looseCompression=1",
    # Names that are harmless here must not stop the measuring, whatever they mean elsewhere.
    "core.protectNTFS=false",
    "core.protectHFS=false",
)
_GITLINK = b"160000 "
_USERS_OWN = ("~/.gitconfig", "~/.config/git/config", "~/.config/git/ignore")


_numbers = itertools.count()
_Stamps = tuple[tuple[int, int, int] | None, ...]


class Left(Value, kw_only=True):
    """What the turn before knew of a kept index."""

    index: tuple[int, int, int] | None  # the file itself
    premises: _Stamps
    own: tuple[str, ...]
    filters: tuple[str, ...]
    has_submodules: bool
    tree: str  # of what it holds
    head: str | None


class PrivateIndex:
    """The index file `.ralph/git-index-<pid>-<n>` and the git commands that use it."""

    def __init__(self, repo: Repository, store: Path, own: OwnFiles, *, kept: bool = False) -> None:
        # One file for each that measures: another's would move under the tree it remembers.
        name = "kept" if kept else f"{os.getpid()}-{next(_numbers)}"
        self.path = store.parent / f"git-index-{name}"
        self._notes = self.path.with_name(f"{self.path.name}.json") if kept else None
        self._repo = repo
        self._store = store
        self._own = own
        self._seeded_for: _Stamps | None = None
        self._has_submodules = False
        self._filters: tuple[str, ...] = ()
        self._git: Git | None = None
        self._premise_files = (
            str(repo.git_dir / "info" / "sparse-checkout"),
            str(repo.common_dir / "info" / "exclude"),
            str(repo.common_dir / "config"),
            *map(os.path.expanduser, _USERS_OWN),
        )

    def take_up(self) -> Left | None:
        """Go on with the index the turn before left; None where there is none to go on with."""
        if self._notes is None:
            return None
        try:
            left = msgspec.json.decode(self._notes.read_bytes(), type=Left)
        except (OSError, msgspec.DecodeError):
            return None
        mine = (self._own.patterns, self._premises())
        if left.index is None or left.index != _stamp(str(self.path)):
            return None
        if (left.own, left.premises) != mine:
            return None
        self._filters, self._has_submodules = left.filters, left.has_submodules
        self._seeded_for, self._git = left.premises, None
        return left

    def leave(self, tree: str, head: str | None) -> None:
        """Note what the next turn has to know of a kept index."""
        if self._notes is None or self._seeded_for is None:
            return
        left = Left(
            index=_stamp(str(self.path)),
            premises=self._seeded_for,
            own=self._own.patterns,
            filters=self._filters,
            has_submodules=self._has_submodules,
            tree=tree,
            head=head,
        )
        with suppress(OSError):  # the next turn begins anew
            self._notes.write_bytes(msgspec.json.encode(left))

    def ensure(self) -> bool:
        """Start anew where there is no index or its premises changed; True if it did."""
        premises = self._premises()
        if self._seeded_for == premises and self.path.exists():
            return False
        self.seed()
        return True

    def seed(self) -> None:
        """Begin with a copy of the user's index, without our own files."""
        self.discard()
        self._filters, self._git = self._switched_off_filters(), None
        users = self._repo.git_dir / "index"
        if users.exists():
            # With its time: git takes entries as new as the index file for possibly changed.
            _copy(users, self.path)
        self._drop_own_files()
        self._seeded_for = self._premises()

    def discard(self) -> None:
        """Forget the index and what a killed git may have left of it."""
        for leftover in self.path.parent.glob("git-index-*"):
            pid = leftover.name.split("-")[2]
            is_dead = not pid.isdigit() or not is_alive(int(pid))
            if is_dead or leftover.name.startswith(self.path.name):
                leftover.unlink(missing_ok=True)
        self._seeded_for = None

    def status(self) -> StatusReport:
        """What changed since this index was last brought up to date."""
        return parse_status(self.git().run(*STATUS_ARGS, timeout_s=_UPDATE_TIMEOUT_S))

    def ignored(self) -> frozenset[bytes]:
        """Paths in this index that the user's rules ignore."""
        args = ("ls-files", "-z", "--cached", "--ignored", "--exclude-standard")
        return frozenset(path for path in self.git().run(*args).split(b"\0") if path)

    def update(self, add: list[bytes], remove: list[bytes], *, keep_content: bool) -> None:
        """Take over the work tree's state of some paths; without content only hashes are kept."""
        update_index(self.git(), self._repo, add, remove, keep_content=keep_content)

    def write_tree(self) -> str:
        """The tree of what the index holds."""
        return self.git().line("write-tree", "--missing-ok")

    def tree_of(self, commit: str | None) -> str:
        """The tree of a commit without our own files, which this index then holds."""
        self.git().run("read-tree", *([commit] if commit else ["--empty"]))
        self._drop_own_files()
        return self.write_tree()

    def write_tree_with(self, entries: dict[bytes, str]) -> str:
        """The tree of what the index holds, with some paths replaced by given blobs."""
        copy = self.path.with_name(f"{self.path.name}.placeholders")
        if self.path.exists():
            _copy(self.path, copy)
        git = self._made(copy)
        lines = [b"100644 %s\t%s" % (name.encode(), path) for path, name in entries.items()]
        git.run("update-index", "-z", "--add", "--replace", "--index-info", stdin=nul_ended(lines))
        tree = git.line("write-tree", "--missing-ok")
        copy.unlink(missing_ok=True)
        return tree

    def git(self) -> Git:
        """Git that reads the user's objects and writes only ours."""
        if self._git is None:
            self._git = self._made(self.path)
        return self._git

    def _made(self, index: Path) -> Git:
        # Refreshing our own index is welcome, but `git status` would refresh the submodules' too.
        locks = "0" if self._has_submodules else "1"
        return self._repo.git.adapted(
            config=(*_CONFIG, *self._filters),
            env={
                "GIT_INDEX_FILE": str(index),
                "GIT_OPTIONAL_LOCKS": locks,
                "GIT_NO_LAZY_FETCH": "1",
                **object_variables(self._store, self._repo.objects),
            },
        )

    def _premises(self) -> _Stamps:
        """What, when changed, makes the index's idea of ignored or absent paths wrong."""
        return tuple(map(_stamp, self._premise_files))

    def _switched_off_filters(self) -> tuple[str, ...]:
        """Settings that turn every configured clean filter into no filter."""
        listed = self._repo.git.run(
            "config", "-z", "--name-only", "--get-regexp", r"^filter\.", ok=(0, 1)
        )
        keys = (os.fsdecode(key) for key in listed.split(b"\0") if key)
        drivers = {key.removeprefix("filter.").rpartition(".")[0] for key in keys}
        return tuple(
            f"filter.{driver}.{setting}"
            for driver in sorted(drivers)
            for setting in ("clean=", "process=", "required=false")
        )

    def _drop_own_files(self) -> None:
        ours: list[bytes] = []
        has_submodules = False
        for record in self.git().run("ls-files", "-z", "--stage").split(b"\0"):
            has_submodules |= record.startswith(_GITLINK)
            path = record.partition(b"\t")[2]
            if path and os.fsdecode(path) in self._own:
                ours.append(path)
        self._has_submodules, self._git = has_submodules, None
        update_index(self.git(), self._repo, [], ours)


def update_index(
    git: Git,
    repo: Repository,
    add: Iterable[bytes],
    remove: Iterable[bytes],
    *,
    keep_content: bool = True,
) -> None:
    """Bring an index to the work tree's state of some paths."""
    null = b"0" * (64 if repo.object_format == "sha256" else 40)
    if gone := nul_ended(b"0 %s\t%s" % (null, path) for path in remove):
        git.run("update-index", "-z", "--index-info", stdin=gone)
    if here := nul_ended(add):
        # --info-only must come before the paths it applies to
        how = ("--add", "--remove", "--replace", *(() if keep_content else ("--info-only",)))
        args = ("update-index", "-z", *how, "--stdin")
        git.run(*args, stdin=here, timeout_s=_UPDATE_TIMEOUT_S)


def _copy(source: Path, target: Path) -> None:
    """A copy with the same times; `shutil` would bring every archive format along."""
    seen = source.stat()
    target.write_bytes(source.read_bytes())
    os.utime(target, ns=(seen.st_atime_ns, seen.st_mtime_ns))


def object_variables(store: Path, objects: Path) -> dict[str, str]:
    """Environment that makes git write to a store and read from the repository as well."""
    return {
        "GIT_OBJECT_DIRECTORY": str(store),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(str(objects)),
    }


def _quoted(path: str) -> str:
    """A path as one element of a colon-separated list that git unquotes like C."""
    if ":" not in path and not path.startswith('"'):
        return path
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        info = os.stat(path)  # noqa: PTH116 - asked before every measurement
    except OSError:
        return None
    return info.st_ino, info.st_size, info.st_mtime_ns
