"""Commits that a branch held and holds no more: found, named and kept under a ref of ours."""

from __future__ import annotations

from ralphloop.core.model import Value
from ralphloop.workspace.repo import Repository

_LISTED = 3


class Lost(Value, frozen=True, kw_only=True):
    """What left the branch."""

    count: int
    named: tuple[str, ...]  # the newest, as people know them
    kept: bool  # False: git has them no more


def contains(repo: Repository, head: str | None, base: str) -> bool:
    """Whether everything of `base` is part of `head`."""
    if head is None:
        return False
    return repo.git.attempt("merge-base", "--is-ancestor", base, head).returncode == 0


def has_again(repo: Repository, head: str | None, base: str) -> bool:
    """The same, or the same changes in other commits: what was cherry-picked is back."""
    if head is None or contains(repo, head, base):
        return head is not None
    args = ("rev-list", "--count", "--cherry-pick", "--right-only", "--no-merges")
    return repo.git.attempt(*args, f"{head}...{base}", "--").stdout.strip() == b"0"


def keep_lost(repo: Repository, ref: str, before: str, after: str | None) -> Lost:
    """Name what `before` has and `after` has not, and keep it under `ref`."""
    kept = repo.git.writing().attempt("update-ref", ref, before).returncode == 0
    if not kept:
        return Lost(count=0, named=(), kept=False)
    span = (before, f"^{after}") if after else (before,)
    count = int(repo.git.line("rev-list", "--count", *span, "--"))
    args = ("log", "-z", f"--max-count={_LISTED}", "--format=%h %s")
    said = repo.git.run(*args, *span, "--").decode("utf-8", "replace")
    return Lost(count=count, named=tuple(said.strip("\0").split("\0")), kept=True)
