"""The two functions that decide.

`needs` says what to find out next about a start that has ended, until nothing is left.  What costs
most comes last, and only where it can still change something: of a story nobody claims, or whose
checks are red, nothing is tried.  Then `step` folds the start into the run.  Both are pure, so that
a night can be replayed, with other thresholds if one likes.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from msgspec.structs import replace

from ralphloop.core import breaker, progress
from ralphloop.core.analyzer import analyze, hear, own_error
from ralphloop.core.breaker import BreakerInput
from ralphloop.core.exit_gate import decide, silent_words
from ralphloop.core.grading import Grade, Proof, StoryVerdict, is_green, judge_story
from ralphloop.core.iteration import (
    AnyEffect,
    Assessment,
    CommitStory,
    Iteration,
    MarkStory,
    Result,
    SaveLeftovers,
    Start,
    kept,
)
from ralphloop.core.model import Analysis, Circuit, Decision, Evidence, ExitDecision, Outcome, Value
from ralphloop.core.policy import SILENT_STALLS, UNANSWERED, Policy, quota_wait, reached, share_used
from ralphloop.core.progress import WindowEntry
from ralphloop.core.proof import Trial
from ralphloop.core.run_state import (
    AGENT_GONE,
    Attempt,
    RunState,
    Standing,
    StoryState,
    verify_was,
)
from ralphloop.core.story_after import accounted, progress_entry, spent, story_after
from ralphloop.core.totals import Expense, Totals, Usage, free_again, too_full, updated
from ralphloop.text.lines import speech
from ralphloop.text.plain import counted


class Need(StrEnum):
    STATUS = "status"  # ask the same conversation for the block that is missing
    CHECKS = "checks"  # run them, the story's own command among them
    DOUBTS = "doubts"  # look at what the story did to stories, settings, history and scripts
    TRIAL = "trial"  # compare its tests with those before, and try them crosswise
    OPINIONS = "opinions"  # let those doubt who may


def needs(
    state: RunState, start: Start, result: Result, evidence: Evidence, policy: Policy
) -> Need | None:
    """What to find out before the start can be judged; None once nothing is left."""
    said = hear(result, evidence)
    is_missing = said.outcome is Outcome.COMPLETED and said.status is None and result.asked is None
    may_be_asked = result.can_be_asked and policy.ask_for_status and state.unanswered < UNANSWERED
    if is_missing and may_be_asked:
        used = accounted(start.state.conversation, result.response).own
        totals = totals_with(state, result, used, evidence)
        if not reached(policy.limits, totals, evidence.at or 0.0):
            return Need.STATUS
    if said.says_nothing or evidence.returned:
        return None
    every = policy.interim_checks  # without a claim, so that the agent hears how things stand
    is_due = every > 0 and (start.state.streak.unclaimed + 1) % every == 0
    if evidence.checks is None and (said.claims_done or is_due):
        return Need.CHECKS
    if not (said.story_claimed and start.story) or evidence.checks_cut:
        return None
    if evidence.doubts is None:  # from here on: what may speak against it, the dearest last
        return Need.DOUBTS
    proof = proof_of(start, said, evidence, policy)
    if proof.sent_back:
        return None  # nothing that could be found out lets it pass
    if evidence.trial is None and proof.changed and is_green(proof):
        return Need.TRIAL
    verdict = judge_story(proof)
    stands = verdict.passed and verdict.grade is not Grade.NEEDS_REVIEW
    return Need.OPINIONS if policy.doubts and evidence.opinions is None and stands else None


def proof_of(start: Start, said: Analysis, evidence: Evidence, policy: Policy) -> Proof:
    began = start.state.base.start_tree or start.tree
    return Proof(
        claimed=said.story_claimed,
        already_done=said.already_done,
        changed=evidence.tree is None or began != evidence.tree,
        sent_back=bool(evidence.work) and evidence.work in start.state.proof.works_sent_back,
        hollow=evidence.hollow,
        checks=evidence.checks or (),
        tolerated=evidence.comparison.tolerated,
        verify_was=verify_was(start.state, start.story) if start.story else None,
        turned_green=evidence.comparison.turned_green,
        trial=evidence.trial or Trial(),
        changed_tests=policy.changed_tests,
        ask_for_tests=policy.ask_for_tests,
        doubts=(*(evidence.doubts or ()), *(evidence.opinions or ())),
        challenged=start.state.proof.challenged,
    )


def totals_with(state: RunState, result: Result, now: Usage, evidence: Evidence) -> Totals:
    """What the run has used, this start's money and tokens included."""
    known = evidence.used or Totals(
        cost_usd=state.cost_usd,
        input_tokens=state.tokens,
        active_s=state.active_s + result.end.duration_s,
    )
    return replace(
        known,
        iterations=state.iterations,
        cost_usd=known.cost_usd + now.dollars,
        input_tokens=known.input_tokens + now.fresh_tokens,
    )


class Step(Value, kw_only=True):
    state: RunState
    iteration: Iteration
    decision: Decision
    effects: tuple[AnyEffect, ...] = ()
    story: str = ""  # where its state is kept; a plain loop has one story without a name
    spent: Expense = Expense()

    @property
    def analysis(self) -> Analysis:
        return self.iteration.analysis

    @property
    def verdict(self) -> StoryVerdict:
        return self.iteration.verdict


def step(state: RunState, start: Start, result: Result, evidence: Evidence, policy: Policy) -> Step:
    before = state.breaker
    key = evidence.stories.current or ""
    cooled = breaker.cool_down(before, iteration=state.starts, at=evidence.at, policy=policy)
    one = _weighed(state, start, result, evidence, policy)
    looked = _look_back(state, one)
    state = looked.state
    one = looked.assessment
    state = _counters(_circuit(state, one), one)
    story = story_after(state.story(key), one)
    entries = {key: story}
    if not key and evidence.stories.total is not None and story.is_apart:
        # In a list without names each one that drops out is another.
        entries = {"": _next_without_name(story), f"#{one.analysis.iteration}": story}
    state = state.with_stories(entries)
    changes = breaker.moves(before, state.breaker)
    transition = changes[-1] if changes else None
    told = replace(one.analysis, circuit=state.breaker.circuit, transition=transition)
    one = replace(one, analysis=told)
    decision = Decision(word=ExitDecision.INTERRUPTED, reasons=("a person stopped the run",))
    if not result.end.interrupted:
        decision = decide(state, story, one, was_open=cooled.circuit is Circuit.OPEN)
    state = _quarantined(state, key, one, decision)
    story = state.story(key)
    state = replace(state, agent_available_at=_availability(state, one))
    return Step(
        state=state,
        iteration=kept(one, decision),
        decision=decision,
        effects=tuple(_effects(story, one)),
        story=key,
        spent=spent(one),
    )


def _next_without_name(story: StoryState) -> StoryState:
    """What follows a story that dropped out of a list without names.

    It is begun anew but for what the loop as a whole goes on with: the share, whether a second
    chance was given, and the starts in a row that did not call anything done.
    """
    before = story.attempt
    return replace(
        story,
        standing=Standing.OPEN,
        attempt=Attempt(share=before.share, second_chance=before.second_chance),
        streak=replace(story.streak, test_row=0),
    )


def _availability(state: RunState, one: Assessment) -> dict[str, float]:
    """When each agent may be started again, after this start of one of them."""
    at = one.evidence.at or 0.0
    clock = _clock(one)
    known = {name: until for name, until in state.agent_available_at.items() if name != clock}
    if one.analysis.outcome is Outcome.FATAL:
        return {**known, clock: AGENT_GONE}
    if one.analysis.outcome is Outcome.USAGE_LIMIT:
        resets_at = one.result.response.rate_limit.resets_at
        return {**known, clock: round(at + quota_wait(resets_at, at, state.outages), 1)}
    full = too_full(state.usage_windows, one.policy.limits.reserve, agent=one.start.party, at=at)
    if full:
        return {**known, clock: round(at + quota_wait(free_again(full), at, 0), 1)}
    return known


def _clock(one: Assessment) -> str:
    """The name by which it is known when the agent of this start may be started again."""
    clocks = one.start.clocks
    is_fatal = one.analysis.outcome is Outcome.FATAL
    return (clocks.of_failure if is_fatal else clocks.of_limit) or one.start.agent


def _weighed(
    state: RunState, start: Start, result: Result, evidence: Evidence, policy: Policy
) -> Assessment:
    said = hear(result, evidence)
    verdict = _verdict(start, result, said, evidence, policy)
    if evidence.stories_passed is None:
        evidence = replace(evidence, stories_passed=int(verdict.passed))
    moved = progress.assess(evidence, said.status, state.memory)
    brought = said.claims_done or moved.turned_green or evidence.stories_passed
    trail = () if brought else (*start.state.streak.trail, progress.footprint(start.tree, evidence))
    words = progress.treading_water(trail, evidence, policy)
    if words and not said.says_nothing:
        moved = replace(moved, made=False, reasons=(words,), treading=True)
    asked = () if result.asked is None else (result.asked,)
    usage = accounted(start.state.conversation, result.response, *asked)
    own = usage.own + evidence.reviewed
    return Assessment(
        start=start,
        result=result,
        evidence=evidence,
        policy=policy,
        moved=moved,
        verdict=verdict,
        used=own,
        session_usage=usage.conversation,
        totals=totals_with(state, result, own, evidence),
        analysis=analyze(said, result.heard, evidence, moved, iteration=state.starts + 1),
        trail=trail[-policy.treading_window :],
    )


def _verdict(
    start: Start, result: Result, said: Analysis, evidence: Evidence, policy: Policy
) -> StoryVerdict:
    """Infrastructure and half-done work prove nothing; the rest is judged."""
    is_judged = evidence.stories_passed is not None  # by somebody else
    if said.refused:
        return StoryVerdict(reasons=(result.response.reason,))
    if said.outcome.is_infrastructure:
        return StoryVerdict(reasons=(f"the start failed ({said.outcome.words})",))
    if evidence.unfinished and said.story_claimed:
        return StoryVerdict(reasons=(evidence.unfinished,))
    if evidence.returned is not None:
        return StoryVerdict(reasons=(evidence.returned.words,))
    if is_judged and evidence.stories_passed:
        said = replace(said, story_claimed=True)
    elif is_judged or start.story is None or evidence.checks_cut:
        return StoryVerdict()
    return judge_story(proof_of(start, said, evidence, policy))


class LookedBack(NamedTuple):
    state: RunState
    assessment: Assessment


def _look_back(state: RunState, one: Assessment) -> LookedBack:
    """Add what only history shows: stuck patterns and output decline."""
    moved = one.moved
    analysis = one.analysis
    response = one.result.response
    state = replace(state, memory=progress.remember(state.memory, one.evidence, moved))
    if one.analysis.says_nothing:
        return LookedBack(state, one)
    entry = WindowEntry(
        error=analysis.error_signature,
        reply=progress.normalise_reply(speech(response.final_words)),
        tree=one.evidence.tree,
        progress=moved.made,
        revisited=moved.revisited,
    )
    window = (*state.window, entry)[-progress.window_size(one.policy) :]
    stuck = progress.detect_stuck_loop(window, one.policy)
    chars = response.text_chars
    percent = one.policy.output_decline_percent
    declined = None
    if not moved.made:
        declined = progress.output_decline(chars, state.lengths, percent)
    warnings = analysis.warnings
    if declined:
        warnings = (*warnings, declined.detail)
    analysis = replace(
        analysis,
        stuck=stuck,
        decline=declined,
        warnings=warnings,
    )
    lengths = (*state.lengths, chars)[-progress.MAX_LENGTHS :]
    signs = progress.signs_for_prompt(window, one.policy)
    state = replace(state, window=window, lengths=lengths, stuck=signs)
    return LookedBack(state, replace(one, analysis=analysis))


def _circuit(state: RunState, one: Assessment) -> RunState:
    analysis = one.analysis
    evidence = one.evidence
    moved = one.moved
    error = analysis.error_signature
    checked = bool(evidence.checks)
    by_check = error is not None and own_error(one.result.heard) is None
    if by_check and not (analysis.claims_done or moved.treading):
        # an interim look at work in progress
        error = None
        checked = False
        by_check = False
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


def _counters(state: RunState, one: Assessment) -> RunState:
    result = one.result
    response = one.result.response
    infrastructure = one.analysis.says_nothing
    startup = state.startup_errors
    failures = state.paid_failures
    if one.analysis.outcome is Outcome.STARTUP_ERROR:
        startup += 1
    elif one.counts:
        startup = 0
    iterations = state.iterations
    if one.counts:
        iterations += 1
    unanswered = state.unanswered
    if result.asked is not None and result.asked.status is None:
        unanswered += 1
    if one.analysis.progress or not infrastructure:
        failures = 0
    elif response.model_output:
        failures += 1
    return replace(
        state,
        starts=state.starts + 1,
        iterations=iterations,
        cost_usd=state.cost_usd + one.used.dollars,
        tokens=state.tokens + one.used.fresh_tokens,
        active_s=state.active_s + result.end.duration_s,
        startup_errors=startup,
        paid_failures=failures,
        silent_stalls=state.silent_stalls + 1 if result.is_silent else 0,
        usage_windows=updated(state.usage_windows, response.rate_limit.windows, one.start.party),
        unanswered=unanswered,
        outages=_outages(state, one),
    )


def _outages(state: RunState, one: Assessment) -> int:
    """Infrastructure endings in a row; a limit that another start met before is the same one."""
    if not one.analysis.says_nothing:
        return 0
    is_limit = one.analysis.outcome is Outcome.USAGE_LIMIT
    if is_limit and state.agent_available_at.get(_clock(one), 0.0) > (one.evidence.at or 0.0):
        return state.outages
    return state.outages + 1


def _quarantined(state: RunState, key: str, one: Assessment, decision: Decision) -> RunState:
    """Set a story aside after too many failed attempts; a last one has its second chance first."""
    story = state.story(key)
    facts = one.evidence.stories
    worn_out = story.attempt.saturated or 0 < one.policy.limits.max_attempts <= story.attempt.failed
    is_silent = state.silent_stalls >= SILENT_STALLS
    share = ""
    if not (worn_out or is_silent):
        is_met = one.result.end.ceiling == "share"
        share = share_used(one.policy.limits, story.attempt.share, is_met=is_met)
    stays = facts.total is None or facts.current is None or story.standing is not Standing.OPEN
    stays = stays or state.breaker.circuit is Circuit.OPEN or not (worn_out or is_silent or share)
    if decision.word is not ExitDecision.CONTINUE or stays:
        return state
    if not facts.others and (share or not one.analysis.story_claimed):
        return state  # a last story that goes nowhere is the breaker's business
    failed = f"{counted(story.attempt.failed, 'attempt')} failed"
    words = share or ("only tests were written" if story.attempt.saturated else failed)
    words = silent_words(state.silent_stalls) if is_silent else words
    story = story.put_aside(words, others=facts.others > 0)
    state = state.with_stories({key: story})
    state = replace(state, silent_stalls=0) if is_silent else state
    if story.standing is not Standing.SET_ASIDE:
        return state
    # The next one starts CLOSED, unless nothing moves at all.
    idle = state.idle_set_asides
    if not share:
        idle += 1
    at = one.evidence.at
    if not share and idle >= 2:
        words = "two stories in a row were set aside without any progress"
        circuit = breaker.open_now(state.breaker, words, iteration=state.starts, at=at)
    else:
        words = f"{key or 'the work'} was set aside"
        circuit = breaker.reset(state.breaker, iteration=state.starts, at=at, reason=words)
    return replace(state, breaker=circuit, idle_set_asides=idle)


def _effects(story: StoryState, one: Assessment) -> Iterator[AnyEffect]:
    passed = one.verdict.passed
    named = one.start.story
    if named is not None and passed:
        yield MarkStory(story=named.id)
    # Where the model never answered, only what it moved is worth an entry.
    if one.counts or one.moved.made:
        yield progress_entry(one, story.proof.grade)
    if named is not None and story.standing is Standing.SET_ASIDE:
        yield SaveLeftovers(story=named.id, tree=story.base.start_tree, head=story.base.start_head)
    if named is not None and passed and one.policy.commits:
        yield CommitStory(
            story=named.id,
            title=named.title,
            grade=story.proof.grade,
            tree=one.evidence.checked_tree,
            head=one.evidence.head,
        )
