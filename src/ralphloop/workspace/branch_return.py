"""Going back to the branch of the run after an agent left it.

Where its commits add to the branch, the branch simply has them: index and work tree stay.  Anything
else (an older commit, a branch without a past) is kept as one commit under a ref, files that were
not committed included, and the work tree is as it was before the agent.
"""

from __future__ import annotations

import os
from pathlib import Path

from ralphloop.workspace.commit_run import with_trailers
from ralphloop.workspace.git import PATHSPECS_ON_STDIN, literal_pathspecs
from ralphloop.workspace.measures import Snapshot
from ralphloop.workspace.own_files import OwnFiles
from ralphloop.workspace.repo import Repository, contains, wait_for_locks
from ralphloop.workspace.set_aside import Aside
from ralphloop.workspace.snapshot import Snapshotter


def is_on(repo: Repository, branch: str) -> bool:
    """Whether HEAD is on the branch; git is asked only where its file does not say so."""
    try:
        found = Path(repo.git_dir, "HEAD").read_bytes()
    except OSError:
        return True  # a repository that is gone is named by whoever measures it
    return found == os.fsencode(f"ref: refs/heads/{branch}\n") or repo.branch() == branch


def return_to_branch(repo: Repository, branch: str, *, since: str | None, head: str | None) -> bool:
    """Let `branch` have the commits of HEAD and put HEAD on it; False where they do not add to it.

    A branch that was deleted or renamed begins again, from where it was `since`.
    """
    if head is None or repo.unfinished_operation() is not None:
        return False
    ref, tip = f"refs/heads/{branch}", _tip(repo, branch)
    if (base := tip or since) and not contains(repo, head, base):
        return False
    if _is_used_elsewhere(repo, ref):
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
    if before.head is None or _is_used_elsewhere(repo, f"refs/heads/{branch}"):
        return False
    wait_for_locks(repo)
    head, tip = repo.head(), _tip(repo, branch)
    there = tip if tip and contains(repo, tip, before.head) else before.head
    aside = Aside(repo, measure, before, ref)
    changes = aside.leftovers()
    if not aside.saved_before():
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
    git = repo.git.writing()
    base = head or git.line("hash-object", "-t", "tree", os.devnull)
    args = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=d")
    changed = map(os.fsdecode, git.run(*args, base, there).split(b"\0"))
    if paths := [path for path in changed if path in own]:
        stdin = literal_pathspecs(paths)
        git.run("checkout", "--quiet", there, *PATHSPECS_ON_STDIN, stdin=stdin)


def _tip(repo: Repository, branch: str) -> str:
    ref = f"refs/heads/{branch}"
    return repo.git.line("rev-parse", "--verify", "--quiet", ref, ok=(0, 1))


def _is_used_elsewhere(repo: Repository, ref: str) -> bool:
    """Another work tree stands on it: its files would no longer fit."""
    listed = repo.git.line("worktree", "list", "--porcelain").splitlines()
    return f"branch {ref}" in listed
