"""`ralph report`: on one page what a run did, what it proved and what it cost."""

import re
from contextlib import suppress
from functools import partial
from pathlib import Path

import click

from ralphloop.atomic import write_atomic
from ralphloop.cli import output
from ralphloop.cli.shared.options import complete_run
from ralphloop.errors import RalphError, UsageError
from ralphloop.night.look import look
from ralphloop.night.review import review_list
from ralphloop.night.review_values import ReviewList
from ralphloop.proc.programs import only_trusted
from ralphloop.project import Project, find_project, tree_top
from ralphloop.repo.work_tree import project_prefix
from ralphloop.room import read_regular
from ralphloop.ui.report import gather, write
from ralphloop.ui.report.render import as_html, as_markdown
from ralphloop.ui.report.sarif import StoryPlace, as_sarif
from ralphloop.ui.report.values import Report

_ID = re.compile(r"""["']?id["']?\s*:\s*["']?([^"',\s}]{1,200})""")


@click.command()
@click.argument("run", required=False, shell_complete=complete_run)
@click.option("--md", "form", flag_value="md", default="md", help="Markdown (the default).")
@click.option("--html", "form", flag_value="html", help="One HTML page that needs no network.")
@click.option("--json", "form", flag_value="json", help="Everything, for other programs.")
@click.option("--sarif", "form", flag_value="sarif", help="What to look at, for a code host.")
@click.option("--open", "open_it", is_flag=True, help="Write the page to .ralph/reports/, open it.")
@click.option(
    "--share",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a page (.html) or a picture (.svg) that has no code and no names, to show others.",
)
@click.option("--titles", is_flag=True, help="With --share: also the titles of the stories.")
def report(
    run: str | None, form: str, open_it: bool, share: Path | None, titles: bool
) -> str | None:
    """Print the report of RUN, or of the newest run.

    RUN is the id of a run, or how one of them begins or ends.
    """
    project = find_project()
    found = gather(project, run)
    if share is not None:
        return _share(project, found, share, titles=titles)
    if titles:
        raise UsageError("--titles belongs to --share", "ralph report --share night.html --titles")
    if open_it:
        import webbrowser

        page = write(project, found)[0]
        output.emit_lines([str(page)])
        with only_trusted():
            is_shown = webbrowser.open(page.as_uri())
        if not is_shown:
            output.note("No browser could be started; open the file yourself.")
    elif form == "json":
        output.emit_json(found)
    elif form == "sarif":
        output.emit_json(
            as_sarif(found.groups, _places(project, found.run), partial(_is_inside, project))
        )
    elif form == "html":
        output.emit_lines([as_html(found).rstrip("\n")])
    else:
        output.emit_markdown(as_markdown(found))
    return None


def _share(project: Project, found: Report, file: Path, *, titles: bool) -> str:
    """Write what may be shown of a night; where it is, in words."""
    from ralphloop.ui.report.share import as_shared, shared_night

    listed = review_list(project, found.run) or ReviewList()
    made = as_shared(shared_night(found, listed, titles=titles), file)
    try:
        write_atomic(file, made)
    except OSError as error:
        words = f"{file} cannot be written: {error.strerror}"
        raise UsageError(words, "Name a file in a directory that you may write to.") from None
    told = f"{file}: the night in numbers, without code, names or paths"
    return f"{told}. Look at it before you show it."


def _places(project: Project, run: str) -> StoryPlace:
    """The story file of a run, and the line on which each story's id stands."""
    record = look(project, run=run).run
    name = record.prd_path if record else ""
    prefix = project_prefix(tree_top(project.root), project.root)
    lines: dict[str, int] = {}
    with suppress(OSError, RalphError):  # a list that is gone has no lines
        text = read_regular(project.root / name).decode("utf-8", "replace")
        for number, line in enumerate(text.splitlines(), start=1):
            for known in _ID.findall(line):
                lines.setdefault(known, number)
    return StoryPlace(f"{prefix}{name}" or "prd.json", lines)


def _is_inside(project: Project, path: str) -> bool:
    """Whether a path from the repository's root is a file there, and no link."""
    top = tree_top(project.root)
    place = top / path
    return ".." not in place.parts and place.is_file() and not place.is_symlink()
