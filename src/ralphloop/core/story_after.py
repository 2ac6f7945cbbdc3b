"""What a start makes of its story: standing, grade, attempts, and what the next prompt needs.

Some agents count a resumed conversation as a whole; then what was known of it is taken off.  An
agent that was asked for its status block has answered twice in one start, and both count.
"""

from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from ralphloop.core.grading import HOLLOW, UNCHANGED
from ralphloop.core.handover import MOST_CHANGED, criteria_met, failing_tests
from ralphloop.core.iteration import AddProgress, Assessment
from ralphloop.core.model import (
    TOKENS,
    CheckResult,
    CheckStatus,
    Evidence,
    Outcome,
    Response,
    Usage,
)
from ralphloop.core.policy import REFUSALS, Share
from ralphloop.core.progress import failed_checks
from ralphloop.core.run_state import (
    MAX_ANSWER_CHARS,
    MAX_FAILURE_CHARS,
    Conversation,
    LandingReturns,
    Standing,
    StoryNotes,
    StoryState,
    StoryTotals,
    Streak,
    is_failed_attempt,
)
from ralphloop.core.totals import Expense
from ralphloop.text.lines import own_lines
from ralphloop.text.plain import clean, one_line, some
from ralphloop.text.remarks import answer_without_block, remarks_in
from ralphloop.text.status_block import StatusBlock, advice_of

_MOST_DOUBTS = 5
_LONGEST_ADVICE = 300


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
    unclaimed = 0 if analysis.claims_done else now.streak.unclaimed + 1
    back = evidence.returned
    if back is not None:
        met = tuple(dict.fromkeys((*state.landing.collided, *back.others)))[-20:]
        landing = LandingReturns(count=state.landing.count + 1, collided=met)
        state = replace(state, landing=landing)
    row = 0
    if analysis.test_only and not passed:
        row = state.streak.test_row + 1
    saturated = 0 < one.policy.test_saturation <= row
    if saturated:
        row = 0
    challenged = (*before.proof.challenged, *one.findings)[-20:]
    state = replace(
        state,
        reason="; ".join(verdict.reasons),
        proof=replace(state.proof, challenged=challenged),
        attempt=replace(state.attempt, refusals=0, saturated=saturated),
        streak=Streak(unclaimed=unclaimed, trail=one.trail, test_row=row),
        notes=_handed_over(state.notes, one),
    )
    if passed:
        return _proven(state, str(verdict.grade or ""))
    failure = _failure_after(state.notes.failure, evidence)
    findings = tuple(_told(one, unclaimed))
    state = replace(state, notes=replace(state.notes, failure=failure, findings=findings))
    if now.standing is Standing.SET_ASIDE:
        return replace(state, reason=now.reason)
    waits = analysis.is_blocked
    failed = back is None and not waits and is_failed_attempt(analysis, passed=False)
    if waits and analysis.status is not None:
        reason = analysis.status.recommendation or "the agent gave no reason"
        state = replace(state, standing=Standing.BLOCKED, reason=reason)
    elif state.standing is Standing.BLOCKED:
        state = replace(state, standing=Standing.OPEN)
    return state.with_failed_attempt() if failed else state


def _failure_after(known: str, evidence: Evidence) -> str:
    """What the checks said; where nobody looked again and nothing was changed, what they had."""
    if evidence.checks is None and evidence.files_changed == 0:
        return known
    return failure_text(evidence.checks or (), MAX_FAILURE_CHARS)


def _proven(state: StoryState, grade: str) -> StoryState:
    """Passed; there is nothing more to tell, and its commit is yet to be made."""
    return replace(
        state,
        standing=Standing.PASSED,
        proof=replace(state.proof, grade=grade, commitless=False, commit=""),
        notes=replace(state.notes, failure="", findings=(), failing=(), met=(), advised=""),
        base=replace(state.base, lost={}),
    )


def _handed_over(notes: StoryNotes, one: Assessment) -> StoryNotes:
    """What the next attempt and a person need of this one; where it is silent, what was known."""
    checks = one.evidence.checks
    story = one.start.story
    said = one.result.response.final_words
    doubts = (*notes.doubted, *remarks_in(said).doubts)
    files = (*(one.evidence.work_files or ()), *notes.changed)
    status = one.analysis.status
    # What a story that waits asks for is told with its answer.
    is_waiting = one.analysis.is_blocked
    advised = advice_of(status.recommendation) if status and not is_waiting else ""
    notes = replace(
        notes,
        advised=one_line(advised, _LONGEST_ADVICE),
        said=answer_without_block(said, MAX_ANSWER_CHARS) or notes.said,
        doubted=tuple(dict.fromkeys(doubts))[-_MOST_DOUBTS:],
        changed=tuple(dict.fromkeys(files))[:MOST_CHANGED],
    )
    if checks is None and one.evidence.files_changed:
        return replace(notes, failing=())  # by what was changed since, they may be green
    if checks is None or story is None:
        return notes
    return replace(notes, failing=failing_tests(checks), met=criteria_met(story, checks))


def _refused(state: StoryState, said: str) -> StoryState:
    """No attempt, and no conversation to go on with; a second time it waits for a person."""
    told = f"The last request was refused before it was read: {said}"
    refusals = state.attempt.refusals + 1
    waits = refusals >= REFUSALS and state.standing is Standing.OPEN
    findings = tuple(dict.fromkeys((told, *state.notes.findings)))
    return replace(
        state.fresh_conversation(),
        standing=Standing.BLOCKED if waits else state.standing,
        reason=said,
        attempt=replace(state.attempt, refusals=refusals),
        notes=replace(state.notes, findings=findings),
    )


def _told(one: Assessment, unclaimed: int) -> Iterator[str]:
    if one.evidence.returned is not None:
        yield one.evidence.returned.told
    yield from one.findings
    said = one.result.response.reason
    if said and one.analysis.outcome is Outcome.LIMIT:  # its program stopped it, unheard
        yield f"The last run was stopped before it was through: {said}"
    if _ended_without_a_word_for_us(one):
        yield (
            "The last answer ended without a RALPH_STATUS block, so nobody knows whether the story"
            " is done. End with the block, in these words, whatever language you answer in."
        )
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


def _ended_without_a_word_for_us(one: Assessment) -> bool:
    """Whether an agent answered, and neither a block nor its words say how the story stands."""
    analysis = one.analysis
    answered = analysis.outcome is Outcome.COMPLETED and bool(one.result.response.final_words)
    is_told = analysis.claims_done or analysis.is_blocked or analysis.status is not None
    return answered and not is_told


def failure_text(checks: tuple[CheckResult, ...], limit: int) -> str:
    """The output of the checks that failed, the end of each, for the next prompt."""
    failed = [check for check in checks if check.status is CheckStatus.FAILED]
    share = limit // max(1, len(failed))
    return "\n\n".join(f"$ {check.name}\n{check.output_tail[-share:]}" for check in failed)


def _worked_on(now: StoryState, one: Assessment) -> StoryState:
    """The state the start found, with what it used and what a person asked of the story since."""
    before = one.start.state
    evidence = one.evidence
    base = before.base.moved(
        tree=before.base.start_tree or one.start.tree,
        head=before.base.start_head or one.start.head,
        left=evidence.left_tree or evidence.tree or "",
    )
    work = evidence.work or before.proof.work
    # A request that was refused was refused of the work as the start found it.
    attempt = replace(now.attempt, share=_share_with(now, one), refusals=before.attempt.refusals)
    notes = replace(before.notes, answers=now.notes.answers, leftovers=one.result.leftovers)
    return replace(
        before,
        standing=now.standing,
        reason=now.reason,
        proof=replace(before.proof, work=work, asked=evidence.asked, criteria=evidence.criteria),
        attempt=attempt,
        streak=replace(before.streak, test_row=now.streak.test_row),
        conversation=_conversation_after(one),
        base=replace(base, lost=evidence.lost),
        notes=notes,
        totals=_totals_with(before.totals, one),
    )


def _share_with(now: StoryState, one: Assessment) -> Share:
    had = now.attempt.share
    checking = sum(check.duration_s for check in one.evidence.checks or ())
    return Share(
        iterations=had.iterations + 1 if one.counts else had.iterations,
        cost_usd=had.cost_usd + one.used.dollars,
        active_s=had.active_s + one.result.end.duration_s + checking,
    )


def _conversation_after(one: Assessment) -> Conversation:
    name = one.result.response.session_id or one.start.state.conversation.id
    if one.analysis.outcome is Outcome.STARTUP_ERROR:
        name = ""  # one that could not be found is forgotten
    return Conversation(id=name, agent=one.start.agent, usage=one.session_usage)


def _totals_with(had: StoryTotals, one: Assessment) -> StoryTotals:
    iterations = had.iterations
    if not one.analysis.refused:
        iterations += 1
    unpriced = had.unpriced
    if is_unpriced(one.result.response):
        unpriced += 1
    return StoryTotals(
        iterations=iterations,
        failed=had.failed,
        cost_usd=had.cost_usd + one.used.dollars,
        unpriced=unpriced,
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
    elif one.evidence.returned is not None:
        outcome = "in_progress"
    elif analysis.story_claimed or has_failed:
        outcome = "failed"
    advice = advice_of(analysis.status.recommendation) if analysis.status else ""
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


class AccountedUsage(NamedTuple):
    own: Usage  # of the answers by themselves
    conversation: Usage  # what it reported up to there


def accounted(before: Conversation, *answers: Response) -> AccountedUsage:
    """What these answers used, where their conversation may count itself as a whole."""
    session = before.id
    known = before.usage
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
    return AccountedUsage(own, known)


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
