"""The exit gate: whether to go on, and why, in words.  The order when several apply:

error › circuit_open › blocked › project_complete › test_saturation › limits › continue,
except that after OPEN everything is circuit_open until a reset.
"""

from collections.abc import Iterator
from itertools import chain

from msgspec.structs import replace

from ralphloop.core import policy
from ralphloop.core.iteration import Assessment
from ralphloop.core.model import Circuit, Decision, ExitDecision, Outcome
from ralphloop.core.progress import failed_checks, normalise_reply
from ralphloop.core.run_state import RunState, Standing, StoryState
from ralphloop.core.totals import reserve_words, too_full
from ralphloop.text.claims import has_promise
from ralphloop.text.plain import agreeing, counted
from ralphloop.text.status_block import Status, TestsStatus

_SAYS = "the agent says that all is done"
_Rules = Iterator[Decision]


def decide(state: RunState, story: StoryState, one: Assessment, *, was_open: bool) -> Decision:
    """What follows from a start, with the run and its story as they are after it."""
    if was_open:
        reason = "the circuit is OPEN until it is reset"
        return Decision(word=ExitDecision.CIRCUIT_OPEN, reasons=(reason,))
    after = state, story, one
    rules = chain(_broken(*after), _over(*after), _used_up(*after))
    if over := next(rules, None):
        return over
    analysis = one.analysis
    count = one.analysis.indicators.count
    why = "the agent does not say that all is done"
    if analysis.refused:
        why = "the request was refused before the model saw it, which says nothing about the work"
    elif analysis.outcome.is_infrastructure:
        why = f"the start ended ({analysis.outcome.words}), which says nothing about the work"
    elif analysis.exit_signal:
        agree = agreeing(count, "agrees")
        few = f"only {count} of {policy.MIN_INDICATORS} needed signs {agree}"
        why = f"{_SAYS}, but {_veto(one) or few}"
    elif count >= policy.MIN_INDICATORS:
        why = f"{why}, although {count} signs do ({analysis.indicators.named})"
    return Decision(word=ExitDecision.CONTINUE, reasons=(why,))


def _end(word: ExitDecision, reason: str) -> Decision:
    return Decision(word=word, reasons=(reason,) if reason else ())


def _why_it_did_not_start(one: Assessment) -> list[str]:
    """The last start's own words, and what is known besides; empty where it said nothing."""
    response = one.result.response
    said = response.crash or response.reason
    if not said:
        return []
    return [words.rstrip(".") for words in (said, *response.warnings[:1])]


def _broken(state: RunState, story: StoryState, one: Assessment) -> _Rules:
    """What a further start would not change."""
    outcome = one.analysis.outcome
    if outcome is Outcome.FATAL and not one.evidence.fallback:
        yield _end(ExitDecision.ERROR, one.result.response.reason or "the agent cannot work")
    if outcome is Outcome.STARTUP_ERROR and state.startup_errors >= policy.STARTUP_ERRORS:
        words = f"the agent failed to start {state.startup_errors} times in a row"
        yield _end(ExitDecision.ERROR, ": ".join([words, *_why_it_did_not_start(one)]))
    if one.analysis.refused and story.attempt.refusals >= policy.REFUSALS:
        said = normalise_reply(story.reason)
        others = (
            other for other in state.stories.values() if other.attempt.refusals >= policy.REFUSALS
        )
        alike = sum(normalise_reply(other.reason) == said for other in others)
        if alike > 1 or one.evidence.stories.total is None or not _runnable(story, one):
            words = f"requests are refused before the model sees them: {story.reason}"
            yield _end(ExitDecision.ERROR, words)
    if state.paid_failures >= policy.PAID_FAILURES:
        words = f"{state.paid_failures} paid starts in a row ended in infrastructure failures"
        yield _end(ExitDecision.ERROR, words)
    if state.silent_stalls >= policy.SILENT_STALLS and not one.evidence.stories.others:
        yield _end(ExitDecision.ERROR, silent_words(state.silent_stalls))
    if state.breaker.circuit is Circuit.OPEN:
        yield _end(ExitDecision.CIRCUIT_OPEN, state.breaker.reason)


def _runnable(story: StoryState, one: Assessment) -> int:
    """Open stories that may still be worked on after this iteration."""
    facts = one.evidence.stories
    if one.passed:
        return facts.others_if_passed
    return facts.others if story.is_apart else facts.others + 1


def silent_words(stalls: int) -> str:
    return (
        f"the agent said nothing {stalls} times in a row until limits.stall_timeout ran out;"
        " if it only thinks longer, raise that"
    )


def _over(state: RunState, story: StoryState, one: Assessment) -> _Rules:
    """No story can run any more: the run waits for a person, or for nothing, or is done."""
    analysis = one.analysis
    left = one.evidence.open_stories
    if one.evidence.stories.total is None:
        if analysis.is_blocked and analysis.status:
            asks = analysis.status.recommendation or "the agent is blocked"
            yield _end(ExitDecision.BLOCKED, asks)
    elif left and _runnable(story, one) <= 0 and not one.may_end_run:
        if waiting := sum(it.standing is Standing.BLOCKED for it in state.stories.values()):
            words = f"{counted(waiting, 'open story', 'waits')} for a person, none can run"
            yield _end(ExitDecision.BLOCKED, words)
        elif not story.attempt.saturated:  # that is said by its own rule
            yield _end(ExitDecision.NO_RUNNABLE_STORY, "no open story can run")
    if analysis.says_nothing or _veto(one):
        return
    if one.may_end_run:
        rest = f", {counted(left, 'story', 'stays')} open" if left else ""
        yield _end(ExitDecision.PROJECT_COMPLETE, f"the passed task may end the run{rest}")
    if one.policy.mode == "hook" and has_promise(one.result.response.final_text or ""):
        yield _end(ExitDecision.PROJECT_COMPLETE, "the completion promise was given")
    enough = policy.MIN_INDICATORS if one.policy.exit_gate == "dual" else 0
    if analysis.exit_signal and analysis.indicators.count >= enough:
        signs = analysis.indicators.named or "none"
        yield _end(ExitDecision.PROJECT_COMPLETE, f"{_SAYS}; signs of it: {signs}")


def _veto(one: Assessment) -> str | None:
    """Why the project cannot be complete, whatever EXIT_SIGNAL says."""
    block = one.analysis.status
    evidence = one.evidence
    left = one.evidence.open_stories
    if failed_checks(evidence):
        return "a check failed"
    if not evidence.checks and block and block.tests_status is TestsStatus.FAILING:
        return "no check ran and the agent reports failing tests"
    if block and block.status is Status.BLOCKED:
        return "the agent reports BLOCKED"
    if left and not one.may_end_run:
        total = counted(evidence.stories.total or 0, "story")
        return f"{left} of {total} {agreeing(left, 'is')} open"
    return None


def _used_up(state: RunState, story: StoryState, one: Assessment) -> _Rules:
    limits = one.policy.limits
    at = one.evidence.at or 0.0
    if story.attempt.saturated and (
        one.evidence.stories.total is None or _runnable(story, one) <= 0
    ):
        row = one.policy.test_saturation
        yield _end(ExitDecision.TEST_SATURATION, f"{row} iterations in a row only worked on tests")
    if one.policy.on_usage_limit == "stop" and not one.evidence.fallback:
        if one.analysis.outcome is Outcome.USAGE_LIMIT:
            yield _end(ExitDecision.USAGE_LIMIT, "the usage limit is reached")
        full = too_full(state.usage_windows, limits.reserve, agent=one.start.party, at=at)
        if full:
            yield _end(ExitDecision.USAGE_LIMIT, reserve_words(full, limits.reserve, at))
    if one.result.end.ceiling == "run":  # a further start could not take a further step
        yield _end(ExitDecision.BUDGET_EXHAUSTED, one.result.stopped_because)
    if over := policy.reached(limits, replace(one.totals, iterations=state.iterations), at):
        yield over
