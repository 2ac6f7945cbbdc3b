"""`ralph learn`: aggregate what was learned, or simulate it; `ralph stats`: all numbers.

A simulation of twenty stories, to see the machinery of learning at work.  No model is asked.  Each
of four areas of a small project has a habit that its checks insist on: a new file needs a line in
three lists of its area.  The scripted agent does not know that; its first claim fails, its second
attempt repairs it and says what it learned.  With the learning in its prompt it needs one attempt.
The *null* agent never looks at what it is given, so there must be no effect to report.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from ralphloop.cli import output
from ralphloop.cli.demo import settings
from ralphloop.config.load import load_config
from ralphloop.core.totals import cost_words
from ralphloop.errors import UsageError
from ralphloop.journal.queries import JournalReader
from ralphloop.learning.stats import Stats, gather
from ralphloop.project import Project, find_project
from ralphloop.text.durations import format_duration
from ralphloop.text.plain import counted


@click.command()
@click.option("--aggregate", is_flag=True, help="Merge all learnings; write skills and the digest.")
@click.option(
    "--simulate",
    "directory",
    type=click.Path(path_type=Path),
    help="Play a simulation of 20 stories in this new directory and print its numbers.",
)
@click.option("--null", is_flag=True, help="With --simulate: an agent that ignores learnings.")
def learn(aggregate: bool, directory: Path | None, null: bool) -> int | None:
    """Aggregate the learnings of this project, or simulate a project that learns."""
    if aggregate == (directory is not None) or (null and directory is None):
        raise UsageError("say --aggregate, or --simulate DIR [--null]", "ralph learn --help")
    if directory is not None:
        return _simulate(directory.resolve(), null=null)
    output.emit_lines(output.safe(line) for line in _aggregate(time.time()))
    return None


def _aggregate(now: float) -> list[str]:
    from ralphloop.journal.lock import live_holder
    from ralphloop.learning import publish, store

    project = find_project(Path.cwd())
    config = load_config(project.root, env=os.environ).config.learning
    index = store.rebuild(project, now=now)
    trusted = sum(pattern.is_trusted for pattern in index.patterns)
    patterns = counted(len(index.patterns), "pattern")
    lines = [
        f"{counted(index.learnings, 'learning')}, {patterns}, {trusted} of them trusted",
        *(f"left out: {problem}" for problem in index.problems),
    ]
    if live_holder(project.directory, now) is not None:
        return [*lines, "a run is going on; skills and the digest are written when it ends"]
    done = publish.publish(project, index, config)
    return [*lines, *(done or ["skills and the digest are up to date"])]


def _simulate(directory: Path, *, null: bool) -> int:
    from ralphloop.cli.demo import make_repository, run_there
    from ralphloop.project import Project

    make_repository(directory, _files(null=null))
    output.note(f"Simulation of {STORIES} stories in {directory}: no model is asked.")
    code = run_there(directory, "--quiet")
    found = stats_of(Project(directory))
    output.emit_lines([*stat_lines(found), "", *metric_lines(found)])
    return code


STORIES = 20
_AREAS = ("api", "database", "frontend", "cli")
_LISTS = ("registry.txt", "limits.txt", "labels.txt")
_THINGS = ("search", "export", "archive", "history", "summary")

_PUBLISHED = '[learning]\nskills = "skills"\nmemory = "CLAUDE.md"\n'
_CHECK = '''\
"""Every feature must be listed where its area wants it."""
import pathlib
import sys

missing = []
for area in sorted(pathlib.Path("src").iterdir()):
    for wanted in ("registry.txt", "limits.txt", "labels.txt"):
        listed = (area / wanted).read_text().split()
        for feature in sorted(area.glob("feature_*.txt")):
            if feature.stem not in listed:
                missing.append(f"error: {feature} is not listed in {area / wanted}")
print("\\n".join(missing) or "all listed")
sys.exit(bool(missing))
'''


def _files(*, null: bool) -> dict[str, str]:
    """The project: stories, checks, script, settings."""
    script = {"stories": {_id(n): _starts(n, null=null) for n in range(1, STORIES + 1)}}
    limits = f"max_iterations = 0\ncalls_per_hour = 0\n{_PUBLISHED}"
    return {
        "prd.json": json.dumps(_prd(), indent=2),
        "simulation.json": json.dumps(script, indent=1),
        "tools/check.py": _CHECK,
        "ralph.toml": settings("simulation.json", "tools/check.py", limits=limits),
        **{f"src/{area}/{name}": "" for area in _AREAS for name in _LISTS},
    }


def _prd() -> dict[str, Any]:
    stories = [
        {
            "id": _id(n),
            "title": f"Add the {_thing(n)} to the {_area(n)}",
            "description": f"People who use the {_area(n)} want a {_thing(n)}.",
            "acceptanceCriteria": [f"The {_thing(n)} is there"],
            "priority": n,
            "passes": False,
        }
        for n in range(1, STORIES + 1)
    ]
    return {"project": "simulation of twenty stories", "userStories": stories}


def _starts(n: int, *, null: bool) -> list[list[Any]]:
    """The first start claims at once; the second repairs what the checks found."""
    area, name = _area(n), f"feature_{n}"
    home = f"src/{area}"
    feature = {"write": {f"{home}/{name}.txt": f"{_thing(n)}\n"}}
    lists = {"append": {f"{home}/{listed}": f"{name}\n" for listed in _LISTS}}
    tried = {"run": ["python3", "tools/check.py", area]}
    ignorant = [feature, _usage(n, 6_000), {"say": "It is there."}, _done()]
    knowing = [feature, lists, tried, _usage(n, 7_500), {"say": "Done, and listed."}, _done()]
    told = f"LEARNED: a new file in {home} needs a line in {home}/registry.txt and two more lists"
    repaired = [lists, tried, _usage(n, 7_000), {"say": told}, _done()]
    # Only the learned part of a prompt puts the name in backticks; check output does not.
    choice = {"contains": f"`{home}/registry.txt`", "then": knowing, "else": ignorant}
    return [ignorant if null else [{"if_prompt": choice}], repaired]


def _done() -> dict[str, Any]:
    fields = {"status": "COMPLETE", "tasks_completed": 1, "recommendation": "go on"}
    return {"status": fields}


def _usage(n: int, tokens: int) -> dict[str, Any]:
    """Stories differ in size, up to a fifth, in a way that has nothing to do with their order."""
    used = tokens + tokens * (n * 7919 % 101) // 500
    return {"usage": {"input_tokens": used - 500, "output_tokens": 500, "cost_usd": used / 1e6}}


def _id(n: int) -> str:
    return f"SIM-{n:02}"


def _area(n: int) -> str:
    return _AREAS[(n - 1) % len(_AREAS)]


def _thing(n: int) -> str:
    return _THINGS[(n - 1) // len(_AREAS)]


@click.command()
@click.option("--json", "as_json", is_flag=True, help="All numbers as JSON.")
@click.option("--prd-metrics", is_flag=True, help="The four success metrics with their targets.")
def stats(as_json: bool, prd_metrics: bool) -> None:
    """Runs, stories, money, tokens, failures, and what learning costs and brings."""
    found = stats_of(find_project(Path.cwd()))
    if as_json:
        output.emit_json(found)
    else:
        output.emit_lines(metric_lines(found) if prd_metrics else stat_lines(found))


def stats_of(project: Project) -> Stats:
    """The numbers of a project."""
    config = load_config(project.root, env=os.environ).config.learning
    with JournalReader.open(project.journal) as journal:
        return gather(project, journal, config)


def stat_lines(found: Stats) -> Iterator[str]:
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


def metric_lines(found: Stats) -> Iterator[str]:
    """The four success metrics, measured."""
    prevented = f"{found.runaways_prevented} of {found.runaways}"
    yield _metric("runaway loops prevented", prevented if found.runaways else "none began", "100 %")
    rate = found.stories_captured / max(1, found.stories_ended)
    captured = f"{rate:.0%} ({found.stories_captured} of {found.stories_ended} stories)"
    yield _metric("learnings captured", captured if found.stories_ended else "-", "80 %")
    yield _metric("skills generated", f"{len(found.skills)}: {', '.join(found.skills)}", "3")
    yield _metric("token change", found.effect.sentence, "10 % fewer")


def _metric(name: str, value: str, target: str) -> str:
    return f"{name:<24} {value}  [target: {target}]"


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {word.replace('_', ' ')}" for word, count in counts.items())
