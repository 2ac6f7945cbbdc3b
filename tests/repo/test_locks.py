"""Locks that a git left in the repository: whose they may be."""

from __future__ import annotations

import os
import subprocess
import time

from ralphloop.repo.work_tree import clear_dead_locks
from tests.repo.sandbox import Sandbox


def test_a_lock_that_somebody_may_hold_is_left_alone(box: Sandbox) -> None:
    """A fresh lock, or one while a git works here, is not ours to remove."""
    lock = box.write(".git/index.lock", "")
    repo = box.repository()
    assert clear_dead_locks(repo) == ()
    an_hour_ago = time.time() - 3600
    os.utime(lock, (an_hour_ago, an_hour_ago))
    with subprocess.Popen(
        ["git", "cat-file", "--batch"], cwd=box.root, stdin=subprocess.PIPE
    ) as git:
        assert clear_dead_locks(repo) == ()
        assert lock.exists()
        git.communicate()
    assert clear_dead_locks(repo) == ("index.lock",)
