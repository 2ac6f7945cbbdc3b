"""`ralph stories`: every story, when it runs and why then, and what became of it so far."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import click

from ralphloop.cli import output
from ralphloop.cli.layout import row
from ralphloop.core.story import StoryList
from ralphloop.core.story_state import Standing
from ralphloop.core.totals import spent_words
from ralphloop.errors import InputError
from ralphloop.journal.records import JsonObject
from ralphloop.loop.setup import relative
from ralphloop.night.look import Placed, arranged, look
from ralphloop.night.values import Night
from ralphloop.project import find_project
from ralphloop.stories.names import label
from ralphloop.text.plain import counted

_COLOURS = {
    Standing.PASSED: "green",
    Standing.BLOCKED: "yellow",
    Standing.SET_ASIDE: "yellow",
    Standing.OPEN: "dim",
}
_MARKS = {Standing.PASSED: "ok", Standing.BLOCKED: "?", Standing.SET_ASIDE: "-", Standing.OPEN: "-"}
_INDENT = 5


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One object; see docs/reference/commands.md.")
def stories(as_json: bool) -> None:
    """List the stories: order and reason, state, grade, attempts, cost."""
    night = look(find_project(Path.cwd()), now=time.time())
    if night.story_list is None:
        raise _nothing_to_list(night)
    listed = list(arranged(night.story_list, night.session.stories))
    if as_json:
        output.emit_json(_as_data(night.story_list, listed))
    else:
        output.emit_lines(_as_lines(night.story_list, listed, night.project.root))


def _nothing_to_list(night: Night) -> InputError:
    if not night.stories_problem:
        return InputError(
            "the last run was a plain loop without stories", "`ralph status` shows how it stands."
        )
    return InputError(
        night.stories_problem, "`ralph init` makes a story list; `ralph doctor` checks one."
    )


def _as_lines(story_list: StoryList, listed: list[Placed], root: Path) -> Iterator[str]:
    for placed in listed:
        yield from _story_lines(placed)
    total = f"{story_list.passed} of {counted(story_list.total, 'story')} passed"
    states = [placed.look.state for placed in listed]
    spent = spent_words(sum(s.cost_usd for s in states), sum(s.unpriced for s in states))
    yield ""
    yield f"{total}, {spent}, from {relative(Path(story_list.source), root)}"


def _story_lines(placed: Placed) -> Iterator[str]:
    look = placed.look
    mark = str(placed.position) if placed.position else _MARKS[look.standing]
    name = f"{label(look.story.id)}: {look.story.title}"
    yield from row(f"{mark:>3}", name, _COLOURS[look.standing], width=_INDENT)
    yield from row("", _facts(placed), width=_INDENT)
    if look.bring_back:
        yield from row("", f"its work is kept: `{look.bring_back}`", width=_INDENT)


def _facts(placed: Placed) -> str:
    look, state = placed.look, placed.look.state
    standing = look.standing.replace("_", " ")
    parts = [f"{standing} ({look.grade})" if look.grade else standing]
    if state.iterations:
        parts.append(counted(state.iterations, "iteration"))
    if look.failed:
        parts.append(counted(look.failed, "failed attempt"))
    if state.cost_usd or state.unpriced:
        parts.append(spent_words(state.cost_usd, state.unpriced))
    return f"{', '.join(parts)}: {placed.why}" if placed.why else ", ".join(parts)


def _as_data(story_list: StoryList, listed: list[Placed]) -> JsonObject:
    return {
        "v": 1,
        "source": story_list.source,
        "total": story_list.total,
        "passed": story_list.passed,
        "stories": [_story_data(placed) for placed in listed],
    }


def _story_data(placed: Placed) -> JsonObject:
    look, story, state = placed.look, placed.look.story, placed.look.state
    return {
        "id": story.id,
        "title": story.title,
        "order": placed.position,
        "why": placed.why,
        "state": str(look.standing),
        "grade": look.grade or None,
        "attempts": look.failed,
        "iterations": state.iterations,
        "cost_usd": state.cost_usd,
        "cost_known": not state.unpriced,
        "reason": state.reason or None,
        "depends_on": list(story.depends_on),
        "saved_ref": state.saved_ref or None,
        "bring_back": look.bring_back or None,
    }
