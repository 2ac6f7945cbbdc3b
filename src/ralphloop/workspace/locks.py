"""Lock files that a killed git left behind.

An agent that is stopped in the middle of a `git commit` leaves `.git/index.lock`, and every commit
of the night would fail on it.  A lock is taken away only when it is old enough and no git process
works in the repository; otherwise it is somebody's, and stays.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from ralphloop.workspace.repo import Repository

OLD_ENOUGH_S = 10.0
_PAUSE_S = 0.5


def clear_dead_locks(repo: Repository, *, now: float | None = None) -> tuple[str, ...]:
    """Remove locks nobody holds, waiting a moment for fresh ones; the names of those removed."""
    removed = []
    for lock in (repo.git_dir / "index.lock", repo.git_dir / "HEAD.lock"):
        if lock.exists() and _is_dead(lock, repo, time.time() if now is None else now):
            lock.unlink(missing_ok=True)
            removed.append(lock.name)
    return tuple(removed)


def wait_for_locks(repo: Repository, patience_s: float = OLD_ENOUGH_S + 2) -> tuple[str, ...]:
    """Give a running git time to finish, then clear what is dead."""
    deadline = time.monotonic() + patience_s
    lock = repo.git_dir / "index.lock"
    while lock.exists() and time.monotonic() < deadline:
        removed = clear_dead_locks(repo)
        if removed:
            return removed
        time.sleep(_PAUSE_S)
    return ()


def _is_dead(lock: Path, repo: Repository, now: float) -> bool:
    try:
        age = now - lock.stat().st_mtime
    except FileNotFoundError:
        return False
    return age >= OLD_ENOUGH_S and not _git_works_in(repo)


def _git_works_in(repo: Repository) -> bool:
    """True where a process called git runs with its directory inside the repository."""
    import psutil

    for process in psutil.process_iter(["name"]):
        if not (process.info["name"] or "").startswith("git"):
            continue
        # A process that ends while we look, or is somebody else's, tells nothing.
        with contextlib.suppress(psutil.Error):
            place = Path(process.cwd())
            if place.is_relative_to(repo.root) or place.is_relative_to(repo.common_dir):
                return True
    return False
