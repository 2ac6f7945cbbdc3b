"""What a start makes of its story: standing, grade, attempts, and what the next prompt needs.

`entry_outcome` and `entry_summary` are what progress.txt says of it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ralphloop.core.grading import UNCHANGED, StoryVerdict
from ralphloop.core.iteration import Iteration, Result, Start
from ralphloop.core.model import Analysis, CheckResult, CheckStatus, Evidence, Outcome
from ralphloop.core.policy import Policy
from ralphloop.core.spending import conversation, cost_of, is_unpriced
from ralphloop.core.story_state import (
    MAX_FAILURE_CHARS,
    Standing,
    StoryState,
    is_failed_attempt,
)
from ralphloop.text.plain import one_line

_KEPT_CHALLENGES = 20


def story_after(
    now: StoryState,
    start: Start,
    result: Result,
    evidence: Evidence,
    *,
    analysis: Analysis,
    verdict: StoryVerdict,
    policy: Policy,
) -> StoryState:
    """The story after a start; `now` holds what a person asked of it while the agent ran."""
    passed = bool(evidence.stories_passed)
    state = _worked_on(_meanwhile(start.state, now), start, result, evidence, analysis)
    if analysis.outcome.is_infrastructure:
        return state
    findings = evidence.findings
    row = state.test_row + 1 if analysis.test_only and not passed else 0
    saturated = 0 < policy.test_saturation <= row
    state = msgspec.structs.replace(
        state,
        failure=failure_text(evidence.checks or (), MAX_FAILURE_CHARS),
        findings=(*findings, *_advice(verdict)),
        challenged=(*start.state.challenged, *findings)[-_KEPT_CHALLENGES:],
        reason="; ".join(verdict.reasons),
        test_row=0 if saturated else row,
        saturated=saturated,
    )
    if passed:
        return _passed(state, verdict)
    if now.standing is Standing.SET_ASIDE:
        return msgspec.structs.replace(state, reason=now.reason)
    if analysis.is_blocked and analysis.status is not None:
        return _blocked(state, analysis.status.recommendation)
    failed = is_failed_attempt(analysis, passed=False)
    return msgspec.structs.replace(
        state,
        attempts=state.attempts + failed,
        failed=state.failed + failed,
        standing=Standing.OPEN if state.standing is Standing.BLOCKED else state.standing,
    )


def failure_text(checks: tuple[CheckResult, ...], limit: int) -> str:
    """The output of the checks that failed, the end of each, for the next prompt."""
    failed = [check for check in checks if check.status is CheckStatus.FAILED]
    share = limit // max(1, len(failed))
    return "\n\n".join(f"$ {check.name}\n{check.output_tail[-share:]}" for check in failed)


def _meanwhile(before: StoryState, now: StoryState) -> StoryState:
    """The state the start found, with what a person asked of the story since."""
    return msgspec.structs.replace(
        before,
        standing=now.standing,
        reason=now.reason,
        attempts=now.attempts,
        second_chance=now.second_chance,
        test_row=now.test_row,
        saturated=now.saturated,
    )


def _worked_on(
    state: StoryState, start: Start, result: Result, evidence: Evidence, analysis: Analysis
) -> StoryState:
    before, response = start.state, result.response
    return msgspec.structs.replace(
        state,
        iterations=before.iterations + 1,
        start_tree=before.start_tree or start.tree,
        start_head=before.start_head or start.head,
        end_head=evidence.head,
        cost_usd=before.cost_usd + cost_of(response, before, result.asked),
        unpriced=before.unpriced + is_unpriced(response),
        session_id=_session_id(before, result, analysis),
        session_agent=start.agent,
        session_usage=conversation(response, before, result.asked),
        leftovers=result.leftovers,
        asked=evidence.asked,
        lost=evidence.lost,
    )


def _session_id(before: StoryState, result: Result, analysis: Analysis) -> str:
    """The conversation to go on with; one that could not be found is forgotten."""
    if analysis.outcome is Outcome.STARTUP_ERROR:
        return ""
    return result.response.session_id or before.session_id


def _advice(verdict: StoryVerdict) -> Iterator[str]:
    """What the next prompt says about a claim that nothing shows."""
    if UNCHANGED in verdict.reasons:
        yield f"The story was claimed, but {UNCHANGED}; files that git ignores do not count."


def _passed(state: StoryState, verdict: StoryVerdict) -> StoryState:
    return msgspec.structs.replace(
        state,
        standing=Standing.PASSED,
        grade=str(verdict.grade or ""),
        failure="",
        findings=(),
        lost={},
        commitless=False,
    )


def _blocked(state: StoryState, recommendation: str) -> StoryState:
    return msgspec.structs.replace(
        state,
        standing=Standing.BLOCKED,
        attempts=state.attempts + 1,
        failed=state.failed + 1,
        reason=recommendation or "the agent gave no reason",
    )


_FAILED_ENDINGS = (Outcome.ERROR, Outcome.TIMEOUT, Outcome.STALLED, Outcome.DENIED)
_LONGEST = 300


def entry_outcome(iteration: Iteration) -> str:
    """The word for how it went."""
    analysis = iteration.analysis
    if iteration.verdict.passed:
        return "passed"
    if analysis.outcome.is_infrastructure:
        return "interrupted"
    if analysis.is_blocked:
        return "blocked"
    if analysis.story_claimed or (analysis.outcome in _FAILED_ENDINGS and not analysis.progress):
        return "failed"
    return "in_progress" if analysis.progress else "no_progress"


def entry_summary(iteration: Iteration, grade: str) -> str:
    """One line: the grade, the agent's own words, and what contradicts them."""
    analysis, verdict = iteration.analysis, iteration.verdict
    said = analysis.status.recommendation if analysis.status else ""
    parts = [f"{grade}:" if verdict.passed else "", said]
    if not verdict.passed and analysis.story_claimed:
        parts.append(f"(claimed, but {'; '.join(verdict.reasons)})")
    if analysis.outcome is not Outcome.COMPLETED:
        parts.append(f"[{analysis.outcome}]")
    return one_line(" ".join(part for part in parts if part) or "no summary was given", _LONGEST)
