"""What old runs leave on the disk, and when it goes.

Kept are the newest runs, as many as asked for, and of those as many as fit into a size.  A run that
can still be continued keeps everything, and so does the newest one against the size: whoever looks
in the morning finds the night complete.  Only what carries a run's name is ever touched, links are
never followed, and the journal keeps what it knows.

Choosing is pure (`to_remove`).
"""

import os
import re
import shutil
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from ralphloop.journal.lock import live_holder
from ralphloop.journal.queries import Queries
from ralphloop.project import Project

KEEP_RUNS = 20
MAX_BYTES = 2 * 1000**3
_RUN = re.compile(r"([0-9]{8}-[0-9]{6}-[0-9a-f]{6})(?:\.|$)")
_ROOMS = ("transcripts", "reports")
_SIZE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?) ?(B|KB|MB|GB|TB)?", re.IGNORECASE | re.ASCII)
_UNITS = {"": 1, "B": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3, "TB": 1000**4}


class Leftovers(NamedTuple):
    run: str
    paths: tuple[Path, ...]
    bytes: int


class Cleaned(NamedTuple):
    removed: tuple[Leftovers, ...] = ()
    kept: tuple[Leftovers, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def freed(self) -> int:
        return sum(each.bytes for each in self.removed)


def tidy(
    project: Project,
    journal: Queries,
    *,
    keep_runs: int = KEEP_RUNS,
    max_bytes: int = MAX_BYTES,
    dry_run: bool = False,
) -> Cleaned:
    """Remove what is beyond the bounds; `dry_run` only says what that would be."""
    found = _survey(project)
    # Runs that go on or can be continued.
    holder = live_holder(project.directory, time.time())
    protected = {holder.run if holder else None, *(run.id for run in journal.unfinished_runs())}
    going = to_remove(found, protected, keep_runs=keep_runs, max_bytes=max_bytes)
    problems = [] if dry_run else [words for each in going for words in _remove(each)]
    kept = tuple(each for each in found if each not in going)
    return Cleaned(tuple(going), kept, tuple(problems))


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


def _survey(project: Project) -> list[Leftovers]:
    """What is there, newest run first; names that are no run's are not ours."""
    found: dict[str, list[Path]] = {}
    for room in _ROOMS:
        for path in _entries(project.directory / room):
            if match := _RUN.match(path.name):
                found.setdefault(match[1], []).append(path)
    runs = sorted(found, reverse=True)
    return [Leftovers(run, tuple(found[run]), sum(map(_size, found[run]))) for run in runs]


def parse_size(text: str) -> int:
    """`2GB`, `500 MB`, `1000`: a number of bytes."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"not a size: {text[:40]!r}; write it like 500MB or 2GB")
    return int(float(match[1]) * _UNITS[(match[2] or "").upper()])


def _entries(directory: Path) -> Iterator[Path]:
    # A link here could lead anywhere: what it names was not put there by us.
    if directory.is_symlink() or directory.parent.is_symlink():
        return
    try:
        with os.scandir(directory) as entries:
            yield from (Path(entry.path) for entry in entries if not entry.is_symlink())
    except OSError:
        return  # not there, or not ours to read: then there is nothing to remove


def _size(path: Path) -> int:
    """Bytes of a file, or of everything in a directory."""
    files = [path]
    if path.is_dir():
        walk = os.walk(path, followlinks=False)
        files = [Path(folder) / name for folder, _, names in walk for name in names]
    total = 0
    for file in files:
        with suppress(OSError):  # gone in this very moment: a run goes on
            total += file.lstat().st_size
    return total


def _remove(leftovers: Leftovers) -> Iterator[str]:
    """Delete what one run left; returns what could not be deleted and why."""
    for path in leftovers.paths:
        try:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            yield f"{path}: {error.strerror or error}"
