"""`ralph stats`: all numbers of this project, and whether learning helps."""

import os
from collections.abc import Iterator

import click

from ralphloop.cli import output
from ralphloop.cli.shared.options import json_option
from ralphloop.config.load import load_config
from ralphloop.core.totals import UNKNOWN, cost_words, money
from ralphloop.learning.stats import DoubterStats, Stats, gather
from ralphloop.night.look import reading
from ralphloop.night.values import ended_words
from ralphloop.project import find_project
from ralphloop.text.durations import format_duration
from ralphloop.text.plain import counted


@click.command()
@json_option("All numbers as JSON.")
@click.option("--prd-metrics", is_flag=True, help="The four success metrics with their targets.")
def stats(as_json: bool, prd_metrics: bool) -> None:
    """Runs, stories, money, tokens, failures, and what learning costs and brings."""
    project = find_project()
    config = load_config(project.root, env=os.environ).config
    with reading(project) as journal:
        found = gather(project, journal, config.learning)
    if not prd_metrics:
        output.show(_stat_lines(found), found, as_json=as_json)
        return
    tokens = found.effect.tokens
    tokens_words = found.effect.sentence
    if tokens is not None:
        shares = (tokens.low, tokens.change, tokens.high)
        low, change, high = (f"{it:+.0%}".replace("%", " %") for it in shares)
        tokens_words = f"{change} (95 %: {low} to {high})"
    prevented = f"{found.runaways_prevented} of {found.runaways}"
    skills = [", ".join(found.skills)] if found.skills else []
    rate = found.stories_captured / max(1, found.stories_ended)
    captured = f"{rate:.0%} ({found.stories_captured} of {counted(found.stories_ended, 'story')})"
    metrics = (
        ("runaway loops prevented", prevented if found.runaways else "none began", "100 %"),
        ("learnings captured", captured if found.stories_ended else "-", "80 %"),
        ("skills generated", ": ".join([str(len(found.skills)), *skills]), "3"),
        ("token change", tokens_words, "10 % fewer"),
    )
    lines = (f"{name:<24} {value}  [target: {target}]" for name, value, target in metrics)
    output.show(lines, found, as_json=as_json)


def _stat_lines(found: Stats) -> Iterator[str]:
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
    each = f", {found.tokens // passed:,} a passed story" if passed and found.tokens else ""
    tokens = f"{found.tokens:,}" if found.tokens or not found.iterations else UNKNOWN
    yield f"tokens       {tokens}{each}"
    yield f"failures     {_listed(found.failures) or 'none'}"
    for name, doubter in found.doubters.items():
        yield f"doubts       {output.safe(name)}: {_doubt_words(doubter)}"
    yield (
        f"learned      from {counted(found.learnings, 'attempt')}, patterns:"
        f" {_listed(found.patterns) or 'none yet'}; {counted(len(found.skills), 'skill')}"
    )
    if found.prompts:
        average = found.prompt_tokens // found.prompts
        yield (
            f"carrying     {average:,} tokens a prompt on average, at most"
            f" {found.prompt_tokens_most:,} of {found.prompt_budget:,},"
            f" in {counted(found.prompts, 'prompt')}"
        )
    else:
        yield "carrying     nothing so far"
    yield f"effect       {found.effect.sentence}"


def _doubt_words(doubter: DoubterStats) -> str:
    """How often one was asked, how often its doubts led to a change, and what it cost."""
    said = [f"asked {counted(doubter.asked, 'time')}", counted(doubter.doubts, "doubt")]
    if doubter.unheard:
        said.append(f"no answer {counted(doubter.unheard, 'time')}")
    if doubter.put:
        led = f"{doubter.put} put to the agent, {doubter.changed} led to a change"
        waiting = doubter.put - doubter.changed - doubter.unchanged
        said.append(f"{led}, {waiting} not answered yet" if waiting else led)
    if doubter.tokens or doubter.cost_usd:
        about = "about " if doubter.cost_estimated else ""
        said.append(f"{about}{money(doubter.cost_usd)}, {doubter.tokens:,} tokens")
    return "; ".join(said)


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {ended_words(word)}" for word, count in counts.items())
