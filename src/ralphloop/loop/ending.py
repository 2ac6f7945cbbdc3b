"""The end of a run: write it down, tell whoever asked to be told, say what to do next."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import msgspec

from ralphloop.core.endings import ENDINGS
from ralphloop.core.model import Decision, ExitDecision, Value
from ralphloop.errors import ExitCode
from ralphloop.journal.records import RunStatus, Totals
from ralphloop.loop import events
from ralphloop.loop.runner import Runner
from ralphloop.loop.setup import Setup

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

    @property
    def exit_code(self) -> ExitCode:
        return EXIT_CODES[self.decision.word]


def end_run(runner: Runner, decision: Decision) -> Ended:
    """Write down how the run ended, and tell everybody."""
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
    runner.publish(stories)
    totals = runner.journal.totals(runner.run)
    runner.bus.emit(
        events.RUN_FINISHED,
        None,
        decision=str(decision.word),
        reasons=list(decision.reasons),
        exit_code=int(EXIT_CODES[decision.word]),
        passed=stories.passed if stories else 0,
        total=stories.total if stories else 0,
        cost_usd=totals.cost_usd,
        tokens=totals.total_tokens,
        iterations=totals.iterations,
        duration_s=totals.active_s,
    )
    return Ended(
        run=runner.run,
        decision=decision,
        totals=totals,
        passed=stories.passed if stories else 0,
        total=stories.total if stories else 0,
    )


def next_step(ended: Ended) -> Iterator[str]:
    """What the person can do now."""
    yield f"next: {ENDINGS[ended.decision.word].next_step}"


def after_run(setup: Setup, ended: Ended) -> None:
    """Run the `on_end` command with the result on its input; its failure is only said."""
    argv = setup.config.session.on_end
    if not argv:
        return
    result = {
        "run": ended.run,
        "decision": str(ended.decision.word),
        "reasons": list(ended.decision.reasons),
        "exit_code": int(ended.exit_code),
        "passed": ended.passed,
        "total": ended.total,
        "cost_usd": ended.totals.cost_usd,
        "tokens": ended.totals.total_tokens,
        "iterations": ended.totals.iterations,
        "duration_s": ended.totals.active_s,
    }
    try:
        subprocess.run(
            argv,
            cwd=setup.project.root,
            input=msgspec.json.encode(result),
            timeout=_ON_END_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return  # the run is over; a notification that fails changes nothing
