"""The circuit of a run, as whoever watches it is told: every change is an event, notes are not."""

from __future__ import annotations

import msgspec

from ralphloop.core import breaker
from ralphloop.core.breaker import BreakerState
from ralphloop.core.endings import ENDINGS
from ralphloop.core.model import Circuit, Decision, ExitDecision
from ralphloop.core.run_state import reset_circuit
from ralphloop.errors import CircuitOpen
from ralphloop.journal.circuit import load_circuit, save_circuit
from ralphloop.journal.store import Journal
from ralphloop.loop import events
from ralphloop.loop.runner import Runner
from ralphloop.loop.setup import Setup


def tell_circuit(runner: Runner, before: BreakerState) -> None:
    """Tell what changed since the circuit was `before`."""
    for moved in breaker.moves(before, runner.session.state.breaker):
        runner.bus.emit(
            events.CIRCUIT_CHANGED,
            runner.session.number or None,
            before=str(moved.before),
            after=str(moved.after),
            reason=moved.reason,
        )


def reset_now(runner: Runner) -> None:
    """Close the circuit because a person asked for it."""
    before = runner.session.state.breaker
    runner.session.state = reset_circuit(runner.session.state, at=runner.clock())
    save_circuit(runner.journal, runner.session.state.breaker)
    tell_circuit(runner, before)


def stays_open(runner: Runner) -> Decision | None:
    """The end of the run, unless the circuit is closed or its cool-down is over."""
    state = runner.session.state
    cooled = _cooled(state.breaker, runner.setup, runner.clock(), iteration=state.starts)
    runner.session.state = msgspec.structs.replace(state, breaker=cooled)
    tell_circuit(runner, state.breaker)
    if cooled.circuit is not Circuit.OPEN:
        return None
    return Decision(word=ExitDecision.CIRCUIT_OPEN, reasons=(cooled.reason,))


def refuse_if_open(journal: Journal, setup: Setup, now: float) -> None:
    """A start that could not run anything is none: the session that opened the circuit stays."""
    if setup.options.reset_circuit:
        return
    circuit = _cooled(load_circuit(journal), setup, now)
    if circuit.circuit is Circuit.OPEN:
        advice = ENDINGS[ExitDecision.CIRCUIT_OPEN].next_step
        raise CircuitOpen(f"the circuit is OPEN: {circuit.reason}", advice)


def _cooled(state: BreakerState, setup: Setup, now: float, *, iteration: int = 0) -> BreakerState:
    return breaker.cool_down(state, iteration=iteration, at=now, policy=setup.policy)
