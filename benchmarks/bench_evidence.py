"""What measuring the work tree costs, against `git status` on the same tree.

Small, 20,000 and 100,000 files, clean and with a 200 MB untracked file beside them; prints medians
taken in turns, so that a busy machine slows both, and their ratio: goal at most 2 when nothing
changed.  Also: the first look, a look after one change, and whether `.git` grew.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ralphloop.repo.snapshot import Snapshotter
from ralphloop.repo.work_tree import Repository

SIZES = (100, 20_000, 100_000)
ROUNDS = 15
GOAL = 2.0
LARGE = 200 * 1024 * 1024
LINKS = 50_000  # some file systems allow no more names for one file


def main() -> int:
    """Measure every size; the exit code says whether the goal was reached."""
    worst = 0.0
    for size in SIZES:
        with tempfile.TemporaryDirectory(prefix="ralph-bench-") as place:
            worst = max(worst, measure_one(Path(place), size))
    print(f"worst ratio {worst:.2f}, goal {GOAL:.1f}")
    return 0 if worst <= GOAL else 1


def measure_one(root: Path, size: int) -> float:
    """One repository of so many files; the worse of its two ratios."""
    make_repository(root, size)
    measure = Snapshotter(Repository.open(root), root / ".ralph" / "objects")
    first = timed(measure.tree)
    status(root)
    clean = ratio(root, measure)
    (root / "new.py").write_text("x = 1\n")
    changed = timed(measure.tree)
    grown = git_size(root)
    with (root / "large.bin").open("wb") as file:
        os.truncate(file.fileno(), LARGE)
    seen = timed(measure.tree)
    large = ratio(root, measure)
    print(
        f"{size:>7} files: nothing changed {clean[0] * 1e3:7.1f} ms, git status"
        f" {clean[1] * 1e3:7.1f} ms, ratio {clean[0] / clean[1]:.2f}; with 200 MB beside"
        f" {large[0] / large[1]:.2f}; first {first * 1e3:.0f} ms, one change"
        f" {changed * 1e3:.0f} ms, 200 MB seen {seen * 1e3:.0f} ms;"
        f" .git grew by {git_size(root) - grown} bytes"
    )
    return max(clean[0] / clean[1], large[0] / large[1])


def ratio(root: Path, measure: Snapshotter) -> tuple[float, float]:
    """Medians of measuring and of `git status`, taken in turns."""
    ours, theirs = [], []
    for _ in range(ROUNDS):
        theirs.append(timed(lambda: status(root)))
        ours.append(timed(measure.tree))
    return statistics.median(ours), statistics.median(theirs)


def timed(work: Callable[[], object]) -> float:
    """Seconds a piece of work takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def status(root: Path) -> None:
    """What a shell loop would do to see changes."""
    subprocess.run(["git", "status", "--porcelain"], cwd=root, check=True, capture_output=True)


def make_repository(root: Path, size: int) -> None:
    """A committed repository; names of few files, because making names is cheap."""
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@example.org"]
    subprocess.run([*git, "init", "-q"], cwd=root, check=True)
    source = root
    for number in range(size):
        if number % 500 == 0:
            (root / f"d{number // 500}").mkdir()
        target = root / f"d{number // 500}" / f"{number}.txt"
        if number % LINKS == 0:
            target.write_text(f"{number}\n")
            source = target
        else:
            os.link(source, target)
    subprocess.run([*git, "add", "-A"], cwd=root, check=True)
    subprocess.run([*git, "commit", "-q", "-m", "files"], cwd=root, check=True)


def git_size(root: Path) -> int:
    """Bytes under `.git`, without the index that `git status` itself may rewrite."""
    files = (file for file in (root / ".git").rglob("*") if file.is_file())
    return sum(file.stat().st_size for file in files if file.name != "index")


if __name__ == "__main__":
    sys.exit(main())
