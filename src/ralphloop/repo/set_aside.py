"""Setting a stuck story aside: its leftovers are saved, then the work tree is as it was.

Saved is what differs from the story's start, as one commit on the head it started from, under
`refs/ralph/set-aside/<run>/<n>`: one `git cherry-pick` brings it back.  What the agent committed
stays in history and is undone by an ordinary commit.  Nothing is restored where the work tree was
dirty when the run began, or where the repository stands somewhere else by now.  Twice ends as once.

Where an agent left the branch of the run and its commits add to it, the branch simply has them.
Anything else is kept under a ref, uncommitted files included, and taken out of the work tree.

A story is taken out again by an ordinary commit, tried on an index of its own first: where later
work has changed the same places, nothing happens, and the commits that stand on it are named.  Our
own files are not undone: the mark is changed by whoever owns it.
"""

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from ralphloop.core.model import Value
from ralphloop.errors import RepositoryError
from ralphloop.repo.commit import CommitStatus, commit_paths, with_trailers
from ralphloop.repo.git import (
    PATHSPECS_ON_STDIN,
    Git,
    failure,
    literal_pathspecs,
    nul_ended,
    printable,
)
from ralphloop.repo.private_git import update_index
from ralphloop.repo.snapshot import Change, Snapshot, Snapshotter
from ralphloop.repo.work_tree import OwnFiles, Repository, patiently, wait_for_locks

LARGEST_SAVED_FILE = 100 * 1024 * 1024
_AS_A_PATCH = tuple(  # of a commit, or of what lies between two
    "diff-tree --root --no-commit-id -p --binary --full-index --no-renames --no-ext-diff"
    " --no-textconv".split()
)
_NOT_IN_REFS = re.compile(r"[^A-Za-z0-9_-]+")


class SetAside(Value, frozen=True, kw_only=True):
    ref: str = ""  # empty: there were none
    files: tuple[str, ...] = ()  # what went from the work tree, new files first
    left: tuple[str, ...] = ()  # paths that were not saved and stay, with the reason
    problem: str = ""  # why the work tree is not as it was, apart from `left`


class Aside(msgspec.Struct):
    repo: Repository
    measure: Snapshotter
    start: Snapshot
    ref: str
    left: list[str] = []

    def leftovers(self) -> list[Change]:
        """What differs from the start and can be saved; the rest is noted in `left`."""
        now = self.measure.tree()
        self.start = self.measure.known(self.start)
        changes = self.measure.changes(self.start.tree, now.tree)
        kept = self.measure.kept(it.before for it in changes if it.before is not None)
        saved = []
        for change in changes:
            reason = _unsaveable(self.repo.root / change.path) if change.after is not None else ""
            if not reason and change.before is not None and change.before not in kept:
                reason = "its earlier content was not kept"
            if reason:
                self.left.append(f"{printable(change.path)} ({reason})")
            else:
                saved.append(change)
        return saved

    def held_by_head(self, changes: list[Change]) -> list[str]:
        """Those paths that HEAD holds otherwise than the story's start."""
        if self.repo.head() is None:
            return []
        differs = {it.path for it in self.measure.changes(self.start.tree, "HEAD^{tree}")}
        return [change.path for change in changes if change.path in differs]

    def without_leftovers(self, changes: list[Change]) -> str:
        """A commit like the first head, without what it holds of the leftovers already.

        Another story's commit may have taken some of them along.
        """
        head = self.start.head or ""
        entries = self.measure.entries_changed(f"{head}^{{tree}}", self.start.tree)
        wanted = [change.path for change in changes if change.path in entries]
        if not wanted:
            return head
        with scratch_index(self.repo, head) as git:
            for path in wanted:
                entry = entries[path].after
                if entry is None:
                    git.run("update-index", "--force-remove", "--", path)
                    continue
                content = self.measure.git().run("cat-file", "blob", entry.content)
                git.run("hash-object", "-w", "--stdin", stdin=content)
                info = f"{entry.mode},{entry.content},{path}"
                git.run("update-index", "--add", "--replace", "--cacheinfo", info)
            words = with_trailers("without what was set aside", {})
            return git.line("commit-tree", git.line("write-tree"), "-p", head, "-m", words)

    def save(self, changes: list[Change], message: str, *onto: str) -> str:
        """A commit with the leftovers on top of these, or of the first head; its name."""
        base = (self.without_leftovers(changes),) if self.start.head is not None else ()
        parents = onto or base
        gone = [os.fsencode(change.path) for change in changes if change.after is None]
        here = [os.fsencode(change.path) for change in changes if change.after is not None]
        with scratch_index(self.repo, *parents[:1]) as git:
            update_index(git, here, gone)
            return _keep(git, self.ref, message, *parents)

    def restore(self, changes: list[Change]) -> None:
        """Put paths back to their state at the story's start, in work tree and index."""
        for change in changes:
            if change.before is None:
                remove_file(self.repo.root, change.path)
        if paths := [change.path for change in changes if change.before is not None]:
            write_files(self.repo, self.measure, self.start.tree, paths)
        self.unstage()

    def unstage(self) -> None:
        """Forget what the story staged, also what is in the work tree no more.

        The work tree was clean when the run began, so nothing that is staged is anybody else's.
        """
        args = ("reset", "--quiet", *self.repo.only)
        ended = patiently(self.repo, self.repo.git.writing(), *args)
        if ended.returncode != 0:
            raise failure(args, ended)


def set_aside(
    repo: Repository,
    measure: Snapshotter,
    *,
    run: str,
    number: int,
    story_id: str,
    start: Snapshot,
    dirty_at_start: bool = False,
) -> SetAside:
    """Save what a story left behind and, where that is safe, clean up after it."""
    aside = Aside(repo, measure, start, ref_name(run, number))
    trailers = {"Ralph-Run": run, "Ralph-Story": story_id}
    wait_for_locks(repo)
    changes = aside.leftovers()
    commit = repo.commit_of(aside.ref)
    if commit:  # by an attempt that was interrupted: nothing but what it saved may be restored
        saved = frozenset(repo.paths_between(aside.start.head, commit))
        changes = [change for change in changes if change.path in saved]
    elif changes:
        commit = aside.save(changes, with_trailers(f"{story_id}: set aside", trailers))
    obstacle = ""  # why the work tree must not be touched
    if dirty_at_start:
        obstacle = "the work tree was dirty when the run began"
    elif operation := repo.unfinished_operation():
        obstacle = f"a {operation} is in progress"
    elif (branch := repo.branch()) != start.branch:
        obstacle = f"the branch is {branch or 'detached'} now, it was {start.branch}"
    problem = obstacle if commit else ""  # without leftovers there is nothing to clean
    if not obstacle:
        aside.restore(changes)
        held = aside.held_by_head(changes)
        if held or repo.head() != aside.start.head:
            # Undo what is committed of it, by its agent or with another story: the work tree may be
            # back where HEAD is not.
            between = repo.paths_between(aside.start.head, "HEAD")
            theirs = (path for path in between if path not in measure.own)
            trailers |= {"Ralph-Set-Aside": aside.ref} if changes else {}
            message = with_trailers(f"{story_id}: set aside, back to its start", trailers)
            done = commit_paths(repo, [*dict.fromkeys((*held, *theirs))], message)
            problem = done.feedback if done.status is CommitStatus.REFUSED else ""
    left = tuple(aside.left[:20])
    new_first = sorted(changes, key=lambda change: change.before is not None)
    files = () if obstacle else tuple(printable(change.path) for change in new_first)
    return SetAside(ref=aside.ref if commit else "", files=files, left=left, problem=problem)


def return_saved(repo: Repository, ref: str) -> str:
    """Put saved leftovers back into the work tree, all or nothing; why not, in words."""
    patch = repo.git.attempt(*_AS_A_PATCH, ref)
    if patch.returncode or patch.timed_out or patch.overflowed:
        return "it cannot be read"
    git, apply = repo.git.writing(), ("apply", "--whitespace=nowarn")
    there = git.attempt(*apply, "--reverse", "--check", stdin=patch.stdout)
    if there.returncode == 0:
        return ""  # nobody took it away
    ended = git.attempt(*apply, stdin=patch.stdout)
    return "" if ended.returncode == 0 else "other work has changed the same places since"


def ref_name(run: str, number: int, kind: str = "set-aside") -> str:
    """Where what left the work tree in an iteration is kept: a story's leftovers, or lost work."""
    return f"refs/ralph/{kind}/{_NOT_IN_REFS.sub('-', run) or 'run'}/{number}"


def _unsaveable(path: Path) -> str:
    """Why the content of a path cannot be put into a commit; empty where it can."""
    if path.is_symlink():
        return ""
    if path.is_dir():
        return "a repository of its own"
    if not os.access(path, os.R_OK):
        return "not readable"
    return "too large to save" if path.stat().st_size > LARGEST_SAVED_FILE else ""


def remove_file(root: Path, path: str) -> None:
    """Delete a file that was not there before, and the directories it leaves empty."""
    target = root / path
    if any(parent.is_symlink() for parent in target.parents if parent.is_relative_to(root)):
        return  # beyond a link nothing is ours
    target.unlink(missing_ok=True)
    with suppress(OSError):  # the first that is not empty, at last the root
        os.removedirs(target.parent)


def write_files(repo: Repository, measure: Snapshotter, tree: str, paths: Iterable[str]) -> None:
    # The objects of it may be ours alone, but the conversions are the user's.
    with scratch_index(repo, tree, **measure.object_variables()) as git:
        args = ("checkout-index", "--force", "--quiet", "-z", "--stdin")
        git.run(*args, stdin=nul_ended(map(os.fsencode, paths)))


def keep_files(repo: Repository, ref: str, files: Mapping[str, bytes], words: str) -> None:
    """Keep these contents, by paths from the repository's root, on top of HEAD."""
    head = tuple(filter(None, (repo.head(),)))
    with scratch_index(repo, *head) as git:
        for path, content in files.items():
            blob = git.run("hash-object", "-w", "--stdin", stdin=content).decode().strip()
            git.run("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
        _keep(git, ref, with_trailers(words, {}), *head)


@contextmanager
def scratch_index(repo: Repository, *tree: str, **env: str) -> Iterator[Git]:
    """Git with an index of its own that holds a tree, or nothing."""
    with tempfile.TemporaryDirectory(prefix="ralph-") as place:
        git = repo.git.writing().adapted(env={**env, "GIT_INDEX_FILE": f"{place}/index"})
        git.run("read-tree", *(tree or ("--empty",)))
        yield git


def _keep(git: Git, ref: str, message: str, *parents: str) -> str:
    """Commit what the index of this git holds, under a ref and nowhere else."""
    onto = [part for parent in parents for part in ("-p", parent)]
    commit = git.line("commit-tree", git.line("write-tree"), *onto, "-m", message)
    git.run("update-ref", ref, commit)
    return commit


def bring_back(
    repo: Repository, measure: Snapshotter, branch: str, *, before: Snapshot, ref: str
) -> str | None:
    """Be on `branch` again, with the commits of HEAD where they add to it; None where we cannot.

    Else it has the files of `before`, what stands elsewhere is kept under `ref`, which is returned.
    A branch that was deleted or renamed begins again, from where it was.
    """
    listed = repo.git.line("worktree", "list", "--porcelain").splitlines()
    if f"branch refs/heads/{branch}" in listed:
        return None  # another work tree stands on it: its files would no longer fit
    head, tip = repo.head(), repo.commit_of(f"refs/heads/{branch}")
    base = tip or before.head
    if head and (not base or repo.git.contains(head, base)):
        _stand_on(repo, branch, head, tip)
        return ""
    if before.head is None:
        return None
    wait_for_locks(repo)
    there = tip if tip and repo.git.contains(tip, before.head) else before.head
    aside = Aside(repo, measure, before, ref)
    changes = aside.leftovers()
    if not repo.commit_of(ref):
        message = with_trailers(f"left {branch}: what was done elsewhere", {})
        rewritten = (tip,) if tip and tip != there else ()
        aside.save(changes, message, head or before.head, *rewritten)
    aside.restore(changes)
    _stand_on(repo, branch, there, tip)
    aside.unstage()
    # Files of ours are in no snapshot: where the other place had others, the branch's return.
    changed = repo.paths_between(head, there, "--diff-filter=d")
    if paths := [path for path in changed if path in measure.own]:
        args = ("checkout", "--quiet", there, *PATHSPECS_ON_STDIN)
        repo.git.writing().run(*args, stdin=literal_pathspecs(paths))
    return ref


def _stand_on(repo: Repository, branch: str, commit: str, tip: str) -> None:
    git, ref, why = repo.git.writing(), f"refs/heads/{branch}", f"ralph: back on {branch}"
    git.run("update-ref", "-m", why, ref, commit, tip or "0" * len(commit))
    git.run("symbolic-ref", "-m", why, "HEAD", ref)


_APPLY = ("apply", "--cached", "--3way", "--whitespace=nowarn")


def without(repo: Repository, shows: Sequence[str], own: OwnFiles) -> str:
    """The tree of HEAD without these commits or ranges (`A..B`, oldest first), to be taken out.

    Raises if later work stands on it.
    """
    wait_for_locks(repo)
    with scratch_index(repo, "HEAD") as git:
        for show in reversed(shows):
            first, _, last = show.partition("..")
            old, new = (first, last) if last else (f"{show}~1", show)
            paths = [path for path in repo.paths_between(old, new) if path not in own]
            if not paths:
                continue
            specs = ("--", *(f":(literal,top){path}" for path in paths))
            patch = repo.git.run(*_AS_A_PATCH, new, old, *specs)
            if git.attempt(*_APPLY, stdin=patch).returncode:
                args = ("log", "--max-count=3", "--format=%h %s", f"{new}..HEAD", *specs)
                later = repo.git.run(*args).decode("utf-8", "replace").splitlines()
                names = ", ".join(map(printable, later)) or "the story is out already"
                raise RepositoryError(
                    f"later work has changed the same places: {names}",
                    "Send that back first, newest first, or revert by hand.",
                )
        tree = git.line("write-tree")
    if dirty := sorted(set(repo.paths_between("HEAD", tree)) & set(repo.dirty_paths())):
        names = ", ".join(map(printable, dirty[:3]))
        raise RepositoryError(f"{names} has changes of yours", "Commit or stash them first.")
    return tree


def take_out(
    repo: Repository, tree: str, message: str, *, also: Iterable[str], keep: tuple[str, str]
) -> None:
    """Commit that tree, with `also` as on disk; `keep`, a ref and its commit, saves the attempt."""
    git, paths = repo.git.writing(), repo.paths_between("HEAD", tree)
    git.run("update-ref", *keep)
    onto_disk = ("restore", f"--source={tree}", "--worktree", *PATHSPECS_ON_STDIN)
    git.run(*onto_disk, stdin=literal_pathspecs(paths))
    made = commit_paths(repo, [*paths, *also], message)
    if made.status is CommitStatus.REFUSED:
        raise RepositoryError(
            f"the story is out of the work tree, but the commit was refused: {made.feedback}",
            "Commit it yourself; `git status` shows what changed.",
        )
