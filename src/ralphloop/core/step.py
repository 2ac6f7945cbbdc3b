"""The two functions that decide.

`needs` names what has to be found out next about a start that has ended; the shell finds it out and
asks again until nothing is left.  `step` then folds the start into the run: the story's standing
and grade, attempts, quarantine and second chance, the circuit, the exit gate and the effects that
are owed.  Both are pure, so a night can be replayed, with other thresholds if one likes.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from ralphloop.core import breaker, progress, stuck
from ralphloop.core.analyzer import Claim, analyze, claim_of, final_words, says_promise, settle
from ralphloop.core.breaker import BreakerInput, BreakerState
from ralphloop.core.effects import AddProgress, AnyEffect, CommitStory, MarkStory, SaveLeftovers
from ralphloop.core.exit_gate import GateInput, decide
from ralphloop.core.grading import Proof, StoryVerdict, judge_story
from ralphloop.core.iteration import Iteration, Result, Start, kept
from ralphloop.core.limits import reached
from ralphloop.core.model import (
    Analysis,
    Circuit,
    Decision,
    Evidence,
    ExitDecision,
    Outcome,
    StuckPattern,
    Value,
)
from ralphloop.core.policy import UNANSWERED, Policy
from ralphloop.core.progress import Progress
from ralphloop.core.run_state import RunState
from ralphloop.core.spending import cost_of, spent, used
from ralphloop.core.story_after import entry_outcome, entry_summary, story_after
from ralphloop.core.story_state import Standing, StoryState, verify_was
from ralphloop.core.stuck import WindowEntry
from ralphloop.core.totals import Spent, Totals
from ralphloop.text.plain import counted
from ralphloop.text.speech import speech

VERIFY = "verify"  # the name of the check that is a story's own command


class Need(StrEnum):
    """What is to be found out next."""

    STATUS = "status"  # ask the same conversation for the block that is missing
    CHECKS = "checks"  # run them, the story's own command among them
    DOUBTS = "doubts"  # look at what the story did to tests, stories and history


class Step(Value, kw_only=True):
    """What an iteration led to."""

    state: RunState
    iteration: Iteration
    decision: Decision
    effects: tuple[AnyEffect, ...] = ()
    story: str = ""  # where its state is kept; a plain loop has one story without a name
    spent: Spent = Spent()

    @property
    def analysis(self) -> Analysis:
        return self.iteration.analysis

    @property
    def verdict(self) -> StoryVerdict:
        return self.iteration.verdict


def needs(
    state: RunState, start: Start, result: Result, evidence: Evidence, policy: Policy
) -> Need | None:
    """What to find out before the start can be judged; None once nothing is left."""
    if _is_to_be_asked(state, start, result, evidence, policy):
        return Need.STATUS
    claim = claim_of(result.heard, passes_set=evidence.passes_set)
    if settle(result.heard, result.end, evidence).is_infrastructure:
        return None
    if evidence.checks is None and (claim.story or claim.exit_signal):
        return Need.CHECKS
    if evidence.doubts is None and claim.story and start.story and not evidence.checks_cut:
        return Need.DOUBTS
    return None


def _is_to_be_asked(
    state: RunState, start: Start, result: Result, evidence: Evidence, policy: Policy
) -> bool:
    """A finished answer without a block, and asking for it is possible, new and within limits."""
    response = result.response
    if (
        settle(response, result.end, evidence) is not Outcome.COMPLETED
        or response.status is not None
    ):
        return False
    if not result.can_be_asked or result.asked is not None or not policy.ask_for_status:
        return False
    paid = msgspec.structs.replace(
        state,
        cost_usd=state.cost_usd + cost_of(response, start.state),
        active_s=state.active_s + result.end.duration_s,
    )
    limit = reached(policy.limits, _used(paid, start, result, evidence))
    return limit is None and state.unanswered < UNANSWERED


def step(state: RunState, start: Start, result: Result, evidence: Evidence, policy: Policy) -> Step:
    """Fold one start into the run."""
    response, before = result.heard, state
    claim = claim_of(response, passes_set=evidence.passes_set)
    outcome = settle(response, result.end, evidence)
    verdict = _verdict(start, claim, outcome, evidence)
    if evidence.stories_passed is None:
        evidence = msgspec.structs.replace(evidence, stories_passed=int(verdict.passed))
    moved = progress.assess(evidence, response.status, state.memory)
    analysis = analyze(
        response, evidence, claim, iteration=state.starts + 1, outcome=outcome, progress=moved
    )
    key = evidence.stories.current or ""
    was_open = _is_open(state, evidence, policy)
    state, analysis = _look_back(state, analysis, result, evidence, moved, policy)
    state = _circuit(state, analysis, evidence, moved, policy)
    state = _counters(state, analysis, result, start)
    story = story_after(
        state.story(key), start, result, evidence, analysis=analysis, verdict=verdict, policy=policy
    )
    state = state.with_stories(_entries(key, story, analysis, evidence))
    analysis = msgspec.structs.replace(
        analysis,
        circuit=state.breaker.circuit,
        transition=next(reversed(breaker.moves(before.breaker, state.breaker)), None),
    )
    decision = _interrupted(result) or decide(
        _gate_input(state, story, analysis, start, result, evidence, policy, was_open=was_open)
    )
    state, story = _quarantined(state, key, analysis, decision, evidence, policy)
    iteration = kept(
        start,
        result,
        evidence,
        analysis=analysis,
        verdict=verdict,
        decision=decision,
        findings=evidence.findings,
        limits=policy.limits,
    )
    return Step(
        state=state,
        iteration=iteration,
        decision=decision,
        effects=_effects(start, story, iteration, result, evidence, policy),
        story=key,
        spent=spent(used(response, start.state, result.asked), response, analysis, evidence),
    )


def _entries(
    key: str, story: StoryState, analysis: Analysis, evidence: Evidence
) -> dict[str, StoryState]:
    """Where the story is kept.  In a list without names each one that drops out is another."""
    is_apart = story.saturated or story.standing is Standing.BLOCKED
    if key or evidence.stories.total is None or not is_apart:
        return {key: story}
    open_again = msgspec.structs.replace(
        story, standing=Standing.OPEN, saturated=False, test_row=0, attempts=0
    )
    return {"": open_again, f"#{analysis.iteration}": story}


# --- the verdict -----------------------------------------------------------------------------


def _verdict(start: Start, claim: Claim, outcome: Outcome, evidence: Evidence) -> StoryVerdict:
    """Infrastructure and half-done work prove nothing; the rest is judged."""
    if outcome.is_infrastructure:
        return StoryVerdict(reasons=(f"the start ended {outcome}",))
    if evidence.unfinished and claim.story:
        return StoryVerdict(reasons=(evidence.unfinished,))
    if evidence.stories_passed is not None:  # somebody else judged it
        proof = _proof(start, msgspec.structs.replace(claim, story=True), evidence)
        return judge_story(proof) if evidence.stories_passed else StoryVerdict()
    if start.story is None or evidence.checks_cut:
        return StoryVerdict()
    return judge_story(_proof(start, claim, evidence))


def _proof(start: Start, claim: Claim, evidence: Evidence) -> Proof:
    checks, doubts = evidence.checks or (), evidence.doubts or ()
    began = start.state.start_tree or start.tree
    return Proof(
        claimed=claim.story,
        already_done=claim.already_done,
        changed=evidence.tree is None or began != evidence.tree,
        checks=tuple(check for check in checks if check.name != VERIFY),
        tolerated=evidence.comparison.tolerated,
        verify=next((check for check in checks if check.name == VERIFY), None),
        verify_was=verify_was(start.state, start.story) if start.story else None,
        turned_green=bool(evidence.comparison.turned_green),
        tests_added=evidence.tests_added,
        tampering=doubts,
        challenged=set(doubts) <= set(start.state.challenged),
    )


# --- what history shows ----------------------------------------------------------------------


def _is_open(state: RunState, evidence: Evidence, policy: Policy) -> bool:
    cooled = breaker.cool_down(state.breaker, iteration=state.starts, at=evidence.at, policy=policy)
    return cooled.circuit is Circuit.OPEN


def _look_back(
    state: RunState,
    analysis: Analysis,
    result: Result,
    evidence: Evidence,
    moved: Progress,
    policy: Policy,
) -> tuple[RunState, Analysis]:
    """Add what only history shows: stuck patterns and output decline."""
    memory = progress.remember(state.memory, evidence, moved)
    state = msgspec.structs.replace(state, memory=memory)
    if analysis.outcome.is_infrastructure:
        return state, analysis
    entry = WindowEntry(
        error=analysis.error_signature,
        reply=stuck.normalise_reply(speech(final_words(result.response))),
        tree=evidence.tree,
        progress=moved.made,
        revisited=moved.revisited,
    )
    window = (*state.window, entry)[-stuck.WINDOW :]
    chars, declined = result.response.text_chars, None
    if not moved.made:
        declined = stuck.output_decline(chars, state.lengths, policy.output_decline_percent)
    analysis = msgspec.structs.replace(
        analysis,
        stuck=stuck.detect_stuck_loop(window),
        decline=declined,
        warnings=(*analysis.warnings, *((declined.detail,) if declined else ())),
    )
    lengths = (*state.lengths, chars)[-stuck.MAX_LENGTHS :]
    return msgspec.structs.replace(state, window=window, lengths=lengths), analysis


def _circuit(
    state: RunState, analysis: Analysis, evidence: Evidence, moved: Progress, policy: Policy
) -> RunState:
    seen = BreakerInput(
        iteration=analysis.iteration,
        progress=moved.made,
        infrastructure=analysis.outcome.is_infrastructure,
        waits=analysis.is_blocked and evidence.stories.total is not None,
        error=analysis.error_signature,
        relieved=bool(moved.turned_green or (evidence.stories_passed or 0) > 0),
        output_declined=_detail(analysis.decline),
        at=evidence.at,
    )
    circuit = breaker.step(state.breaker, seen, policy)
    if analysis.is_blocked:
        words = f"{evidence.stories.current or 'the work'} is BLOCKED"
        circuit = breaker.note(circuit, words, iteration=analysis.iteration, at=evidence.at)
    idle = 0 if moved.made else state.idle_set_asides
    return msgspec.structs.replace(state, breaker=circuit, idle_set_asides=idle)


def _detail(pattern: StuckPattern | None) -> str | None:
    return pattern.detail if pattern else None


def _counters(state: RunState, analysis: Analysis, result: Result, start: Start) -> RunState:
    infrastructure = analysis.outcome.is_infrastructure
    paid = result.response.model_output
    startup, failures = state.startup_errors, state.paid_failures
    if not infrastructure:
        startup = failures = 0
    else:
        if analysis.outcome is Outcome.STARTUP_ERROR:
            startup += 1
        elif paid:
            startup = 0
        if analysis.progress:
            failures = 0
        elif paid:
            failures += 1
    return msgspec.structs.replace(
        state,
        starts=state.starts + 1,
        iterations=state.iterations + (paid or not infrastructure),
        cost_usd=state.cost_usd + cost_of(result.response, start.state, result.asked),
        active_s=state.active_s + result.end.duration_s,
        startup_errors=startup,
        paid_failures=failures,
        unanswered=state.unanswered + (result.asked is not None and result.asked.status is None),
        outages=state.outages + 1 if infrastructure else 0,
    )


# --- the decision ----------------------------------------------------------------------------


def _gate_input(
    state: RunState,
    story: StoryState,
    analysis: Analysis,
    start: Start,
    result: Result,
    evidence: Evidence,
    policy: Policy,
    *,
    was_open: bool,
) -> GateInput:
    passed, facts = evidence.stories_passed or 0, evidence.stories
    open_stories = 0 if facts.total is None else max(0, facts.total - facts.passed - passed)
    return GateInput(
        analysis=analysis,
        policy=policy,
        was_open=was_open,
        circuit=state.breaker.circuit,
        circuit_reason=state.breaker.reason,
        total=facts.total,
        open_stories=open_stories,
        runnable=_runnable(state, story, evidence, open_stories),
        waiting=state.count(Standing.BLOCKED),
        saturated=story.saturated,
        may_end_run=facts.exit_signal and analysis.story_claimed and passed > 0,
        promise=says_promise(result.response),
        checks_failed=bool(progress.failed_checks(evidence)),
        checks_ran=bool(evidence.checks),
        startup_errors=state.startup_errors,
        paid_failures=state.paid_failures,
        iterations=state.iterations,
        fatal_reason=result.response.reason,
        limit=reached(policy.limits, _used(state, start, result, evidence)),
        fallback=evidence.fallback,
    )


def _used(state: RunState, start: Start, result: Result, evidence: Evidence) -> Totals:
    """What the run has used, this start's money included."""
    if evidence.used is None:
        return Totals(cost_usd=state.cost_usd, active_s=state.active_s)
    cost = evidence.used.cost_usd + cost_of(result.response, start.state, result.asked)
    return msgspec.structs.replace(evidence.used, cost_usd=cost)


def _runnable(state: RunState, story: StoryState, evidence: Evidence, open_stories: int) -> int:
    """Open stories that may still be worked on after this iteration."""
    facts, passed = evidence.stories, bool(evidence.stories_passed)
    if facts.others is None:
        apart = sum(_is_apart(one) for one in state.stories.values())
        return max(0, open_stories - apart)
    if passed:
        return facts.others_if_passed
    return facts.others + (not _is_apart(story))


def _is_apart(story: StoryState) -> bool:
    return story.saturated or story.standing in (Standing.BLOCKED, Standing.SET_ASIDE)


def _interrupted(result: Result) -> Decision | None:
    if not result.end.interrupted:
        return None
    return Decision(word=ExitDecision.INTERRUPTED, reasons=("a person stopped the run",))


# --- quarantine ------------------------------------------------------------------------------


def _quarantined(
    state: RunState,
    key: str,
    analysis: Analysis,
    decision: Decision,
    evidence: Evidence,
    policy: Policy,
) -> tuple[RunState, StoryState]:
    """Set a story aside after too many failed attempts; a last one has its second chance first."""
    story = state.story(key)
    if not _is_worn_out(state, story, decision, evidence, policy):
        return state, story
    others = _others_can_run(state, key, evidence)
    if not others and not analysis.story_claimed:
        return state, story  # a last story that goes nowhere is the breaker's business
    words = (
        "only tests were written"
        if story.saturated
        else f"{counted(story.attempts, 'attempt')} failed"
    )
    story = story.put_aside(words, others=others)
    state = state.with_stories({key: story})
    if story.standing is Standing.SET_ASIDE:
        named = f"{key or 'the work'} was set aside"
        state = set_aside(state, named, at=evidence.at)
    return state, story


def _is_worn_out(
    state: RunState, story: StoryState, decision: Decision, evidence: Evidence, policy: Policy
) -> bool:
    if evidence.stories.total is None or evidence.stories.current is None:
        return False
    if story.standing is not Standing.OPEN or decision.word is not ExitDecision.CONTINUE:
        return False
    worn_out = 0 < policy.limits.max_attempts <= story.attempts
    return (story.saturated or worn_out) and state.breaker.circuit is not Circuit.OPEN


def _others_can_run(state: RunState, key: str, evidence: Evidence) -> bool:
    facts = evidence.stories
    if facts.others is not None:
        return facts.others > 0
    apart = sum(_is_apart(story) for name, story in state.stories.items() if name != key)
    return (facts.total or 0) - facts.passed - apart > 1


def set_aside(state: RunState, reason: str, *, at: float | None = None) -> RunState:
    """A story was quarantined: the next one starts CLOSED, unless nothing moves at all."""
    idle = state.idle_set_asides + 1
    circuit: BreakerState
    if idle >= 2:
        words = "two stories in a row were set aside without any progress"
        circuit = breaker.open_now(state.breaker, words, iteration=state.starts, at=at)
    else:
        circuit = breaker.reset(state.breaker, iteration=state.starts, at=at, reason=reason)
    return msgspec.structs.replace(state, breaker=circuit, idle_set_asides=idle)


# --- effects ---------------------------------------------------------------------------------


def _effects(
    start: Start,
    story: StoryState,
    iteration: Iteration,
    result: Result,
    evidence: Evidence,
    policy: Policy,
) -> tuple[AnyEffect, ...]:
    """What has to be done in the user's repository, in order."""
    passed, named = iteration.verdict.passed, start.story
    owed: list[AnyEffect] = []
    if named is not None and passed:
        owed.append(MarkStory(story=named.id))
    if result.response.model_output or iteration.analysis.leaves_a_trace:
        owed.append(
            AddProgress(
                at=evidence.at or 0.0,
                task=f"{named.id}: {named.title}" if named else "the prompt",
                outcome=entry_outcome(iteration),
                summary=entry_summary(iteration, story.grade),
            )
        )
    if named is not None and story.standing is Standing.SET_ASIDE:
        owed.append(SaveLeftovers(story=named.id, tree=story.start_tree, head=story.start_head))
    if named is not None and passed and policy.commits:
        owed.append(CommitStory(story=named.id, title=named.title, grade=story.grade))
    return tuple(owed)
