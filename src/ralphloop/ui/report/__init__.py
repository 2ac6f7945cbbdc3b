"""The morning report: one page that says what is proven, what waits, and what it cost."""

import os
from pathlib import Path

from ralphloop.atomic import write_atomic
from ralphloop.errors import NothingRan
from ralphloop.night.look import recorded
from ralphloop.project import Project
from ralphloop.redaction import secret_values
from ralphloop.ui.report.assemble import build
from ralphloop.ui.report.values import Report


def gather(project: Project, wanted: str | None) -> Report:
    """The report of the newest run, or of the one called so."""
    with recorded(project, wanted) as record:
        if record is None:
            raise NothingRan
        return build(record, secret_values(os.environ))


def write_report(project: Project, run: str) -> list[Path]:
    """Write the HTML and the Markdown report of a run; returns what was written, never raises."""
    try:
        return write(project, gather(project, run))
    except Exception:  # noqa: BLE001 - the run is over and well recorded; a page about it may fail
        return []


def write(project: Project, report: Report) -> list[Path]:
    from ralphloop.ui.report.render import as_html, as_markdown

    written = []
    for kind, text in (("html", as_html(report)), ("md", as_markdown(report))):
        path = project.directory / "reports" / f"{report.run}.{kind}"
        data = text.encode("utf-8", "replace")
        room = project.directory
        write_atomic(path, data, within=room, durable=False, parents=True)
        written.append(path)
    return written
