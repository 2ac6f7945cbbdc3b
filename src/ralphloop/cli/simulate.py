"""`ralph simulate`: a scripted night through the core; nothing is started and nothing written."""

import os
from pathlib import Path

import click

from ralphloop.cli import output
from ralphloop.cli.shared.options import Pairs, json_option, pairs_option
from ralphloop.config.load import load_config
from ralphloop.config.model import policy_of
from ralphloop.core.model import ExitDecision
from ralphloop.replay.cases import SCENARIOS, play

_NIGHTS = click.Choice(sorted(SCENARIOS))


@click.command()
@click.option(
    "--scenario",
    "name",
    type=_NIGHTS,
    metavar="NAME",
    help="Which night to play; without it all are listed.",
)
@pairs_option("--set", "A setting as in ralph.toml, e.g. circuit.no_progress_threshold=5.")
@json_option("One object per step.")
def simulate(name: str | None, settings: Pairs, as_json: bool) -> None:
    """Play a scripted sequence through the core and show state, transition and decision.

    Nothing is started and nothing is written; the settings of the current directory apply.
    """
    if name is None:
        titles = (f"  {name:<15} {scenario.title}" for name, scenario in SCENARIOS.items())
        output.emit_lines(["Scenarios (ralph simulate --scenario NAME):", *titles])
        return
    policy = policy_of(load_config(Path.cwd(), env=os.environ, flags=dict(settings)).config)
    if not as_json:
        output.emit_lines([f"{output.paint(name, 'bold')}: {SCENARIOS[name].title}"])
    for number, played in enumerate(play(SCENARIOS[name], policy), start=1):
        turn = played.turn
        taken = played.taken
        breaker = played.state.breaker
        moved = taken.analysis.transition if taken else breaker.history[-1]
        data = {
            "step": number,
            "says": turn.says,
            **output.picked(breaker, "circuit", "no_progress", "same_error"),
            "transition": moved,
            "stuck": [pattern.name for pattern in taken.analysis.stuck] if taken else [],
            "decision": taken.decision.word if taken else None,
            "reasons": taken.decision.reasons if taken else (),
        }
        below = [f"{moved.before} → {moved.after}: {moved.reason}"] if moved else []
        if taken:
            below += [f"stuck: {pattern.detail}" for pattern in taken.analysis.stuck]
            if taken.analysis.decline:
                below.append(f"warning: {taken.analysis.decline.detail}")
            style = () if taken.decision.word is ExitDecision.CONTINUE else ("bold",)
            below.append(output.paint(taken.decision.sentence, *style))
        circuit = output.paint(f"{breaker.circuit:<9}", output.CIRCUIT[breaker.circuit])
        lines = [f"{number:>3}  {circuit}  {turn.says}", *(" " * 16 + line for line in below)]
        output.show(lines, data, as_json=as_json, indent=None)
