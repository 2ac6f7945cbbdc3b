"""Going back to a branch without touching index or work tree, where nothing can be lost by it."""

from __future__ import annotations

from ralphloop.workspace.repo import Repository


def return_to_branch(repo: Repository, branch: str, *, since: str | None, head: str | None) -> bool:
    """Let `branch` have the commits of HEAD and put HEAD on it; False where they do not add to it.

    A branch that was deleted or renamed begins again, from where it was `since`.
    """
    if head is None or repo.unfinished_operation() is not None:
        return False
    ref = f"refs/heads/{branch}"
    tip = repo.git.line("rev-parse", "--verify", "--quiet", ref, ok=(0, 1))
    if (base := tip or since) and not _adds_to(repo, base, head):
        return False
    if _is_used_elsewhere(repo, ref):
        return False
    git, why = repo.git.writing(), f"ralph: back on {branch}"
    git.run("update-ref", "-m", why, ref, head, tip or "0" * len(head))
    git.run("symbolic-ref", "-m", why, "HEAD", ref)
    return True


def _adds_to(repo: Repository, base: str, head: str) -> bool:
    return repo.git.attempt("merge-base", "--is-ancestor", base, head).returncode == 0


def _is_used_elsewhere(repo: Repository, ref: str) -> bool:
    """Another work tree stands on it: its files would no longer fit."""
    listed = repo.git.line("worktree", "list", "--porcelain").splitlines()
    return f"branch {ref}" in listed
