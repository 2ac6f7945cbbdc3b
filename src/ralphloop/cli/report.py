"""`ralph report`: what a run did, what it proved, what it cost, on one page."""

from __future__ import annotations

import click

from ralphloop.cli import output
from ralphloop.errors import RepositoryError
from ralphloop.project import find_project
from ralphloop.ui.report import gather, write
from ralphloop.ui.report.render import as_html, as_markdown


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
    project = find_project()
    found = gather(project, run)
    if found is None:
        raise RepositoryError("no run has been recorded here yet", "ralph run")
    if form == "json" and not open_it:
        output.emit_json(found)
    elif not open_it:
        text = as_html(found) if form == "html" else as_markdown(found)
        output.emit_lines([text.rstrip("\n")])
    else:
        import webbrowser

        page = write(project, found)[0]
        output.emit_lines([str(page)])
        if not webbrowser.open(page.as_uri()):
            output.note("No browser could be started; open the file yourself.")
