"""The two functions that decide: what to find out next, and what a start leads to."""

from __future__ import annotations

import msgspec
import pytest

from ralphloop.core.interventions import Answered, CommitRefused, StoryMoved
from ralphloop.core.iteration import (
    AddProgress,
    CommitStory,
    MarkStory,
    Result,
    SaveLeftovers,
    Start,
)
from ralphloop.core.model import (
    CheckResult,
    CheckStatus,
    Circuit,
    Evidence,
    ExitDecision,
    Outcome,
    Response,
    StoryFacts,
    Usage,
)
from ralphloop.core.needs import Need, needs
from ralphloop.core.policy import Limits, Policy, Share
from ralphloop.core.progress import Memory
from ralphloop.core.run_state import RunState
from ralphloop.core.step import Step, step
from ralphloop.core.story import Story
from ralphloop.core.story_state import Standing, StoryState
from ralphloop.core.totals import Totals
from ralphloop.text.status_block import Status, StatusBlock

STORY = Story(id="US-1", title="One", index=0)
GREEN = (CheckResult(name="tests", status=CheckStatus.PASSED),)
RED = (CheckResult(name="tests", status=CheckStatus.FAILED, output_tail="1 failed"),)
POLICY = Policy(limits=Limits(max_attempts=3))


def said(status: Status = Status.COMPLETE, outcome: Outcome = Outcome.COMPLETED) -> Result:
    """An agent that ended with such a block."""
    block = StatusBlock(status=status, recommendation="Which colour?")
    response = Response(
        reader="text", outcome=outcome, status=block, status_is_final=True, final_text="Worked."
    )
    return Result(response=response)


UNSAID = Response(reader="text", outcome=Outcome.COMPLETED, final_text="Worked.", text="Worked.")


def measured(others: int = 1, **more: object) -> Evidence:
    """A changed tree in a list of three."""
    facts = StoryFacts(total=3, current="US-1", others=others, others_if_passed=others)
    base = Evidence(files_changed=1, commits=0, tree="t1", stories=facts)
    return msgspec.structs.replace(base, **more)


def take(state: RunState, evidence: Evidence, result: Result | None = None) -> Step:
    """One step on the story."""
    start = Start(number=state.starts + 1, story=STORY, state=state.story("US-1"), tree="t0")
    return step(state, start, result or said(), evidence, POLICY)


@pytest.mark.parametrize(
    "result, evidence, need",
    [
        (said(Status.IN_PROGRESS), measured(), None),
        (said(), measured(), Need.CHECKS),
        (said(), measured(checks=GREEN), Need.DOUBTS),
        (said(), measured(checks=GREEN, doubts=()), Need.TRIAL),
        (said(), measured(checks=RED, doubts=()), None),
        (said(), measured(checks=(), doubts=()), None),
        (said(), measured(checks=(), checks_cut=True), None),
        (said(outcome=Outcome.TRANSIENT), measured(), None),
        (said(Status.BLOCKED), measured(), None),
        (said(Status.IN_PROGRESS), measured(passes_set=True), Need.CHECKS),
        (Result(response=UNSAID, can_be_asked=True), measured(), Need.STATUS),
        (Result(response=UNSAID, asked=said().response), measured(), Need.CHECKS),
        (Result(response=UNSAID, asked=UNSAID), measured(), None),
    ],
)
def test_what_has_to_be_found_out_next(
    result: Result, evidence: Evidence, need: Need | None
) -> None:
    """Checks where something is claimed, then a look at tests and stories, then nothing."""
    start = Start(story=STORY, tree="t0")
    assert needs(RunState(), start, result, evidence, POLICY) is need


ASKABLE = Result(response=UNSAID, can_be_asked=True)
SILENT = msgspec.structs.replace(ASKABLE, asked=UNSAID)


def asked_for(result: Result, state: RunState | None = None, policy: Policy = POLICY) -> bool:
    """Whether the block has to be asked for before anything is measured."""
    need = needs(state or RunState(), Start(story=STORY, tree="t0"), result, Evidence(), policy)
    return need is Need.STATUS


def test_a_finished_answer_without_a_block_is_asked_for_it() -> None:
    """Only where that is possible, once, and not after two questions in vain."""
    assert asked_for(ASKABLE)
    assert asked_for(ASKABLE, RunState(unanswered=1))
    assert not asked_for(ASKABLE, RunState(unanswered=2))
    assert not asked_for(SILENT)
    assert not asked_for(Result(response=UNSAID))
    assert not asked_for(msgspec.structs.replace(said(), can_be_asked=True))
    assert not asked_for(ASKABLE, policy=Policy(ask_for_status=False))


@pytest.mark.parametrize("outcome", [one for one in Outcome if one is not Outcome.COMPLETED])
def test_an_answer_that_was_not_finished_is_not_asked_about(outcome: Outcome) -> None:
    """What failed, fell silent or was cut off has no block to give."""
    cut = msgspec.structs.replace(UNSAID, outcome=outcome)
    assert not asked_for(msgspec.structs.replace(ASKABLE, response=cut))


def test_refused_tools_are_no_matter_where_something_came_of_the_start() -> None:
    """With changed files such a start is completed, and its block is asked for like any other."""
    denied = msgspec.structs.replace(UNSAID, outcome=Outcome.DENIED)
    result, start = msgspec.structs.replace(ASKABLE, response=denied), Start(story=STORY)
    assert needs(RunState(), start, result, measured(), POLICY) is Need.STATUS
    assert needs(RunState(), start, result, measured(files_changed=0), POLICY) is None


def test_no_question_beyond_the_budget() -> None:
    """The start itself is part of what was spent; the iterations it may make are no matter."""
    paid = msgspec.structs.replace(UNSAID, usage=Usage(cost_usd=1.0))
    result = msgspec.structs.replace(ASKABLE, response=paid)
    assert not asked_for(result, policy=Policy(limits=Limits(max_cost_usd=1.0)))
    assert asked_for(result, policy=Policy(limits=Limits(max_cost_usd=1.5, max_iterations=1)))


def test_S03_AC7_the_block_of_the_second_answer_counts_and_the_warning_stays() -> None:
    """The story passes on it in one iteration; what was asked is kept and paid."""
    asked = msgspec.structs.replace(said().response, usage=Usage(cost_usd=0.5))
    result = msgspec.structs.replace(ASKABLE, asked=asked)
    taken = take(RunState(), measured(checks=GREEN, doubts=()), result)
    assert taken.verdict.passed
    assert any("status" in words for words in taken.analysis.warnings)
    assert (taken.state.iterations, taken.state.unanswered) == (1, 0)
    assert taken.state.cost_usd == taken.spent.cost_usd == 0.5
    assert taken.iteration.asked is not None
    assert taken.iteration.response.status is None


def test_a_question_in_vain_is_counted_and_claims_nothing() -> None:
    """Two of them end the asking for this run."""
    taken = take(RunState(), measured(), SILENT)
    assert not taken.analysis.story_claimed
    assert taken.state.unanswered == 1


def test_a_claim_with_green_checks_passes_and_owes_three_things() -> None:
    """The mark, the entry and the commit, in that order."""
    taken = take(RunState(), measured(checks=GREEN, doubts=()))
    story = taken.state.story("US-1")
    assert (story.standing, story.grade) == (Standing.PASSED, "checked")
    assert [type(effect) for effect in taken.effects] == [MarkStory, AddProgress, CommitStory]


def test_three_failed_claims_set_a_story_aside_while_another_can_run() -> None:
    """The circuit is handed back closed, and the leftovers are to be saved."""
    state = RunState()
    for number in range(3):
        taken = take(state, measured(checks=RED, doubts=(), tree=f"t{number}"))
        state = taken.state
    assert state.story("US-1").standing is Standing.SET_ASIDE
    assert state.story("US-1").reason == "3 attempts failed: tests failed"
    assert isinstance(taken.effects[-1], SaveLeftovers)
    assert state.breaker.circuit is Circuit.CLOSED
    assert taken.decision.word is ExitDecision.CONTINUE


def test_the_last_story_has_its_second_chance_before_it_is_set_aside() -> None:
    """Nobody else can run: the attempts begin anew, once."""
    state = RunState()
    for number in range(3):
        state = take(state, measured(others=0, checks=RED, doubts=(), tree=f"t{number}")).state
    story = state.story("US-1")
    assert (story.standing, story.second_chance, story.attempts) == (Standing.OPEN, True, 0)


def test_a_finding_is_put_to_the_agent_once() -> None:
    """Then the story passes, for a person to look at."""
    doubted = measured(checks=GREEN, doubts=("2 tests were removed",))
    first = take(RunState(), doubted)
    assert not first.verdict.passed
    again = take(first.state, doubted)
    assert again.state.story("US-1").grade == "needs review"


def test_a_question_makes_the_story_wait_in_the_one_copy_there_is() -> None:
    """The gate counts it from the same place the next choice is made from."""
    taken = take(RunState(), measured(others=0, files_changed=0), said(Status.BLOCKED))
    assert taken.state.story("US-1").standing is Standing.BLOCKED
    assert taken.state.story("US-1").reason == "Which colour?"
    assert taken.decision.word is ExitDecision.BLOCKED


def test_an_answer_is_kept_with_the_question_it_answers() -> None:
    """The next prompt has both; words about a story that asked nothing stand alone."""
    waits = take(RunState(), measured(files_changed=0), said(Status.BLOCKED)).state
    for state, question in ((waits, "Which colour?"), (RunState(), "")):
        told = Answered(story="US-1", text="Blue.").applied(state, POLICY).story("US-1")
        assert [(one.text, one.question) for one in told.answers] == [("Blue.", question)]
        assert told.standing is Standing.OPEN


def test_a_story_remembers_where_it_began() -> None:
    """The head and the tree of its first start stay, whatever later ones find."""
    state = RunState()
    for head, tree in (("h0", "t0"), ("h1", "t1")):
        start = Start(story=STORY, state=state.story("US-1"), tree=tree, head=head)
        state = step(state, start, said(Status.IN_PROGRESS), measured(), POLICY).state
    story = state.story("US-1")
    assert (story.start_head, story.start_tree) == ("h0", "t0")


@pytest.mark.parametrize(
    "result, evidence, word",
    [
        (said(), measured(checks=GREEN, doubts=()), "passed"),
        (said(outcome=Outcome.TRANSIENT), measured(), "interrupted"),
        (said(Status.BLOCKED), measured(), "blocked"),
        (said(), measured(checks=RED), "failed"),
        (said(Status.IN_PROGRESS, Outcome.TIMEOUT), measured(files_changed=0), "failed"),
        (said(Status.IN_PROGRESS, Outcome.TIMEOUT), measured(), "in_progress"),
        (said(Status.IN_PROGRESS), measured(), "in_progress"),
        (said(Status.IN_PROGRESS), measured(files_changed=0), "no_progress"),
    ],
)
def test_the_word_for_how_it_went(result: Result, evidence: Evidence, word: str) -> None:
    """What progress.txt calls a start."""
    state = RunState(memory=Memory(trees=("t1",) if not evidence.files_changed else ()))
    [entry] = [one for one in take(state, evidence, result).effects if isinstance(one, AddProgress)]
    assert entry.outcome == word


def test_nothing_is_counted_before_the_first_start() -> None:
    """Every sum and every count of a run and of a story begins at nothing."""
    for fresh in (RunState(), StoryState(), Share(), Totals()):
        values = msgspec.structs.asdict(fresh).values()
        assert {one for one in values if type(one) in (int, float)} <= {0}


def test_an_outage_changes_nothing_about_the_story_but_its_count() -> None:
    """Infrastructure is nobody's attempt."""
    result = said(outcome=Outcome.TRANSIENT)
    story = take(RunState(), measured(), result).state.story("US-1")
    assert (story.standing, story.attempts, story.iterations) == (Standing.OPEN, 0, 1)


def test_outages_in_a_row_are_counted_one_by_one() -> None:
    """The wait doubles with each of them, and work that was done ends the row."""
    state, seen = RunState(), list[int]()
    for outcome in (Outcome.TRANSIENT, Outcome.TRANSIENT, Outcome.COMPLETED, Outcome.TRANSIENT):
        result = said(Status.IN_PROGRESS, outcome)
        state = take(state, measured(tree=f"t{len(seen)}"), result).state
        seen.append(state.outages)
    assert seen == [1, 2, 0, 1]


def test_a_red_check_of_work_in_progress_is_no_error_of_the_agent() -> None:
    """Only a claim makes what a check says count towards the same error."""
    red = (CheckResult(name="tests", status=CheckStatus.FAILED, output_tail="TypeError: x"),)
    for status, count in ((Status.IN_PROGRESS, 0), (Status.COMPLETE, 1)):
        taken = take(RunState(), measured(checks=red), said(status))
        assert taken.analysis.error_signature == "TypeError: x"
        assert taken.state.breaker.same_error == count


def test_a_skip_while_the_agent_works_stands_unless_the_story_passes() -> None:
    """What a person asked meanwhile is in the state the step begins from."""
    start = Start(number=1, story=STORY, state=StoryState(), tree="t0")
    skipped = StoryMoved(story="US-1", aside="by a person").applied(RunState(), POLICY)
    for checks, standing in ((RED, Standing.SET_ASIDE), (GREEN, Standing.PASSED)):
        taken = step(skipped, start, said(), measured(checks=checks, doubts=()), POLICY)
        assert taken.state.story("US-1").standing is standing
        assert taken.state.idle_set_asides == 0


def test_two_stories_in_a_row_that_cannot_be_committed_open_the_circuit() -> None:
    """No third one could be: stop paying."""
    passed = StoryState(standing=Standing.PASSED, attempts=2)
    state = RunState(stories={"US-1": passed, "US-2": passed})
    for story in ("US-1", "US-2"):
        change = CommitRefused(story=story, failure="hook says no", others=True, at=1.0)
        state = change.applied(state, POLICY)
        assert state.story(story).standing is Standing.SET_ASIDE
    assert state.breaker.circuit is Circuit.OPEN
    assert "could not be committed" in state.breaker.reason


@pytest.mark.parametrize("checks, how", [(GREEN, "all are green"), (RED, "tests failed")])
def test_an_interim_look_is_told_to_an_agent_that_claims_nothing(
    checks: tuple[CheckResult, ...], how: str
) -> None:
    """It hears how things stand and that it may call the story done; who claims it is not told."""
    quiet = take(RunState(), measured(checks=checks), said(Status.IN_PROGRESS))
    told = [words for words in quiet.state.story("US-1").findings if how in words]
    assert [words.split(" ")[1] for words in told] == ["1"]  # after so many runs
    claimed = take(RunState(), measured(checks=RED))
    assert not [words for words in claimed.state.story("US-1").findings if "were run" in words]


def test_what_a_person_says_of_a_story_while_it_is_worked_on_is_kept() -> None:
    """The agent at work has not heard it, so its next prompt has it."""
    state = take(RunState(), measured(), said(Status.IN_PROGRESS)).state
    start = Start(number=2, story=STORY, state=state.story("US-1"), tree="t1")
    heard = Answered(story="US-1", text="Blue.").applied(state, POLICY)
    story = step(heard, start, said(Status.IN_PROGRESS), measured(tree="t2"), POLICY).state.story(
        "US-1"
    )
    assert [one.text for one in story.answers] == ["Blue."]
    assert (story.iterations, story.unclaimed, story.start_tree) == (2, 1, "t0")
