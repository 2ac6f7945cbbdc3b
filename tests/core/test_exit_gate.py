"""The exit gate by itself: what ends a run, and what keeps it going."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from ralphloop.core import exit_gate
from ralphloop.core.grading import StoryVerdict
from ralphloop.core.iteration import Assessment, Result, Start
from ralphloop.core.model import (
    Analysis,
    CheckResult,
    CheckStatus,
    Decision,
    Evidence,
    ExitDecision,
    Indicators,
    Outcome,
    Response,
    StoryFacts,
)
from ralphloop.core.policy import Limits, Policy
from ralphloop.core.progress import Progress
from ralphloop.core.run_state import (
    Attempt,
    RunState,
    Standing,
    StoryState,
)
from ralphloop.core.totals import Usage
from ralphloop.text.status_block import Status, StatusBlock

FACTS = StoryFacts(total=3, passed=1, current="US-1", others=1, others_if_passed=1)
ALONE = {"others": 0, "others_if_passed": 0}
QUIET = Assessment(
    start=Start(),
    result=Result(response=Response(reader="text", outcome=Outcome.COMPLETED)),
    evidence=Evidence(),
    policy=Policy(),
    moved=Progress(made=True),
    verdict=StoryVerdict(),
    analysis=Analysis(iteration=1, outcome=Outcome.COMPLETED),
    used=Usage(),
)
APART = StoryState(standing=Standing.SET_ASIDE)
MAY_END = {"exit_signal": True, "passed": 0}  # and it is the one that passes now


def decide(
    analysis: Analysis = QUIET.analysis,
    *,
    facts: Mapping[str, object] | None = None,
    state: RunState | None = None,
    story: StoryState | None = None,
    was_open: bool = False,
    policy: Policy = QUIET.policy,
    **evidence: object,
) -> Decision:
    """The decision in a quiet situation, in which a run goes on, with one thing changed."""
    stories = msgspec.structs.replace(FACTS, **facts or {})
    measured = msgspec.structs.replace(QUIET.evidence, stories=stories, **evidence)
    one = msgspec.structs.replace(QUIET, analysis=analysis, evidence=measured, policy=policy)
    after = state or RunState(), story or StoryState()
    return exit_gate.decide(*after, one, was_open=was_open)


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
    assert decide().word is ExitDecision.CONTINUE


@pytest.mark.parametrize(
    "at, word", [(99.0, ExitDecision.CONTINUE), (100.0, ExitDecision.BUDGET_EXHAUSTED)]
)
def test_a_run_ends_at_the_time_it_was_given(at: float, word: ExitDecision) -> None:
    """From then on no further start is made; the time is when the start was measured."""
    assert decide(policy=Policy(limits=Limits(ends_at=100.0)), at=at).word is word


def test_a_run_that_goes_on_although_it_looks_done_says_so() -> None:
    """Two signs are named; with fewer it is only said that the agent does not call it done."""
    two = Indicators(all_tasks_done=True, status_complete=True)
    assert "although 2 signs do" in decide(said(indicators=two)).sentence
    assert "although" not in decide(said(indicators=Indicators(status_complete=True))).sentence


@pytest.mark.parametrize("runnable", [0, 2])
def test_a_task_that_may_end_the_run_does_so_although_others_are_open(runnable: int) -> None:
    """The permission ends the run with open stories, whether they could run or wait."""
    facts = MAY_END | {"others_if_passed": runnable}
    claimed, state = said(story_claimed=True), waiting(2 - runnable)
    decision = decide(claimed, facts=facts, state=state, stories_passed=1)
    assert decision.word is ExitDecision.PROJECT_COMPLETE
    assert decision.reasons == ("the passed task may end the run, 2 stories stay open",)


@pytest.mark.parametrize(
    "changed",
    [{"facts": {"exit_signal": False}}, {"stories_passed": 0}, {"analysis": said()}],
    ids=["no permission", "not passed", "not claimed"],
)
def test_only_a_claimed_and_passed_task_may_end_the_run(changed: dict[str, Any]) -> None:
    """The permission is of the task, and holds once it was claimed and has passed."""
    given: dict[str, Any] = {
        "facts": MAY_END,
        "stories_passed": 1,
        "analysis": said(story_claimed=True),
    }
    assert decide(**given | changed).word is ExitDecision.CONTINUE


@pytest.mark.parametrize(
    "told, evidence",
    [
        ({}, {"checks": (CheckResult(name="c", status=CheckStatus.FAILED),)}),
        ({"status": StatusBlock(status=Status.BLOCKED)}, {}),
        ({"outcome": Outcome.TRANSIENT}, {}),
    ],
    ids=["a check failed", "blocked", "an outage"],
)
def test_the_permission_to_end_is_no_proof(
    told: dict[str, object], evidence: dict[str, Any]
) -> None:
    """Failed checks, a blocked agent or an outage end nothing, whatever a task may."""
    claimed = said(story_claimed=True, **told)
    found = decide(claimed, facts=MAY_END, stories_passed=1, **evidence)
    assert found.word is ExitDecision.CONTINUE


def test_open_stories_veto_an_exit_signal() -> None:
    """EXIT_SIGNAL with every indicator is not believed while a story is open."""
    assert decide(DONE).word is ExitDecision.CONTINUE
    ended = decide(DONE, facts={"passed": 3, **ALONE})
    assert ended.word is ExitDecision.PROJECT_COMPLETE


@pytest.mark.parametrize(
    "more, word",
    [
        ({"facts": ALONE, "story": APART, "state": waiting(1)}, ExitDecision.BLOCKED),
        ({"facts": ALONE, "story": APART}, ExitDecision.NO_RUNNABLE_STORY),
        (
            {"facts": ALONE, "story": StoryState(attempt=Attempt(saturated=True))},
            ExitDecision.TEST_SATURATION,
        ),
        ({"story": StoryState(attempt=Attempt(saturated=True))}, ExitDecision.CONTINUE),
        ({"facts": ALONE}, ExitDecision.CONTINUE),
        ({"was_open": True, "facts": ALONE, "story": APART}, ExitDecision.CIRCUIT_OPEN),
    ],
    ids=["waits", "all set aside", "saturated", "others can run", "it can itself", "open before"],
)
def test_what_ends_a_run_without_being_done(more: dict[str, Any], word: ExitDecision) -> None:
    """Where no story can run the run ends, with the word for the reason."""
    assert decide(**more).word is word


def test_an_agent_that_cannot_work_ends_the_run_with_its_reason_or_ours() -> None:
    """Unless another one can take over."""
    fatal = said(outcome=Outcome.FATAL)
    assert decide(fatal).sentence == "error: the agent cannot work"
    assert decide(fatal, fallback=True).word is ExitDecision.CONTINUE
