"""`ralph simulate`: a scripted night, step by step, through the real core."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click

from ralphloop.cli import output
from ralphloop.cli.given import PAIR, Pairs
from ralphloop.config.load import load_config
from ralphloop.config.model import policy_of
from ralphloop.core.model import Circuit, ExitDecision
from ralphloop.replay.scenarios import SCENARIOS, Played, play

_COLOURS = {Circuit.CLOSED: "green", Circuit.HALF_OPEN: "yellow", Circuit.OPEN: "red"}


@click.command()
@click.option(
    "--scenario",
    "name",
    type=click.Choice(sorted(SCENARIOS)),
    help="Which night to play; without it all are listed.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    type=PAIR,
    help="A setting as in ralph.toml, e.g. circuit.no_progress_threshold=5. Repeatable.",
)
@click.option("--json", "as_json", is_flag=True, help="One object per step.")
def simulate(name: str | None, settings: Pairs, as_json: bool) -> None:
    """Play a scripted sequence through the core and show state, transition and decision.

    Nothing is started and nothing is written; the settings of the current directory apply.
    """
    if name is None:
        output.emit_lines(_listing())
        return
    loaded = load_config(Path.cwd(), env=os.environ, flags=dict(settings))
    steps = play(SCENARIOS[name], policy_of(loaded.config))
    if as_json:
        for step in steps:
            output.emit_json(_as_data(step), indent=None)
        return
    output.emit_lines(_narrate(name, steps))


def _listing() -> Iterator[str]:
    yield "Scenarios (ralph simulate --scenario NAME):"
    for name, scenario in SCENARIOS.items():
        yield f"  {name:<15} {scenario.title}"


def _narrate(name: str, steps: Iterator[Played]) -> Iterator[str]:
    yield f"{output.paint(name, 'bold')}: {SCENARIOS[name].title}"
    for step in steps:
        circuit = step.state.breaker.circuit
        state = output.paint(f"{circuit:<9}", _COLOURS[circuit])
        yield f"{step.number:>3}  {state}  {step.turn.says}"
        yield from _details(step)


def _details(step: Played) -> Iterator[str]:
    history = step.state.breaker.history
    if step.analysis is None:
        moved = history[-1]
        yield f"     {'':<9}  {moved.before} → {moved.after}: {moved.reason}"
        return
    if moved_now := step.analysis.transition:
        yield f"     {'':<9}  {moved_now.before} → {moved_now.after}: {moved_now.reason}"
    for pattern in step.analysis.stuck:
        yield f"     {'':<9}  stuck: {pattern.detail}"
    if step.analysis.decline:
        yield f"     {'':<9}  warning: {step.analysis.decline.detail}"
    if step.decision:
        stops = step.decision.word is not ExitDecision.CONTINUE
        words = step.decision.sentence
        yield f"     {'':<9}  {output.paint(words, 'bold') if stops else words}"


def _as_data(step: Played) -> dict[str, object]:
    breaker = step.state.breaker
    return {
        "step": step.number,
        "says": step.turn.says,
        "circuit": breaker.circuit,
        "no_progress": breaker.no_progress,
        "same_error": breaker.same_error,
        "transition": step.analysis.transition if step.analysis else breaker.history[-1],
        "stuck": [pattern.name for pattern in step.analysis.stuck] if step.analysis else [],
        "decision": step.decision.word if step.decision else None,
        "reasons": list(step.decision.reasons) if step.decision else [],
    }
