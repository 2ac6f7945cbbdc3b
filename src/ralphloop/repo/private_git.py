"""An index and objects of our own, so that measuring never writes into the user's `.git`.

The index starts as a copy of the user's, whose cached file times make the first look cheap.  After
each measurement it holds what the work tree holds, untracked files included, so the next `git
status` against it lists only what changed since.  A session's loop is a new process every turn, so
its index is `kept`, and believed only while it is the very file that was left.

New objects have the user's as alternates, so that none is stored twice.  Hooks, split indexes, lazy
fetching and external clean filters (git-lfs writes into `.git/lfs`) are switched off; git's own
conversions (line endings) are not.
"""

import hashlib
import itertools
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from ralphloop.atomic import is_alive
from ralphloop.core.model import Value
from ralphloop.errors import RepositoryError
from ralphloop.repo.git import Git, nul_ended
from ralphloop.repo.inner import GITLINK, gitlinks, quoted_place, without_filters
from ralphloop.repo.sorting import Files, StoredFile
from ralphloop.repo.work_tree import OwnFiles, Repository
from ralphloop.room import cannot_write, ensure_private_dir

UPDATE_TIMEOUT_S = 600.0
_CONFIG = (
    f"core.hooksPath={os.devnull}",
    "core.splitIndex=false",
    "core.safecrlf=false",
    "core.looseCompression=1",
    # Names that are harmless here must not stop the measuring, whatever they mean elsewhere.
    "core.protectNTFS=false",
    "core.protectHFS=false",
)
_USERS_OWN = ("~/.gitconfig", "~/.config/git/config", "~/.config/git/ignore")

_numbers = itertools.count()


class TreeEntry(NamedTuple):
    """A file of a tree, by the name of its content."""

    mode: bytes
    name: bytes


class FileStamp(NamedTuple):
    """By what a file is known to be the one that was seen, unchanged."""

    inode: int
    size: int
    mtime_ns: int


_NAME_LENGTHS = {"sha1": 40, "sha256": 64}
_Stamps = tuple[FileStamp | None, ...]


class IndexState(Value, kw_only=True):
    premises: _Stamps
    own: tuple[str, ...]
    filters: tuple[str, ...]
    has_submodules: bool
    # When it was left: the file itself, and the tree of what it holds.
    index: FileStamp | None = None
    tree: str = ""
    head: str | None = None


class PrivateIndex:
    def __init__(self, repo: Repository, store: Path, own: OwnFiles, *, kept: bool = False) -> None:
        """Know where our index of `repo` is to lie; `kept`: the next process goes on with it."""
        # One file for each that measures: another's would move under the tree it remembers.
        name = "kept" if kept else f"{os.getpid()}-{next(_numbers)}"
        self.path = store.parent / f"git-index-{name}"
        self._notes = self.path.with_name(f"{self.path.name}.json") if kept else None
        self._repo = repo
        self._store = store
        self._own = own
        self._state: IndexState | None = None
        self.git = self._reading(())
        self._premise_files = (
            str(repo.git_dir / "info" / "sparse-checkout"),
            str(repo.common_dir / "info" / "exclude"),
            str(repo.common_dir / "config"),
            *map(os.path.expanduser, _USERS_OWN),
        )

    def take_up(self) -> IndexState | None:
        """Go on with the index the turn before left; None where there is none to go on with."""
        if self._notes is None:
            return None
        try:
            left = msgspec.json.decode(self._notes.read_bytes(), type=IndexState)
        except (OSError, msgspec.DecodeError):
            return None
        is_the_same = left.index is not None and left.index == _stamp(str(self.path))
        if not is_the_same or left.premises != self._premises() or left.own != self._own.patterns:
            return None
        self.git = self._reading(left.filters, has_submodules=left.has_submodules)
        self._state = left
        return left

    def leave(self, tree: str, head: str | None) -> None:
        """Note for the next turn which tree the index holds, where it is kept."""
        if self._notes is None or self._state is None:
            return
        seen = _stamp(str(self.path))
        left = msgspec.structs.replace(self._state, index=seen, tree=tree, head=head)
        with suppress(OSError):  # the next turn begins anew
            self._notes.write_bytes(msgspec.json.encode(left))

    def ensure(self) -> bool:
        """Start anew where there is no index or its premises changed; True if it did."""
        state = self._state
        if state and state.premises == self._premises() and self.path.exists():
            return False
        self.discard()
        filters = without_filters(self._repo.git)
        users = self._repo.git_dir / "index"
        if users.exists():
            # With its time: git takes entries as new as the index file for possibly changed.
            # `shutil` would bring every archive format along.
            seen = users.stat()
            self.path.write_bytes(users.read_bytes())
            os.utime(self.path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
        records = self._reading(filters).run("ls-files", "-z", "--stage").split(b"\0")
        has_submodules = any(record.startswith(GITLINK) for record in records)
        self.git = self._reading(filters, has_submodules=has_submodules)
        paths = (record.partition(b"\t")[2] for record in records if record)
        ours = [path for path in paths if os.fsdecode(path) in self._own]
        update_index(self.git, [], ours)
        self._state = IndexState(
            premises=self._premises(),
            own=self._own.patterns,
            filters=filters,
            has_submodules=has_submodules,
        )
        return True

    def links(self) -> list[bytes]:
        """Where the index stands for repositories of their own."""
        return gitlinks(self.git) if self._state and self._state.has_submodules else []

    def discard(self) -> None:
        """Forget the index and what a killed git may have left of it."""
        for leftover in self.path.parent.glob("git-index-*"):
            pid = leftover.name.split("-")[2]
            is_dead = not pid.isdigit() or not is_alive(int(pid))
            if is_dead or leftover.name.startswith(self.path.name):
                leftover.unlink(missing_ok=True)
        self._state = None

    def with_files(self, tree: str, changed: Files) -> str:
        """A tree with other files at some paths, or none; the index stays as it is."""
        import tempfile  # few trees hold what cannot be read

        entries: dict[bytes, TreeEntry | None] = dict.fromkeys(changed)
        with tempfile.TemporaryDirectory(dir=self._store.parent, prefix="git-tree-") as place:
            blobs = store_contents(self.git, [new for new in changed.values() if new], Path(place))
        for path, new in changed.items():
            if new is not None:
                entries[path] = TreeEntry(new.mode, blobs[new.content])
        return self.with_entries(tree, entries)

    def with_entries(self, tree: str, changed: Mapping[bytes, TreeEntry | None]) -> str:
        """The same with contents that are stored already, by their names."""
        import tempfile

        with tempfile.TemporaryDirectory(dir=self._store.parent, prefix="git-tree-") as place:
            git = self.git.adapted(env={"GIT_INDEX_FILE": f"{place}/index"})
            git.run("read-tree", tree or "--empty")
            # With these words git takes a path out.
            gone = TreeEntry(b"0", b"0" * _NAME_LENGTHS[self._repo.object_format])
            lines = []
            for path, new in changed.items():
                entry = new or gone
                lines.append(b"%s %s\t%s" % (entry.mode, entry.name, path))
            given = nul_ended(lines)
            git.run("update-index", "-z", "--replace", "--index-info", stdin=given)
            return git.line("write-tree", "--missing-ok")

    def _reading(self, filters: tuple[str, ...], *, has_submodules: bool = False) -> Git:
        """Git that reads the user's objects and writes only ours."""
        return self._repo.git.confined(None).adapted(
            config=(*_CONFIG, *filters),
            env={
                "GIT_INDEX_FILE": str(self.path),
                # Refreshing ours is welcome, but `git status` would refresh submodules' too.
                "GIT_OPTIONAL_LOCKS": "0" if has_submodules else "1",
                "GIT_NO_LAZY_FETCH": "1",
                **object_variables(self._store, self._repo.objects),
            },
        )

    def _premises(self) -> _Stamps:
        """What, when changed, makes the index's idea of ignored or absent paths wrong."""
        return tuple(map(_stamp, self._premise_files))


def update_index(
    git: Git, add: Iterable[bytes], remove: Iterable[bytes], *, keep_content: bool = True
) -> None:
    """Bring an index to the work tree's state of some paths; or keep only hashes of the content."""
    if gone := nul_ended(remove):
        git.run("update-index", "-z", "--force-remove", "--stdin", stdin=gone)
    if here := nul_ended(add):
        # --info-only must come before the paths it applies to
        args = ["update-index", "-z", "--add", "--remove", "--replace"]
        if not keep_content:
            args.append("--info-only")
        git.run(*args, "--stdin", stdin=here, timeout_s=UPDATE_TIMEOUT_S)


def _stamp(path: str) -> FileStamp | None:
    try:
        info = os.stat(path)  # noqa: PTH116 - asked before every measurement
    except OSError:
        return None
    return FileStamp(info.st_ino, info.st_size, info.st_mtime_ns)


def prepare(store: Path) -> None:
    """Make the store, in a directory that git does not look into."""
    store.mkdir(parents=True, exist_ok=True)
    ignore = store.parent / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")


def object_variables(store: Path, objects: Path) -> dict[str, str]:
    """Environment that makes git write to a store and read from the repository as well."""
    return {
        "GIT_OBJECT_DIRECTORY": str(store),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted_place(objects),
    }


def blob_name(object_format: str, content: bytes) -> str:
    """What git calls this content."""
    body = b"blob %d\0%s" % (len(content), content)
    return hashlib.new(object_format, body, usedforsecurity=False).hexdigest()


def store_contents(git: Git, files: Iterable[StoredFile], room: Path) -> dict[bytes, bytes]:
    """Keep these contents as objects; the name of each."""
    contents = list(dict.fromkeys(file.content for file in files))
    paths = [room / str(number) for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    asked = "".join(f"{path}\n" for path in paths).encode()
    args = ("hash-object", "-w", "--no-filters", "--stdin-paths")
    names = git.run(*args, stdin=asked).split() if paths else []
    return dict(zip(contents, names, strict=True))


def make_directory(directory: Path) -> None:
    """Our own directory, ignored by git even where nobody said so."""
    name = directory.name
    # Declared agents and the line that keeps git out may be committed: nothing of ours is there.
    but = (f":(exclude){name}/agents/", f":(exclude){name}/.gitignore")
    tracked = Git(directory.parent).attempt("ls-files", "-z", "--", name, *but)
    if tracked.returncode == 0 and tracked.stdout:
        # What a clone brings along is not what a run of ours wrote.
        first = os.fsdecode(tracked.stdout.split(b"\0")[0])
        raise RepositoryError(
            f"git tracks {first}, but {name} is for this machine alone",
            f"Take it out of git and away: git rm -r -q --cached {name}"
            f" && mv {name} {name}.old, then commit.",
        )
    ensure_private_dir(directory)
    try:
        prepare(directory / "objects")
    except OSError as error:
        raise cannot_write(directory, error) from None
