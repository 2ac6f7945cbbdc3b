"""Setting a stuck story aside: its leftovers are saved, then the work tree is as it was.

Saved: everything that differs from the story's start, as one commit on top of the head the story
started from, under `refs/ralph/set-aside/<run>/<n>`.  It is made with a temporary index, so that
neither work tree nor index nor branch move, and one `git cherry-pick` brings it back later.

Restored: exactly the paths that were saved, from the snapshot taken at the story's start.  What the
agent committed stays in history and is undone by an ordinary commit.  Nothing is restored where the
work tree was dirty when the run began, or where the repository stands somewhere else by now.
Doing it twice, after a crash in between, ends the same.  A second chance gets it back as a patch,
where nothing else has changed the same places.

Going back to the branch of the run after an agent left it.  Where its commits add to the branch,
the branch simply has them: index and work tree stay.  Anything else (an older commit, a branch
without a past) is kept as one commit under a ref, files that were not committed included, and the
work tree is as it was before the agent.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ralphloop.core.model import Value
from ralphloop.repo.commit import CommitStatus, commit_paths, with_trailers
from ralphloop.repo.git import (
    PATHSPECS_ON_STDIN,
    Git,
    failure,
    literal_pathspecs,
    nul_ended,
    printable,
)
from ralphloop.repo.own_files import OwnFiles
from ralphloop.repo.private_git import update_index
from ralphloop.repo.snapshot import Change, Snapshot, Snapshotter
from ralphloop.repo.work_tree import Repository, patiently, wait_for_locks

LARGEST_SAVED_FILE = 100 * 1024 * 1024
_TIMEOUT_S = 600.0
_MAX_NOTES = 20
_AS_A_PATCH = tuple(
    "diff-tree --root --no-commit-id -p --binary --full-index --no-renames --no-ext-diff"
    " --no-textconv".split()
)
_NOT_IN_REFS = re.compile(r"[^A-Za-z0-9_-]+")


class SetAside(Value, frozen=True, kw_only=True):
    ref: str = ""  # empty: there were none
    files: tuple[str, ...] = ()  # what went from the work tree, new files first
    left: tuple[str, ...] = ()  # paths that were not saved and stay, with the reason
    problem: str = ""  # why the work tree is not as it was, apart from `left`


class Aside:
    """Work being put aside: saved under a ref, then taken out of the work tree."""

    def __init__(self, repo: Repository, measure: Snapshotter, start: Snapshot, ref: str) -> None:
        self.repo = repo
        self.measure = measure
        self.start = start
        self.ref = ref
        self.left: list[str] = []

    def leftovers(self) -> list[Change]:
        """What differs from the start and can be saved; the rest is noted in `left`."""
        now = self.measure.tree()
        self.start = self.measure.known(self.start)
        if now.tree == self.start.tree:
            return []
        changes = self.measure.changes(self.start.tree, now.tree)
        kept = self.measure.kept(it.before for it in changes if it.before is not None)
        return [change for change in changes if self._can_be_saved(change, kept)]

    def save(self, changes: list[Change], message: str, *onto: str) -> str:
        """A commit with the leftovers on top of these, or of the first head; its name."""
        parents = onto or ((self.start.head,) if self.start.head is not None else ())
        gone = [os.fsencode(change.path) for change in changes if change.after is None]
        here = [os.fsencode(change.path) for change in changes if change.after is not None]
        with scratch_index(self.repo, *parents[:1]) as git:
            update_index(git, self.repo, here, gone)
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
        ended = patiently(self.repo, self.repo.git.writing(), *args, timeout_s=_TIMEOUT_S)
        if ended.returncode != 0:
            raise failure(args, ended, _TIMEOUT_S)

    def committed(self) -> list[str]:
        """What commits since the start touched: the work tree may be back where HEAD is not."""
        paths = self.repo.paths_between(self.start.head, "HEAD")
        return [path for path in paths if path not in self.measure.own]

    def obstacle(self) -> str:
        """Why the work tree must not be touched; empty where it may."""
        operation = self.repo.unfinished_operation()
        if operation is not None:
            return f"a {operation} is in progress"
        branch = self.repo.status().branch
        if branch != self.start.branch:
            return f"the branch is {branch or 'detached'} now, it was {self.start.branch}"
        return ""

    def _can_be_saved(self, change: Change, kept: frozenset[str]) -> bool:
        reason = _unsaveable(self.repo.root / change.path) if change.after is not None else ""
        if not reason and change.before is not None and change.before not in kept:
            reason = "its earlier content was not kept"
        if reason:
            self.left.append(f"{printable(change.path)} ({reason})")
        return not reason


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
    wait_for_locks(repo)
    changes = aside.leftovers()
    commit = repo.commit_of(aside.ref)
    if commit:  # by an attempt that was interrupted: nothing but what it saved may be restored
        saved = frozenset(repo.paths_between(aside.start.head, commit))
        changes = [change for change in changes if change.path in saved]
    elif changes:
        subject = f"{story_id}: set aside"
        commit = aside.save(changes, with_trailers(subject, _trailers(run, story_id)))
    obstacle = "the work tree was dirty when the run began" if dirty_at_start else aside.obstacle()
    problem = obstacle if commit else ""  # without leftovers there is nothing to clean
    if not obstacle:
        problem = _clean(aside, changes, run, story_id)
    left = tuple(aside.left[:_MAX_NOTES])
    new_first = sorted(changes, key=lambda change: change.before is not None)
    files = () if obstacle else tuple(printable(change.path) for change in new_first)
    return SetAside(ref=aside.ref if commit else "", files=files, left=left, problem=problem)


def return_saved(repo: Repository, ref: str) -> str:
    """Put saved leftovers back into the work tree, all or nothing; why not, in words."""
    patch = repo.git.attempt(*_AS_A_PATCH, ref, timeout_s=_TIMEOUT_S)
    if patch.returncode or patch.timed_out or patch.overflowed:
        return "it cannot be read"
    git, apply = repo.git.writing(), ("apply", "--whitespace=nowarn")
    there = git.attempt(*apply, "--reverse", "--check", stdin=patch.stdout, timeout_s=_TIMEOUT_S)
    if there.returncode == 0:
        return ""  # nobody took it away
    ended = git.attempt(*apply, stdin=patch.stdout, timeout_s=_TIMEOUT_S)
    return "" if ended.returncode == 0 else "other work has changed the same places since"


def ref_name(run: str, number: int, kind: str = "set-aside") -> str:
    """Where what left the work tree in an iteration is kept: a story's leftovers, or lost work."""
    return f"refs/ralph/{kind}/{_NOT_IN_REFS.sub('-', run) or 'run'}/{number}"


def _clean(aside: Aside, changes: list[Change], run: str, story_id: str) -> str:
    """Restore, and undo what the agent committed; a problem in words, or nothing."""
    aside.restore(changes)
    if aside.repo.head() == aside.start.head:
        return ""
    trailers = _trailers(run, story_id) | ({"Ralph-Set-Aside": aside.ref} if changes else {})
    message = with_trailers(f"{story_id}: set aside, back to its start", trailers)
    done = commit_paths(aside.repo, [*(c.path for c in changes), *aside.committed()], message)
    return done.feedback if done.status is CommitStatus.REFUSED else ""


def _trailers(run: str, story_id: str) -> dict[str, str]:
    return {"Ralph-Run": run, "Ralph-Story": story_id}


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
    for parent in target.parents:
        if parent == root or any(parent.iterdir()):
            return
        parent.rmdir()


def write_files(repo: Repository, measure: Snapshotter, tree: str, paths: Iterable[str]) -> None:
    """Write these files as a snapshot has them."""
    # The objects of it may be ours alone, but the conversions are the user's.
    with scratch_index(repo, tree, **measure.object_variables()) as git:
        args = ("checkout-index", "--force", "--quiet", "-z", "--stdin")
        git.run(*args, stdin=nul_ended(map(os.fsencode, paths)), timeout_s=_TIMEOUT_S)


def keep_files(repo: Repository, ref: str, files: Mapping[str, bytes], words: str) -> None:
    """Keep these contents, by paths from the repository's root, on top of HEAD."""
    head = tuple(filter(None, (repo.head(),)))
    message = with_trailers(words, {})
    with scratch_index(repo, *head) as git:
        for path, content in files.items():
            blob = git.run("hash-object", "-w", "--stdin", stdin=content).decode().strip()
            git.run("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
        _keep(git, ref, message, *head)


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


def return_to_branch(repo: Repository, branch: str, *, since: str | None, head: str | None) -> bool:
    """Let `branch` have the commits of HEAD and put HEAD on it; False where they do not add to it.

    A branch that was deleted or renamed begins again, from where it was `since`.
    """
    if head is None or repo.unfinished_operation() is not None:
        return False
    tip = repo.commit_of(f"refs/heads/{branch}")
    if (base := tip or since) and not repo.git.contains(head, base):
        return False
    if _is_used_elsewhere(repo, branch):
        return False
    _stand_on(repo, branch, head, tip)
    return True


def bring_back(
    repo: Repository,
    measure: Snapshotter,
    branch: str,
    *,
    before: Snapshot,
    ref: str,
    own: OwnFiles,
) -> bool:
    """Keep what stands elsewhere under `ref`, then be on `branch` with the files of `before`."""
    if before.head is None or _is_used_elsewhere(repo, branch):
        return False
    wait_for_locks(repo)
    head, tip = repo.head(), repo.commit_of(f"refs/heads/{branch}")
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
    _check_out_own(repo, head, there, own)
    return True


def _stand_on(repo: Repository, branch: str, commit: str, tip: str) -> None:
    git, ref, why = repo.git.writing(), f"refs/heads/{branch}", f"ralph: back on {branch}"
    git.run("update-ref", "-m", why, ref, commit, tip or "0" * len(commit))
    git.run("symbolic-ref", "-m", why, "HEAD", ref)


def _check_out_own(repo: Repository, head: str | None, there: str, own: OwnFiles) -> None:
    """Files of ours are in no snapshot: where the other place had others, the branch's return."""
    changed = repo.paths_between(head, there, "--diff-filter=d")
    if paths := [path for path in changed if path in own]:
        args = ("checkout", "--quiet", there, *PATHSPECS_ON_STDIN)
        repo.git.writing().run(*args, stdin=literal_pathspecs(paths))


def _is_used_elsewhere(repo: Repository, branch: str) -> bool:
    """Another work tree stands on it: its files would no longer fit."""
    listed = repo.git.line("worktree", "list", "--porcelain").splitlines()
    return f"branch refs/heads/{branch}" in listed
