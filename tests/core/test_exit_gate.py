"""The exit gate by itself: what ends a run, and what keeps it going."""

from __future__ import annotations

import msgspec
import pytest

from ralphloop.core.exit_gate import GateInput, decide
from ralphloop.core.model import (
    Analysis,
    CheckResult,
    CheckStatus,
    Evidence,
    ExitDecision,
    Indicators,
    Outcome,
)
from ralphloop.core.policy import Policy
from ralphloop.core.run_state import RunState
from ralphloop.core.story_state import Standing, StoryState
from ralphloop.text.status_block import Status, StatusBlock

QUIET = GateInput(
    analysis=Analysis(iteration=1, outcome=Outcome.COMPLETED),
    policy=Policy(),
    total=3,
    open_stories=2,
    runnable=2,
)


def at(**more: object) -> GateInput:
    """A quiet situation, in which a run goes on, with one thing changed."""
    return msgspec.structs.replace(QUIET, **more)


def said(**more: object) -> Analysis:
    """What the agent said, changed."""
    return msgspec.structs.replace(QUIET.analysis, **more)


def waiting(count: int) -> RunState:
    """A run in which so many stories wait for a person."""
    blocked = StoryState(standing=Standing.BLOCKED)
    return RunState(stories={f"US-{n}": blocked for n in range(count)})


DONE = said(
    exit_signal=True,
    indicators=Indicators(all_tasks_done=True, no_pending_stories=True, status_complete=True),
)


def test_a_quiet_run_goes_on() -> None:
    """Nothing applies: the run continues."""
    assert decide(QUIET).word is ExitDecision.CONTINUE


@pytest.mark.parametrize("runnable", [0, 2])
def test_a_task_that_may_end_the_run_does_so_although_others_are_open(runnable: int) -> None:
    """The permission ends the run with open stories, whether they could run or wait."""
    decision = decide(at(may_end_run=True, runnable=runnable, state=waiting(2 - runnable)))
    assert decision.word is ExitDecision.PROJECT_COMPLETE
    assert decision.reasons == ("the passed task may end the run, 2 stories stay open",)


@pytest.mark.parametrize(
    "more",
    [
        {"evidence": Evidence(checks=(CheckResult(name="c", status=CheckStatus.FAILED),))},
        {"analysis": said(status=StatusBlock(status=Status.BLOCKED))},
        {"analysis": said(outcome=Outcome.TRANSIENT)},
    ],
    ids=["a check failed", "blocked", "an outage"],
)
def test_the_permission_to_end_is_no_proof(more: dict[str, object]) -> None:
    """Failed checks, a blocked agent or an outage end nothing, whatever a task may."""
    assert decide(at(may_end_run=True, **more)).word is ExitDecision.CONTINUE


def test_open_stories_veto_an_exit_signal() -> None:
    """EXIT_SIGNAL with every indicator is not believed while a story is open."""
    assert decide(at(analysis=DONE)).word is ExitDecision.CONTINUE
    ended = decide(at(analysis=DONE, open_stories=0, runnable=0))
    assert ended.word is ExitDecision.PROJECT_COMPLETE


@pytest.mark.parametrize(
    "more, word",
    [
        ({"runnable": 0, "state": waiting(1)}, ExitDecision.BLOCKED),
        ({"runnable": 0}, ExitDecision.NO_RUNNABLE_STORY),
        ({"runnable": 0, "saturated": True}, ExitDecision.TEST_SATURATION),
        ({"saturated": True}, ExitDecision.CONTINUE),
        ({"was_open": True, "may_end_run": True}, ExitDecision.CIRCUIT_OPEN),
    ],
    ids=["waits", "all set aside", "saturated", "others can run", "open before"],
)
def test_what_ends_a_run_without_being_done(more: dict[str, object], word: ExitDecision) -> None:
    """Where no story can run the run ends, with the word for the reason."""
    assert decide(at(**more)).word is word
