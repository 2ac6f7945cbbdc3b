"""`ralph monitor`: a run on a live screen, or the same screen once as text."""

import os
import shutil
import sys
import time
from contextlib import closing

import click

from ralphloop.cli import output
from ralphloop.cli.shared.options import complete_run
from ralphloop.errors import JournalError
from ralphloop.night.look import find_run, reading
from ralphloop.project import find_project

_ONLY_ASCII = ("linux", "dumb", "vt100", "vt220")


@click.command()
@click.argument("run", required=False, shell_complete=complete_run)
@click.option("--theme", type=click.Choice(["dark", "light"]), default="dark", help="How it looks.")
@click.option("--ascii", "in_ascii", is_flag=True, help="Draw with ASCII only.")
@click.option("--once", is_flag=True, help="Print the screen as text and end.")
def monitor(run: str | None, theme: str, in_ascii: bool, once: bool) -> None:
    """Watch and steer the run of this project, or look at an earlier RUN.

    Works beside a run in another terminal, over SSH, after a run, and without one.  Where the
    terminal cannot draw, the screen is printed once as text.
    """
    project = find_project()
    if run is not None:
        with reading(project) as journal:
            found = find_run(journal, run)
        run = found.id if found else None
    in_ascii = (
        in_ascii
        or os.environ.get("TERM") in _ONLY_ASCII
        or os.environ.get("LC_ALL") in ("C", "POSIX")  # where Python speaks UTF-8 nevertheless
        or not output.speaks_unicode(sys.stdout)
    )
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if once or not terminal or os.environ.get("TERM", "") in ("", "dumb"):
        from ralphloop.ui.monitor.moments import Source
        from ralphloop.ui.monitor.paint import plain_ascii
        from ralphloop.ui.monitor.panels import Screen

        with closing(Source(project, run=run)) as source:
            facts = source.poll()
        if facts is None:
            return
        if facts.trouble:
            raise JournalError(facts.trouble, facts.way_out)
        width = shutil.get_terminal_size((100, 24)).columns
        lines = Screen(facts, time.time()).as_text(width)
        output.emit_lines(plain_ascii(line) if in_ascii else line for line in lines)
    else:
        from ralphloop.ui.monitor.app import Monitor

        Monitor(project, run=run, in_ascii=in_ascii, dark=theme == "dark").run()
