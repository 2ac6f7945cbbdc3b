"""Scripted nights, played through the real readers and core.

`scenarios.toml` only says what an agent prints and what would be measured; every state, transition
and decision shown comes from the core, so other thresholds move the step where something happens.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from importlib.resources import files
from itertools import count, islice
from typing import Any

import msgspec

from ralphloop.core.interventions import CircuitReset, intervene
from ralphloop.core.iteration import Result, Start
from ralphloop.core.model import (
    Analysis,
    Circuit,
    Decision,
    Evidence,
    ExitDecision,
    ProcessEnd,
    StoryFacts,
    Value,
)
from ralphloop.core.policy import Policy
from ralphloop.core.run_state import RunState
from ralphloop.core.step import step
from ralphloop.readers import read
from ralphloop.text import status
from ralphloop.text.status import Status, StatusBlock, TestsStatus, WorkType

_MINUTE = 60.0
_MOST_STEPS = 40
_ORDINARY = StatusBlock(
    status=Status.IN_PROGRESS,
    tasks_completed=0,
    files_modified=0,
    tests_status=TestsStatus.NOT_RUN,
    work_type=WorkType.IMPLEMENTATION,
    recommendation="go on",
)


class Turn(Value, kw_only=True, forbid_unknown_fields=True):
    """One scripted iteration, or a reset by a person."""

    says: str  # one line for the screen
    words: str = ""  # followed by a status block
    block: dict[str, Any] = msgspec.field(default_factory=dict)
    output: str = ""  # printed as it is, instead
    exit_code: int = 0
    evidence: Evidence = Evidence(files_changed=0, commits=0)
    reset: bool = False

    def printed(self) -> str:
        """What the agent prints."""
        block = {**msgspec.to_builtins(_ORDINARY), **self.block}
        rendered = status.render(msgspec.convert(block, StatusBlock))
        return self.output or f"{self.words}\n\n{rendered}\n"


class Act(Value, kw_only=True, forbid_unknown_fields=True):
    """Turns by name, again and again."""

    turns: tuple[str, ...]
    times: int = 1
    until_open: bool = False  # instead: as long as the circuit is not


class Scenario(Value, kw_only=True, forbid_unknown_fields=True):
    title: str
    stories: int | None = None
    acts: tuple[Act, ...]
    past_open: bool = False  # go on after the circuit opened, to show the reset


class Played(Value, kw_only=True):
    """One step as the core judged it."""

    number: int
    turn: Turn
    state: RunState
    analysis: Analysis | None = None
    decision: Decision | None = None


_DATA = tomllib.loads(files("ralphloop.replay").joinpath("scenarios.toml").read_text("utf-8"))
SCENARIOS = msgspec.convert(_DATA["scenarios"], dict[str, Scenario])


def play(scenario: Scenario, policy: Policy) -> Iterator[Played]:
    """Play until the decision is not to continue, or the script ends."""
    state, passed = RunState(), 0
    names = _names(scenario, lambda: state.breaker.circuit is Circuit.OPEN)
    for number, name in enumerate(islice(names, _MOST_STEPS), start=1):
        turn, at = _turn(name, number), number * _MINUTE
        if turn.reset:
            state = intervene(state, CircuitReset(at=at), policy)
            yield Played(number=number, turn=turn, state=state)
            continue
        result = Result(
            response=read(turn.printed().encode(), exit_code=turn.exit_code),
            end=ProcessEnd(exit_code=turn.exit_code),
        )
        facts = StoryFacts(total=scenario.stories, passed=passed)
        evidence = msgspec.structs.replace(turn.evidence, stories=facts, at=at)
        taken = step(state, Start(state=state.story(None)), result, evidence, policy)
        state, passed = taken.state, passed + (turn.evidence.stories_passed or 0)
        yield Played(
            number=number,
            turn=turn,
            state=state,
            analysis=taken.analysis,
            decision=taken.decision,
        )
        if taken.decision.word is not ExitDecision.CONTINUE and not scenario.past_open:
            return


def _names(scenario: Scenario, is_open: Callable[[], bool]) -> Iterator[str]:
    for act in scenario.acts:
        for _ in count() if act.until_open else range(act.times):
            if act.until_open and is_open():
                break
            yield from act.turns


def _turn(name: str, number: int) -> Turn:
    """A turn of the script as it is at this step."""
    return msgspec.convert(_numbered(_DATA["turns"][name], str(number)), Turn)


def _numbered(value: Any, number: str) -> Any:
    if isinstance(value, dict):
        return {key: _numbered(inner, number) for key, inner in value.items()}
    return value.replace("{n}", number) if isinstance(value, str) else value
