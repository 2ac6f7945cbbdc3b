"""`ralph circuit`: the circuit breaker, shown or reset.

It outlives runs: without one it is reset right here.
"""

import os
import time

import click

from ralphloop.cli import output
from ralphloop.cli.shared.options import DefaultGroup, json_option
from ralphloop.cli.shared.steering import write_request
from ralphloop.config.load import load_config
from ralphloop.config.model import policy_of
from ralphloop.core import breaker
from ralphloop.core.breaker import BreakerState
from ralphloop.core.model import Circuit
from ralphloop.errors import JournalError
from ralphloop.journal.journal import Journal
from ralphloop.journal.queries import CIRCUIT_KEY
from ralphloop.journal.records import Wish
from ralphloop.journal.views import CIRCUIT_VIEW, circuit_view, publish
from ralphloop.night.look import holder_of, look
from ralphloop.project import find_project
from ralphloop.room import ensure_private_dir
from ralphloop.text.durations import elapsed, format_duration
from ralphloop.text.plain import against, counted

_SHOWN = 10


@click.group(cls=DefaultGroup)
def circuit() -> None:
    """Show or reset the circuit breaker of this project."""


@circuit.command()
@json_option("The published object.")
def status(as_json: bool) -> None:
    """Print the circuit's state, its counts and why it is so.  Always exits 0."""
    project = find_project()
    now = time.time()
    policy = policy_of(load_config(project.root, env=os.environ).config)
    state = look(project, now=now).circuit
    since = f" for {format_duration(elapsed(state.since, now))}" if state.since else ""
    reason = f": {output.safe(state.reason)}" if state.reason else ""
    error = f": {output.safe(state.last_error)}" if state.last_error else ""
    same = against(state.same_error, policy.same_error_threshold)
    lines = [
        f"circuit      {output.paint(state.circuit, output.CIRCUIT[state.circuit])}{since}{reason}",
        f"no progress  {against(state.no_progress, policy.no_progress_threshold)}",
        f"same error   {same}{error}",
        f"opened       {counted(state.opened_count, 'time')}, preset {policy.preset}",
    ]
    for entry in state.history[-_SHOWN:]:
        change = "" if entry.is_note else f"{entry.before} → {entry.after}, "
        lines.append(f"  iteration {entry.iteration}: {change}{output.safe(entry.reason)}")
    if state.circuit is Circuit.OPEN:
        lines.append("next         look at the reason, then: ralph circuit reset")
    output.show(lines, circuit_view(state, policy), as_json=as_json)


@circuit.command()
def reset() -> str:
    """Close the circuit and set its counts to zero."""
    project = find_project()
    now = time.time()
    if not project.journal.exists():
        return "The circuit is CLOSED; there was nothing to reset."
    ensure_private_dir(project.directory)
    holder = holder_of(project, now)
    if holder is not None and write_request(project, holder.run, "reset_circuit", Wish()):
        return f"Run {holder.run} is going on; it was asked to reset its circuit."
    with Journal.open(project.journal, check=False) as journal:
        try:
            before = journal.circuit()
        except JournalError:
            before = BreakerState()  # what the error told the person to do
        state = breaker.reset(before, iteration=0, at=now)
        journal.set_meta(CIRCUIT_KEY, state)
    policy = policy_of(load_config(project.root, env=os.environ).config)
    publish(project.root / CIRCUIT_VIEW, circuit_view(state, policy), root=project.root)
    return f"The circuit was {before.circuit}; it is CLOSED now, both counts are zero."
