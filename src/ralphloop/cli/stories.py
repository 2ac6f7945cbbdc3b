"""`ralph stories`: every story, when it runs and why then, and what became of it so far."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import click

from ralphloop.cli import output
from ralphloop.cli.layout import row
from ralphloop.cli.overview import Overview, grade_of, look
from ralphloop.core.money import spent_words
from ralphloop.core.story import Story, StoryList
from ralphloop.core.story_state import Standing, StoryState
from ralphloop.core.text import counted
from ralphloop.errors import InputError
from ralphloop.journal.records import JsonObject
from ralphloop.loop.setup import relative
from ralphloop.project import find_project
from ralphloop.stories.names import label
from ralphloop.stories.order import plan

_COLOURS = {
    Standing.PASSED: "green",
    Standing.BLOCKED: "yellow",
    Standing.SET_ASIDE: "yellow",
    Standing.OPEN: "dim",
}
_MARKS = {Standing.PASSED: "ok", Standing.BLOCKED: "?", Standing.SET_ASIDE: "-", Standing.OPEN: "-"}
_INDENT = 5


class Shown(NamedTuple):
    """One story with everything there is to say about it."""

    story: Story
    state: StoryState
    standing: Standing
    position: int | None  # in which order it runs; None: it does not, or has passed
    why: str  # the position's reason, or why there is none

    @property
    def grade(self) -> str:
        return grade_of(self.story, self.state)

    @property
    def bring_back(self) -> str:
        """The command that brings the leftovers of a story set aside back."""
        ref = self.state.saved_ref
        return f"git cherry-pick --no-commit {ref}" if ref and not self.story.passes else ""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One object; see docs/reference/commands.md.")
def stories(as_json: bool) -> None:
    """List the stories: order and reason, state, grade, attempts, cost."""
    overview = look(find_project(Path.cwd()), now=time.time())
    if overview.stories is None:
        raise _nothing_to_list(overview)
    listed = arranged(overview.stories, overview.session.stories)
    if as_json:
        output.emit_json(_as_data(overview.stories, listed))
    else:
        output.emit_lines(_as_lines(overview.stories, listed, overview.project.root))


def _nothing_to_list(overview: Overview) -> InputError:
    if not overview.stories_problem:
        return InputError(
            "the last run was a plain loop without stories", "`ralph status` shows how it stands."
        )
    return InputError(
        overview.stories_problem, "`ralph init` makes a story list; `ralph doctor` checks one."
    )


def arranged(story_list: StoryList, states: Mapping[str, StoryState]) -> list[Shown]:
    """The open stories in the order they run, those that cannot, then the passed ones."""
    steps = plan(story_list, unavailable=dict(_unavailable(states)))
    listed, position = [], 0
    for step in steps:
        position += step.runs
        state = states.get(step.story.id, StoryState())
        standing = Standing.OPEN if state.standing is Standing.PASSED else state.standing
        number = position if step.runs else None
        listed.append(Shown(step.story, state, standing, number, step.reason))
    passed = (story for story in story_list.stories if story.passes)
    for story in passed:
        state = states.get(story.id, StoryState())
        why = state.reason if state.standing is Standing.PASSED else "marked by a person"
        listed.append(Shown(story, state, Standing.PASSED, None, why))
    return listed


def _unavailable(states: Mapping[str, StoryState]) -> Iterator[tuple[str, str]]:
    for story, state in states.items():
        if state.standing is Standing.BLOCKED:
            yield story, f"waits for a person: {state.reason or 'no reason was given'}"
        elif state.standing is Standing.SET_ASIDE:
            chance = "" if state.second_chance else "; one more chance when all else is done"
            yield story, f"set aside: {state.reason or 'no reason was given'}{chance}"


def _as_lines(story_list: StoryList, listed: list[Shown], root: Path) -> Iterator[str]:
    for shown in listed:
        yield from _story_lines(shown)
    total = f"{story_list.passed} of {counted(story_list.total, 'story')} passed"
    states = [shown.state for shown in listed]
    spent = spent_words(sum(s.cost_usd for s in states), sum(s.unpriced for s in states))
    yield ""
    yield f"{total}, {spent}, from {relative(Path(story_list.source), root)}"


def _story_lines(shown: Shown) -> Iterator[str]:
    mark = str(shown.position) if shown.position else _MARKS[shown.standing]
    name = f"{label(shown.story.id)}: {shown.story.title}"
    yield from row(f"{mark:>3}", name, _COLOURS[shown.standing], width=_INDENT)
    yield from row("", _facts(shown), width=_INDENT)
    if shown.bring_back:
        yield from row("", f"its work is kept: `{shown.bring_back}`", width=_INDENT)


def _facts(shown: Shown) -> str:
    state = shown.state
    standing = shown.standing.replace("_", " ")
    parts = [f"{standing} ({shown.grade})" if shown.grade else standing]
    if state.iterations:
        parts.append(counted(state.iterations, "iteration"))
    if state.attempts:
        parts.append(counted(state.attempts, "failed attempt"))
    if state.cost_usd or state.unpriced:
        parts.append(spent_words(state.cost_usd, state.unpriced))
    return f"{', '.join(parts)}: {shown.why}" if shown.why else ", ".join(parts)


def _as_data(story_list: StoryList, listed: list[Shown]) -> JsonObject:
    return {
        "v": 1,
        "source": story_list.source,
        "total": story_list.total,
        "passed": story_list.passed,
        "stories": [_story_data(shown) for shown in listed],
    }


def _story_data(shown: Shown) -> JsonObject:
    state = shown.state
    return {
        "id": shown.story.id,
        "title": shown.story.title,
        "order": shown.position,
        "why": shown.why,
        "state": str(shown.standing),
        "grade": shown.grade or None,
        "attempts": state.attempts,
        "iterations": state.iterations,
        "cost_usd": state.cost_usd,
        "cost_known": not state.unpriced,
        "reason": state.reason or None,
        "depends_on": list(shown.story.depends_on),
        "saved_ref": state.saved_ref or None,
        "bring_back": shown.bring_back or None,
    }
