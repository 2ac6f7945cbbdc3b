"""The function that decides.

Once nothing is left to be found out (`needs`), `step` folds the start into the run: the story's
standing and grade, attempts, quarantine and second chance, the circuit, the exit gate and the
effects that are owed.  It is pure, so a night can be replayed, with other thresholds if one likes.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from ralphloop.core import breaker, progress
from ralphloop.core.analyzer import (
    Claim,
    analyze,
    claim_of,
    final_words,
    is_refused,
    says_promise,
    settle,
)
from ralphloop.core.breaker import BreakerInput
from ralphloop.core.exit_gate import GateInput, decide, silent_words
from ralphloop.core.grading import StoryVerdict, judge_story
from ralphloop.core.iteration import (
    AddProgress,
    AnyEffect,
    CommitStory,
    Iteration,
    MarkStory,
    Result,
    SaveLeftovers,
    Start,
    Weighed,
    kept,
)
from ralphloop.core.model import Analysis, Circuit, Decision, Evidence, ExitDecision, Outcome, Value
from ralphloop.core.needs import proof_of, totals_with
from ralphloop.core.policy import (
    REFUSALS,
    SILENT_STALLS,
    Policy,
    quota_wait,
    reached,
    share_used,
)
from ralphloop.core.progress import WindowEntry
from ralphloop.core.quota import Windows, free_again, reserve_words, too_full, updated
from ralphloop.core.run_state import RunState
from ralphloop.core.story_after import (
    entry_outcome,
    entry_summary,
    spent,
    story_after,
    used,
)
from ralphloop.core.story_state import Standing, StoryState
from ralphloop.core.totals import Spent
from ralphloop.text.lines import speech
from ralphloop.text.plain import counted
from ralphloop.text.signatures import error_signature


class Step(Value, kw_only=True):
    state: RunState
    iteration: Iteration
    decision: Decision
    effects: tuple[AnyEffect, ...] = ()
    story: str = ""  # where its state is kept; a plain loop has one story without a name
    spent: Spent = Spent()
    away_until: float = 0.0  # the agent is not started before, for its usage; 0: no such time

    @property
    def analysis(self) -> Analysis:
        return self.iteration.analysis

    @property
    def verdict(self) -> StoryVerdict:
        return self.iteration.verdict


def step(state: RunState, start: Start, result: Result, evidence: Evidence, policy: Policy) -> Step:
    before, key = state.breaker, evidence.stories.current or ""
    cooled = breaker.cool_down(before, iteration=state.starts, at=evidence.at, policy=policy)
    one = _weighed(state, start, result, evidence, policy)
    state, one = _look_back(state, one)
    state = _counters(_circuit(state, one), one)
    story = story_after(state.story(key), one)
    state = state.with_stories(_entries(key, story, one))
    changes = breaker.moves(before, state.breaker)
    transition = changes[-1] if changes else None
    told = replace(one.analysis, circuit=state.breaker.circuit, transition=transition)
    one = replace(one, analysis=told)
    decision = Decision(word=ExitDecision.INTERRUPTED, reasons=("a person stopped the run",))
    if not result.end.interrupted:
        decision = decide(_gate_input(state, story, one, was_open=cooled.circuit is Circuit.OPEN))
    state, story = _quarantined(state, key, one, decision)
    return Step(
        state=state,
        iteration=kept(one, decision),
        decision=decision,
        effects=tuple(_effects(story, one)),
        story=key,
        spent=spent(one),
        away_until=_away_until(state, one),
    )


def _weighed(
    state: RunState, start: Start, result: Result, evidence: Evidence, policy: Policy
) -> Weighed:
    """The start by itself: what is claimed, what is proven, what moved."""
    response = result.heard
    claim = claim_of(response, passes_set=evidence.passes_set)
    outcome = settle(response, result.end, evidence)
    verdict = _verdict(start, claim, outcome, evidence, policy)
    if is_refused(response, outcome):
        verdict = StoryVerdict(reasons=(response.reason,))
    if evidence.stories_passed is None:
        evidence = replace(evidence, stories_passed=int(verdict.passed))
    moved = progress.assess(evidence, response.status, state.memory)
    brought = claim.story or claim.exit_signal or moved.turned_green or evidence.stories_passed
    trail = () if brought else (*start.state.trail, progress.footprint(start.tree, evidence))
    words = progress.treading_water(trail, evidence, policy)
    if words and not (outcome.is_infrastructure or is_refused(response, outcome)):
        moved = replace(moved, made=False, reasons=(words,), treading=True)
    return Weighed(
        start=start,
        result=result,
        evidence=evidence,
        policy=policy,
        moved=moved,
        verdict=verdict,
        used=used(result.response, start.state, result.asked),
        analysis=analyze(
            response, evidence, claim, iteration=state.starts + 1, outcome=outcome, progress=moved
        ),
        trail=trail[-policy.treading_window :],
    )


def _entries(key: str, story: StoryState, one: Weighed) -> dict[str, StoryState]:
    """Where the story is kept.  In a list without names each one that drops out is another."""
    is_apart = story.saturated or story.standing is Standing.BLOCKED
    if key or one.evidence.stories.total is None or not is_apart:
        return {key: story}
    fresh = {"saturated": False, "test_row": 0, "attempts": 0, "refusals": 0}
    open_again = replace(story, standing=Standing.OPEN, **fresh)
    return {"": open_again, f"#{one.analysis.iteration}": story}


# --- the verdict -----------------------------------------------------------------------------


def _verdict(
    start: Start, claim: Claim, outcome: Outcome, evidence: Evidence, policy: Policy
) -> StoryVerdict:
    """Infrastructure and half-done work prove nothing; the rest is judged."""
    if outcome.is_infrastructure:
        return StoryVerdict(reasons=(f"the start came to nothing ({outcome.words})",))
    if evidence.unfinished and claim.story:
        return StoryVerdict(reasons=(evidence.unfinished,))
    if evidence.returned is not None:
        return StoryVerdict(reasons=(evidence.returned.words,))
    if evidence.stories_passed is not None:  # somebody else judged it
        proof = proof_of(start, replace(claim, story=True), evidence, policy)
        return judge_story(proof) if evidence.stories_passed else StoryVerdict()
    if start.story is None or evidence.checks_cut:
        return StoryVerdict()
    return judge_story(proof_of(start, claim, evidence, policy))


# --- what history shows ----------------------------------------------------------------------


def _look_back(state: RunState, one: Weighed) -> tuple[RunState, Weighed]:
    """Add what only history shows: stuck patterns and output decline."""
    moved, analysis, response = one.moved, one.analysis, one.result.response
    state = replace(state, memory=progress.remember(state.memory, one.evidence, moved))
    if one.infrastructure:
        return state, one
    entry = WindowEntry(
        error=analysis.error_signature,
        reply=progress.normalise_reply(speech(final_words(response))),
        tree=one.evidence.tree,
        progress=moved.made,
        revisited=moved.revisited,
    )
    window = (*state.window, entry)[-progress.WINDOW :]
    chars, percent, declined = response.text_chars, one.policy.output_decline_percent, None
    if not moved.made:
        declined = progress.output_decline(chars, state.lengths, percent)
    analysis = replace(
        analysis,
        stuck=progress.detect_stuck_loop(window),
        decline=declined,
        warnings=(*analysis.warnings, *((declined.detail,) if declined else ())),
    )
    lengths = (*state.lengths, chars)[-progress.MAX_LENGTHS :]
    return replace(state, window=window, lengths=lengths), replace(one, analysis=analysis)


def _circuit(state: RunState, one: Weighed) -> RunState:
    analysis, evidence, moved = one.analysis, one.evidence, one.moved
    error, checked = analysis.error_signature, bool(evidence.checks)
    by_check = error is not None and error_signature(final_words(one.result.heard)) is None
    if by_check and not (one.claimed or moved.treading):
        error, checked, by_check = None, False, False  # an interim look at work in progress
    seen = BreakerInput(
        iteration=analysis.iteration,
        progress=moved.made,
        infrastructure=one.infrastructure,
        waits=analysis.is_blocked and evidence.stories.total is not None,
        error=error,
        by_check=by_check,
        checked=checked,
        relieved=bool(moved.turned_green or one.passed),
        output_declined=analysis.decline.detail if analysis.decline else None,
        at=evidence.at,
    )
    circuit = breaker.step(state.breaker, seen, one.policy)
    if analysis.is_blocked:
        words = f"{evidence.stories.current or 'the work'} is BLOCKED"
        circuit = breaker.note(circuit, words, iteration=analysis.iteration, at=evidence.at)
    idle = 0 if moved.made else state.idle_set_asides
    return replace(state, breaker=circuit, idle_set_asides=idle)


def _counters(state: RunState, one: Weighed) -> RunState:
    result, infrastructure = one.result, one.infrastructure
    startup, failures, paid = (
        state.startup_errors,
        state.paid_failures,
        result.response.model_output,
    )
    if one.analysis.outcome is Outcome.STARTUP_ERROR:
        startup += 1
    elif paid or not infrastructure:
        startup = 0
    if one.analysis.progress or not infrastructure:
        failures = 0
    elif paid:
        failures += 1
    told = result.response.rate_limit.windows if result.response.rate_limit else ()
    return replace(
        state,
        starts=state.starts + 1,
        iterations=state.iterations + (paid or not infrastructure),
        cost_usd=state.cost_usd + one.used.dollars,
        tokens=state.tokens + one.used.fresh_tokens,
        active_s=state.active_s + result.end.duration_s,
        startup_errors=startup,
        paid_failures=failures,
        silent_stalls=state.silent_stalls + 1 if result.is_silent else 0,
        quota=updated(state.quota, told, one.start.agent),
        unanswered=state.unanswered + (result.asked is not None and result.asked.status is None),
        outages=state.outages + 1 if infrastructure else 0,
    )


# --- the decision ----------------------------------------------------------------------------


def _gate_input(state: RunState, story: StoryState, one: Weighed, *, was_open: bool) -> GateInput:
    evidence, facts, response = one.evidence, one.evidence.stories, one.result.response
    limits, at, passed = one.policy.limits, evidence.at or 0.0, evidence.stories_passed or 0
    open_stories = 0 if facts.total is None else max(0, facts.total - facts.passed - passed)
    runnable = _runnable(state, story, evidence, open_stories)
    return GateInput(
        analysis=one.analysis,
        policy=one.policy,
        evidence=evidence,
        state=state,
        was_open=was_open,
        total=facts.total,
        open_stories=open_stories,
        runnable=runnable,
        refused=_refused_for_good(state, story, one, runnable),
        saturated=story.saturated,
        may_end_run=facts.exit_signal and one.analysis.story_claimed and passed > 0,
        promise=says_promise(response),
        fatal_reason=response.reason,
        limit=reached(limits, totals_with(state, one.used, evidence), at),
        others=_others(state, evidence),
        reserve=reserve_words(_too_full(state, one), limits.reserve, at),
    )


def _too_full(state: RunState, one: Weighed) -> Windows:
    """The agent's windows of which a further start would use what is to be left."""
    reserve, at = one.policy.limits.reserve, one.evidence.at or 0.0
    return too_full(state.quota, reserve, agent=one.start.agent, at=at)


def _away_until(state: RunState, one: Weighed) -> float:
    """When the agent may be started again, where its usage asks for a wait."""
    limit, at = one.result.response.rate_limit, one.evidence.at or 0.0
    if one.analysis.outcome is Outcome.USAGE_LIMIT:
        return at + quota_wait(limit.resets_at if limit else None, at, state.outages)
    if full := _too_full(state, one):
        return at + quota_wait(free_again(full), at, 0)
    return 0.0


def _runnable(state: RunState, story: StoryState, evidence: Evidence, open_stories: int) -> int:
    """Open stories that may still be worked on after this iteration."""
    facts = evidence.stories
    if facts.others is None:
        return max(0, open_stories - sum(_is_apart(one) for one in state.stories.values()))
    if evidence.stories_passed:
        return facts.others_if_passed
    return facts.others + (not _is_apart(story))


def _refused_for_good(state: RunState, story: StoryState, one: Weighed, runnable: int) -> str:
    """Why no request can be made any more: two stories were refused alike, or nothing is left."""
    if not one.analysis.refused or story.refusals < REFUSALS:
        return ""
    said = progress.normalise_reply(story.reason)
    alike = (other for other in state.stories.values() if other.refusals >= REFUSALS)
    count = sum(progress.normalise_reply(other.reason) == said for other in alike)
    is_last = one.evidence.stories.total is None or runnable == 0
    return story.reason if is_last or count > 1 else ""


def _others(state: RunState, evidence: Evidence) -> bool:
    facts = evidence.stories
    if facts.others is not None:
        return facts.others > 0
    key = facts.current or ""
    apart = sum(_is_apart(other) for name, other in state.stories.items() if name != key)
    return (facts.total or 0) - facts.passed - apart > 1


def _is_apart(story: StoryState) -> bool:
    return story.saturated or story.standing in (Standing.BLOCKED, Standing.SET_ASIDE)


# --- quarantine ------------------------------------------------------------------------------


def _quarantined(
    state: RunState, key: str, one: Weighed, decision: Decision
) -> tuple[RunState, StoryState]:
    """Set a story aside after too many failed attempts; a last one has its second chance first."""
    story, facts, others = state.story(key), one.evidence.stories, _others(state, one.evidence)
    worn_out = story.saturated or 0 < one.policy.limits.max_attempts <= story.attempts
    is_silent = state.silent_stalls >= SILENT_STALLS
    share = "" if worn_out or is_silent else share_used(one.policy.limits, story.share)
    stays = facts.total is None or facts.current is None or story.standing is not Standing.OPEN
    stays = stays or state.breaker.circuit is Circuit.OPEN or not (worn_out or is_silent or share)
    if decision.word is not ExitDecision.CONTINUE or stays:
        return state, story
    if not others and (share or not one.analysis.story_claimed):
        return state, story  # a last story that goes nowhere is the breaker's business
    failed = f"{counted(story.attempts, 'attempt')} failed"
    words = share or ("only tests were written" if story.saturated else failed)
    words = silent_words(state.silent_stalls) if is_silent else words
    story = story.put_aside(words, others=others)
    state = state.with_stories({key: story})
    state = replace(state, silent_stalls=0) if is_silent else state
    if story.standing is not Standing.SET_ASIDE:
        return state, story
    reason = f"{key or 'the work'} was set aside"
    return set_aside(state, reason, is_idle=not share, at=one.evidence.at), story


def set_aside(
    state: RunState, reason: str, *, is_idle: bool = True, at: float | None = None
) -> RunState:
    """A story was quarantined: the next one starts CLOSED, unless nothing moves at all."""
    idle = state.idle_set_asides + is_idle
    if is_idle and idle >= 2:
        words = "two stories in a row were set aside without any progress"
        circuit = breaker.open_now(state.breaker, words, iteration=state.starts, at=at)
    else:
        circuit = breaker.reset(state.breaker, iteration=state.starts, at=at, reason=reason)
    return replace(state, breaker=circuit, idle_set_asides=idle)


# --- effects ---------------------------------------------------------------------------------


def _effects(story: StoryState, one: Weighed) -> Iterator[AnyEffect]:
    """What has to be done in the user's repository, in order."""
    passed, named = one.verdict.passed, one.start.story
    if named is not None and passed:
        yield MarkStory(story=named.id)
    # Where the model never answered, only what it moved is worth an entry.
    if one.result.response.model_output or one.moved.made or not one.infrastructure:
        yield AddProgress(
            at=one.evidence.at or 0.0,
            task=f"{named.id}: {named.title}" if named else "the prompt",
            outcome=entry_outcome(one),
            summary=entry_summary(one, story.grade),
        )
    if named is not None and story.standing is Standing.SET_ASIDE:
        yield SaveLeftovers(story=named.id, tree=story.start_tree, head=story.start_head)
    if named is not None and passed and one.policy.commits:
        checked = one.evidence.checked_tree
        yield CommitStory(story=named.id, title=named.title, grade=story.grade, tree=checked)
