"""What a start makes of its story: standing, grade, attempts, and what the next prompt needs.

Some agents count a resumed conversation as a whole; then what was known of it is taken off.  An
agent that was asked for its status block has answered twice in one start, and both count.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from ralphloop.core.grading import HOLLOW, UNCHANGED
from ralphloop.core.iteration import AddProgress, Assessment
from ralphloop.core.model import TOKENS, CheckResult, CheckStatus, Outcome, Response, Usage
from ralphloop.core.policy import REFUSALS, Share
from ralphloop.core.progress import failed_checks
from ralphloop.core.run_state import MAX_FAILURE_CHARS, Standing, StoryState, is_failed_attempt
from ralphloop.core.totals import Expense
from ralphloop.text.lines import own_lines
from ralphloop.text.plain import clean, one_line, some
from ralphloop.text.status_block import StatusBlock


def story_after(now: StoryState, one: Assessment) -> StoryState:
    """The story after a start; `now` holds what a person asked of it while the agent ran."""
    evidence = one.evidence
    analysis = one.analysis
    verdict = one.verdict
    state = _worked_on(now, one)
    passed = one.passed
    before = one.start.state
    if analysis.refused:
        return _refused(state, one.result.response.reason)
    if analysis.says_nothing:
        return state
    unclaimed = 0 if analysis.claims_done else now.unclaimed + 1
    back = evidence.returned
    if back is not None:
        met = tuple(dict.fromkeys((*state.collided, *back.others)))[-20:]
        state = replace(state, returns=state.returns + 1, collided=met)
    row = state.test_row + 1 if analysis.test_only and not passed else 0
    saturated = 0 < one.policy.test_saturation <= row
    state = replace(
        state,
        failure=failure_text(evidence.checks or (), MAX_FAILURE_CHARS),
        findings=tuple(_told(one, unclaimed)),
        refusals=0,
        unclaimed=unclaimed,
        trail=one.trail,
        challenged=(*before.challenged, *one.findings)[-20:],
        reason="; ".join(verdict.reasons),
        test_row=0 if saturated else row,
        saturated=saturated,
    )
    if passed:
        proven = {"standing": Standing.PASSED, "grade": str(verdict.grade or "")}
        uncommitted = {"commitless": False, "commit": ""}
        return replace(state, **proven, **uncommitted, failure="", findings=(), lost={})
    if now.standing is Standing.SET_ASIDE:
        return replace(state, reason=now.reason)
    waits = analysis.is_blocked
    failed = back is None and is_failed_attempt(analysis, passed=False)
    if waits and analysis.status is not None:
        reason = analysis.status.recommendation or "the agent gave no reason"
        state = replace(state, standing=Standing.BLOCKED, reason=reason)
    elif state.standing is Standing.BLOCKED:
        state = replace(state, standing=Standing.OPEN)
    more = int(waits or failed)
    return replace(state, attempts=state.attempts + more, failed=state.failed + more)


def _refused(state: StoryState, said: str) -> StoryState:
    """No attempt, and no conversation to go on with; a second time it waits for a person."""
    told = f"The last request was refused before it was read: {said}"
    waits = state.refusals + 1 >= REFUSALS and state.standing is Standing.OPEN
    return replace(
        state.fresh_conversation(),
        refusals=state.refusals + 1,
        reason=said,
        findings=tuple(dict.fromkeys((told, *state.findings))),
        standing=Standing.BLOCKED if waits else state.standing,
    )


def _told(one: Assessment, unclaimed: int) -> Iterator[str]:
    if one.evidence.returned is not None:
        yield one.evidence.returned.told
    yield from one.findings
    said = one.result.response.reason
    if said and one.analysis.outcome is Outcome.LIMIT:  # its program stopped it, unheard
        yield f"The last run was stopped before it was through: {said}"
    if UNCHANGED in one.verdict.reasons:
        yield f"The story was claimed, but {UNCHANGED}; files that git ignores do not count."
    if HOLLOW in one.verdict.reasons:
        yield f"The story was claimed, but {HOLLOW}. Do what the story asks for."
    if one.moved.treading:
        yield f"{one.moved.reasons[0]}. That counts as no progress."
    if one.evidence.checks and not one.analysis.claims_done:
        red = ", ".join(check.name for check in failed_checks(one.evidence))
        how = f"{red} failed" if red else "all are green"
        yield (
            f"After {unclaimed} runs in a row without a claim the checks were run: {how}."
            " If it is done, report COMPLETE; if not, say what is left."
        )


def failure_text(checks: tuple[CheckResult, ...], limit: int) -> str:
    """The output of the checks that failed, the end of each, for the next prompt."""
    failed = [check for check in checks if check.status is CheckStatus.FAILED]
    share = limit // max(1, len(failed))
    return "\n\n".join(f"$ {check.name}\n{check.output_tail[-share:]}" for check in failed)


def _worked_on(now: StoryState, one: Assessment) -> StoryState:
    """The state the start found, with what it used and what a person asked of the story since."""
    before = one.start.state
    result = one.result
    had = now.share
    checking = sum(check.duration_s for check in one.evidence.checks or ())
    not_started = one.analysis.outcome is Outcome.STARTUP_ERROR
    return replace(
        before,
        standing=now.standing,
        reason=now.reason,
        attempts=now.attempts,
        second_chance=now.second_chance,
        test_row=now.test_row,
        saturated=now.saturated,
        answers=now.answers,
        iterations=before.iterations + (not one.analysis.refused),
        share=Share(
            iterations=had.iterations + one.counts,
            cost_usd=had.cost_usd + one.used.dollars,
            active_s=had.active_s + result.end.duration_s + checking,
        ),
        start_tree=before.start_tree or one.start.tree,
        start_head=before.start_head or one.start.head,
        left_tree=one.evidence.left_tree or one.evidence.tree or "",
        work=one.evidence.work or before.work,
        cost_usd=before.cost_usd + one.used.dollars,
        unpriced=before.unpriced + is_unpriced(result.response),
        # A conversation that could not be found is forgotten.
        session_id="" if not_started else result.response.session_id or before.session_id,
        session_agent=one.start.agent,
        session_usage=one.session_usage,
        leftovers=result.leftovers,
        asked=one.evidence.asked,
        lost=one.evidence.lost,
    )


_FAILED_ENDINGS = (Outcome.ERROR, Outcome.TIMEOUT, Outcome.STALLED, Outcome.DENIED)


def progress_entry(one: Assessment, grade: str) -> AddProgress:
    """How it went, and in one line the grade, what was done, what is next, what contradicts it."""
    analysis = one.analysis
    verdict = one.verdict
    named = one.start.story
    has_failed = analysis.outcome in _FAILED_ENDINGS and not analysis.progress
    outcome = "in_progress" if analysis.progress else "no_progress"
    if verdict.passed:
        outcome = "passed"
    elif analysis.outcome.is_infrastructure:
        outcome = "interrupted"
    elif analysis.is_blocked:
        outcome = "blocked"
    elif analysis.story_claimed or has_failed:
        outcome = "failed"
    advice = analysis.status.recommendation if analysis.status else ""
    # What the agent says it did: the beginning of its answer, in its own words.
    lines = own_lines(clean((one.result.response.final_text or "")[:4_000]))
    spoken = (line.strip().lstrip("#*->").strip() for line in lines)
    said = one_line(next((line for line in spoken if line), ""), 140)
    files = one.evidence.work_files or ()
    parts = [f"{grade}:" if verdict.passed else "", said]
    parts.append(f"({some(files, 4)})" if files else "")
    parts.append(f"next: {advice}" if advice and advice not in said else "")
    if not verdict.passed and analysis.story_claimed:
        parts.append(f"(claimed, but {'; '.join(verdict.reasons)})")
    if analysis.outcome is not Outcome.COMPLETED:
        parts.append(f"[{analysis.outcome}]")
    told = " ".join(part for part in parts if part) or "no summary was given"
    task = f"{named.id}: {named.title}" if named else "the prompt"
    at = one.evidence.at or 0.0
    summary = one_line(told, 300)
    return AddProgress(at=at, task=task, outcome=outcome, summary=summary)


def accounted(before: StoryState, *answers: Response) -> tuple[Usage, Usage]:
    """What these answers used by themselves, and what their conversation reported up to there."""
    session = before.session_id
    known = before.session_usage
    own = Usage()
    for answer in answers:
        usage = answer.usage
        if usage.cumulative and session and answer.session_id == session:
            tokens = {name: max(0, getattr(usage, name) - getattr(known, name)) for name in TOKENS}
            cost = usage.cost_usd
            if cost is not None:
                cost = max(0.0, cost - (known.cost_usd or 0.0))
            usage = replace(usage, **tokens, cost_usd=cost)
        own = own + usage
        # A start that names no total only adds to what was known.
        adds = session and answer.session_id in (None, session) and not answer.usage.cumulative
        known = known + answer.usage if adds else answer.usage
        session = answer.session_id or session
    return own, known


def is_unpriced(response: Response) -> bool:
    """True where the model was reached and nobody says what that cost."""
    reached = response.model_output or response.usage.total_tokens > 0
    return reached and response.usage.cost_usd is None


def spent(one: Assessment) -> Expense:
    response = one.result.heard
    evidence = one.evidence
    block = response.status or StatusBlock()
    changed = evidence.files_changed
    return Expense(
        counted=one.counts,
        cost_usd=one.used.dollars,
        cost_estimated=one.used.estimated,
        unpriced=int(is_unpriced(response)),
        tasks_completed=evidence.stories_passed or 0,
        # What was measured stands, also where it is nothing.
        files_modified=(block.files_modified if changed is None else changed) or 0,
        commits=evidence.commits or 0,
        **{name: getattr(one.used, name) for name in TOKENS},
    )
