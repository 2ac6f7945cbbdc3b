"""Taking one story's commits out again, by an ordinary commit that undoes just them.

The reverse of what the story changed is applied to an index of its own first: where later work has
changed the same places, nothing happens at all, and the commits that stand on it are named.  Our
own files (the story list, progress.txt) are not undone; the mark is changed by whoever owns it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ralphloop.core.model import Value
from ralphloop.errors import RepositoryError
from ralphloop.repo.commit import CommitStatus, commit_paths
from ralphloop.repo.git import PATHSPECS_ON_STDIN, literal_pathspecs, printable
from ralphloop.repo.own_files import OwnFiles
from ralphloop.repo.set_aside import scratch_index
from ralphloop.repo.work_tree import Repository, wait_for_locks

_TIMEOUT_S = 600.0
_PATCH = tuple("diff --binary --full-index --no-renames --no-ext-diff --no-textconv".split())
_APPLY = ("apply", "--cached", "--3way", "--whitespace=nowarn")
_MOST_NAMED = 3


class Undoing(Value, kw_only=True):
    """A tree without the story, that could take the place of HEAD's."""

    tree: str
    paths: tuple[str, ...]  # that differ from HEAD


def without(repo: Repository, shows: Sequence[str], own: OwnFiles) -> Undoing:
    """HEAD without these commits or ranges (`A..B`, oldest first); raises if work stands on it."""
    wait_for_locks(repo)
    with scratch_index(repo, "HEAD") as git:
        for show in reversed(shows):
            old, new = _ends(show)
            paths = [path for path in repo.paths_between(old, new) if path not in own]
            if not paths:
                continue
            patch = repo.git.run(*_PATCH, new, old, "--", *(f":(literal,top){p}" for p in paths))
            ended = git.attempt(*_APPLY, stdin=patch, timeout_s=_TIMEOUT_S)
            if ended.returncode:
                raise _stands_on(repo, new, paths)
        tree = git.line("write-tree")
    paths = repo.paths_between("HEAD", tree)
    if dirty := sorted(set(paths) & set(repo.dirty_paths())):
        names = ", ".join(map(printable, dirty[:_MOST_NAMED]))
        raise RepositoryError(f"{names} has changes of yours", "Commit or stash them first.")
    return Undoing(tree=tree, paths=tuple(paths))


def take_out(
    repo: Repository, undoing: Undoing, message: str, *, also: Iterable[str], keep: tuple[str, str]
) -> str:
    """Commit that tree, with the paths in `also` as they are on disk; the new commit.

    `keep` is a ref and the commit it shall point to, so that the attempt is not lost.
    """
    git = repo.git.writing()
    git.run("update-ref", *keep)
    onto_disk = ("restore", f"--source={undoing.tree}", "--worktree", *PATHSPECS_ON_STDIN)
    git.run(*onto_disk, stdin=literal_pathspecs(undoing.paths), timeout_s=_TIMEOUT_S)
    made = commit_paths(repo, [*undoing.paths, *also], message)
    if made.status is CommitStatus.REFUSED:
        raise RepositoryError(
            f"the story is out of the work tree, but the commit was refused: {made.feedback}",
            "Commit it yourself; `git status` shows what changed.",
        )
    return made.head or ""


def _ends(show: str) -> tuple[str, str]:
    first, dots, last = show.partition("..")
    return (first, last) if dots else (f"{show}~1", show)


def _stands_on(repo: Repository, commit: str, paths: list[str]) -> RepositoryError:
    told = ("log", f"--max-count={_MOST_NAMED}", "--format=%h %s", f"{commit}..HEAD")
    later = repo.git.run(*told, "--", *(f":(literal,top){path}" for path in paths))
    names = ", ".join(printable(line) for line in later.decode("utf-8", "replace").splitlines())
    return RepositoryError(
        f"later work has changed the same places: {names or 'the story is out already'}",
        "Send that back first, newest first, or revert by hand.",
    )
