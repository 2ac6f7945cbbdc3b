"""The end of a run: write it down, tell whoever asked to be told, say what to do next."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from ralphloop.core import breaker
from ralphloop.core.endings import ENDINGS
from ralphloop.core.events import RunFinished
from ralphloop.core.model import Circuit, Decision, ExitDecision, Value
from ralphloop.core.story_state import Standing
from ralphloop.core.totals import Totals
from ralphloop.errors import CircuitOpen, ExitCode
from ralphloop.journal.records import RunStatus
from ralphloop.journal.session import load_circuit
from ralphloop.journal.store import Journal
from ralphloop.loop.prepare import Setup
from ralphloop.loop.runner import Runner
from ralphloop.proc.run import run_in_front

_ON_END_TIMEOUT_S = 60.0
_RUNS_WITH_EVENTS = 20
EXIT_CODES = {
    ExitDecision.PROJECT_COMPLETE: ExitCode.COMPLETE,
    ExitDecision.CIRCUIT_OPEN: ExitCode.HALTED,
    ExitDecision.TEST_SATURATION: ExitCode.HALTED,
    ExitDecision.BLOCKED: ExitCode.BLOCKED,
    ExitDecision.MAX_ITERATIONS: ExitCode.LIMIT,
    ExitDecision.BUDGET_EXHAUSTED: ExitCode.LIMIT,
    ExitDecision.USAGE_LIMIT: ExitCode.LIMIT,
    ExitDecision.NO_RUNNABLE_STORY: ExitCode.NOTHING_RUNNABLE,
    ExitDecision.ERROR: ExitCode.AGENT_UNAVAILABLE,
    ExitDecision.INTERRUPTED: ExitCode.INTERRUPTED,
}


class Ended(Value, kw_only=True):
    """How a run ended."""

    run: str
    decision: Decision
    totals: Totals
    passed: int
    total: int
    waiting: tuple[str, ...] = ()  # stories that wait for a person, with what they ask

    @property
    def exit_code(self) -> ExitCode:
        return EXIT_CODES[self.decision.word]

    @property
    def next_step(self) -> str:
        """What the person can do now."""
        return ENDINGS[self.decision.word].next_step

    def in_numbers(self) -> RunFinished:
        """What everybody is told about it."""
        return RunFinished(
            decision=self.decision.word,
            reasons=self.decision.reasons,
            exit_code=int(self.exit_code),
            passed=self.passed,
            total=self.total,
            cost_usd=self.totals.cost_usd,
            unpriced=self.totals.unpriced,
            tokens=self.totals.total_tokens,
            iterations=self.totals.iterations,
            duration_s=self.totals.active_s,
            waiting=self.waiting,
        )


def end_run(runner: Runner, decision: Decision) -> Ended:
    """Write down how the run ended, and tell everybody."""
    runner.settle()
    complete = decision.word is ExitDecision.PROJECT_COMPLETE
    runner.journal.end_run(
        runner.run,
        now=runner.clock(),
        status=RunStatus.COMPLETE if complete else RunStatus.STOPPED,
        decision=str(decision.word),
        reason="; ".join(decision.reasons),
    )
    runner.journal.prune_events(keep_runs=_RUNS_WITH_EVENTS)
    stories = runner.story_list()
    runner.publish()
    ended = Ended(
        run=runner.run,
        decision=decision,
        totals=_with_owed(runner),
        passed=stories.passed if stories else 0,
        total=stories.total if stories else 0,
        waiting=tuple(
            f"{story} waits for you: {state.reason}"
            for story, state in runner.session.stories.items()
            if story and state.standing is Standing.BLOCKED
        ),
    )
    runner.bus.emit(ended.in_numbers())
    return ended


def _with_owed(runner: Runner) -> Totals:
    """The totals, with an agent that was paid and is not judged yet."""
    totals = runner.journal.totals(runner.run)
    return msgspec.structs.replace(totals, cost_usd=totals.cost_usd + runner.owed_usd)


def after_run(setup: Setup, ended: Ended) -> None:
    """Run the `on_end` command with the result on its input; its failure is only said."""
    argv = setup.config.session.on_end
    if not argv:
        return
    result = msgspec.json.encode({"run": ended.run, **ended.in_numbers().published()})
    # The run is over: a notification that fails changes nothing.
    with suppress(OSError, ValueError):
        run_in_front(argv, cwd=setup.project.root, given=result, timeout_s=_ON_END_TIMEOUT_S)


def refuse_if_open(journal: Journal, setup: Setup, now: float) -> None:
    """A start that could not run anything is none: the session that opened the circuit stays."""
    if setup.options.reset_circuit:
        return
    circuit = breaker.cool_down(load_circuit(journal), iteration=0, at=now, policy=setup.policy)
    if circuit.circuit is Circuit.OPEN:
        advice = ENDINGS[ExitDecision.CIRCUIT_OPEN].next_step
        raise CircuitOpen(f"the circuit is OPEN: {circuit.reason}", advice)
