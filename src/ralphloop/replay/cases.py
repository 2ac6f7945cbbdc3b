"""Labelled decision cases (`docs/reference/cases.md`) and scripted nights, played through the core.

A scenario is a case whose iterations follow from how the night goes.  `scenarios.toml` only says
what an agent prints and what would be measured; every decision shown comes from the core, so other
thresholds move the step where something happens.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from itertools import count, islice
from operator import eq, ge, le
from typing import Literal, NamedTuple

import msgspec

from ralphloop.core import Value, model
from ralphloop.core.interventions import CircuitReset, SecondChance
from ralphloop.core.iteration import Result, Start
from ralphloop.core.policy import Limits, Policy
from ralphloop.core.proof import Trial
from ralphloop.core.run_state import RunState, Standing
from ralphloop.core.step import Need, Step, needs, step
from ralphloop.errors import InputError
from ralphloop.readers import read
from ralphloop.text import status_block


class CaseEvidence(Value, kw_only=True):
    files_changed: int | None = None
    commits: int | None = None
    checks: str | None = None  # passed, failed, no_tests; anything else: none ran
    stories_passed: int | None = None
    tree: str | None = None
    net_lines: int | None = None  # over the story's last unclaimed iterations
    trial: Trial | None = None  # what its tests said crosswise: then the step judges the story


class CaseIteration(model.ProcessEnd, kw_only=True):
    output: str = ""
    asked: str | None = None  # what it answered when it was asked for the missing block
    stderr: str = ""
    story: str | None = None
    story_about_tests: bool = False
    story_exit_signal: bool = False
    work_files: tuple[str, ...] | None = None
    evidence: CaseEvidence | None = None
    action: Literal["reset"] | None = None
    expect: dict[str, object] = msgspec.field(default_factory=dict)


class CaseStories(Value, kw_only=True):
    total: int
    passed: int = 0


class Case(Value, kw_only=True):
    id: str
    title: str = ""
    source: str = ""
    policy: dict[str, object] = msgspec.field(default_factory=dict)
    limits: dict[str, object] = msgspec.field(default_factory=dict)
    agent: str | None = None
    stories: CaseStories | None = None
    iterations: tuple[CaseIteration, ...]


class Mismatch(Value, kw_only=True):
    iteration: int
    key: str
    expected: object
    got: object


class CaseResult(Value, kw_only=True):
    id: str
    ok: bool
    mismatches: tuple[Mismatch, ...]
    decisions: tuple[str, ...]


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


class CaseRun:
    def __init__(self, policy: Policy, *, agent: str = "auto", stories: CaseStories | None) -> None:
        self._policy = policy
        self._agent = agent
        self._stories = stories
        self.state = RunState()
        self._passed = stories.passed if stories else 0
        self._clock = 0.0

    def play(self, iteration: CaseIteration) -> Step | None:
        """The step that is taken; None where a person resets the circuit."""
        self._clock += iteration.duration_s
        if iteration.action == "reset":
            self.state = CircuitReset(at=self._clock).applied(self.state, self._policy)
            return None
        if iteration.story and self.state.story(iteration.story).standing is Standing.SET_ASIDE:
            again = SecondChance(story=iteration.story)
            self.state = again.applied(self.state, self._policy)
        evidence = self._evidence(iteration)
        known = self.state.story(iteration.story)
        name = iteration.story or "the story"
        story = model.Story(id=name, title=name, index=0) if evidence.trial is not None else None
        start = Start(state=known, story=story)
        ways = model.ProcessEnd.__struct_fields__
        end = model.ProcessEnd(**{way: getattr(iteration, way) for way in ways})
        response = self._read(iteration.output, iteration.exit_code, iteration.stderr)
        result = Result(response=response, end=end, can_be_asked=iteration.asked is not None)
        if needs(self.state, start, result, evidence, self._policy) is Need.STATUS:
            result = msgspec.structs.replace(result, asked=self._read(iteration.asked or ""))
        taken = step(self.state, start, result, evidence, self._policy)
        self.state = taken.state
        self._passed += evidence.stories_passed or 0
        return taken

    def _read(self, output: str, exit_code: int | None = 0, stderr: str = "") -> model.Response:
        raw = output.encode("utf-8", "surrogatepass")
        return read(raw, agent=self._agent, exit_code=exit_code, stderr=stderr)

    def _evidence(self, iteration: CaseIteration) -> model.Evidence:
        given = msgspec.structs.asdict(iteration.evidence or CaseEvidence())
        word = given.pop("checks")
        ran = [one for one in model.CheckStatus if one == word]
        total = self._stories.total if self._stories else 0
        current = iteration.story or ""
        apart = sum(one.is_apart for name, one in self.state.stories.items() if name != current)
        others = total - self._passed - apart - 1  # of nothing is said what it waits for
        return model.Evidence(
            **given,
            checks=tuple(model.CheckResult(name="checks", status=one) for one in ran) or None,
            work_files=iteration.work_files,
            stories=model.StoryFacts(
                total=self._stories.total if self._stories else None,
                passed=self._passed,
                current=iteration.story,
                about_tests=iteration.story_about_tests,
                exit_signal=iteration.story_exit_signal,
                others=others,
                others_if_passed=others + 1 - (given["stories_passed"] or 1),
            ),
            at=self._clock,
        )


def judge(case: Case, overrides: Mapping[str, object]) -> CaseResult:
    """Play a case, with the overrides on top of its own thresholds, and compare."""
    merged = {**case.policy, **case.limits, **overrides}
    limits = {name: merged.pop(name) for name in Limits.__struct_fields__ if name in merged}
    try:
        policy = msgspec.convert({**merged, "limits": limits}, type=Policy, strict=False)
    except msgspec.ValidationError as error:
        known = ", ".join((*Policy.__struct_fields__, *Limits.__struct_fields__))
        hint = f"Known keys: {known}."
        place = f"policy of {case.id}"
        raise InputError(str(error), hint, place=place) from None
    run = CaseRun(policy, agent=case.agent or "auto", stories=case.stories)
    mismatches: list[Mismatch] = []
    decisions: list[str] = []
    for number, iteration in enumerate(case.iterations, start=1):
        taken = run.play(iteration)
        decisions.append(str(taken.decision.word) if taken else "reset")
        for key, expected in iteration.expect.items():
            found = _compare(key, expected, run.state, taken)
            if not found.agrees:
                wrong = Mismatch(iteration=number, key=key, expected=expected, got=found.got)
                mismatches.append(wrong)
    return CaseResult(
        id=case.id,
        ok=not mismatches,
        mismatches=tuple(mismatches),
        decisions=tuple(decisions),
    )


class Compared(NamedTuple):
    got: object
    agrees: bool


def _compare(key: str, expected: object, state: RunState, taken: Step | None) -> Compared:
    """What was got for an expectation, and whether it agrees."""
    if key == "circuit":
        circuit = str(state.breaker.circuit)
        return Compared(circuit, _same_word(expected, circuit))
    if taken is None:
        return Compared(None, expected is None)
    if key == "story":  # as far as it is expected
        story = taken.state.story(taken.story)
        seen = {
            "standing": str(story.standing),
            "grade": story.proof.grade,
            "attempts": story.attempt.failed,
        }
        if not isinstance(expected, dict) or not set(expected) <= set(seen):
            return Compared(f"a story is expected by {', '.join(seen)}", agrees=False)
        return Compared(seen, all(seen[key] == value for key, value in expected.items()))
    if key not in _EXPECTATIONS:
        return Compared(f"unknown expectation {key!r}", agrees=False)
    ask, agrees = _EXPECTATIONS[key]
    got = ask(taken)
    return Compared(got, agrees(expected, got))


def _same_word(expected: object, got: object) -> bool:
    return str(expected).lower() == str(got).lower()


def _contains(expected: object, got: object) -> bool:
    if expected is None or got is None:
        return expected is got
    return str(expected).lower() in str(got).lower()


def _warns(expected: object, got: tuple[str, ...]) -> bool:
    return any(_contains(expected, each) for each in got)


# What is asked of a step, and how that agrees with what is expected.
_EXPECTATIONS: dict[str, tuple[Callable[[Step], object], Callable[..., bool]]] = {
    "decision": (lambda taken: str(taken.decision.word), _same_word),
    "outcome": (lambda taken: str(taken.analysis.outcome), _same_word),
    "stuck": (lambda taken: bool(taken.analysis.stuck), eq),
    "progress": (lambda taken: taken.analysis.progress, eq),
    "status_found": (lambda taken: taken.analysis.status is not None, eq),
    "exit_signal": (lambda taken: taken.analysis.exit_signal, eq),
    "error": (lambda taken: taken.analysis.error_signature, _contains),
    "indicators_min": (lambda taken: taken.analysis.indicators.count, le),
    "indicators_max": (lambda taken: taken.analysis.indicators.count, ge),
    "warning": (lambda taken: taken.analysis.warnings, _warns),
    "no_warning": (lambda taken: taken.analysis.warnings, lambda *pair: not _warns(*pair)),
}


class CaseTurn(CaseIteration, kw_only=True, forbid_unknown_fields=True):
    says: str  # one line for the screen
    words: str = ""  # followed by a status block
    block: dict[str, object] = msgspec.field(default_factory=dict)
    duration_s: float = 60.0


class Act(Value, kw_only=True, forbid_unknown_fields=True):
    """Turns by name, again and again."""

    turns: tuple[str, ...]
    times: int = 1
    until_open: bool = False  # instead: as long as the circuit is not


class Scenario(Value, kw_only=True, forbid_unknown_fields=True):
    title: str
    stories: CaseStories | None = None
    acts: tuple[Act, ...]
    past_open: bool = False  # go on after the circuit opened, to show the reset


_SCENARIOS = files("ralphloop.replay").joinpath("scenarios.toml").read_text("utf-8")
SCENARIOS = msgspec.convert(tomllib.loads(_SCENARIOS)["scenarios"], dict[str, Scenario])


class Played(NamedTuple):
    turn: CaseTurn
    state: RunState  # after it
    taken: Step | None  # None: a person reset the circuit


def play(scenario: Scenario, policy: Policy) -> Iterator[Played]:
    """Play until the decision is not to continue, or the script ends."""
    run = CaseRun(policy, stories=scenario.stories)

    def names() -> Iterator[str]:
        for act in scenario.acts:
            for _ in count() if act.until_open else range(act.times):
                if act.until_open and run.state.breaker.circuit is model.Circuit.OPEN:
                    break
                yield from act.turns

    for number, name in enumerate(islice(names(), 40), start=1):
        script = tomllib.loads(_SCENARIOS.replace("{n}", str(number)))
        turn = msgspec.convert(script["turns"][name], CaseTurn)
        if not turn.output:
            said = msgspec.convert({**script["ordinary"], **turn.block}, status_block.StatusBlock)
            words = f"{turn.words}\n\n{status_block.render(said)}\n"
            turn = msgspec.structs.replace(turn, output=words)
        taken = run.play(turn)
        yield Played(turn, run.state, taken)
        stops = taken and taken.decision.word is not model.ExitDecision.CONTINUE
        if stops and not scenario.past_open:
            return
