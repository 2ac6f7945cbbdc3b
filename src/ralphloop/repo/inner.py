"""Repositories inside this one, looked at without obeying them.

Git that runs in a repository obeys its configuration: filters, hooks, programs of all kinds, files
that it includes.  One that lies in the work tree may be an agent's, so git is never run in it, and
never asked about it by a command that would (`--ignore-submodules=dirty`).  Instead a git directory
of our own is made for one look: with a copy of its index, the commit it stands on and its objects,
and without anything of its configuration.  Filters of the person's own settings are switched off.

A `.git` that leads elsewhere is followed to where git keeps submodules, and no further: then, and
where git cannot read what is there, the files alone are listed.
"""

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ralphloop.errors import RepositoryError
from ralphloop.repo.git import Git, StatusEntry, parse_status
from ralphloop.room import read_regular
from ralphloop.text.plain import LazyRegex

MAX_DEPTH = 4  # of repositories in repositories
_TIMEOUT_S = 20.0
_LARGEST_INDEX = 64 * 1024 * 1024
_LARGEST_REFS = 8 * 1024 * 1024
_COMMIT = LazyRegex(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REF = LazyRegex(r"refs/(?!.*\.\.)[\w./@+-]{1,200}")
GITLINK = b"160000 "
_STATUS = tuple(
    "status --porcelain=v2 -z --no-renames --untracked-files=all --ignore-submodules=dirty".split()
)
_CONFIG = "[core]\n\trepositoryformatversion = 1\n\tbare = false\n"
_SHA256 = "[extensions]\n\tobjectFormat = sha256\n"
_SETTINGS = (f"core.hooksPath={os.devnull}", "core.safecrlf=false", "core.splitIndex=false")


class InnerState(msgspec.Struct, frozen=True):
    head: str  # the commit it stands on; empty: none, or not known
    entries: Sequence[StatusEntry]  # what differs from it; all files where it is not known


def gitlinks(git: Git) -> list[bytes]:
    """The paths of an index that stand for repositories of their own."""
    records = git.run("ls-files", "-z", "--stage").split(b"\0")
    return [it.partition(b"\t")[2] for it in records if it.startswith(GITLINK)]


def with_inner_changes(
    entries: Iterable[StatusEntry], root: Path, links: Iterable[bytes], keeps: Path, depth: int = 0
) -> list[StatusEntry]:
    """The entries of a status, and what is uncommitted in the submodules it was not asked about."""
    known = {entry.path: entry for entry in entries}
    for link in links:
        place = root / os.fsdecode(link)
        if not os.path.lexists(place / ".git") or depth >= MAX_DEPTH:
            continue
        inside = state_of(place, keeps, depth + 1).entries
        if not inside:
            continue
        untracked = "U" if any(entry.is_untracked for entry in inside) else "."
        modified = "." if all(entry.is_untracked for entry in inside) else "M"
        entry = known.get(link) or StatusEntry(link, ".", "M", "S...", b"160000")
        if entry.submodule.startswith("S"):
            flags = f"{entry.submodule[:2]}{modified}{untracked}"
            known[link] = replace(entry, submodule=flags)
    return sorted(known.values(), key=lambda entry: (entry.is_untracked, entry.path))  # as git's


def state_of(place: Path, keeps: Path, depth: int = 1) -> InnerState:
    """What a repository inside another one stands on and what differs; git is not run in it.

    `keeps` is the directory in which git may keep what belongs to it: that of the outer one.
    """
    directory = _git_directory(place, keeps)
    head = _head(directory) if directory else ""
    try:
        with _own_directory(place, directory, head) as git:
            return InnerState(head, _differing(git, place, keeps, depth))
    except RepositoryError:
        # An index or objects that git cannot read without the rest: the files are there.
        with _own_directory(place, None, head) as git:
            return InnerState(head, parse_status(git.run(*_STATUS, timeout_s=_TIMEOUT_S)).entries)


def _differing(git: Git, place: Path, keeps: Path, depth: int) -> list[StatusEntry]:
    """What differs from the commit a repository stands on, also inside of its submodules."""
    found = parse_status(git.run(*_STATUS, timeout_s=_TIMEOUT_S)).entries
    if not (place / ".gitmodules").exists():
        return found
    return with_inner_changes(found, place, gitlinks(git), keeps, depth)


def is_checkout_of(place: Path, keeps: Path) -> bool:
    """Whether this is another work tree of the repository whose directory `keeps` is."""
    directory = _git_directory(place, keeps)
    return directory is not None and directory.parent == keeps.resolve() / "worktrees"


@contextmanager
def _own_directory(place: Path, theirs: Path | None, head: str) -> Iterator[Git]:
    """Git in a work tree, with a directory of our own; `theirs` lends index and objects."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="ralph-") as made:
        own = Path(made)
        for name in ("objects", "refs"):
            (own / name).mkdir()
        is_known = theirs is not None and bool(head)
        (own / "HEAD").write_text(f"{head}\n" if is_known else "ref: refs/heads/none\n", "utf-8")
        kind = _SHA256 if len(head) == 64 else ""
        (own / "config").write_text(f"{_CONFIG}{kind}", "utf-8")
        env = {"GIT_DIR": made, "GIT_WORK_TREE": str(place)}
        if theirs is not None:
            if (index := _index_of(theirs)) is not None:
                (own / "index").write_bytes(index)
            env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = quoted_place(theirs / "objects")
        git = Git(place, config=_SETTINGS, env=env)
        yield git.adapted(config=without_filters(git))


def filters_of(git: Git) -> tuple[str, ...]:
    """Every setting of a filter that is in force: its name, a line break, its value."""
    return tuple(sorted(git.names("config", "-z", "--get-regexp", r"^filter\.", ok=(0, 1))))


def without_filters(git: Git, known: Collection[str] = ()) -> tuple[str, ...]:
    """Settings that switch every filter off, but for those that are as they are known."""
    now = filters_of(git)
    changed = {*now} ^ {*known} if known else {*now}
    keys = (setting.partition("\n")[0] for setting in changed)
    drivers = {key.removeprefix("filter.").rpartition(".")[0] for key in keys}
    return tuple(
        f"filter.{driver}.{setting}"
        for driver in sorted(drivers)
        for setting in ("clean=", "process=", "required=false")
    )


def _git_directory(place: Path, keeps: Path) -> Path | None:
    """Where git keeps what belongs to a work tree; None where that is not for us to look at."""
    link = place / ".git"
    try:
        mode = link.lstat().st_mode
        if stat.S_ISDIR(mode):
            return link
        if not stat.S_ISREG(mode):
            return None
        told = os.fsdecode(read_regular(link, most=4096)).removeprefix("gitdir:").strip()
        target = (place / told).resolve()
    except (OSError, ValueError):
        return None
    return target if target.is_relative_to(keeps.resolve()) and target.is_dir() else None


def _head(directory: Path) -> str:
    """The commit of HEAD, as its files say; empty where they do not."""
    told = _text(directory / "HEAD", 4096).strip()
    ref = told.removeprefix("ref: ")
    if _COMMIT.fullmatch(ref):
        return ref
    if not _REF.fullmatch(ref):
        return ""
    loose = _text(directory / ref, 4096).strip()
    if _COMMIT.fullmatch(loose):
        return loose
    packed = _text(directory / "packed-refs", _LARGEST_REFS).splitlines()
    names = (line.split(" ") for line in packed if line.endswith(f" {ref}"))
    return next((name[0] for name in names if _COMMIT.fullmatch(name[0])), "")


def _text(path: Path, most: int) -> str:
    try:
        return read_regular(path, most=most).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def _index_of(directory: Path) -> bytes | None:
    """Its index; None where there is none, or one that is too large for a copy."""
    try:
        data = read_regular(directory / "index", most=_LARGEST_INDEX + 1)
    except OSError:
        return None
    if len(data) > _LARGEST_INDEX:
        raise RepositoryError(f"the index of {directory} is too large to be looked at")
    return data


def quoted_place(path: Path) -> str:
    """One element of a list that git unquotes as C does."""
    text = str(path)
    if ":" not in text and not text.startswith('"'):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
