"""What runs leave on the disk, and how to be rid of it.

A run that can still be continued keeps everything, and so does the newest one against the size:
whoever looks in the morning finds the night complete.  Only what carries a run's name is ever
touched, links are never followed, and the journal keeps what it knows.
"""

import os
import re
import shutil
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from ralphloop.cli.shared.options import number, size
from ralphloop.journal.lock import live_holder
from ralphloop.night.look import reading
from ralphloop.project import Project

KEPT_RUNS = "20"
LARGEST = "2GB"
KEEP_RUNS = number(KEPT_RUNS)
MAX_BYTES = size(LARGEST)
_RUN = re.compile(r"([0-9]{8}-[0-9]{6}-[0-9a-f]{6})(?:\.|$)")
_ROOMS = ("transcripts", "reports")


class Leftovers(NamedTuple):
    run: str
    paths: tuple[Path, ...]
    bytes: int


class Tidied(NamedTuple):
    gone: list[Leftovers]  # or what would have gone
    left: list[Leftovers]
    problems: list[str]  # what could not be removed


def tidy(
    project: Project,
    *,
    keep_runs: int = KEEP_RUNS,
    max_bytes: int = MAX_BYTES,
    dry_run: bool = False,
) -> Tidied:
    """Remove what is beyond the bounds, or only say what that would be."""
    # What is there, newest run first; names that are no run's are not ours.
    paths: dict[str, list[Path]] = {}
    for room in _ROOMS:
        directory = project.directory / room
        # A link here could lead anywhere: what it names was not put there by us.
        if directory.is_symlink() or project.directory.is_symlink():
            continue
        # Where it is not there, or not ours to read, there is nothing to remove.
        with suppress(OSError), os.scandir(directory) as entries:
            for entry in entries:
                if not entry.is_symlink() and (match := _RUN.match(entry.name)):
                    paths.setdefault(match[1], []).append(Path(entry.path))
    runs = sorted(paths.items(), reverse=True)
    found = [Leftovers(run, tuple(own), sum(map(_size_of, own))) for run, own in runs]
    # Runs that go on or can be continued.
    holder = live_holder(project.directory, time.time())
    with reading(project) as journal:
        unfinished = [run.id for run in journal.unfinished_runs()]
    protected = {holder.run if holder else None, *unfinished}
    going = to_remove(found, protected, keep_runs=keep_runs, max_bytes=max_bytes)
    problems = [] if dry_run else _remove(path for each in going for path in each.paths)
    left = [each for each in found if each not in going]
    return Tidied(going, left, problems)


def _remove(paths: Iterable[Path]) -> list[str]:
    """Remove each of them; what could not be removed, and why."""
    problems = []
    for path in paths:
        try:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            problems.append(f"{path}: {error.strerror or error}")
    return problems


def to_remove(
    found: Sequence[Leftovers], protected: Collection[str | None], *, keep_runs: int, max_bytes: int
) -> list[Leftovers]:
    """Which of these runs, newest first, are beyond the bounds."""
    totals = accumulate(each.bytes for each in found)  # of this run and all newer ones
    return [
        each
        for position, (each, total) in enumerate(zip(found, totals, strict=True))
        if (position >= keep_runs or (position > 0 and total > max_bytes))
        and each.run not in protected
    ]


def _size_of(path: Path) -> int:
    files = [path]
    if path.is_dir():
        walk = os.walk(path, followlinks=False)
        files = [Path(folder) / name for folder, _, names in walk for name in names]
    total = 0
    for file in files:
        with suppress(OSError):  # gone in this very moment: a run goes on
            total += file.lstat().st_size
    return total
