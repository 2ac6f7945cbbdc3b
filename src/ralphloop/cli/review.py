"""The morning: walk through what passed, accept it or send it back.

What most needs a person comes first: stories that need review, then those that are only checked or
claimed, then the proven ones.  Each shows what was asked, its grade with the reasons and the size
of its own change; one key decides.  `ralph reject` does the same for one story without the walk.
"""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from ralphloop.cli import output
from ralphloop.core.grading import Grade
from ralphloop.core.story_state import Standing
from ralphloop.errors import UsageError
from ralphloop.night.look import is_live, recorded
from ralphloop.night.own_commits import own_commits
from ralphloop.night.values import StoryLook
from ralphloop.project import Project, find_project
from ralphloop.stories.names import label

_INDENT = 4
_FIRST = [Grade.NEEDS_REVIEW, Grade.CLAIMED, Grade.CHECKED, Grade.BY_HAND, Grade.VERIFIED]
_KEYS = "[a]ccept  [r]eject  [d]iff  [s]kip  [q]uit"
_MOST_DIFF = 4 << 20


ToReview = tuple[StoryLook, list[str]]  # a story, and what shows its own change


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

    Without a terminal it prints the list.
    """
    project = find_project()
    found = list(_to_review(project, run, everything=everything))
    if not found:
        output.emit_lines(["Nothing waits for your review."])
    elif sys.stdin.isatty() and sys.stdout.isatty():
        _walk(project, found)
    else:
        output.emit_lines(line for one in found for line in (*_shown(project.root, *one), ""))


@click.command()
@click.argument("story")
@click.argument("why", nargs=-1, required=True)
def reject(story: str, why: tuple[str, ...]) -> None:
    """Send a passed story back: an ordinary commit takes just its change out.

    The story is open again and its next prompt has your words; the attempt is kept under a ref.
    Refused where later work stands on it.

    \b
    ralph reject US-3 "The parser must keep comments"
    """
    from ralphloop.loop.between import send_back

    output.emit_lines([output.safe(f"{send_back(find_project(), story, ' '.join(why))}.")])


def _to_review(project: Project, run: str | None, *, everything: bool) -> Iterator[ToReview]:
    with recorded(project, run) as record:
        if record is None:
            raise UsageError("nothing has run here yet", "`ralph run` starts one.")
        if is_live(project, record.run.id):
            raise UsageError("the run is still going on", "`ralph stop` ends it; or wait.")
        shows = own_commits(record.iterations(), record.commits)
        worked_on = {it.story for it in record.iterations()}
        passed = [
            look
            for look in record.night.counted
            if look.standing is Standing.PASSED
            and (look.story.id in worked_on)
            and (everything or not look.state.accepted)
        ]
    for look in sorted(passed, key=lambda look: _FIRST.index(Grade(look.grade))):
        yield look, list(shows.get(look.story.id, ()))


def _git(root: Path, how: str, shows: list[str]) -> str:
    """What git says of these commits."""
    from ralphloop.repo.git import Git

    if not shows:
        return ""
    ranges = (show if ".." in show else f"{show}~1..{show}" for show in shows)
    told = Git(root).attempt("log", "--reverse", "--format=", how, *ranges, "--")
    return told.stdout[:_MOST_DIFF].decode("utf-8", "replace")


def _walk(project: Project, found: list[ToReview]) -> None:
    from ralphloop.loop.between import accept, send_back

    for number, (look, shows) in enumerate(found, start=1):
        story = look.story.id
        output.emit_lines([output.paint(f"{number} of {len(found)}", "dim")])
        output.emit_lines(_shown(project.root, look, shows))
        while True:
            key = output.key(f"{' ' * _INDENT}{_KEYS} ", "adrsq")
            if key == "d":
                click.echo_via_pager(output.safe(_git(project.root, "--patch", shows)))
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
    yield from output.row("?" if look.grade == Grade.NEEDS_REVIEW else "✓", name, "bold", width=2)
    for criterion in story.criteria:
        yield from output.row("  -", criterion, width=_INDENT)
    yield from output.row("", f"{look.grade}: {look.state.reason or 'no reason is known'}", width=2)
    if stat := _git(root, "--shortstat", shows).strip():
        yield from output.row("", stat, width=2)
    if shows:
        command = " && ".join(f"git show {show}" for show in shows)
        yield from output.row("", f"`{command}`  `ralph reject {shlex.quote(story.id)} …`", width=2)
