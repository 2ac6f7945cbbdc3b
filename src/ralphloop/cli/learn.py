"""`ralph learnings update`, once `ralph learn`: aggregate what was learned, and publish it."""

import os
import time

import click

from ralphloop.cli import output
from ralphloop.config.load import load_config
from ralphloop.journal.lock import live_holder
from ralphloop.learning import publish, store
from ralphloop.project import find_project
from ralphloop.text.plain import counted


@click.command()
@click.option("--aggregate", is_flag=True, help="The same; it was once needed.")
def learn(aggregate: bool) -> None:  # noqa: ARG001 - accepted for those who type it
    """Merge all learnings of this project, and bring what is published up to date."""
    project = find_project()
    now = time.time()
    config = load_config(project.root, env=os.environ).config
    index = store.rebuild(project, now=now)
    published = sum(pattern.is_published for pattern in index.patterns)
    patterns = counted(len(index.patterns), "pattern")
    lines = [f"{counted(index.learnings, 'learning')}, {patterns}, {published} to publish"]
    lines += [f"left out: {problem}" for problem in index.problems]
    if live_holder(project.directory, now) is not None:
        lines += ["a run is going on; what it learned is published when it ends"]
    else:
        asked = bool(published)
        there = publish.goal(project.root, config.learning, config.agent.name, asked=asked)
        done = publish.publish(project, index, there, now=now)
        lines += done or ["what is published is up to date"]
    output.emit_lines(map(output.safe, lines))
