"""From a project on disk to a report, and the report to files.

Everything outside of the journal may be missing or broken by now: the story file, git.  A report
is still made of the rest.
"""

from __future__ import annotations

import os
from pathlib import Path

from ralphloop.atomic import write_atomic
from ralphloop.core.story import StoryList
from ralphloop.errors import RalphError
from ralphloop.journal.queries import Queries
from ralphloop.journal.records import RunRecord
from ralphloop.project import Project
from ralphloop.redaction import secret_values
from ralphloop.text.durations import iso
from ralphloop.ui.report.model import Outside, build
from ralphloop.ui.report.values import Report

_MOST_COMMITS = 5_000
_GIT_TIMEOUT_S = 20.0


def gather(project: Project, journal: Queries, run: RunRecord) -> Report:
    """The report of a run, from everything that can be found out about it."""
    outside = Outside(
        project=project.root.name,
        commits=_commits(project, run),
        learnings=_learnings(project, run),
        secrets=secret_values(os.environ),
    )
    return build(journal, _stories(project, run), run, outside)


def write_report(project: Project, journal: Queries, run: str) -> list[Path]:
    """Write the HTML and the Markdown report of a run; returns what was written, never raises."""
    try:
        found = journal.find_run(run)
        return write(project, gather(project, journal, found)) if found else []
    except Exception:  # noqa: BLE001 - the run is over and well recorded; a page about it may fail
        return []


def write(project: Project, report: Report) -> list[Path]:
    """Write both files, each in one step."""
    from ralphloop.ui.report.render import as_html, as_markdown

    written = []
    for kind, text in (("html", as_html(report)), ("md", as_markdown(report))):
        path = project.directory / "reports" / f"{report.run}.{kind}"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text.encode("utf-8", "replace"), within=project.directory, durable=False)
        written.append(path)
    return written


def _stories(project: Project, run: RunRecord) -> StoryList | None:
    """The story list as it is now, for titles and proofs."""
    from ralphloop.stories.source import load

    if not run.prd_path:
        return None
    try:
        return load(project.root / run.prd_path).list
    except RalphError:
        return None


def _learnings(project: Project, run: RunRecord) -> tuple[str, ...]:
    """What stories taught since the run began, as far as it may be repeated."""
    from ralphloop.learning.model import Standing
    from ralphloop.learning.store import load_index

    since, until = iso(run.started_at), iso(run.ended_at or run.last_activity)
    return tuple(
        pattern.sentence
        for pattern in load_index(project).patterns
        if since <= pattern.last_seen <= until and pattern.standing is not Standing.HELD_BACK
    )


def _commits(project: Project, run: RunRecord) -> dict[int, str]:
    """The commits we made for the iterations of a run, found by their trailers."""
    from ralphloop.workspace.git import Git

    since = (f"^{run.head}",) if run.head else ()
    try:
        output = Git(project.root).run(
            "log",
            "-z",
            f"--max-count={_MOST_COMMITS}",
            "--format=%H%n%(trailers:key=Ralph-Iteration,valueonly)",
            "HEAD",
            *since,
            "--",
            timeout_s=_GIT_TIMEOUT_S,
        )
    except RalphError:
        return {}  # no repository, or the branch is gone
    found: dict[int, str] = {}
    for record in output.decode("utf-8", "replace").split("\0"):
        commit, *marks = record.split("\n")
        for mark in marks:
            name, _, number = mark.strip().rpartition("/")
            if name == run.id and number.isdigit() and len(number) < 10:
                found.setdefault(int(number), commit)
    return found
