"""A repository of our own with a person's objects: what a fresh clone of theirs would have.

It has no settings, hooks or filters of theirs, which an agent may have written by then; only files
that a commit holds come into it, straight from objects.  It lies outside of their repository, so
nothing is registered there and nothing has to be taken down: deleting the directory is enough.
"""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from ralphloop.core.own_work import PathEntry
from ralphloop.errors import RepositoryError
from ralphloop.repo.git import Git, nul_ended
from ralphloop.repo.inner import filters_of
from ralphloop.repo.work_tree import OwnFiles, Repository
from ralphloop.room import read_regular

_LONG_S = 600.0
_LARGEST_RULES = 1 << 20
_MOST_TAGS = 5_000
EXCHANGED = "ralph-experiment"  # in git's directory of it: what an experiment moved away


class Clone(msgspec.Struct, frozen=True):
    """One such repository, and the one whose objects it has."""

    repo: Repository
    source: Repository

    @property
    def scratch(self) -> Path:
        """Where files of it can be moved to: on the same file system, and in nobody's way."""
        return self.repo.git_dir / EXCHANGED

    def own_entries(self, head: str | None, own: OwnFiles) -> dict[str, PathEntry]:
        """The files of ours that a commit holds; no measured tree has them."""
        if not head:
            return {}
        listed = self.repo.git.run("ls-tree", "-r", "-z", "--full-tree", head)
        found = {}
        for entry in filter(None, listed.split(b"\0")):
            told, _, name = entry.partition(b"\t")
            mode, _, content = told.split(b" ")
            path = os.fsdecode(name)
            if path in own:
                found[path] = PathEntry(mode=mode.decode(), content=content.decode())
        return found

    def lay(self, tree: str, head: str | None, branch: str | None, keep: Iterable[str]) -> None:
        """Hold exactly the files of a tree, and besides only what `keep` names.

        `head` and `branch` are what its own HEAD then says.
        """
        git = self._git()
        if branch:
            git.run("symbolic-ref", "HEAD", f"refs/heads/{branch}")
        if head:
            git.run("update-ref", "HEAD", head)
        git.run("read-tree", "--reset", "-u", tree, timeout_s=_LONG_S)
        spared = [f"--exclude=/{_as_pattern(path)}" for path in keep]
        git.run("clean", "-ffdxq", *spared, timeout_s=_LONG_S)

    def _git(self) -> Git:
        """Git that writes files without starting any program of anybody's."""
        git = self.repo.git.writing().confined(None)
        settings = [f"core.hooksPath={os.devnull}", f"core.attributesFile={os.devnull}"]
        for key in (setting.partition("\n")[0] for setting in filters_of(git)):
            driver = key.removeprefix("filter.").rpartition(".")[0]
            settings += [f"filter.{driver}.{name}=" for name in ("smudge", "clean", "process")]
            settings.append(f"filter.{driver}.required=false")
        return git.adapted(config=dict.fromkeys(settings))


def _as_pattern(path: str) -> str:
    """A path as a pattern that matches it alone."""
    return "".join(f"\\{one}" if one in "\\*?[]!# " else one for one in path)


def open_clone(source: Repository, store: Path, root: Path) -> Clone:
    """The clone at `root`, made where it is not; `store` has the objects of what was measured.

    Raises RepositoryError where none can be made.
    """
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not (root / ".git" / "HEAD").is_file():
            how = ("--quiet", "--template=", f"--object-format={source.object_format}")
            Git(root).writing().run("init", *how, str(root))
        places = root / ".git" / "objects" / "info"
        places.mkdir(parents=True, exist_ok=True)
        listed = b"".join(os.fsencode(place) + b"\n" for place in (source.objects, store.resolve()))
        (places / "alternates").write_bytes(listed)
        _take_over(source, root / ".git")
    except OSError as error:
        raise RepositoryError(f"{root} cannot be written: {error.strerror}") from error
    clone = Clone(Repository.open(root), source)
    if clone.repo.root.resolve() != root.resolve():
        raise RepositoryError(f"{root} lies in another repository, {clone.repo.root}")
    _bring_tags(clone)
    return clone


def _take_over(source: Repository, git_dir: Path) -> None:
    """What a clone has besides objects: where history ends, and the person's own rules."""
    for name in ("shallow", "info/exclude"):
        target = git_dir / name
        target.unlink(missing_ok=True)
        with suppress(OSError):
            content = read_regular(source.common_dir / name, most=_LARGEST_RULES)
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(content)


def _bring_tags(clone: Clone) -> None:
    """Tags by name, from which projects tell their version."""
    asked = ("for-each-ref", f"--count={_MOST_TAGS}", "--format=%(refname) %(objectname)")
    theirs = _refs(clone.source.git, asked)
    here = _refs(clone.repo.git, asked)
    orders = [f"update {name}\0{commit}\0".encode() for name, commit in theirs.items()]
    orders += [f"delete {name}\0".encode() for name in here if name not in theirs]
    if orders and theirs != here:
        clone.repo.git.writing().confined(None).run(
            "update-ref", "-z", "--stdin", stdin=nul_ended(orders)
        )


def _refs(git: Git, asked: Iterable[str]) -> Mapping[str, str]:
    lines = git.line(*asked, "refs/tags").splitlines()
    return dict(line.split(" ", 1) for line in lines)
