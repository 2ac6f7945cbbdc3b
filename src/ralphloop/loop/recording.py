"""Writing an iteration down: the story's new state, the effects it owes, one transaction.

Effects are plain data, so that a successor can do them again: mark the story, add the progress
entry, set leftovers aside, commit.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ralphloop.config.model import CommitPolicy
from ralphloop.core.effects import AnyEffect, Commit, Mark, Progress, SetAside
from ralphloop.core.grading import UNCHANGED, Grade
from ralphloop.core.iteration import ChangedFiles, Iteration, LearningShare, PromptSize, Said
from ralphloop.core.limits import quota_wait
from ralphloop.core.model import Circuit, ExitDecision, Outcome, Response
from ralphloop.core.planning import runnable_besides
from ralphloop.core.run_state import RunState, Step, set_aside
from ralphloop.core.spending import conversation, cost_of, is_unpriced, spent, used
from ralphloop.core.story import StoryList
from ralphloop.core.story_state import MAX_FAILURE_CHARS, Standing, StoryState, is_failed_attempt
from ralphloop.journal.circuit import CIRCUIT_KEY
from ralphloop.journal.records import FinishedIteration
from ralphloop.journal.session import quota_key
from ralphloop.loop import crew, events
from ralphloop.loop.circuit import tell_circuit
from ralphloop.loop.judging import Judged, failure_text
from ralphloop.loop.runner import Runner
from ralphloop.text.plain import one_line
from ralphloop.text.status import Status

_KEPT_TEXT = 8_000
_KEPT_TOOLS = 30
_WAITING = {
    Standing.SET_ASIDE: events.STORY_SET_ASIDE,
    Standing.BLOCKED: events.STORY_BLOCKED,
}
_FAILED_ENDINGS = (Outcome.ERROR, Outcome.TIMEOUT, Outcome.STALLED, Outcome.DENIED)


def record(runner: Runner, judged: Judged) -> Step:
    """Fold the iteration into the session and write everything at once."""
    skipped = _meanwhile(runner, judged).standing is Standing.SET_ASIDE
    story_state = _story_after(runner, judged)
    aside = story_state.standing is Standing.SET_ASIDE
    state, quota = judged.step.state, _quota_after(runner, judged)
    if aside and not skipped:
        named = f"{_story_key(judged) or 'the work'} was set aside"
        state = set_aside(state, named, at=runner.clock())
    step = msgspec.structs.replace(judged.step, state=state)
    ended = _ended(runner, judged, story_state)
    finished = _finished(runner, judged, story_state, state, quota)
    runner.journal.finish_iteration(
        msgspec.structs.replace(finished, events=(events.as_record(ended),))
    )
    before = runner.session.state.breaker
    runner.session.state, runner.session.quota = state, quota
    runner.session.stories[_story_key(judged)] = story_state
    runner.bus.tell(ended)
    _tell_more(runner, judged, story_state)
    tell_circuit(runner, before)
    return step


def _story_after(runner: Runner, judged: Judged) -> StoryState:
    """The story's state after the iteration."""
    begun, analysis = judged.worked.begun, judged.step.analysis
    response = judged.worked.finished.response
    now = _meanwhile(runner, judged)
    state = msgspec.structs.replace(
        now,
        iterations=begun.state.iterations + 1,
        start_tree=begun.state.start_tree or begun.before.tree,
        start_head=begun.state.start_head or begun.before.head or "",
        end_head=judged.worked.after.head or "",
        cost_usd=begun.state.cost_usd + cost_of(response, begun.state),
        unpriced=begun.state.unpriced + is_unpriced(response),
        session_id=_conversation(judged),
        session_agent=begun.member.name,
        session_usage=conversation(response, begun.state),
        leftovers=judged.worked.finished.leftovers,
        asked=judged.worked.asked,
        lost=judged.worked.lost,
    )
    if analysis.outcome.is_infrastructure:
        return state
    state = msgspec.structs.replace(
        state,
        failure=failure_text(judged.checks, MAX_FAILURE_CHARS),
        findings=(*judged.findings, *_advice(judged)),
        challenged=(*begun.state.challenged, *judged.findings)[-20:],
        reason="; ".join(judged.verdict.reasons),
    )
    if judged.verdict.passed:
        return _passed(state, judged.verdict.grade)
    if now.standing is Standing.SET_ASIDE:
        return msgspec.structs.replace(state, reason=now.reason)
    if analysis.status is not None and analysis.status.status is Status.BLOCKED:
        return _blocked(state, analysis.status.recommendation)
    attempts = state.attempts + is_failed_attempt(analysis, passed=False)
    state = msgspec.structs.replace(state, attempts=attempts)
    return _maybe_set_aside(runner, judged, state)


def _advice(judged: Judged) -> Iterator[str]:
    """What the next prompt says about a claim that nothing shows."""
    if UNCHANGED in judged.verdict.reasons:
        yield f"The story was claimed, but {UNCHANGED}; files that git ignores do not count."


def _meanwhile(runner: Runner, judged: Judged) -> StoryState:
    """The story's state before, with what a person asked of it while the agent ran."""
    begun = judged.worked.begun
    now = runner.session.story(begun.story.id if begun.story else None)
    return msgspec.structs.replace(
        begun.state,
        standing=now.standing,
        reason=now.reason,
        attempts=now.attempts,
        second_chance=now.second_chance,
    )


def _maybe_set_aside(runner: Runner, judged: Judged, state: StoryState) -> StoryState:
    """Quarantine after too many failed attempts; the last story has its second chance first."""
    story, stories = judged.worked.begun.story, judged.worked.stories
    if story is None or stories is None or judged.step.decision.word is not ExitDecision.CONTINUE:
        return state
    most = runner.config.limits.max_attempts
    saturated = story.id in judged.step.state.saturated
    worn_out = 0 < most <= state.attempts
    if not (saturated or worn_out) or judged.step.state.breaker.circuit is Circuit.OPEN:
        return state
    others = others_can_run(runner, stories, story.id)
    if not others and not judged.step.analysis.story_claimed:
        return state  # a last story that goes nowhere is the breaker's business
    reason = "only tests were written" if saturated else f"{state.attempts} attempts failed"
    return state.put_aside(reason, others=others)


def others_can_run(runner: Runner, stories: StoryList, story: str) -> bool:
    """Whether the run could go on with another story."""
    if runner.setup.options.only is not None:
        return False
    return runnable_besides(stories, runner.session.stories, story) > 0


def _passed(state: StoryState, grade: Grade | None) -> StoryState:
    return msgspec.structs.replace(
        state,
        standing=Standing.PASSED,
        grade=str(grade or ""),
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
        reason=recommendation or "the agent gave no reason",
    )


def _conversation(judged: Judged) -> str:
    """The conversation to go on with; one that could not be found is forgotten."""
    response, outcome = judged.worked.finished.response, judged.step.analysis.outcome
    if outcome is Outcome.STARTUP_ERROR:
        return ""
    return response.session_id or judged.worked.begun.state.session_id


def _effects(runner: Runner, judged: Judged, state: StoryState) -> Iterator[AnyEffect]:
    """What has to be done in the user's repository, in order."""
    story, passed = judged.worked.begun.story, judged.verdict.passed
    if story is not None and passed:
        yield Mark(story=story.id)
    yield from _progress_entry(runner, judged, state)
    if story is not None and state.standing is Standing.SET_ASIDE:
        yield SetAside(story=story.id, tree=state.start_tree, head=state.start_head)
    if story is not None and passed and runner.config.git.commit is CommitPolicy.STORY:
        yield Commit(story=story.id, title=story.title, grade=state.grade)


def _progress_entry(runner: Runner, judged: Judged, state: StoryState) -> Iterator[Progress]:
    analysis = judged.step.analysis
    counted = judged.worked.finished.response.model_output
    if analysis.outcome.is_infrastructure and not counted and not analysis.progress:
        return
    story = judged.worked.begun.story
    yield Progress(
        at=runner.clock(),
        task=f"{story.id}: {story.title}" if story else "the prompt",
        outcome=progress_outcome(judged),
        summary=_summary(judged, state),
    )


def progress_outcome(judged: Judged) -> str:
    """The word progress.txt uses for an iteration."""
    analysis = judged.step.analysis
    if judged.verdict.passed:
        return "passed"
    if analysis.outcome.is_infrastructure:
        return "interrupted"
    if analysis.status is not None and analysis.status.status is Status.BLOCKED:
        return "blocked"
    if analysis.story_claimed or (analysis.outcome in _FAILED_ENDINGS and not analysis.progress):
        return "failed"
    return "in_progress" if analysis.progress else "no_progress"


def _summary(judged: Judged, state: StoryState) -> str:
    analysis = judged.step.analysis
    said = analysis.status.recommendation if analysis.status else ""
    parts = [f"{state.grade}:" if judged.verdict.passed else "", said]
    if not judged.verdict.passed and analysis.story_claimed:
        parts.append(f"(claimed, but {'; '.join(judged.verdict.reasons)})")
    if analysis.outcome is not Outcome.COMPLETED:
        parts.append(f"[{analysis.outcome}]")
    return one_line(" ".join(part for part in parts if part) or "no summary was given", 300)


def _finished(
    runner: Runner,
    judged: Judged,
    story_state: StoryState,
    state: RunState,
    quota: dict[str, float],
) -> FinishedIteration:
    worked, analysis = judged.worked, judged.step.analysis
    response = worked.finished.response
    return FinishedIteration(
        run=runner.run,
        n=worked.begun.number,
        finished_at=runner.clock(),
        outcome=str(analysis.outcome),
        decision=str(judged.step.decision.word),
        status=str(analysis.status.status or "") if analysis.status else "",
        end_tree=worked.after.tree,
        spent=spent(
            used(response, worked.begun.state) + judged.noted.usage,
            response,
            analysis,
            judged.evidence,
        ),
        record=_record(judged),
        effects=tuple(_effects(runner, judged, story_state)),
        state=msgspec.json.encode(state),
        stories={_story_key(judged): story_state},
        meta={CIRCUIT_KEY: state.breaker, quota_key(runner.run): quota},
    )


def _quota_after(runner: Runner, judged: Judged) -> dict[str, float]:
    """The agents' quota clocks: who has to wait, and until when."""
    now, analysis = runner.clock(), judged.step.analysis
    limit = judged.worked.finished.response.rate_limit
    wait = quota_wait(limit.resets_at if limit else None, now, judged.step.state.outages)
    name = judged.worked.begun.member.name
    return crew.after(runner.session.quota, name, analysis.outcome, round(now + wait, 1))


def _record(judged: Judged) -> Iteration:
    """Everything worth knowing about the iteration later; texts are bounded."""
    worked, finished = judged.worked, judged.worked.finished
    carried, prompt = worked.begun.carried, worked.begun.prompt
    return Iteration(
        agent=worked.begun.member.name,
        response=_said(finished.response),
        end=finished.end,
        stopped_because=finished.stopped_because,
        evidence=judged.evidence,
        changed=ChangedFiles(
            count=worked.changed.count,
            insertions=worked.changed.insertions,
            deletions=worked.changed.deletions,
            subjects=worked.commits.subjects,
        ),
        analysis=judged.step.analysis,
        verdict=judged.verdict,
        decision=judged.step.decision,
        findings=judged.findings,
        tolerated=judged.tolerated,
        leftovers=finished.leftovers,
        stderr_tail=finished.stderr_tail[-2_000:],
        prompt=PromptSize(characters=len(prompt.text), left_out=prompt.left_out),
        learning=LearningShare(
            ids=carried.ids,
            skills=carried.skills,
            tokens=carried.tokens,
            held_out=carried.held_out,
            asked=judged.noted.notes,
        ),
    )


def _said(response: Response) -> Said:
    return Said(
        reader=response.reader,
        reason=response.reason,
        final_text=(response.final_text or "")[-_KEPT_TEXT:],
        text_chars=response.text_chars,
        session_id=response.session_id,
        model=response.model,
        usage=response.usage,
        tool_calls=response.tool_call_count,
        tools=response.tool_calls[-_KEPT_TOOLS:],
        denials=response.denials[:20],
        resets_at=response.rate_limit.resets_at if response.rate_limit else None,
    )


def _ended(runner: Runner, judged: Judged, state: StoryState) -> events.LoopEvent:
    """What became of the iteration, for those who watch."""
    worked, analysis = judged.worked, judged.step.analysis
    story = worked.begun.story
    return runner.bus.made(
        events.ITERATION_FINISHED,
        worked.begun.number,
        story=story.id if story else None,
        outcome=str(analysis.outcome),
        outcome_reason=worked.finished.stopped_because or worked.finished.response.reason,
        decision=str(judged.step.decision.word),
        reasons=list(judged.step.decision.reasons),
        verdict=list(judged.verdict.reasons),
        passed=judged.verdict.passed,
        claimed=analysis.story_claimed,
        status=str(analysis.status.status or "") if analysis.status else "",
        recommendation=analysis.status.recommendation if analysis.status else "",
        progress=list(analysis.progress_reasons),
        files_changed=worked.changed.count,
        commits=worked.commits.count,
        checks={check.name: str(check.status) for check in judged.checks},
        warnings=[*analysis.warnings, *_without_a_price(runner, judged)],
        stuck=[pattern.detail for pattern in analysis.stuck],
        cost_usd=cost_of(worked.finished.response, worked.begun.state),
        unpriced=int(is_unpriced(worked.finished.response)),
        tokens=used(worked.finished.response, worked.begun.state).total_tokens,
        duration_s=worked.finished.end.duration_s,
        attempts=state.attempts,
        findings=list(judged.findings),
    )


def _without_a_price(runner: Runner, judged: Judged) -> Iterator[str]:
    """Said once, and only where it could not be known before: a limit that is none."""
    response, member = judged.worked.finished.response, judged.worked.begun.member
    if not is_unpriced(response) or not runner.limits.max_cost_usd or runner.totals().unpriced:
        return
    from ralphloop.agents.prices import CANNOT_BE_KEPT, why_unpriced

    if not why_unpriced(member.name, member.config):
        model = response.model or member.config.model
        yield f"{CANNOT_BE_KEPT}{f'no price is known for {model}' if model else 'no cost was told'}"


def _tell_more(runner: Runner, judged: Judged, state: StoryState) -> None:
    """A story that waits now, for a person or for the others."""
    begun, type_ = judged.worked.begun, _WAITING.get(state.standing)
    if begun.story is not None and type_ is not None:
        named = {"story": begun.story.id, "title": begun.story.title}
        runner.bus.emit(type_, begun.number, **named, reason=state.reason)


def _story_key(judged: Judged) -> str:
    """Where the story's state is kept; a plain loop has one, without a name."""
    story = judged.worked.begun.story
    return story.id if story else ""
