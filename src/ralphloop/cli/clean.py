"""`ralph clean`: remove the transcripts and reports of old runs."""

from collections.abc import Iterator

import click

from ralphloop.cli import output
from ralphloop.cli.given import SIZE
from ralphloop.errors import ExitCode
from ralphloop.housekeeping import KEEP_RUNS, Cleaned, tidy
from ralphloop.night.look import reading
from ralphloop.project import find_project
from ralphloop.text.plain import counted

_SHOWN = 10


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
    project = find_project()
    with reading(project) as journal:
        cleaned = tidy(project, journal, keep_runs=keep_runs, max_bytes=max_size, dry_run=dry_run)
    output.emit_lines(_report(cleaned, dry_run=dry_run))
    for problem in cleaned.problems:
        output.error(f"cannot remove {problem}")
    return ExitCode.REPO_NOT_READY if cleaned.problems else ExitCode.COMPLETE


def _report(cleaned: Cleaned, *, dry_run: bool) -> Iterator[str]:
    kept = f"{counted(len(cleaned.kept), 'run')}, {_size(sum(run.bytes for run in cleaned.kept))}"
    if not cleaned.removed:
        yield f"Nothing to remove: {kept}."
        return
    verb = "Would free" if dry_run else "Freed"
    yield f"{verb} {_size(cleaned.freed)} of {counted(len(cleaned.removed), 'run')}; kept {kept}."
    for leftovers in cleaned.removed[:_SHOWN]:
        yield from output.row("", f"{leftovers.run}  {_size(leftovers.bytes)}", width=2)
    if len(cleaned.removed) > _SHOWN:
        yield f"  and {len(cleaned.removed) - _SHOWN} older ones"


def _size(count: float) -> str:
    """Bytes in words a person compares: `1.5 GB`."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
