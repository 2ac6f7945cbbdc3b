"""`ralph report`: what a run did, what it proved, what it cost, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ralphloop.cli import output
from ralphloop.errors import RepositoryError
from ralphloop.project import Project, find_project

if TYPE_CHECKING:
    from ralphloop.ui.report.values import Report


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
    project = find_project(Path.cwd())
    found = _report(project, run)
    if open_it:
        _open(project, found)
    elif form == "json":
        output.emit_json(found)
    else:
        output.emit_lines([_rendered(found, form).rstrip("\n")])


def _report(project: Project, wanted: str | None) -> Report:
    from ralphloop.ui.report import gather

    found = gather(project, wanted)
    if found is None:
        raise RepositoryError("no run has been recorded here yet", "ralph run")
    return found


def _rendered(found: Report, form: str) -> str:
    from ralphloop.ui.report.render import as_html, as_markdown

    return as_html(found) if form == "html" else as_markdown(found)


def _open(project: Project, found: Report) -> None:
    import webbrowser

    from ralphloop.ui.report.gather import write

    page = write(project, found)[0]
    output.emit_lines([str(page)])
    if not webbrowser.open(page.as_uri()):
        output.note("No browser could be started; open the file yourself.")
