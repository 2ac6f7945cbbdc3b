"""`ralph stories`: when each story runs and why then, what became of it; and editing the list.

Every change is spliced into the file: order, indentation, comments and unknown keys stay.  A run
that goes on takes the list from disk, so a story added now is part of the night.
"""

import json
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import click
import msgspec

from ralphloop.cli import output
from ralphloop.cli.status import errand_data
from ralphloop.core.grading import Grade
from ralphloop.core.model import StoryList
from ralphloop.core.run_state import Standing
from ralphloop.core.totals import spent_words
from ralphloop.errors import ExitCode, InputError, UsageError
from ralphloop.night.look import Position, arranged, config_of, look_at_list, story_file
from ralphloop.night.values import Night
from ralphloop.project import find_project, relative
from ralphloop.stories import shapes
from ralphloop.stories.documents import Entry
from ralphloop.stories.lint import as_lines, remarks
from ralphloop.stories.names import label, next_id
from ralphloop.stories.sample import is_sample
from ralphloop.stories.shapes import Listing
from ralphloop.stories.source import load, position, rearrange, story_text
from ralphloop.text.plain import counted

SCHEMA_NAME = "prd.schema.json"
_COLOURS = {Standing.PASSED: "green", Standing.OPEN: "dim"}  # the others are yellow
_MARKS = {Standing.PASSED: "ok", Standing.BLOCKED: "?"}
_INDENT = 5


def _file() -> Path:
    project = find_project()
    return story_file(project, None, config_of(project, None))


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="One object; see docs/reference/commands.md.")
@click.pass_context
def stories(ctx: click.Context, as_json: bool) -> None:
    """List the stories: order and reason, state, grade, attempts, cost.  Or edit the list."""
    if ctx.invoked_subcommand is not None:
        return
    night = look_at_list(find_project())
    found = night.story_list
    errands = night.errands
    if found is None and not errands and night.stories_problem:
        if night.run is None:
            _file()  # says it itself where the list may not be opened
        step = "`ralph init` makes a story list; `ralph doctor` checks one."
        raise InputError(night.stories_problem, step)
    if found is None and not errands:
        words = "the last run was a plain loop without stories"
        raise InputError(words, "`ralph status` shows how it stands.")
    listed = list(arranged(found, night.session.stories)) if found else []
    data: dict[str, object] = {"v": 1, "source": None, "total": 0, "passed": 0}
    data |= output.picked(found, "source", "total", "passed") if found else {}
    data["stories"] = [
        {
            **output.picked(placed.look.story, "id", "title"),
            "order": placed.position,
            "why": placed.why,
            "state": placed.look.standing,
            "grade": placed.look.grade or None,
            "attempts": placed.look.failed,
            **output.picked(placed.look.state, "iterations", "cost_usd"),
            "cost_known": not placed.look.state.unpriced,
            "reason": placed.look.state.reason or None,
            "depends_on": placed.look.story.depends_on,
            "saved_ref": placed.look.state.saved_ref or None,
            "bring_back": placed.look.bring_back or None,
        }
        for placed in listed
    ]
    data["errands"] = [errand_data(errand) for errand in errands]
    lines = list(_as_lines(found, listed, night.project.root)) if found else []
    lines += _beside(night)
    output.show(lines, data, as_json=as_json)


def _beside(night: Night) -> Iterator[str]:
    """What was given in words, below the list."""
    if night.errands:
        yield ""
        yield "Given in words, beside the list:"
    for errand in night.errands:
        story = errand.look.story
        mark = _MARKS.get(errand.look.standing, "-")
        colour = _COLOURS.get(errand.look.standing, "yellow")
        name = f"{label(story.id)}: {story.title}"
        yield from output.row(f"{mark:>3}", name, colour, width=_INDENT)
        yield from output.row("", errand.how(night.now), width=_INDENT)


def _as_lines(story_list: StoryList, listed: list[Position], root: Path) -> Iterator[str]:
    for placed in listed:
        seen = placed.look
        state = placed.look.state
        mark = str(placed.position or _MARKS.get(seen.standing, "-"))
        name = f"{label(seen.story.id)}: {seen.story.title}"
        colour = _COLOURS.get(seen.standing, "yellow")
        if seen.grade == Grade.NEEDS_REVIEW:
            mark = "!"
            colour = "yellow"
        yield from output.row(f"{mark:>3}", name, colour, width=_INDENT)
        parts = [
            f"{seen.standing} ({seen.grade})" if seen.grade else str(seen.standing),
            counted(state.iterations, "iteration") if state.iterations else "",
            counted(seen.failed, "failed attempt") if seen.failed else "",
            spent_words(state.cost_usd, state.unpriced) if state.cost_usd or state.unpriced else "",
        ]
        if seen.standing in (Standing.BLOCKED, Standing.SET_ASIDE):
            parts[0] = ""  # the reason says it
        facts = ", ".join(filter(None, parts))
        words = ": ".join(filter(None, [facts, placed.why]))
        yield from output.row("", words, width=_INDENT)
        if seen.bring_back:
            yield from output.row("", f"its work is kept: `{seen.bring_back}`", width=_INDENT)
    total = f"{story_list.passed} of {counted(story_list.total, 'story')} passed"
    states = [placed.look.state for placed in listed]
    spent = spent_words(sum(s.cost_usd for s in states), sum(s.unpriced for s in states))
    yield ""
    yield f"{total}, {spent}, from {relative(Path(story_list.source), root)}"


@stories.command()
@click.argument("title", nargs=-1, required=True)
@click.option("--id", "name", help="Its id; by default the next number.")
@click.option("--criterion", "-c", "criteria", multiple=True, help="What will be seen. Repeatable.")
@click.option("--description", default="", help="What is wanted, and why.")
@click.option("--verify", help="The command that proves it, as you would type it; no shell.")
@click.option("--priority", type=float, help="The lowest comes first.")
@click.option("--depends-on", "-d", multiple=True, help="A story that must pass first. Repeatable.")
@click.option("--after", help="Stand behind this story; by default at the end.")
def add(
    title: tuple[str, ...],
    name: str | None,
    criteria: tuple[str, ...],
    description: str,
    verify: str | None,
    priority: float | None,
    depends_on: tuple[str, ...],
    after: str | None,
) -> None:
    """Add a story; the first one replaces the sample of `ralph init`.

    \b
    ralph stories add "Greet in French" -c '`greet --lang fr` prints Bonjour'
    """
    made: list[str] = []

    def arranged(now: list[int | Entry], listing: Listing) -> list[int | Entry]:
        if is_sample(listing):
            now = []
            listing = msgspec.structs.replace(listing, entries=[])
        story = name or next_id([shapes.identity(raw) or "" for raw in listing.entries])
        fields = {
            "id": story,
            "title": " ".join(title),
            "description": description,
            "acceptanceCriteria": list(criteria),
            "priority": int(priority) if priority and priority.is_integer() else priority,
            "dependsOn": list(depends_on),
            "verify": verify,
        }
        made[:] = [story]
        entry = {key: value for key, value in fields.items() if value not in ("", [], None)}
        at = len(now) if after is None else position(listing, after) + 1
        return [*now[:at], entry | {"passes": False}, *now[at:]]

    path = _file()
    rearrange(path, arranged)
    _tell(path, made[0], "added to")


@stories.command()
@click.argument("story")
def edit(story: str) -> None:
    """Change a story in your editor, as JSON; what cannot be read is refused."""
    if not sys.stdin.isatty():
        raise UsageError("an editor needs a terminal", "Edit the file, or use ralph stories add.")
    path = _file()
    listing = story_text(path).listing
    before = listing.entries[position(listing, story)]
    text = json.dumps(before, indent=2, ensure_ascii=False) + "\n"
    written = click.edit(text, extension=".json")
    if written is None or written == text:
        output.emit_lines(["Nothing was changed."])
        return
    try:
        entry = json.loads(written)
    except ValueError as error:
        step = f"Nothing was changed. What you wrote:\n{written}"
        raise InputError(f"not valid JSON: {error}", step) from None
    rearrange(
        path,
        lambda now, listing: [entry if one == position(listing, story) else one for one in now],
    )
    _tell(path, story, "changed in")


@stories.command()
@click.argument("story")
@click.option("--before", help="Stand before this story.")
@click.option("--after", help="Stand behind this story.")
def move(story: str, before: str | None, after: str | None) -> None:
    """Move a story in the file; the order counts among stories of the same priority."""
    if (before is None) == (after is None):
        raise UsageError("say where to", f"ralph stories move {story} --before US-001")

    def arranged(now: list[int | Entry], listing: Listing) -> list[int | Entry]:
        here = position(listing, story)
        there = position(listing, before or after or "")
        rest = [one for one in now if one != here]
        at = rest.index(there) if there != here else here
        at += after is not None and there != here
        return [*rest[:at], here, *rest[at:]]

    path = _file()
    rearrange(path, arranged)
    output.emit_lines([f"{label(story)} was moved in {_name(path)}."])


@stories.command()
@click.argument("story")
def rm(story: str) -> None:
    """Remove a story from the list; what it changed stays."""
    path = _file()
    others = [s.id for s in load(path).list.stories if story in s.depends_on]
    if others:
        words = f"{label(others[0])} depends on {label(story)}"
        raise UsageError(words, f"Change it first: ralph stories edit {others[0]}")
    rearrange(path, lambda now, listing: [one for one in now if one != position(listing, story)])
    output.emit_lines([f"{label(story)} was removed from {_name(path)}."])


@stories.command()
@click.option("--json", "as_json", is_flag=True, help="One object per remark.")
def check(as_json: bool) -> int:
    """Say what the list is likely to be missing; ends with 1 where there is something."""
    path = _file()
    listed = load(path).list
    found = list(remarks(listed, story_text(path).listing))
    words = counted(len(found), "remark") if found else "nothing to remark"
    lines = [row for line in as_lines(found) for row in output.row("!", line, "yellow", width=2)]
    lines += [f"{counted(listed.total, 'story')} in {_name(path)}: {words}"]
    output.show(lines, [one._asdict() for one in found], as_json=as_json)
    return ExitCode.HALTED if found else ExitCode.COMPLETE


@stories.command()
def schema() -> None:
    """Print the JSON Schema of prd.json, for editors that complete and check."""
    output.emit_lines([schema_text().rstrip()])


def schema_text() -> str:
    return files("ralphloop.stories").joinpath(f"data/{SCHEMA_NAME}").read_text(encoding="utf-8")


def _tell(path: Path, story: str, how: str) -> None:
    """That a story was written, and what it is likely to be missing."""
    output.emit_lines([f"{label(story)} was {how} {_name(path)}."])
    found = remarks(load(path).list, story_text(path).listing)
    for line in as_lines([one for one in found if one.story == story]):
        output.warn(line)


def _name(path: Path) -> str:
    return relative(path, find_project().root)
