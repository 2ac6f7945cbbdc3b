"""`ralph learn`: aggregate what was learned, or watch a simulation of it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click

from ralphloop.cli import output
from ralphloop.config.load import load_config
from ralphloop.errors import UsageError
from ralphloop.project import find_project


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
    lines = [
        f"{index.learnings} learnings, {len(index.patterns)} patterns, {trusted} of them trusted",
        *(f"left out: {problem}" for problem in index.problems),
    ]
    if live_holder(project.directory, now) is not None:
        return [*lines, "a run is going on; skills and the digest are written when it ends"]
    done = publish.publish(project, index, config)
    return [*lines, *(done or ["skills and the digest are up to date"])]


def _simulate(directory: Path, *, null: bool) -> int:
    from ralphloop.cli import learn_simulation as simulation
    from ralphloop.cli.stats import metric_lines, stat_lines, stats_of
    from ralphloop.cli.toy import make_repository, run_there
    from ralphloop.project import Project

    make_repository(directory, simulation.files(null=null))
    output.note(f"Simulation of {simulation.STORIES} stories in {directory}: no model is asked.")
    code = run_there(directory, "--quiet")
    found = stats_of(Project(directory))
    output.emit_lines([*stat_lines(found), "", *metric_lines(found)])
    return code
