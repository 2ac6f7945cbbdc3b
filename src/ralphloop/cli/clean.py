"""`ralph clean`, which a run does by itself when it ends: what old runs leave on the disk goes.

A run that can still be continued keeps everything, and so does the newest one against the size:
whoever looks in the morning finds the night complete.  Only what carries a run's name is ever
touched, links are never followed, and the journal keeps what it knows.
"""

import os
import re
import shutil
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import click

from ralphloop.cli import output
from ralphloop.cli.given import SIZE
from ralphloop.errors import ExitCode
from ralphloop.journal.lock import live_holder
from ralphloop.night.look import reading
from ralphloop.project import Project, find_project
from ralphloop.text.plain import counted

KEEP_RUNS = 20
MAX_BYTES = 2 * 1000**3
_RUN = re.compile(r"([0-9]{8}-[0-9]{6}-[0-9a-f]{6})(?:\.|$)")
_ROOMS = ("transcripts", "reports")
_SHOWN = 10


class Leftovers(NamedTuple):
    run: str
    paths: tuple[Path, ...]
    bytes: int


@click.command()
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.option(
    "--keep-runs",
    type=click.IntRange(min=0),
    default=KEEP_RUNS,
    show_default=True,
    help="Keep so many of the newest runs.",
)
@click.option(
    "--max-size", default="2GB", show_default=True, type=SIZE, help="Keep at most this much."
)
def clean(dry_run: bool, keep_runs: int, max_size: int) -> int:
    """Remove transcripts and reports of old runs; ralph run does it by itself.

    A run that goes on or can be continued keeps everything.
    """
    cleaned = tidy(find_project(), keep_runs=keep_runs, max_bytes=max_size, dry_run=dry_run)
    kept = f"{counted(len(cleaned.kept), 'run')}, {_size(*cleaned.kept)}"
    lines, gone = [f"Nothing to remove: {kept}."], cleaned.removed
    if gone:
        freed = f"{'Would free' if dry_run else 'Freed'} {_size(*gone)}"
        lines = [f"{freed} of {counted(len(gone), 'run')}; kept {kept}."]
        lines += [f"  {run.run}  {_size(run)}" for run in gone[:_SHOWN]]
        if len(gone) > _SHOWN:
            lines.append(f"  and {len(gone) - _SHOWN} older ones")
    output.emit_lines(lines)
    for problem in cleaned.problems:
        output.error(f"cannot remove {problem}")
    return ExitCode.REPO_NOT_READY if cleaned.problems else ExitCode.COMPLETE


def _size(*runs: Leftovers) -> str:
    count: float = sum(run.bytes for run in runs)
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


class Cleaned(NamedTuple):
    removed: tuple[Leftovers, ...] = ()
    kept: tuple[Leftovers, ...] = ()
    problems: tuple[str, ...] = ()


def tidy(
    project: Project,
    *,
    keep_runs: int = KEEP_RUNS,
    max_bytes: int = MAX_BYTES,
    dry_run: bool = False,
) -> Cleaned:
    """Remove what is beyond the bounds; `dry_run` only says what that would be."""
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
    problems = []
    for path in () if dry_run else (path for each in going for path in each.paths):
        try:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            problems.append(f"{path}: {error.strerror or error}")
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
