"""Labelled decision cases: one JSON object a line, played through the readers and the core.

The format is how decisions are tested, how thresholds are tried on recorded nights, and how a wrong
decision is reported.  A case is a list of iterations, each with raw agent output, the evidence
there was, and what is expected of the analysis; see `docs/reference/cases.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import msgspec

from ralphloop.core.interventions import CircuitReset, SecondChance, intervene
from ralphloop.core.iteration import Result, Start
from ralphloop.core.limits import Limits
from ralphloop.core.model import (
    Analysis,
    CheckResult,
    CheckStatus,
    Decision,
    Evidence,
    ProcessEnd,
    Response,
    StoryFacts,
    Value,
)
from ralphloop.core.policy import Policy
from ralphloop.core.run_state import RunState
from ralphloop.core.step import Need, needs
from ralphloop.core.step import step as take_step
from ralphloop.core.story_state import Standing, StoryState
from ralphloop.errors import InputError
from ralphloop.readers import read


class CaseEvidence(Value, kw_only=True):
    files_changed: int | None = None
    commits: int | None = None
    checks: str | None = None  # passed, failed, no_tests; anything else: none ran
    stories_passed: int | None = None
    tree: str | None = None


class CaseIteration(Value, kw_only=True):
    output: str = ""
    asked: str | None = None  # what it answered when it was asked for the missing block
    stderr: str = ""
    exit_code: int | None = 0
    timed_out: bool = False
    stalled: bool = False
    duration_s: float = 0.0
    story: str | None = None
    story_about_tests: bool = False
    story_exit_signal: bool = False
    work_files: tuple[str, ...] | None = None
    evidence: CaseEvidence | None = None
    action: Literal["reset"] | None = None
    expect: dict[str, Any] = msgspec.field(default_factory=dict)


class CaseStories(Value, kw_only=True):
    total: int
    passed: int = 0


class Case(Value, kw_only=True):
    id: str
    title: str = ""
    source: str = ""
    policy: dict[str, Any] = msgspec.field(default_factory=dict)
    limits: dict[str, Any] = msgspec.field(default_factory=dict)
    agent: str | None = None
    stories: CaseStories | None = None
    iterations: tuple[CaseIteration, ...]


class Mismatch(Value, kw_only=True):
    iteration: int
    key: str
    expected: Any
    got: Any


class CaseResult(Value, kw_only=True):
    id: str
    ok: bool
    mismatches: tuple[Mismatch, ...]
    decisions: tuple[str, ...]


class Played(Value, kw_only=True):
    """One step of a case: an iteration's verdict, or None where an action was taken."""

    state: RunState
    story: StoryState = StoryState()  # the one it worked on
    analysis: Analysis | None = None
    decision: Decision | None = None


def parse_cases(lines: Iterator[bytes], place: str) -> Iterator[Case]:
    """Cases of a JSON Lines file; a bad line is an error with its number."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield msgspec.json.decode(line, type=Case)
        except (msgspec.DecodeError, RecursionError) as error:
            raise InputError(
                str(error) or "nested too deeply",
                "One JSON object a line: id, iterations[{output, evidence, expect}], policy, …",
                place=f"{place}:{number}",
            ) from None


def case_policy(case: Case, overrides: Mapping[str, Any]) -> Policy:
    """The case's thresholds with the overrides on top; a wrong key or type is an input error."""
    merged = {**case.policy, **case.limits, **overrides}
    limits = {name: merged.pop(name) for name in Limits.__struct_fields__ if name in merged}
    try:
        return msgspec.convert({**merged, "limits": limits}, type=Policy, strict=False)
    except msgspec.ValidationError as error:
        known = ", ".join((*Policy.__struct_fields__, *Limits.__struct_fields__))
        raise InputError(
            str(error), f"Known keys: {known}.", place=f"policy of {case.id}"
        ) from None


def play(case: Case, policy: Policy) -> Iterator[Played]:
    """Fold the case's iterations, yielding every step."""
    state = RunState()
    passed = case.stories.passed if case.stories else 0
    clock = 0.0
    for iteration in case.iterations:
        clock += iteration.duration_s
        if iteration.action == "reset":
            state = intervene(state, CircuitReset(at=clock), policy)
            yield Played(state=state)
            continue
        if iteration.story and state.story(iteration.story).standing is Standing.SET_ASIDE:
            state = intervene(state, SecondChance(story=iteration.story), policy)
        evidence = _evidence(case, iteration, passed, clock)
        start = Start(number=state.starts + 1, state=state.story(iteration.story))
        result = _result(case, iteration)
        if needs(state, start, result, evidence, policy) is Need.STATUS:
            result = msgspec.structs.replace(result, asked=_read(case, iteration.asked or ""))
        taken = take_step(state, start, result, evidence, policy)
        state, passed = taken.state, passed + (evidence.stories_passed or 0)
        story = state.story(taken.story)
        yield Played(state=state, story=story, analysis=taken.analysis, decision=taken.decision)


def judge(case: Case, overrides: Mapping[str, Any]) -> CaseResult:
    """Play a case and compare every expectation."""
    mismatches: list[Mismatch] = []
    decisions: list[str] = []
    steps = play(case, case_policy(case, overrides))
    for number, (iteration, step) in enumerate(zip(case.iterations, steps, strict=True), start=1):
        decisions.append(str(step.decision.word) if step.decision else "reset")
        for key, expected in iteration.expect.items():
            got, agrees = _compare(key, expected, step)
            if not agrees:
                mismatches.append(Mismatch(iteration=number, key=key, expected=expected, got=got))
    return CaseResult(
        id=case.id, ok=not mismatches, mismatches=tuple(mismatches), decisions=tuple(decisions)
    )


def _result(case: Case, iteration: CaseIteration) -> Result:
    response = _read(case, iteration.output, iteration.exit_code, iteration.stderr)
    end = ProcessEnd(
        exit_code=iteration.exit_code,
        timed_out=iteration.timed_out,
        stalled=iteration.stalled,
        duration_s=iteration.duration_s,
    )
    return Result(response=response, end=end, can_be_asked=iteration.asked is not None)


def _read(case: Case, output: str, exit_code: int | None = 0, stderr: str = "") -> Response:
    return read(
        output.encode("utf-8", "surrogatepass"),
        agent=case.agent or "auto",
        exit_code=exit_code,
        stderr=stderr,
    )


def _evidence(case: Case, iteration: CaseIteration, passed: int, clock: float) -> Evidence:
    given = iteration.evidence or CaseEvidence()
    checks = None
    if given.checks in set(CheckStatus):
        checks = (CheckResult(name="checks", status=CheckStatus(given.checks)),)
    return Evidence(
        files_changed=given.files_changed,
        commits=given.commits,
        tree=given.tree,
        checks=checks,
        stories_passed=given.stories_passed,
        work_files=iteration.work_files,
        stories=StoryFacts(
            total=case.stories.total if case.stories else None,
            passed=passed,
            current=iteration.story,
            about_tests=iteration.story_about_tests,
            exit_signal=iteration.story_exit_signal,
        ),
        at=clock,
    )


def _compare(key: str, expected: Any, step: Played) -> tuple[Any, bool]:
    """What was got for an expectation, and whether it agrees."""
    if key == "circuit":
        circuit = str(step.state.breaker.circuit)
        return circuit, _same_word(expected, circuit)
    if key == "story":
        return _story(step.story, expected)
    if step.analysis is None or step.decision is None:
        return None, expected is None
    if key not in _GOT:
        return f"unknown expectation {key!r}", False
    got = _GOT[key](step.analysis, step.decision)
    return got, _AGREES.get(key, _same)(expected, got)


_GOT: dict[str, Callable[[Analysis, Decision], Any]] = {
    "decision": lambda _, decision: str(decision.word),
    "outcome": lambda analysis, _: str(analysis.outcome),
    "stuck": lambda analysis, _: analysis.stuck_loop_detected,
    "progress": lambda analysis, _: analysis.progress,
    "status_found": lambda analysis, _: analysis.status is not None,
    "exit_signal": lambda analysis, _: analysis.exit_signal,
    "error": lambda analysis, _: analysis.error_signature,
    "indicators_min": lambda analysis, _: analysis.indicators.count,
    "indicators_max": lambda analysis, _: analysis.indicators.count,
    "warning": lambda analysis, _: list(analysis.warnings),
    "no_warning": lambda analysis, _: list(analysis.warnings),
}


def _story(story: StoryState, expected: Any) -> tuple[Any, bool]:
    """The story's standing, grade and attempts, as far as they are expected."""
    got = {"standing": str(story.standing), "grade": story.grade, "attempts": story.attempts}
    if not isinstance(expected, dict) or not set(expected) <= set(got):
        return f"a story is expected by {', '.join(got)}", False
    return got, all(got[key] == value for key, value in expected.items())


def _same(expected: Any, got: Any) -> bool:
    return bool(expected == got)


def _same_word(expected: Any, got: Any) -> bool:
    return str(expected).lower() == str(got).lower()


def _contains(expected: Any, got: Any) -> bool:
    if expected is None or got is None:
        return expected is got
    return str(expected).lower() in str(got).lower()


def _in_some(expected: Any, got: Any) -> bool:
    return any(_contains(expected, each) for each in got)


_AGREES: dict[str, Callable[[Any, Any], bool]] = {
    "decision": _same_word,
    "outcome": _same_word,
    "error": _contains,
    "indicators_min": lambda least, got: bool(got >= least),
    "indicators_max": lambda most, got: bool(got <= most),
    "warning": _in_some,
    "no_warning": lambda expected, got: not _in_some(expected, got),
}
