"""`ralph clean`: remove what old runs left; a run does it by itself when it ends."""

import click

from ralphloop.cli import output
from ralphloop.cli.shared.leftovers import KEPT_RUNS, LARGEST, Leftovers, tidy
from ralphloop.cli.shared.options import number, size
from ralphloop.errors import ExitCode
from ralphloop.project import find_project
from ralphloop.text.plain import counted

_SHOWN = 10


@click.command()
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.option(
    "--keep-runs",
    default=KEPT_RUNS,
    show_default=True,
    type=number,
    help="Keep so many newest runs.",
)
@click.option(
    "--max-size", default=LARGEST, show_default=True, type=size, help="Keep at most this much."
)
def clean(dry_run: bool, keep_runs: int, max_size: int) -> int:
    """Remove transcripts and reports of old runs; ralph run does it by itself.

    A run that goes on or can be continued keeps everything.
    """
    project = find_project()
    gone, left, problems = tidy(project, keep_runs=keep_runs, max_bytes=max_size, dry_run=dry_run)
    kept = f"{counted(len(left), 'run')}, {_size(*left)}"
    lines = [f"Nothing to remove: {kept}."]
    if gone:
        freed = f"{'Would free' if dry_run else 'Freed'} {_size(*gone)}"
        lines = [f"{freed} of {counted(len(gone), 'run')}; kept {kept}."]
        lines += [f"  {run.run}  {_size(run)}" for run in gone[:_SHOWN]]
        if len(gone) > _SHOWN:
            lines.append(f"  and {len(gone) - _SHOWN} older ones")
    output.emit_lines(lines)
    for problem in problems:
        output.error(f"cannot remove {problem}")
    return ExitCode.REPO_NOT_READY if problems else ExitCode.COMPLETE


def _size(*runs: Leftovers) -> str:
    from rich.filesize import decimal

    return decimal(sum(run.bytes for run in runs))
