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
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from ralphloop.atomic import is_alive
from ralphloop.core.model import Value
from ralphloop.core.own_work import PathEntry
from ralphloop.errors import RepositoryError
from ralphloop.proc.run import Answering
from ralphloop.repo.git import HELD_OPEN, Git, nul_ended
from ralphloop.repo.inner import GITLINK, gitlinks, quoted_place, without_filters
from ralphloop.repo.work_tree import OwnFiles, Repository
from ralphloop.room import cannot_write, claim

UPDATE_TIMEOUT_S = 600.0
_ASK_TIMEOUT_S = 30.0
_MOST_ASKED = 500
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
_DIRECTORY = b"40000"
_Leaf = tuple[bytes, bytes]  # mode and name of an object
_Stamps = tuple[tuple[int, int, int] | None, ...]


class IndexState(Value, kw_only=True):
    premises: _Stamps
    own: tuple[str, ...]
    filters: tuple[str, ...]
    has_submodules: bool
    # When it was left: the file itself, and the tree of what it holds.
    index: tuple[int, int, int] | None = None
    tree: str = ""
    head: str | None = None


class PrivateIndex:
    def __init__(self, repo: Repository, store: Path, own: OwnFiles, *, kept: bool = False) -> None:
        # One file for each that measures: another's would move under the tree it remembers.
        name = "kept" if kept else f"{os.getpid()}-{next(_numbers)}"
        self.path = store.parent / f"git-index-{name}"
        self._notes = self.path.with_name(f"{self.path.name}.json") if kept else None
        self._repo = repo
        self._store = store
        self._own = own
        self._state: IndexState | None = None
        self.git = self._reading(())
        self._held: dict[tuple[str, ...], tuple[Answering, int]] = {}
        self._trees: dict[str, bytes] = {}  # directories that were looked at or made
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
        found = (_stamp(str(self.path)), self._premises(), self._own.patterns)
        if left.index is None or (left.index, left.premises, left.own) != found:
            return None
        self.git = self._reading(left.filters, has_submodules=left.has_submodules)
        self._state = left
        return left

    def leave(self, tree: str, head: str | None) -> None:
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
        self._trees.clear()
        self._let_go()

    def with_files(self, tree: str, changed: Mapping[bytes, tuple[bytes, bytes] | None]) -> str:
        """A tree with other files at some paths, or none; the index stays as it is."""
        kind = self._repo.object_format
        leaves = {
            path: new and (new[0], bytes.fromhex(store_object(self._store, kind, new[1])))
            for path, new in changed.items()
        }
        return self._grafted(tree, leaves) or store_object(self._store, kind, b"", b"tree")

    def with_entries(self, tree: str, changed: Mapping[str, PathEntry | None]) -> str:
        """The same with contents that are stored already, by their names."""
        leaves = {
            os.fsencode(path): (new.mode.encode(), bytes.fromhex(new.content)) if new else None
            for path, new in changed.items()
        }
        made = self._grafted(tree, leaves)
        return made or store_object(self._store, self._repo.object_format, b"", b"tree")

    def _grafted(self, tree: str, leaves: Mapping[bytes, _Leaf | None]) -> str:
        """The same for one directory and what is below it; empty where nothing is left there."""
        entries, below = self._entries(tree), dict[bytes, dict[bytes, _Leaf | None]]()
        for path, leaf in leaves.items():
            name, slash, rest = path.partition(b"/")
            if slash:
                below.setdefault(name, {})[rest] = leaf
            elif leaf is None:
                entries.pop(name, None)
        for name, inner in below.items():
            mode, old = entries.pop(name, (b"", b""))
            if new := self._grafted(old.hex() if mode == _DIRECTORY else "", inner):
                entries[name] = _DIRECTORY, bytes.fromhex(new)
        entries |= {path: leaf for path, leaf in leaves.items() if leaf and b"/" not in path}
        # Git sorts directories as if their names ended in a slash.
        order = sorted(entries, key=lambda name: name + b"/" * (entries[name][0] == _DIRECTORY))
        content = b"".join(b"%s %s\0%s" % (entries[it][0], it, entries[it][1]) for it in order)
        if not content:
            return ""
        made = store_object(self._store, self._repo.object_format, content, b"tree")
        self._trees[made] = content
        return made

    def _entries(self, tree: str) -> dict[bytes, _Leaf]:
        if tree and tree not in self._trees:
            question = (b"%s\n" % tree.encode(), "cat-file", "--batch")
            answer = self.ask(*question, echo=b"%s missing\n") or b""
            told, _, content = answer.removesuffix(b"\n").partition(b"\n")
            if told != b"%s tree %d" % (tree.encode(), len(content)):
                raise RepositoryError(f"the tree {tree} cannot be read")
            self._trees[tree] = content
        content, at, found = self._trees.get(tree, b""), 0, dict[bytes, _Leaf]()
        length = 32 if self._repo.object_format == "sha256" else 20
        while at < len(content):
            end = content.index(b"\0", at) + 1
            mode, name = content[at : end - 1].split(b" ", 1)
            at = end + length
            found[name] = mode, content[end:at]
        return found

    def ask(self, question: bytes, *args: str, echo: bytes = b"%s\n") -> bytes | None:
        """The answer of a command that is held open for more; None where it fails.

        `echo` is what it says of a line that names no object.
        """
        held, times = self._held.pop(args, (None, 0))
        mark = b"end " + os.urandom(8).hex().encode()
        with suppress(OSError):
            if held is None:
                argv = self.git.command("-c", HELD_OPEN, *args)
                held = Answering(argv, cwd=self.git.cwd, env=self.git.environment)
            answer = held.ask(b"%s%s\n" % (question, mark), echo % mark, _ASK_TIMEOUT_S)
            if answer is not None and times < _MOST_ASKED:
                self._held[args] = held, times + 1
            else:
                held.close()  # it forgets nothing that it was asked about
            if answer is not None:
                return answer
        # It cannot be held open, or somebody has ended it meanwhile.
        ended = self.git.attempt(*args, stdin=question)
        is_whole = ended.returncode == 0 and not (ended.overflowed or ended.timed_out)
        return ended.stdout if is_whole else None

    def _let_go(self) -> None:
        while self._held:
            self._held.popitem()[1][0].close()

    def __del__(self) -> None:
        self._let_go()

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
        how = ("--add", "--remove", "--replace", *(() if keep_content else ("--info-only",)))
        args = ("update-index", "-z", *how, "--stdin")
        git.run(*args, stdin=here, timeout_s=UPDATE_TIMEOUT_S)


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        info = os.stat(path)  # noqa: PTH116 - asked before every measurement
    except OSError:
        return None
    return info.st_ino, info.st_size, info.st_mtime_ns


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


def store_object(store: Path, object_format: str, content: bytes, kind: bytes = b"blob") -> str:
    """Write a loose object; cheaper than a process for each."""
    body = b"%s %d\0%s" % (kind, len(content), content)
    name = hashlib.new(object_format, body, usedforsecurity=False).hexdigest()
    directory = f"{store}/{name[:2]}"
    target = f"{directory}/{name[2:]}"
    # Not by `pathlib`: this is done for every changed file and every directory above it.
    if not os.path.exists(target):  # noqa: PTH110
        if not os.path.isdir(directory):  # noqa: PTH112
            os.makedirs(directory, exist_ok=True)  # noqa: PTH103
        # A name nobody can foresee: an agent may know what it wrote, and where we keep that.
        temporary = f"{target}.{os.urandom(8).hex()}"
        with open(temporary, "xb") as file:  # noqa: PTH123
            file.write(zlib.compress(body, 1))
        os.replace(temporary, target)  # noqa: PTH105
    return name


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
    claim(directory)
    try:
        prepare(directory / "objects")
    except OSError as error:
        raise cannot_write(directory, error) from None
