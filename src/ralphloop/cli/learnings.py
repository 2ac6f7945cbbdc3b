"""What was learned here: `ralph learn`, `ralph learnings`, `ralph stats`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence

import click

from ralphloop.cli import output
from ralphloop.cli.given import DefaultGroup, json_option
from ralphloop.config.load import load_config
from ralphloop.core.totals import cost_words
from ralphloop.errors import InputError, UsageError
from ralphloop.journal.lock import live_holder
from ralphloop.learning import publish, store
from ralphloop.learning.model import Decided, Pattern, PatternStanding
from ralphloop.learning.stats import Stats, gather
from ralphloop.learning.wording import match_words
from ralphloop.night.look import reading
from ralphloop.project import Project, find_project
from ralphloop.text.durations import format_duration
from ralphloop.text.plain import counted

_COLOURS = {
    PatternStanding.HELD_BACK: ["yellow"],
    PatternStanding.APPROVED: ["green"],
    PatternStanding.ESTABLISHED: ["green"],
}
_MADE_FOR_AGENTS = "RALPH_AGENT_MARK"  # in the environment of everything an agent starts
_NONE_YET = (
    "Nothing yet. `ralph stats` counts what was captured; patterns come out of several stories."
)
_as_json = json_option("All fields, as JSON.")
_ids = click.argument("ids", nargs=-1, required=True, metavar="ID…")


@click.command()
@click.option("--aggregate", is_flag=True, help="Merge all learnings; write skills and the digest.")
def learn(aggregate: bool) -> None:
    """Aggregate the learnings of this project."""
    if not aggregate:
        raise UsageError("say --aggregate", "ralph learn --help")
    project, now = find_project(), time.time()
    config = load_config(project.root, env=os.environ).config.learning
    index = store.rebuild(project, now=now)
    trusted = sum(pattern.is_trusted for pattern in index.patterns)
    patterns = counted(len(index.patterns), "pattern")
    lines = [f"{counted(index.learnings, 'learning')}, {patterns}, {trusted} of them trusted"]
    lines += [f"left out: {problem}" for problem in index.problems]
    if live_holder(project.directory, now) is not None:
        lines += ["a run is going on; skills and the digest are written when it ends"]
    else:
        done = publish.publish(project, index, config)
        lines += done or ["skills and the digest are up to date"]
    output.emit_lines(map(output.safe, lines))


@click.group(cls=DefaultGroup, default="list")
def learnings() -> None:
    """Look at what was learned in this project; forget or approve it."""


@learnings.command("list")
@_as_json
def list_all(as_json: bool) -> None:
    """All patterns, best first."""
    index = store.rebuild(find_project(), now=time.time())
    _print(index.patterns, as_json, _NONE_YET)
    for problem in index.problems:
        output.warn(problem)


@learnings.command()
@click.argument("words", nargs=-1, required=True)
@_as_json
def search(words: tuple[str, ...], as_json: bool) -> None:
    """Patterns that share words with the question, most of them first."""
    wanted = match_words(" ".join(words))
    known = store.rebuild(find_project(), now=time.time()).patterns
    found = [one for one in known if wanted.intersection(one.words)]
    found.sort(key=lambda one: -len(wanted.intersection(one.words)))
    _print(found, as_json, "None of them has these words." if known else _NONE_YET)


@learnings.command()
@_ids
@_as_json
def show(ids: tuple[str, ...], as_json: bool) -> None:
    """One pattern with where it comes from and how the stories went that carried it."""
    found = _find(find_project(), ids)
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
    project = find_project()
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


def _print(patterns: Sequence[Pattern], as_json: bool, none: str) -> None:
    if as_json:
        output.emit_json(patterns)
        return
    for one in patterns:
        standing = output.paint(f"{one.standing:<11}", *_COLOURS.get(one.standing, ()))
        row = f"{one.id}  {standing}  {one.category:<10} {counted(one.story_count, 'story'):>9}"
        output.emit_lines([f"{row}  {output.safe(one.sentence)}"])
    if not patterns:
        output.emit_lines([none])


def _details(one: Pattern) -> Iterator[str]:
    yield f"{output.paint(one.id, 'bold')}  {output.safe(one.sentence)}"
    why = f": it speaks of {one.reason}" if one.standing is PatternStanding.HELD_BACK else ""
    yield f"  standing   {one.standing}{why}"
    yield f"  category   {one.category}, {one.kind} from {one.source}, score {one.score:g}"
    stories = output.safe(", ".join(one.stories)) or "-"
    yield f"  found by   {stories} ({one.story_count}), last {output.safe(one.last_seen)}"
    yield f"  carried    {one.carried} times, {one.carried_passed} of them passed"
    if one.files:
        yield f"  files      {', '.join(one.files)}"
    for commit in one.commits:
        yield f"  commit     {output.safe(commit)}"


@click.command()
@json_option("All numbers as JSON.")
@click.option("--prd-metrics", is_flag=True, help="The four success metrics with their targets.")
def stats(as_json: bool, prd_metrics: bool) -> None:
    """Runs, stories, money, tokens, failures, and what learning costs and brings."""
    project = find_project()
    config = load_config(project.root, env=os.environ).config.learning
    with reading(project) as journal:
        found = gather(project, journal, config)
    if as_json:
        output.emit_json(found)
    else:
        output.emit_lines(_metric_lines(found) if prd_metrics else _stat_lines(found))


def _stat_lines(found: Stats) -> Iterator[str]:
    """Everything, for people."""
    if found.simulated:
        yield "simulation   a script played the agent, no model was asked"
    yield f"runs         {found.runs}, {found.runs_complete} complete"
    yield f"stories      {_listed(found.stories) or 'none yet'}"
    yield f"iterations   {found.iterations}, in {format_duration(found.active_s)}" + (
        f" with {format_duration(found.waited_s)} of waiting" if found.waited_s else ""
    )
    passed = found.stories.get("passed", 0)
    known = passed and not found.unpriced
    each = f", ${found.cost_usd / passed:.2f} a passed story" if known else ""
    estimated = " (partly estimated)" if found.cost_estimated else ""
    yield f"cost         {cost_words(found.cost_usd, found.unpriced)}{estimated}{each}"
    each = f", {found.tokens // passed:,} a passed story" if passed else ""
    yield f"tokens       {found.tokens:,}{each}"
    yield f"failures     {_listed(found.failures) or 'none'}"
    yield (
        f"learned      {counted(found.learnings, 'learning')}, {counted(found.patterns, 'pattern')}"
        f" ({found.trusted} trusted, {found.held_back} held back),"
        f" {counted(len(found.skills), 'skill')}"
    )
    average = found.prompt_tokens // max(1, found.prompts)
    yield (
        f"carrying     {average:,} tokens a prompt on average, at most"
        f" {found.prompt_tokens_most:,} of {found.prompt_budget:,}, in {found.prompts} prompts"
    )
    yield f"effect       {found.effect.sentence}"


def _metric_lines(found: Stats) -> Iterator[str]:
    """The four success metrics, measured."""
    prevented = f"{found.runaways_prevented} of {found.runaways}"
    rate = found.stories_captured / max(1, found.stories_ended)
    captured = f"{rate:.0%} ({found.stories_captured} of {found.stories_ended} stories)"
    for name, value, target in (
        ("runaway loops prevented", prevented if found.runaways else "none began", "100 %"),
        ("learnings captured", captured if found.stories_ended else "-", "80 %"),
        ("skills generated", f"{len(found.skills)}: {', '.join(found.skills)}", "3"),
        ("token change", found.effect.sentence, "10 % fewer"),
    ):
        yield f"{name:<24} {value}  [target: {target}]"


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {word.replace('_', ' ')}" for word, count in counts.items())
