"""The exit gate: whether to go on, and why, in words.

Order when several apply:
error › circuit_open › blocked › project_complete › test_saturation › limits › continue,
except that after OPEN everything is circuit_open until a reset.
"""

from ralphloop.core.model import (
    Analysis,
    Circuit,
    Decision,
    Evidence,
    ExitDecision,
    Outcome,
    Value,
)
from ralphloop.core.policy import (
    MIN_INDICATORS,
    PAID_FAILURES,
    SILENT_STALLS,
    STARTUP_ERRORS,
    ExitGate,
    Mode,
    OnUsageLimit,
    Policy,
)
from ralphloop.core.progress import failed_checks
from ralphloop.core.run_state import RunState
from ralphloop.core.story_state import Standing
from ralphloop.text.plain import agreeing, counted
from ralphloop.text.status_block import Status, TestsStatus

_SAYS = "the agent says that all is done"


class GateInput(Value, kw_only=True):
    """Everything the gate looks at."""

    analysis: Analysis
    policy: Policy
    evidence: Evidence = Evidence()
    state: RunState = RunState()  # after this iteration
    was_open: bool = False  # the circuit was OPEN before this iteration
    total: int | None = None  # stories; None: there is no list
    open_stories: int = 0  # not passed
    runnable: int = 1  # open and neither waiting nor set aside
    saturated: bool = False  # this iteration completed a test-only row
    may_end_run: bool = False  # tasks.yaml permission of a task that was claimed and passed
    promise: bool = False
    fatal_reason: str = ""
    refused: str = ""  # why no request is taken any more
    limit: Decision | None = None  # budget, time: measured by the loop
    others: bool = False  # another story can run
    reserve: str = ""  # why a further start would use what is to be left, if it would


def decide(at: GateInput) -> Decision:
    if at.was_open:
        return _decision(ExitDecision.CIRCUIT_OPEN, "the circuit is OPEN until it is reset")
    for rule in (_error, _circuit, _blocked, _complete, _saturation, _limits):
        if decision := rule(at):
            return decision
    return _decision(ExitDecision.CONTINUE, _why_go_on(at))


def veto(at: GateInput) -> str | None:
    """Why the project cannot be complete, whatever EXIT_SIGNAL says."""
    block = at.analysis.status
    if failed_checks(at.evidence):
        return "a check failed"
    if not at.evidence.checks and block and block.tests_status is TestsStatus.FAILING:
        return "no check ran and the agent reports failing tests"
    if block and block.status is Status.BLOCKED:
        return "the agent reports BLOCKED"
    if at.total is not None and at.open_stories > 0 and not at.may_end_run:
        left = at.open_stories
        return f"{left} of {counted(at.total, 'story')} {agreeing(left, 'is')} open"
    return None


def _error(at: GateInput) -> Decision | None:
    outcome, startup, paid = at.analysis.outcome, at.state.startup_errors, at.state.paid_failures
    if outcome is Outcome.FATAL and not at.evidence.fallback:
        return _decision(ExitDecision.ERROR, at.fatal_reason or "the agent cannot work")
    if outcome is Outcome.STARTUP_ERROR and startup >= STARTUP_ERRORS:
        return _decision(ExitDecision.ERROR, f"the agent failed to start {startup} times in a row")
    if at.refused:
        words = f"requests are refused before the model sees them: {at.refused}"
        return _decision(ExitDecision.ERROR, words)
    if paid >= PAID_FAILURES:
        words = f"{paid} paid starts in a row ended in infrastructure failures"
        return _decision(ExitDecision.ERROR, words)
    if at.state.silent_stalls >= SILENT_STALLS and not at.others:
        return _decision(ExitDecision.ERROR, silent_words(at.state.silent_stalls))
    return None


def silent_words(stalls: int) -> str:
    """What is wrong with an agent that never says a word."""
    return (
        f"the agent said nothing {stalls} times in a row until limits.stall_timeout ran out;"
        " if it only thinks longer, raise that"
    )


def _circuit(at: GateInput) -> Decision | None:
    breaker = at.state.breaker
    is_open = breaker.circuit is Circuit.OPEN
    return _decision(ExitDecision.CIRCUIT_OPEN, breaker.reason) if is_open else None


def _blocked(at: GateInput) -> Decision | None:
    """No story can run any more; the run waits for a person, or for nothing."""
    if at.total is None:
        block = at.analysis.status
        if (
            block is None
            or block.status is not Status.BLOCKED
            or at.analysis.outcome.is_infrastructure
        ):
            return None
        return _decision(ExitDecision.BLOCKED, block.recommendation or "the agent is blocked")
    if at.open_stories == 0 or at.runnable > 0 or at.may_end_run:
        return None
    if waiting := at.state.count(Standing.BLOCKED):
        words = f"{counted(waiting, 'open story', 'waits')} for a person, none can run"
        return _decision(ExitDecision.BLOCKED, words)
    if at.saturated:
        return None  # said by its own rule
    return _decision(ExitDecision.NO_RUNNABLE_STORY, "no open story can run")


def _complete(at: GateInput) -> Decision | None:
    if at.analysis.says_nothing or veto(at):
        return None
    if at.may_end_run:
        rest = f", {counted(at.open_stories, 'story', 'stays')} open" if at.open_stories else ""
        return _decision(ExitDecision.PROJECT_COMPLETE, f"the passed task may end the run{rest}")
    if at.promise and at.policy.mode is Mode.HOOK:
        return _decision(ExitDecision.PROJECT_COMPLETE, "the completion promise was given")
    if not at.analysis.exit_signal:
        return None
    count = at.analysis.indicators.count
    if at.policy.exit_gate is ExitGate.DUAL and count < MIN_INDICATORS:
        return None
    return _decision(
        ExitDecision.PROJECT_COMPLETE,
        f"{_SAYS}; signs of it: {at.analysis.indicators.named or 'none'}",
    )


def _saturation(at: GateInput) -> Decision | None:
    if not at.saturated or (at.total is not None and at.runnable > 0):
        return None
    return _decision(
        ExitDecision.TEST_SATURATION,
        f"{at.policy.test_saturation} iterations in a row only worked on tests",
    )


def _limits(at: GateInput) -> Decision | None:
    stops = at.policy.on_usage_limit is OnUsageLimit.STOP and not at.evidence.fallback
    if stops and at.analysis.outcome is Outcome.USAGE_LIMIT:
        return _decision(ExitDecision.USAGE_LIMIT, "the usage limit is reached")
    if stops and at.reserve:
        return _decision(ExitDecision.USAGE_LIMIT, at.reserve)
    return at.limit


def _why_go_on(at: GateInput) -> str:
    analysis, count = at.analysis, at.analysis.indicators.count
    if analysis.refused:
        return "the request was refused before the model saw it, which says nothing about the work"
    if at.analysis.outcome.is_infrastructure:
        return f"the start ended ({analysis.outcome.words}), which says nothing about the work"
    if analysis.exit_signal:
        if reason := veto(at):
            return f"{_SAYS}, but {reason}"
        agree = agreeing(count, "agrees")
        return f"{_SAYS}, but only {count} of {MIN_INDICATORS} needed signs {agree}"
    who = "the agent does not say that all is done"
    if count >= MIN_INDICATORS:
        return f"{who}, although {count} signs do ({analysis.indicators.named})"
    return who


def _decision(word: ExitDecision, reason: str) -> Decision:
    return Decision(word=word, reasons=(reason,) if reason else ())
