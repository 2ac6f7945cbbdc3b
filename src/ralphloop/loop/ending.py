"""The end of a run: write it down, tell whoever asked to be told, say what to do next."""

from contextlib import suppress
from typing import NamedTuple

import msgspec

from ralphloop.core.events import RunFinished
from ralphloop.core.model import Decision, ExitDecision
from ralphloop.core.quota import valid
from ralphloop.core.story_state import Standing
from ralphloop.errors import ExitCode
from ralphloop.journal.records import RunStatus
from ralphloop.loop.effects import land
from ralphloop.loop.prepare import Setup
from ralphloop.loop.runner import Runner
from ralphloop.proc.run import Output, ourselves, run_command, run_in_front

_ON_END_TIMEOUT_S, _PR_TIMEOUT_S = 60.0, 1_200.0
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


class EndedRun(NamedTuple):
    """A run that is over, and what everybody is told about it."""

    run: str
    told: RunFinished


def end_run(runner: Runner, decision: Decision, *, publish: bool = True) -> EndedRun:
    """Publish what was learned, write down how it ended, tell everybody."""
    if publish and not runner.stop.requested and runner.session.number:
        _publish_learned(runner)
        land(runner)
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
    runner.publish()
    stories, totals = runner.story_list(), runner.journal.totals(runner.run)
    told = RunFinished(
        decision=decision.word,
        reasons=decision.reasons,
        exit_code=int(EXIT_CODES[decision.word]),
        passed=stories.passed if stories else 0,
        total=stories.total if stories else 0,
        cost_usd=totals.cost_usd + runner.owed_usd,
        unpriced=totals.unpriced,
        tokens=totals.total_tokens,
        iterations=totals.iterations,
        duration_s=totals.active_s,
        quota=valid(runner.session.state.quota, runner.clock()),
        waiting=tuple(
            f"{story} waits for you: {state.reason}"
            for story, state in runner.session.stories.items()
            if story and state.standing is Standing.BLOCKED
        ),
    )
    runner.emit(told)
    return EndedRun(runner.run, told)


def _publish_learned(runner: Runner) -> None:
    """Skills and the managed block, in a commit of their own, when a run ended by itself."""
    from ralphloop.learning.publish import at_end

    for line in at_end(
        runner.setup.project,
        runner.setup.repo,
        runner.config.learning,
        agent=runner.config.agent.name,
        run=runner.run,
        commit=runner.config.git.commit == "story",
        now=runner.clock(),
        on_branch=not runner.setup.lands_on,
    ):
        runner.tell(line)


def after_run(setup: Setup, ended: EndedRun) -> str:
    """Run the `on_end` command with the result on its input, or `ralph pr`; what that said."""
    argv, root = setup.config.session.on_end, setup.project.root
    if not argv:
        return ""
    # The run is over: what fails now changes nothing.
    with suppress(OSError, ValueError):
        if argv[0] == "pr":
            opening = (*ourselves(), "pr", ended.run, *argv[1:])
            done = run_command(opening, cwd=root, timeout_s=_PR_TIMEOUT_S, output=Output.TOGETHER)
            return done.said
        result = msgspec.json.encode({"run": ended.run, **ended.told.published()})
        run_in_front(argv, cwd=root, given=result, timeout_s=_ON_END_TIMEOUT_S)
    return ""
