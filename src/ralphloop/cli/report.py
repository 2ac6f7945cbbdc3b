"""The morning: `ralph report` says on one page what a run did, what it proved and what it cost;
`ralph review` walks through what passed, what most needs a person first."""

import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from ralphloop.cli import output
from ralphloop.core.grading import Grade
from ralphloop.core.run_state import Standing
from ralphloop.errors import UsageError
from ralphloop.loop.between import accept, send_back
from ralphloop.night.look import holder_of, own_commits, recorded
from ralphloop.night.values import StoryLook
from ralphloop.proc.programs import only_trusted
from ralphloop.project import Project, find_project
from ralphloop.repo.git import Git
from ralphloop.stories.names import label
from ralphloop.ui.report import gather, write
from ralphloop.ui.report.render import as_html, as_markdown

_INDENT = 4
_FIRST = [Grade.NEEDS_REVIEW, Grade.CLAIMED, Grade.CHECKED, Grade.BY_HAND, Grade.VERIFIED]
_KEYS = "[a]ccept  [r]eject  [d]iff  [s]kip  [q]uit"
_KEYS_NOT_PASSED = "[a]ccept  [s]kip  [q]uit"
_MOST_DIFF = 4 << 20


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
    elif form == "html":
        output.emit_lines([as_html(found).rstrip("\n")])
    else:
        output.emit_markdown(as_markdown(found))


@click.command()
@click.argument("run", required=False)
@click.option("--all", "everything", is_flag=True, help="Also those that were accepted.")
def review(run: str | None, everything: bool) -> None:
    """Walk through the stories that passed in the last run, most doubtful first, key by key.

    \b
    a  accept: it is no longer listed as waiting for your eyes
    r  reject: asks why, takes its commits out and opens it again with your words
    d  its own diff, in your pager
    s  skip to the next        q  quit; what was decided stays

    A story that did again just what you had sent back is shown as well: accepted, it may pass.

    Without a terminal it prints the list.
    """
    project = find_project()
    found, errands = _to_review(project, run, everything=everything)
    if run is None:  # what was given in words since is beside the list
        for errand in errands:
            found += _to_review(project, errand, everything=everything).shown
    found.sort(key=lambda one: _urgency(one[0]))
    if not found:
        output.emit_lines(["Nothing waits for your review."])
    elif sys.stdin.isatty() and sys.stdout.isatty():
        _walk(project, found)
    else:
        output.emit_lines(line for one in found for line in (*_shown(project.root, *one), ""))


class _Reviewed(NamedTuple):
    shown: list[tuple[StoryLook, list[str]]]  # each with what shows its own change
    errands: tuple[str, ...]  # runs of what was given in words since


def _to_review(project: Project, run: str | None, *, everything: bool) -> _Reviewed:
    """What of a run waits for a person's eyes."""
    with recorded(project, run) as record:
        if record is None:
            raise UsageError("nothing has run here yet", "`ralph run` starts one.")
        if holder_of(project, time.time(), record.run.id) is not None:
            raise UsageError("the run is still going on", "`ralph stop` ends it; or wait.")
        night = record.night
        shows = own_commits(record.iterations(), record.commits)
        worked_on = {it.story for it in record.iterations()}
    passed = [it for it in night.counted if it.standing is Standing.PASSED]
    passed = [it for it in passed if it.story.id in worked_on]
    passed = [it for it in passed if everything or not it.state.accepted]
    found = [(look, list[str]()) for look in night.rejected_again]
    found += [(look, list(shows.get(look.story.id, ()))) for look in passed]
    errands = tuple(one.run.id for one in night.errands if not one.is_live)
    return _Reviewed(found, errands)


def _urgency(look: StoryLook) -> int:
    """How soon a person should look: what did not pass first, then by how well it is proven."""
    return _FIRST.index(Grade(look.grade)) if look.grade else -1


@click.command()
@click.argument("story")
@click.argument("why", nargs=-1, required=True)
def reject(story: str, why: tuple[str, ...]) -> str:
    """Send a passed story back: an ordinary commit takes just its change out.

    The story is open again and its next prompt has your words; the attempt is kept under a ref.
    Refused where later work stands on it.

    \b
    ralph reject US-3 "The parser must keep comments"
    """
    return f"{send_back(find_project(), story, ' '.join(why))}."


def _git(root: Path, how: str, shows: list[str]) -> str:
    if not shows:
        return ""
    ranges = (show if ".." in show else f"{show}~1..{show}" for show in shows)
    plain = ("--no-ext-diff", "--no-textconv")  # no program of the project shows it
    told = Git(root).attempt("log", "--reverse", "--format=", how, *plain, *ranges, "--")
    return told.stdout[:_MOST_DIFF].decode("utf-8", "replace")


def _walk(project: Project, found: list[tuple[StoryLook, list[str]]]) -> None:
    """Story by story, each with what shows its own change."""
    for number, (look, shows) in enumerate(found, start=1):
        story = look.story.id
        output.emit_lines([output.paint(f"{number} of {len(found)}", "dim")])
        output.emit_lines(_shown(project.root, look, shows))
        has_passed = look.standing is Standing.PASSED
        keys = _KEYS if has_passed else _KEYS_NOT_PASSED
        while True:
            key = output.key(f"{' ' * _INDENT}{keys} ", "adrsq" if has_passed else "asq")
            if key == "d":
                output.emit_paged(output.safe(_git(project.root, "--patch", shows)))
            elif key == "a":
                accept(project, story)
                break
            elif key == "r":
                why = click.prompt(f"{' ' * _INDENT}Why", default="", show_default=False)
                if why.strip():
                    said = send_back(project, story, why)
                    output.emit_lines(output.row("", f"{said}.", width=_INDENT))
                    break
            elif key == "s":
                break
            else:
                return
        output.emit_lines([""])


def _shown(root: Path, look: StoryLook, shows: list[str]) -> Iterator[str]:
    story = look.story
    name = f"{label(story.id)}: {story.title}"
    is_doubted = look.grade == Grade.NEEDS_REVIEW or look.standing is not Standing.PASSED
    yield from output.row("?" if is_doubted else "✓", name, "bold", width=2)
    for criterion in story.criteria:
        yield from output.row("  -", criterion, width=_INDENT)
    grade = look.grade or "not passed"
    yield from output.row("", f"{grade}: {look.state.reason or 'no reason is known'}", width=2)
    if stat := _git(root, "--shortstat", shows).strip():
        yield from output.row("", stat, width=2)
    if shows:
        command = " && ".join(f"git show {show}" for show in shows)
        yield from output.row("", f"`{command}`  `ralph reject {shlex.quote(story.id)} …`", width=2)
