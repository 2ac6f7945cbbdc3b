"""`ralph monitor`: one run on one screen, from any terminal."""

from __future__ import annotations

import os
import shutil
import sys
import time

import click

from ralphloop.cli import output
from ralphloop.night.past import find_run, reading
from ralphloop.project import Project, find_project

_ONLY_ASCII = ("linux", "dumb", "vt100", "vt220")


@click.command()
@click.argument("run", required=False)
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
        in_ascii or os.environ.get("TERM") in _ONLY_ASCII or not output.speaks_unicode(sys.stdout)
    )
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if once or not terminal or os.environ.get("TERM", "") in ("", "dumb"):
        _print_once(project, run, in_ascii=in_ascii)
        return
    from ralphloop.ui.monitor.app import Monitor

    Monitor(project, run=run, in_ascii=in_ascii, dark=theme == "dark").run()


def _print_once(project: Project, run: str | None, *, in_ascii: bool) -> None:
    from ralphloop.ui.monitor.paint import plain_ascii
    from ralphloop.ui.monitor.panels import Screen
    from ralphloop.ui.monitor.source import Source

    source = Source(project, run=run)
    facts = source.poll()
    source.close()
    if facts is None:
        return
    width = shutil.get_terminal_size((100, 24)).columns
    lines = Screen(facts, time.time()).as_text(width)
    output.emit_lines(plain_ascii(line) if in_ascii else line for line in lines)
