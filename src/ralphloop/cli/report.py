"""`ralph report`: what a run did, what it proved, what it cost, on one page; `ralph monitor`: the
same while it goes on, on one screen, from any terminal.
"""

import os
import shutil
import sys
import time
from contextlib import closing

import click

from ralphloop.cli import output
from ralphloop.errors import JournalError, RepositoryError
from ralphloop.night.look import find_run, reading
from ralphloop.project import Project, find_project

_ONLY_ASCII = ("linux", "dumb", "vt100", "vt220")


@click.command()
@click.argument("run", required=False)
@click.option("--md", "form", flag_value="md", default="md", help="Markdown (the default).")
@click.option("--html", "form", flag_value="html", help="One HTML page that needs no network.")
@click.option("--json", "form", flag_value="json", help="Everything, for other programs.")
@click.option("--open", "open_it", is_flag=True, help="Write the page to .ralph/reports/, open it.")
def report(run: str | None, form: str, open_it: bool) -> None:
    """Print the report of RUN, or of the newest run.

    RUN is the id of a run, or how one of them begins or ends.
    """
    from ralphloop.ui.report import gather, write
    from ralphloop.ui.report.render import as_html, as_markdown

    project = find_project()
    found = gather(project, run)
    if found is None:
        raise RepositoryError("no run has been recorded here yet", "ralph run")
    if form == "json" and not open_it:
        output.emit_json(found)
    elif not open_it:
        if form == "html":
            output.emit_lines([as_html(found).rstrip("\n")])
        else:
            output.emit_markdown(as_markdown(found))
    else:
        import webbrowser

        page = write(project, found)[0]
        output.emit_lines([str(page)])
        if not webbrowser.open(page.as_uri()):
            output.note("No browser could be started; open the file yourself.")


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
        in_ascii
        or os.environ.get("TERM") in _ONLY_ASCII
        or os.environ.get("LC_ALL") in ("C", "POSIX")  # where Python speaks UTF-8 nevertheless
        or not output.speaks_unicode(sys.stdout)
    )
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if once or not terminal or os.environ.get("TERM", "") in ("", "dumb"):
        _print_once(project, run, in_ascii=in_ascii)
        return
    from ralphloop.ui.monitor.app import Monitor

    Monitor(project, run=run, in_ascii=in_ascii, dark=theme == "dark").run()


def _print_once(project: Project, run: str | None, *, in_ascii: bool) -> None:
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
