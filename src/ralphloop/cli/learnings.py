"""`ralph learnings`: look at what was learned, forget or approve it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from ralphloop.cli import output
from ralphloop.errors import InputError, UsageError
from ralphloop.learning import store
from ralphloop.learning.model import Decided, Pattern, Standing
from ralphloop.learning.words import match_words
from ralphloop.project import Project, find_project
from ralphloop.text.plain import counted

_COLOURS = {Standing.HELD_BACK: "yellow", Standing.APPROVED: "green", Standing.ESTABLISHED: "green"}
_MADE_FOR_AGENTS = "RALPH_AGENT_MARK"  # in the environment of everything an agent starts
_NONE_YET = (
    "Nothing yet. `ralph stats` counts what was captured; patterns come out of several stories."
)
_as_json = click.option("--json", "as_json", is_flag=True, help="All fields, as JSON.")
_ids = click.argument("ids", nargs=-1, required=True, metavar="ID…")


@click.group()
def learnings() -> None:
    """Look at what was learned in this project; forget or approve it."""


@learnings.command("list")
@click.option("--category", help="Only this category.")
@click.option("--limit", default=30, type=click.IntRange(min=1), help="At most so many.")
@_as_json
def list_all(category: str | None, limit: int, as_json: bool) -> None:
    """All patterns, best first."""
    index = store.rebuild(find_project(Path.cwd()), now=time.time())
    found = [one for one in index.patterns if category in (None, one.category)]
    _print(found, limit, as_json, _NONE_YET if not index.patterns else f"None in {category}.")
    for problem in index.problems:
        output.warn(problem)


@learnings.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", default=30, type=click.IntRange(min=1), help="At most so many.")
@_as_json
def search(words: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Patterns that share words with the question, most of them first."""
    wanted = match_words(" ".join(words))
    index = store.rebuild(find_project(Path.cwd()), now=time.time())
    shared = [(len(wanted.intersection(one.words)), one) for one in index.patterns]
    found = sorted((pair for pair in shared if pair[0]), key=lambda pair: -pair[0])
    none = "None of them has these words." if index.patterns else _NONE_YET
    _print([one for _, one in found], limit, as_json, none)


@learnings.command()
@_ids
@_as_json
def show(ids: tuple[str, ...], as_json: bool) -> None:
    """One pattern with where it comes from and how the stories went that carried it."""
    found = _find(find_project(Path.cwd()), ids)
    if as_json:
        output.emit_json(found)
    else:
        output.emit_lines(line for one in found for line in _details(one))


@learnings.command()
@_ids
def forget(ids: tuple[str, ...]) -> None:
    """Never use these again, also when a later story says them once more."""
    _decide(ids, "forgotten")


@learnings.command()
@_ids
def approve(ids: tuple[str, ...]) -> None:
    """Take these into skills and prompts although they were held back or said only once."""
    _decide(ids, "approved")


def _decide(ids: tuple[str, ...], word: str) -> None:
    if os.environ.get(_MADE_FOR_AGENTS):
        raise UsageError("only a person decides what is trusted", "run it outside of the agent")
    project = find_project(Path.cwd())
    found = _find(project, ids)
    made = [
        Decided(
            id=one.id, word=word, text=one.text, lesson=one.lesson, kind=one.kind, source=one.source
        )
        for one in found
    ]
    chosen = {one.id for one in made}
    kept = [old for old in store.load_decisions(project) if old.id not in chosen]
    store.save_decisions(project, [*kept, *made])
    store.rebuild(project, now=time.time())
    output.emit_lines(f"{word}: [{one.id}] {output.safe(one.sentence)}" for one in found)
    output.note(
        "Skills and the digest follow at the end of the next run, or now: ralph learn --aggregate"
    )


def _find(project: Project, ids: Iterable[str]) -> list[Pattern]:
    """Patterns by the beginning of their ids."""
    known = store.rebuild(project, now=time.time()).patterns
    found = []
    for wanted in ids:
        matches = [one for one in known if one.id.startswith(wanted.strip("[]").lower())]
        if len(matches) != 1 or len(wanted) < 4:
            what = "no learning has" if not matches else "several learnings have"
            raise InputError(f"{what} the id {wanted!r}", "ralph learnings list")
        found.append(matches[0])
    return found


def _print(patterns: list[Pattern], limit: int, as_json: bool, none: str) -> None:
    if as_json:
        output.emit_json(patterns[:limit])
    elif not patterns:
        output.emit_lines([output.safe(none)])
    else:
        output.emit_lines(_row(one) for one in patterns[:limit])
        if (rest := len(patterns) - limit) > 0:
            output.note(f"{rest} more: --limit {len(patterns)}")


def _row(one: Pattern) -> str:
    standing = output.paint(f"{one.standing:<11}", *filter(None, [_COLOURS.get(one.standing)]))
    stories = counted(one.story_count, "story")
    return f"{one.id}  {standing}  {one.category:<10} {stories:>9}  {output.safe(one.sentence)}"


def _details(one: Pattern) -> Iterator[str]:
    yield f"{output.paint(one.id, 'bold')}  {output.safe(one.sentence)}"
    why = f": it speaks of {one.reason}" if one.standing is Standing.HELD_BACK else ""
    yield f"  standing   {one.standing}{why}"
    yield f"  category   {one.category}, {one.kind} from {one.source}, score {one.score:g}"
    stories = output.safe(", ".join(one.stories)) or "-"
    yield f"  found by   {stories} ({one.story_count}), last {output.safe(one.last_seen)}"
    yield f"  carried    {one.carried} times, {one.carried_passed} of them passed"
    if one.files:
        yield f"  files      {', '.join(one.files)}"
    for commit in one.commits:
        yield f"  commit     {output.safe(commit)}"
