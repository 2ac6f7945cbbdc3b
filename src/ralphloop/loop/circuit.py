"""An open circuit ends a run, and keeps the next one from beginning."""

from __future__ import annotations

from ralphloop.core import breaker
from ralphloop.core.endings import ENDINGS
from ralphloop.core.interventions import CooledDown
from ralphloop.core.model import Circuit, Decision, ExitDecision
from ralphloop.errors import CircuitOpen
from ralphloop.journal.circuit import load_circuit
from ralphloop.journal.store import Journal
from ralphloop.loop.runner import Runner
from ralphloop.loop.setup import Setup


def stays_open(runner: Runner) -> Decision | None:
    """The end of the run, unless the circuit is closed or its cool-down is over."""
    if runner.session.state.breaker.circuit is Circuit.OPEN:
        runner.intervene(CooledDown(at=runner.clock()))
    circuit = runner.session.state.breaker
    if circuit.circuit is not Circuit.OPEN:
        return None
    return Decision(word=ExitDecision.CIRCUIT_OPEN, reasons=(circuit.reason,))


def refuse_if_open(journal: Journal, setup: Setup, now: float) -> None:
    """A start that could not run anything is none: the session that opened the circuit stays."""
    if setup.options.reset_circuit:
        return
    circuit = breaker.cool_down(load_circuit(journal), iteration=0, at=now, policy=setup.policy)
    if circuit.circuit is Circuit.OPEN:
        advice = ENDINGS[ExitDecision.CIRCUIT_OPEN].next_step
        raise CircuitOpen(f"the circuit is OPEN: {circuit.reason}", advice)
