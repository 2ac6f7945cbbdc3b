"""The function that decides.

Once nothing is left to be found out (`needs`), `step` folds the start into the run: the story's
standing and grade, attempts, quarantine and second chance, the circuit, the exit gate and the
effects that are owed.  It is pure, so a night can be replayed, with other thresholds if one likes.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from ralphloop.core import breaker, progress
from ralphloop.core.analyzer import analyze, final_words, hear
from ralphloop.core.breaker import BreakerInput
from ralphloop.core.exit_gate import decide, silent_words
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
from ralphloop.core.policy import SILENT_STALLS, Policy, quota_wait, share_used
from ralphloop.core.progress import WindowEntry
from ralphloop.core.quota import free_again, too_full, updated
from ralphloop.core.run_state import RunState
from ralphloop.core.story_after import accounted, entry_outcome, entry_summary, spent, story_after
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
        decision = decide(state, story, one, was_open=cooled.circuit is Circuit.OPEN)
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
    said = hear(result, evidence)
    verdict = _verdict(start, result, said, evidence, policy)
    if evidence.stories_passed is None:
        evidence = replace(evidence, stories_passed=int(verdict.passed))
    moved = progress.assess(evidence, said.status, state.memory)
    brought = said.claims_done or moved.turned_green or evidence.stories_passed
    trail = () if brought else (*start.state.trail, progress.footprint(start.tree, evidence))
    words = progress.treading_water(trail, evidence, policy)
    if words and not said.says_nothing:
        moved = replace(moved, made=False, reasons=(words,), treading=True)
    used, _ = accounted(start.state, *result.answers)
    return Weighed(
        start=start,
        result=result,
        evidence=evidence,
        policy=policy,
        moved=moved,
        verdict=verdict,
        used=used,
        totals=totals_with(state, result, used, evidence),
        analysis=analyze(said, result.heard, evidence, moved, iteration=state.starts + 1),
        trail=trail[-policy.treading_window :],
    )


def _entries(key: str, story: StoryState, one: Weighed) -> dict[str, StoryState]:
    """Where the story is kept.  In a list without names each one that drops out is another."""
    if key or one.evidence.stories.total is None or not story.is_apart:
        return {key: story}
    fresh = {"saturated": False, "test_row": 0, "attempts": 0, "refusals": 0}
    open_again = replace(story, standing=Standing.OPEN, **fresh)
    return {"": open_again, f"#{one.analysis.iteration}": story}


def _verdict(
    start: Start, result: Result, said: Analysis, evidence: Evidence, policy: Policy
) -> StoryVerdict:
    """Infrastructure and half-done work prove nothing; the rest is judged."""
    is_judged = evidence.stories_passed is not None  # by somebody else
    if said.refused:
        return StoryVerdict(reasons=(result.response.reason,))
    if said.outcome.is_infrastructure:
        return StoryVerdict(reasons=(f"the start came to nothing ({said.outcome.words})",))
    if evidence.unfinished and said.story_claimed:
        return StoryVerdict(reasons=(evidence.unfinished,))
    if evidence.returned is not None:
        return StoryVerdict(reasons=(evidence.returned.words,))
    if is_judged and evidence.stories_passed:
        said = replace(said, story_claimed=True)
    elif is_judged or start.story is None or evidence.checks_cut:
        return StoryVerdict()
    return judge_story(proof_of(start, said, evidence, policy))


# --- what history shows ----------------------------------------------------------------------


def _look_back(state: RunState, one: Weighed) -> tuple[RunState, Weighed]:
    """Add what only history shows: stuck patterns and output decline."""
    moved, analysis, response = one.moved, one.analysis, one.result.response
    state = replace(state, memory=progress.remember(state.memory, one.evidence, moved))
    if one.analysis.says_nothing:
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
    if by_check and not (analysis.claims_done or moved.treading):
        error, checked, by_check = None, False, False  # an interim look at work in progress
    seen = BreakerInput(
        iteration=analysis.iteration,
        progress=moved.made,
        infrastructure=one.analysis.says_nothing,
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
    result, infrastructure = one.result, one.analysis.says_nothing
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


# --- what follows ----------------------------------------------------------------------------


def _away_until(state: RunState, one: Weighed) -> float:
    """When the agent may be started again, where its usage asks for a wait."""
    limit, at = one.result.response.rate_limit, one.evidence.at or 0.0
    if one.analysis.outcome is Outcome.USAGE_LIMIT:
        return at + quota_wait(limit.resets_at if limit else None, at, state.outages)
    reserve = one.policy.limits.reserve
    if full := too_full(state.quota, reserve, agent=one.start.agent, at=at):
        return at + quota_wait(free_again(full), at, 0)
    return 0.0


def _quarantined(
    state: RunState, key: str, one: Weighed, decision: Decision
) -> tuple[RunState, StoryState]:
    """Set a story aside after too many failed attempts; a last one has its second chance first."""
    story, facts = state.story(key), one.evidence.stories
    worn_out = story.saturated or 0 < one.policy.limits.max_attempts <= story.attempts
    is_silent = state.silent_stalls >= SILENT_STALLS
    share = "" if worn_out or is_silent else share_used(one.policy.limits, story.share)
    stays = facts.total is None or facts.current is None or story.standing is not Standing.OPEN
    stays = stays or state.breaker.circuit is Circuit.OPEN or not (worn_out or is_silent or share)
    if decision.word is not ExitDecision.CONTINUE or stays:
        return state, story
    if not facts.others and (share or not one.analysis.story_claimed):
        return state, story  # a last story that goes nowhere is the breaker's business
    failed = f"{counted(story.attempts, 'attempt')} failed"
    words = share or ("only tests were written" if story.saturated else failed)
    words = silent_words(state.silent_stalls) if is_silent else words
    story = story.put_aside(words, others=facts.others > 0)
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
    if one.result.response.model_output or one.moved.made or not one.analysis.says_nothing:
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
