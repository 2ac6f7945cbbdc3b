"""Putting a commit's changes onto another commit, in objects: no work tree, no index of anybody's.

What is decided is in `core.merging`; here contents are read and merged line by line, by
`git merge-file`, which knows no attributes and no drivers.  The result is a tree, with conflict
markers in it where both sides can stand in one file, and as it landed where they cannot.  Where
both only added lines at one place, and nothing twice, it has both, what landed first.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ralphloop.core.merging import (
    MARKER_SIZE,
    Conflict,
    ConflictKind,
    Contents,
    Entry,
    Put,
    SideChange,
    plan,
    take_both,
)
from ralphloop.core.model import Value
from ralphloop.repo.git import Git, nul_ended
from ralphloop.repo.set_aside import scratch_index
from ralphloop.repo.work_tree import Repository

_CHANGED = tuple(
    "diff-tree -r -z --raw --no-abbrev --find-renames --no-rename-empty --no-ext-diff".split()
)
_MOST_CLASHES = 127  # `git merge-file` counts no further; above that it could not do it
_BINARY_LOOK = 8_000
_LARGEST_MERGED = 16 * 1024 * 1024


class Labels(Value, kw_only=True):
    """What stands behind the conflict markers of each side."""

    landed: str
    own: str


class Merged(Value, kw_only=True):
    tree: str
    conflicts: tuple[Conflict, ...] = ()
    joined: tuple[bytes, ...] = ()  # paths where both sides only added lines: both are there


class _Lines(Value, kw_only=True):
    """A file of both sides; `kind`: they are in conflict; no `text`: they fit into no one file."""

    text: bytes | None = None
    kind: ConflictKind | None = None
    is_joined: bool = False  # both had added lines at one place


def merged(repo: Repository, base: str, landed: str, own: str, labels: Labels) -> Merged:
    """The tree of `landed` with what `own` changed since `base`; all three are commits or trees."""
    found = plan(changes(repo.git, base, landed), changes(repo.git, base, own))
    puts = dict(found.puts)
    conflicts = list(found.conflicts)
    joined = []
    with scratch_index(repo, landed) as git:
        for one in found.contents:
            lines = _both(repo.git, one, labels)
            if lines.kind is not None:
                conflicts.append(one.clash(lines.kind))
            if lines.is_joined:
                joined.append(one.target)
            if lines.text is not None:
                name = store_lines(git, lines.text)
                puts[one.target] = Put(entry=Entry(mode=one.mode, name=name), source=one.source)
        tree = tree_of_index(git, puts, found.gone)
    return Merged(
        tree=tree,
        conflicts=tuple(sorted(conflicts, key=lambda it: it.path)),
        joined=tuple(sorted(joined)),
    )


def store_lines(git: Git, text: bytes) -> str:
    """Keep a content as it is; its name."""
    args = ("hash-object", "-w", "--no-filters", "--stdin")
    return git.run(*args, stdin=text).decode().strip()


def tree_of_index(git: Git, puts: Mapping[bytes, Put], gone: Iterable[bytes]) -> str:
    """The tree of git's index with these entries put into it and these paths taken out."""
    leaving = {*gone, *(put.source for put in puts.values() if put.source)}
    nothing = b"0" * len(git.line("hash-object", "-t", "tree", os.devnull))
    removed = (b"0 %s\t%s" % (nothing, path) for path in sorted(leaving - {*puts}))
    git.run("update-index", "-z", "--index-info", stdin=nul_ended(removed))
    taken = (
        b"%s %s\t%s" % (put.entry.mode.encode(), put.entry.name.encode(), path)
        for path, put in sorted(puts.items())
    )
    git.run("update-index", "-z", "--index-info", stdin=nul_ended(taken))
    return git.line("write-tree", "--missing-ok")


def changes(git: Git, before: str, after: str) -> Iterator[SideChange]:
    """What differs between two commits or trees, renamed files as such."""
    fields = iter(git.run(*_CHANGED, before, after).split(b"\0"))
    for meta in fields:
        if not meta:
            return
        old_mode, new_mode, old, new, status = meta[1:].decode().split(" ")
        path = next(fields)
        source = b""
        if status.startswith("R"):
            source = path
            path = next(fields)
        yield SideChange(
            path=path,
            old=None if status == "A" else Entry(mode=old_mode, name=old),
            new=None if status == "D" else Entry(mode=new_mode, name=new),
            source=source,
        )


def entries(git: Git, tree: str, paths: Iterable[bytes]) -> dict[bytes, Entry]:
    """What a tree holds at those of the paths where it holds something."""
    wanted = [os.fsdecode(path) for path in paths]
    if not wanted:
        return {}
    said = git.run("--literal-pathspecs", "ls-tree", "-z", "--full-tree", tree, "--", *wanted)
    found = {}
    for line in filter(None, said.split(b"\0")):
        meta, _, path = line.partition(b"\t")
        mode, _, name = meta.decode().split(" ")
        found[path] = Entry(mode=mode, name=name)
    return found


def _both(git: Git, one: Contents, labels: Labels) -> _Lines:
    """Both sides in one file, merged line by line where it has lines."""
    theirs, base, ours = (content_of(git, name) for name in (one.theirs, one.base, one.ours))
    if theirs is None or base is None or ours is None:
        return _Lines(kind=ConflictKind.BINARY)
    with tempfile.TemporaryDirectory(prefix="ralph-") as place:
        names = ("landed", "base", "own")
        for name, content in zip(names, (theirs, base, ours), strict=True):
            Path(place, name).write_bytes(content)
        files = [f"{place}/{name}" for name in names]
        told = ("-L", labels.landed, "-L", "before", "-L", labels.own)
        args = ("-c", "merge.conflictStyle=merge", "merge-file", "-p", "-q", *told)
        ended = git.attempt(*args, *files)
        if ended.returncode > _MOST_CLASHES or ended.overflowed or ended.timed_out:
            return _Lines(kind=ConflictKind.BINARY)
        if ended.returncode == 0:
            return _Lines(text=ended.stdout)
        if not one.base:
            return _Lines(text=ended.stdout, kind=ConflictKind.BOTH_ADDED)
        # In this style no line that happens to be the same is taken out of the two sides.
        whole = ("--diff3", f"--marker-size={MARKER_SIZE}")
        both = take_both(git.attempt(*args, *whole, *files).stdout)
        if not both.only_added:
            return _Lines(text=ended.stdout, kind=ConflictKind.TEXT)
        if both.same:
            return _Lines(text=ended.stdout, kind=ConflictKind.ADDED_LINES)
        return _Lines(text=both.text, is_joined=True)


def content_of(git: Git, name: str) -> bytes | None:
    """The lines of a content; None where it is no text, or too much of it."""
    if not name:
        return b""
    if int(git.line("cat-file", "-s", name)) > _LARGEST_MERGED:
        return None
    content = git.run("cat-file", "blob", name)
    return None if b"\0" in content[:_BINARY_LOOK] else content
