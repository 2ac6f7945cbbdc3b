"""The run as a fold over its iterations.

`advance` takes the state before an iteration and what the iteration was, and returns the state
after it, the analysis and the decision.  Nothing else remembers anything, so a run can be replayed
from its journal, with other thresholds if one likes, and a restart only needs the last state.
Every collection in the state is bounded.
"""

from __future__ import annotations

import msgspec

from ralphloop.core import breaker, progress, stuck
from ralphloop.core.analyzer import analyze, final_words, says_promise
from ralphloop.core.breaker import BreakerState, Observation
from ralphloop.core.exit_gate import Situation, decide
from ralphloop.core.model import (
    Analysis,
    Circuit,
    Decision,
    Evidence,
    ExitDecision,
    Outcome,
    ProcessEnd,
    Response,
    StoryFacts,
    StuckPattern,
    Value,
)
from ralphloop.core.outcome import settle
from ralphloop.core.policy import Policy
from ralphloop.core.progress import Memory, Progress
from ralphloop.core.stuck import Glimpse
from ralphloop.text.speech import speech
from ralphloop.text.status import Status

MAX_STORIES_REMEMBERED = 10_000
_WHOLE_RUN = ""  # the story key where no story is named


class RunState(Value, kw_only=True):
    """All that later decisions need of earlier iterations."""

    starts: int = 0  # every start of the agent
    iterations: int = 0  # those that count: the agent worked, or it was paid for
    breaker: BreakerState = BreakerState()
    memory: Memory = Memory()
    window: tuple[Glimpse, ...] = ()
    lengths: tuple[int, ...] = ()  # characters of own text, agent iterations only
    test_rows: dict[str, int] = msgspec.field(
        default_factory=dict
    )  # story -> test-only iterations in a row
    blocked: tuple[str, ...] = ()  # stories that wait for a person
    saturated: tuple[str, ...] = ()  # stories set aside for test-only work
    startup_errors: int = 0
    paid_failures: int = 0
    outages: int = 0  # infrastructure endings in a row: how long to back off
    idle_set_asides: int = 0  # stories set aside in a row without progress between


class Happening(Value, kw_only=True):
    """One iteration as it happened: the claim, the evidence and what the loop knows."""

    response: Response
    evidence: Evidence = Evidence()
    end: ProcessEnd = ProcessEnd()
    facts: StoryFacts = StoryFacts()
    passes_set: bool = False  # the agent flipped this story's `passes` itself
    others_runnable: int | None = None  # other stories the loop could run; None: from totals
    limit: Decision | None = None
    fallback: bool = False  # another agent can take over
    at: float | None = None


class Step(Value, kw_only=True):
    """What an iteration led to."""

    state: RunState
    analysis: Analysis
    decision: Decision


def advance(state: RunState, now: Happening, policy: Policy) -> Step:
    """Fold one iteration into the run."""
    outcome = settle(now.response, now.end, now.evidence)
    moved = progress.assess(now.evidence, now.response.status, state.memory)
    analysis = analyze(
        now.response,
        now.evidence,
        now.facts,
        iteration=state.starts + 1,
        outcome=outcome,
        progress=moved,
        passes_set=now.passes_set,
    )
    was_open, before = _is_open(state, now, policy), state.breaker
    state, analysis = _look_back(state, analysis, now, moved, policy)
    state = _circuit(state, analysis, now, moved, policy)
    state, saturated = _stories(state, analysis, now, policy)
    state = _counters(state, analysis, now)
    analysis = _with_circuit(analysis, before, state.breaker)
    decision = decide(_situation(state, analysis, now, policy, was_open, saturated))
    return Step(state=state, analysis=analysis, decision=_interrupted(now) or decision)


def reset_circuit(state: RunState, *, at: float | None = None) -> RunState:
    """What `--reset-circuit` does: CLOSED, counts at zero."""
    cleared = breaker.reset(state.breaker, iteration=state.starts, at=at)
    return msgspec.structs.replace(state, breaker=cleared, idle_set_asides=0)


def set_aside(state: RunState, reason: str, *, at: float | None = None) -> RunState:
    """A story was quarantined: the next one starts CLOSED, unless nothing moves at all."""
    idle = state.idle_set_asides + 1
    if idle >= 2:
        circuit = breaker.open_now(
            state.breaker,
            "two stories in a row were set aside without any progress",
            iteration=state.starts,
            at=at,
        )
    else:
        circuit = breaker.reset(state.breaker, iteration=state.starts, at=at, reason=reason)
    return msgspec.structs.replace(state, breaker=circuit, idle_set_asides=idle)


def _is_open(state: RunState, now: Happening, policy: Policy) -> bool:
    cooled = breaker.cool_down(state.breaker, iteration=state.starts, at=now.at, policy=policy)
    return cooled.circuit is Circuit.OPEN


def _look_back(
    state: RunState, analysis: Analysis, now: Happening, moved: Progress, policy: Policy
) -> tuple[RunState, Analysis]:
    """Add what only history shows: stuck patterns and output decline."""
    memory = progress.remember(state.memory, now.evidence, moved)
    state = msgspec.structs.replace(state, memory=memory)
    if analysis.outcome.is_infrastructure:
        return state, analysis
    glimpse = Glimpse(
        error=analysis.error_signature,
        reply=stuck.normalise_reply(speech(final_words(now.response))),
        tree=now.evidence.tree,
        progress=moved.made,
        revisited=moved.revisited,
    )
    window = (*state.window, glimpse)[-stuck.WINDOW :]
    chars = now.response.text_chars
    declined = None
    if not moved.made:
        declined = stuck.output_decline(chars, state.lengths, policy.output_decline_percent)
    patterns = stuck.detect_stuck_loop(window)
    analysis = msgspec.structs.replace(
        analysis,
        stuck=patterns,
        decline=declined,
        warnings=(*analysis.warnings, *((declined.detail,) if declined else ())),
    )
    lengths = (*state.lengths, chars)[-stuck.MAX_LENGTHS :]
    return msgspec.structs.replace(state, window=window, lengths=lengths), analysis


def _circuit(
    state: RunState, analysis: Analysis, now: Happening, moved: Progress, policy: Policy
) -> RunState:
    infrastructure = analysis.outcome.is_infrastructure
    seen = Observation(
        iteration=analysis.iteration,
        progress=moved.made,
        infrastructure=infrastructure,
        waits=_is_blocked(analysis) and now.facts.total is not None,
        error=analysis.error_signature,
        relieved=bool(moved.turned_green or (now.evidence.stories_passed or 0) > 0),
        output_declined=_detail(analysis.decline),
        at=now.at,
    )
    circuit = breaker.step(state.breaker, seen, policy)
    if _is_blocked(analysis):
        story = now.facts.current or "the work"
        circuit = breaker.note(
            circuit, f"{story} is BLOCKED", iteration=analysis.iteration, at=now.at
        )
    idle = 0 if moved.made else state.idle_set_asides
    return msgspec.structs.replace(state, breaker=circuit, idle_set_asides=idle)


def _stories(
    state: RunState, analysis: Analysis, now: Happening, policy: Policy
) -> tuple[RunState, bool]:
    """Test-only rows, saturated and blocked stories."""
    if analysis.outcome.is_infrastructure:
        return state, False
    key = now.facts.current or _WHOLE_RUN
    story = now.facts.current or f"#{analysis.iteration}"  # unnamed: each is another story
    passed = (now.evidence.stories_passed or 0) > 0
    row = state.test_rows.get(key, 0) + 1 if analysis.test_only and not passed else 0
    saturated = 0 < policy.test_saturation <= row
    state = msgspec.structs.replace(
        state,
        test_rows=_counted(state.test_rows, key, 0 if saturated else row),
        saturated=_listed(state.saturated, story, present=saturated),
        blocked=_listed(state.blocked, story, present=_is_blocked(analysis)),
    )
    return state, saturated


def _counters(state: RunState, analysis: Analysis, now: Happening) -> RunState:
    infrastructure = analysis.outcome.is_infrastructure
    paid = now.response.model_output
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
        startup_errors=startup,
        paid_failures=failures,
        outages=state.outages + 1 if infrastructure else 0,
    )


def _situation(
    state: RunState,
    analysis: Analysis,
    now: Happening,
    policy: Policy,
    was_open: bool,
    saturated: bool,
) -> Situation:
    passed = now.evidence.stories_passed or 0
    total = now.facts.total
    open_stories = 0 if total is None else max(0, total - now.facts.passed - passed)
    checks = now.evidence.checks or ()
    return Situation(
        analysis=analysis,
        policy=policy,
        was_open=was_open,
        circuit=state.breaker.circuit,
        circuit_reason=state.breaker.reason,
        total=total,
        open_stories=open_stories,
        runnable=_runnable(state, now, open_stories),
        waiting=len(state.blocked),
        saturated=saturated,
        may_end_run=now.facts.exit_signal and analysis.story_claimed and passed > 0,
        promise=says_promise(now.response),
        checks_failed=bool(progress.failed_checks(now.evidence)),
        checks_ran=bool(checks),
        startup_errors=state.startup_errors,
        paid_failures=state.paid_failures,
        iterations=state.iterations,
        fatal_reason=now.response.reason,
        limit=now.limit,
        fallback=now.fallback,
    )


def _runnable(state: RunState, now: Happening, open_stories: int) -> int:
    """Open stories that may still be worked on after this iteration."""
    unavailable = {*state.blocked, *state.saturated}
    if now.others_runnable is None:
        return max(0, open_stories - len(unavailable))
    passed = (now.evidence.stories_passed or 0) > 0
    return now.others_runnable + (not passed and now.facts.current not in unavailable)


def _with_circuit(analysis: Analysis, before: BreakerState, after: BreakerState) -> Analysis:
    newest = next(reversed(breaker.moves(before, after)), None)
    return msgspec.structs.replace(analysis, circuit=after.circuit, transition=newest)


def _interrupted(now: Happening) -> Decision | None:
    if not now.end.interrupted:
        return None
    return Decision(word=ExitDecision.INTERRUPTED, reasons=("a person stopped the run",))


def _is_blocked(analysis: Analysis) -> bool:
    if analysis.outcome.is_infrastructure or analysis.status is None:
        return False
    return analysis.status.status is Status.BLOCKED


def _detail(pattern: StuckPattern | None) -> str | None:
    return pattern.detail if pattern else None


def _counted(rows: dict[str, int], key: str, row: int) -> dict[str, int]:
    rest = {story: count for story, count in rows.items() if story != key}
    return rest | {key: row} if row else rest


def _listed(stories: tuple[str, ...], story: str, *, present: bool) -> tuple[str, ...]:
    """The list with `story` added, or taken out once it passed or was worked on again."""
    rest = tuple(other for other in stories if other != story)
    return (*rest, story)[-MAX_STORIES_REMEMBERED:] if present else rest
