"""`ralph stories`: every story, when it runs and why then, and what became of it so far."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import click

from ralphloop.cli import output
from ralphloop.core.story import StoryList
from ralphloop.core.story_state import Standing
from ralphloop.core.totals import spent_words
from ralphloop.errors import InputError
from ralphloop.journal.records import JsonObject
from ralphloop.loop.prepare import relative
from ralphloop.night.look import Placed, arranged, look
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
    night = look(find_project(), now=time.time())
    found = night.story_list
    if found is None and night.stories_problem:
        step = "`ralph init` makes a story list; `ralph doctor` checks one."
        raise InputError(night.stories_problem, step)
    if found is None:
        words = "the last run was a plain loop without stories"
        raise InputError(words, "`ralph status` shows how it stands.")
    listed = list(arranged(found, night.session.stories))
    if as_json:
        data = [_story_data(placed) for placed in listed]
        output.emit_json(
            {"v": 1, **output.picked(found, "source", "total", "passed"), "stories": data}
        )
    else:
        output.emit_lines(_as_lines(found, listed, night.project.root))


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
    yield from output.row(f"{mark:>3}", name, _COLOURS[look.standing], width=_INDENT)
    yield from output.row("", _facts(placed), width=_INDENT)
    if look.bring_back:
        yield from output.row("", f"its work is kept: `{look.bring_back}`", width=_INDENT)


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


def _story_data(placed: Placed) -> JsonObject:
    look, story, state = placed.look, placed.look.story, placed.look.state
    return {
        **output.picked(story, "id", "title"),
        "order": placed.position,
        "why": placed.why,
        "state": look.standing,
        "grade": look.grade or None,
        "attempts": look.failed,
        **output.picked(state, "iterations", "cost_usd"),
        "cost_known": not state.unpriced,
        "reason": state.reason or None,
        "depends_on": story.depends_on,
        "saved_ref": state.saved_ref or None,
        "bring_back": look.bring_back or None,
    }
