"""`ralph circuit`: the breaker's state, and its reset."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import click

from ralphloop.cli import output
from ralphloop.config.load import load_config
from ralphloop.config.model import policy_of
from ralphloop.core import breaker
from ralphloop.core.breaker import BreakerState
from ralphloop.core.model import Circuit
from ralphloop.core.policy import Policy
from ralphloop.errors import JournalError
from ralphloop.journal.lock import live_holder
from ralphloop.journal.session import load_circuit, save_circuit
from ralphloop.journal.store import Journal
from ralphloop.journal.views import CIRCUIT_VIEW, circuit_view, publish
from ralphloop.night.look import look
from ralphloop.project import Project, find_project
from ralphloop.room import claim
from ralphloop.text.durations import elapsed, format_duration
from ralphloop.ui.steering import ask

_COLOURS = {Circuit.CLOSED: "green", Circuit.HALF_OPEN: "yellow", Circuit.OPEN: "red"}
_SHOWN = 10


@click.group()
def circuit() -> None:
    """Show or reset the circuit breaker of this project."""


@circuit.command()
@click.option("--json", "as_json", is_flag=True, help="The published object.")
def status(as_json: bool) -> None:
    """Print the circuit's state, its counts and why it is so.  Always exits 0."""
    show_circuit(as_json=as_json)


def show_circuit(*, as_json: bool) -> None:
    """Print the circuit of the project around the current directory."""
    project, now = find_project(), time.time()
    policy, state = _policy(project), look(project, now=now).circuit
    if as_json:
        output.emit_json(circuit_view(state, policy))
    else:
        output.emit_lines(_shown(state, policy, now))


@circuit.command()
def reset() -> None:
    """Close the circuit and set its counts to zero."""
    output.emit_lines([_reset(find_project(), time.time())])


def _reset(project: Project, now: float) -> str:
    """Reset in the journal, or ask the run that holds it; returns what was done."""
    if not project.journal.exists():
        return "The circuit is CLOSED; there was nothing to reset."
    claim(project.directory)
    holder = live_holder(project.directory, now)
    if holder is not None and ask(project, holder.run, "reset_circuit", {}, now):
        return f"Run {holder.run} is going on; it was asked to reset its circuit."
    with Journal.open(project.journal, check=False) as journal:
        try:
            before = load_circuit(journal)
        except JournalError:
            before = BreakerState()  # what the error told the person to do
        state = breaker.reset(before, iteration=0, at=now)
        save_circuit(journal, state)
    view = circuit_view(state, _policy(project))
    publish(project.root / CIRCUIT_VIEW, view, root=project.root)
    return f"The circuit was {before.circuit}; it is CLOSED now, both counts are zero."


def _policy(project: Project) -> Policy:
    return policy_of(load_config(project.root, env=os.environ).config)


def _shown(state: BreakerState, policy: Policy, now: float) -> Iterator[str]:
    since = f" for {format_duration(elapsed(state.since, now))}" if state.since else ""
    reason = f": {output.safe(state.reason)}" if state.reason else ""
    yield f"circuit      {output.paint(state.circuit, _COLOURS[state.circuit])}{since}{reason}"
    yield f"no progress  {state.no_progress} of {policy.no_progress_threshold}"
    error = f": {output.safe(state.last_error)}" if state.last_error else ""
    yield f"same error   {state.same_error} of {policy.same_error_threshold}{error}"
    yield f"opened       {state.opened_count} times, preset {policy.preset}"
    for entry in state.history[-_SHOWN:]:
        change = "" if entry.is_note else f"{entry.before} → {entry.after}, "
        yield f"  iteration {entry.iteration}: {change}{output.safe(entry.reason)}"
    if state.circuit is Circuit.OPEN:
        yield "next         look at the reason, then: ralph circuit reset"
