"""`ralph stats`: all numbers of a project in one place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click

from ralphloop.cli import output
from ralphloop.config.load import load_config
from ralphloop.core.money import cost_words
from ralphloop.journal.queries import JournalReader
from ralphloop.learning.stats import Stats, gather
from ralphloop.project import Project, find_project
from ralphloop.text.durations import format_duration


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
        f"learned      {found.learnings} learnings, {found.patterns} patterns"
        f" ({found.trusted} trusted, {found.held_back} held back), {len(found.skills)} skills"
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
