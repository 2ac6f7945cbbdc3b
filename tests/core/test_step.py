"""The two functions that decide: what to find out next, and what a start leads to."""

from __future__ import annotations

import msgspec
import pytest

from ralphloop.core.grading import UNCHANGED
from ralphloop.core.interventions import Answered, CommitRefused, SecondChance, StoryMoved
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
    LandingConflict,
    Outcome,
    ProcessEnd,
    Response,
    Story,
    StoryFacts,
    Usage,
)
from ralphloop.core.policy import Limits, Policy, Share
from ralphloop.core.progress import Footprint, Memory
from ralphloop.core.proof import Trial
from ralphloop.core.run_state import (
    Attempt,
    Conversation,
    RunState,
    Standing,
    StoryBase,
    StoryProof,
    StoryState,
    Streak,
)
from ralphloop.core.step import Need, Step, needs, step
from ralphloop.core.story_after import failure_text
from ralphloop.core.totals import Totals
from ralphloop.text.status_block import Status, StatusBlock, WorkType
from tests import sentences

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


def take(
    state: RunState, evidence: Evidence, result: Result | None = None, policy: Policy = POLICY
) -> Step:
    """One step on the story."""
    start = Start(story=STORY, state=state.story("US-1"), tree="t0")
    return step(state, start, result or said(), evidence, policy)


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


@pytest.mark.parametrize(
    "policy, need", [(Policy(), None), (Policy(doubts=True), Need.OPINIONS)], ids=["none", "some"]
)
def test_opinions_are_asked_for_where_somebody_has_one(policy: Policy, need: Need | None) -> None:
    """Last of all, of what is green and stands."""
    found = measured(checks=GREEN, doubts=(), trial=Trial())
    assert needs(RunState(), Start(story=STORY, tree="t0"), said(), found, policy) is need


def test_nobody_is_asked_for_an_opinion_of_what_is_red() -> None:
    """A claim that its checks refute needs no second doubt, which may cost money."""
    found = measured(checks=RED, doubts=(), trial=Trial())
    start = Start(story=STORY, tree="t0")
    assert needs(RunState(), start, said(), found, Policy(doubts=True)) is None


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
    assert (story.standing, story.proof.grade) == (Standing.PASSED, "checked")
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
    assert (story.standing, story.attempt.second_chance, story.attempt.failed) == (
        Standing.OPEN,
        True,
        0,
    )


def test_a_finding_is_put_to_the_agent_once() -> None:
    """Then the story passes, for a person to look at."""
    doubted = measured(checks=GREEN, doubts=("2 tests were removed",))
    first = take(RunState(), doubted)
    assert not first.verdict.passed
    again = take(first.state, doubted)
    assert again.state.story("US-1").proof.grade == sentences.NEEDS_REVIEW


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
        assert [(one.text, one.question) for one in told.notes.answers] == [("Blue.", question)]
        assert told.standing is Standing.OPEN


def test_what_a_story_costs_adds_up() -> None:
    """Every start of it is added, to the story and to its share of the run."""
    state = RunState()
    for cost in (0.5, 0.25):
        response = msgspec.structs.replace(said().response, usage=Usage(cost_usd=cost))
        state = take(state, measured(checks=RED, doubts=()), Result(response=response)).state
    story = state.story("US-1")
    assert (story.totals.cost_usd, story.attempt.share.cost_usd) == (0.75, 0.75)


def test_a_second_chance_begins_with_no_failed_attempt() -> None:
    """What it used up before does not count against it again."""
    tired = StoryState(
        standing=Standing.SET_ASIDE, attempt=Attempt(failed=3, share=Share(iterations=9))
    )
    story = SecondChance(story="US-1").after(tired)
    assert (story.standing, story.attempt.failed, story.attempt.share) == (
        Standing.OPEN,
        0,
        Share(),
    )


def test_several_red_checks_share_the_room_in_the_next_prompt() -> None:
    """None of them pushes the others out."""
    checks = tuple(msgspec.structs.replace(RED[0], name=n, output_tail=n * 90) for n in "ab")
    assert failure_text(checks, 20) == f"$ a\n{'a' * 10}\n\n$ b\n{'b' * 10}"


def test_a_story_remembers_where_it_began() -> None:
    """The head and the tree of its first start stay, whatever later ones find."""
    state = RunState()
    for head, tree in (("h0", "t0"), ("h1", "t1")):
        start = Start(story=STORY, state=state.story("US-1"), tree=tree, head=head)
        state = step(state, start, said(Status.IN_PROGRESS), measured(), POLICY).state
    story = state.story("US-1")
    assert (story.base.start_head, story.base.start_tree) == ("h0", "t0")


@pytest.mark.parametrize(
    "began, found, after, passes",
    [("", "t0", "t0", False), ("", "t0", "t1", True), ("t0", "t1", "t1", True)],
    ids=["nothing done", "done now", "done before"],
)
def test_work_is_what_differs_from_where_the_story_began(
    began: str, found: str, after: str, passes: bool
) -> None:
    """A claim without any is refused in words; what an earlier start did counts as its work."""
    start = Start(story=STORY, state=StoryState(base=StoryBase(start_tree=began)), tree=found)
    evidence = measured(tree=after, checks=GREEN, doubts=())
    taken = step(RunState(), start, said(), evidence, POLICY)
    assert taken.verdict.passed is passes
    told = [words for words in taken.state.story("US-1").notes.findings if UNCHANGED in words]
    assert len(told) == (not passes)


def entry(taken: Step) -> AddProgress:
    """What is written of it in progress.txt."""
    [found] = [one for one in taken.effects if isinstance(one, AddProgress)]
    return found


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
    assert entry(take(state, evidence, result)).outcome == word


@pytest.mark.parametrize(
    "result, evidence, words",
    [
        (said(), measured(checks=GREEN, doubts=()), "checked: Worked. next: Which colour?"),
        (
            said(),
            measured(checks=RED, work_files=("a.py",)),
            "Worked. (a.py) next: Which colour? (claimed, but tests failed)",
        ),
        (
            said(Status.IN_PROGRESS, Outcome.TIMEOUT),
            measured(),
            "Worked. next: Which colour? [timeout]",
        ),
        (
            Result(response=Response(reader="text", outcome=Outcome.COMPLETED)),
            measured(),
            "no summary was given",
        ),
    ],
    ids=["passed", "claimed in vain", "cut off", "without words"],
)
def test_the_line_about_how_it_went(result: Result, evidence: Evidence, words: str) -> None:
    """The grade, the agent's words, its files and advice, and what contradicts them; and when."""
    written = entry(take(RunState(), msgspec.structs.replace(evidence, at=7.0), result))
    assert (written.summary, written.at) == (words, 7.0)


def test_nothing_is_counted_before_the_first_start() -> None:
    """Every sum and every count of a run and of a story begins at nothing."""
    for fresh in (RunState(), StoryState(), Share(), Totals()):
        values = msgspec.structs.asdict(fresh).values()
        assert {one for one in values if type(one) in (int, float)} <= {0}


def test_an_outage_changes_nothing_about_the_story_but_its_count() -> None:
    """Infrastructure is nobody's attempt."""
    result = said(outcome=Outcome.TRANSIENT)
    story = take(RunState(), measured(), result).state.story("US-1")
    assert (story.standing, story.attempt.failed, story.totals.iterations) == (Standing.OPEN, 0, 1)


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
    start = Start(story=STORY, state=StoryState(), tree="t0")
    skipped = StoryMoved(story="US-1", aside="by a person").applied(RunState(), POLICY)
    for checks, standing in ((RED, Standing.SET_ASIDE), (GREEN, Standing.PASSED)):
        taken = step(skipped, start, said(), measured(checks=checks, doubts=()), POLICY)
        assert taken.state.story("US-1").standing is standing
        assert taken.state.idle_set_asides == 0


def test_two_stories_in_a_row_that_cannot_be_committed_open_the_circuit() -> None:
    """No third one could be: stop paying."""
    passed = StoryState(standing=Standing.PASSED, attempt=Attempt(failed=2))
    state = RunState(stories={"US-1": passed, "US-2": passed})
    for story in ("US-1", "US-2"):
        change = CommitRefused(story=story, failure="hook says no", others=True, at=1.0)
        state = change.applied(state, POLICY)
        assert state.story(story).standing is Standing.SET_ASIDE
    assert state.breaker.circuit is Circuit.OPEN
    assert "could not be committed" in state.breaker.reason


def test_a_commit_that_is_refused_is_one_failed_attempt() -> None:
    """The story is open again, and the agent gets the message."""
    state = RunState(
        stories={"US-1": StoryState(standing=Standing.PASSED, proof=StoryProof(grade="checked"))}
    )
    change = CommitRefused(story="US-1", failure="hook says no", others=True)
    story = change.applied(state, POLICY).story("US-1")
    assert (story.standing, story.attempt.failed, story.totals.failed) == (Standing.OPEN, 1, 1)
    assert (story.proof.grade, story.notes.failure) == ("", "hook says no")


def test_two_stories_in_a_row_set_aside_without_progress_open_the_circuit() -> None:
    """A story that keeps its second chance was not set aside; work between them ends the row."""
    once = Policy(limits=Limits(max_attempts=1))
    idle = measured(files_changed=0, tree="t0", checks=RED, doubts=())
    last = measured(others=0, files_changed=0, tree="t0", checks=RED, doubts=())
    for evidence, circuit, count in ((idle, Circuit.OPEN, 2), (last, Circuit.CLOSED, 1)):
        state = take(RunState(idle_set_asides=1), evidence, policy=once).state
        assert (state.breaker.circuit, state.idle_set_asides) == (circuit, count)
    assert take(RunState(), idle, policy=once).state.idle_set_asides == 1
    worked = measured(checks=RED, doubts=())
    assert take(RunState(idle_set_asides=1), worked, policy=once).state.idle_set_asides == 1


def test_a_story_at_which_the_agent_never_says_a_word_is_set_aside_for_that() -> None:
    """At the third time, with the setting that may be too short; the next one begins anew."""
    response = Response(reader="text", outcome=Outcome.STALLED, model_output=False)
    silent = Result(response=response, end=ProcessEnd(stalled=True))
    taken = take(RunState(silent_stalls=2), measured(files_changed=0), silent)
    story = taken.state.story("US-1")
    assert story.standing is Standing.SET_ASIDE
    assert "said nothing 3 times in a row until limits.stall_timeout" in story.reason
    assert taken.state.silent_stalls == 0


RETURNED = LandingConflict(
    words="c.py collides", told="US-2 landed and changed c.py", others=("US-2",)
)


def test_work_that_comes_back_from_landing_is_no_failed_attempt() -> None:
    """It is counted apart, one by one, and the agent is told first what is in its way."""
    state = RunState()
    for number in (1, 2):
        found = measured(tree=f"t{number}", checks=GREEN, doubts=(), returned=RETURNED)
        taken = take(state, found)
        story, state = taken.state.story("US-1"), taken.state
        assert not taken.verdict.passed
        assert (story.standing, story.landing.count) == (Standing.OPEN, number)
        assert (story.attempt.failed, story.totals.failed) == (0, 0)
        assert (story.notes.findings[0], story.landing.collided) == (RETURNED.told, ("US-2",))


@pytest.mark.parametrize(
    "outcome, named, after",
    [
        (Outcome.COMPLETED, "c-2", "c-2"),
        (Outcome.COMPLETED, None, "c-1"),
        (Outcome.TRANSIENT, None, "c-1"),
        (Outcome.STARTUP_ERROR, None, ""),
        (Outcome.STARTUP_ERROR, "c-1", ""),
    ],
)
def test_the_conversation_to_go_on_with(outcome: Outcome, named: str | None, after: str) -> None:
    """The one named last; one with which the agent could not be started is forgotten."""
    state = RunState(stories={"US-1": StoryState(conversation=Conversation(id="c-1"))})
    response = msgspec.structs.replace(said(outcome=outcome).response, session_id=named)
    taken = take(state, measured(files_changed=0), Result(response=response))
    assert taken.state.story("US-1").conversation.id == after


def test_a_row_of_work_on_tests_alone_begins_anew_once_it_was_acted_on() -> None:
    """It is complete at the third in a row, and a story that is opened again has three more."""
    block, state, seen = StatusBlock(work_type=WorkType.TESTING), RunState(), []
    result = Result(response=msgspec.structs.replace(UNSAID, status=block))
    for number in range(4):
        story = take(state, measured(tree=f"t{number}"), result).state.story("US-1")
        seen.append((story.streak.test_row, story.attempt.saturated))
        state = RunState(stories={"US-1": msgspec.structs.replace(story, standing=Standing.OPEN)})
    assert seen == [(1, False), (2, False), (0, True), (1, False)]


def test_an_agent_that_its_own_program_stopped_is_told_so() -> None:
    """It never heard of it; of an end that it saw itself nothing is said."""
    for outcome, count in ((Outcome.LIMIT, 1), (Outcome.COMPLETED, 0)):
        response = msgspec.structs.replace(
            said(Status.IN_PROGRESS, outcome).response, reason="too many turns", model_output=True
        )
        story = take(RunState(), measured(), Result(response=response)).state.story("US-1")
        told = [words for words in story.notes.findings if "stopped before it was through" in words]
        assert len(told) == count
        assert all("too many turns" in words for words in told)


TREADING = StoryState(streak=Streak(trail=(Footprint(tree="t0", files=("a.py",)),) * 5))


@pytest.mark.parametrize(
    "outcome, treads", [(Outcome.COMPLETED, True), (Outcome.TRANSIENT, False)], ids=str
)
def test_treading_water_is_said_of_work_and_never_of_an_outage(
    outcome: Outcome, treads: bool
) -> None:
    """What a cut off start left is progress or not like any other's."""
    state = RunState(stories={"US-1": TREADING})
    found = measured(work_files=("a.py",), net_lines=2)
    taken = take(state, found, said(Status.IN_PROGRESS, outcome))
    assert any("no net change" in words for words in taken.analysis.warnings) is treads
    assert taken.analysis.progress is not treads


def test_a_red_check_counts_as_an_error_while_a_story_treads_water() -> None:
    """Then an interim look is more than a look at work in progress."""
    red = (CheckResult(name="tests", status=CheckStatus.FAILED, output_tail="TypeError: x"),)
    found = measured(checks=red, work_files=("a.py",), net_lines=2)
    for story, count in ((StoryState(), 0), (TREADING, 1)):
        taken = take(RunState(stories={"US-1": story}), found, said(Status.IN_PROGRESS))
        assert taken.state.breaker.same_error == count


@pytest.mark.parametrize("checks, how", [(GREEN, "all are green"), (RED, "tests failed")])
def test_an_interim_look_is_told_to_an_agent_that_claims_nothing(
    checks: tuple[CheckResult, ...], how: str
) -> None:
    """It hears how things stand and that it may call the story done; who claims it is not told."""
    quiet = take(RunState(), measured(checks=checks), said(Status.IN_PROGRESS))
    told = [words for words in quiet.state.story("US-1").notes.findings if how in words]
    assert [words.split(" ")[1] for words in told] == ["1"]  # after so many runs
    claimed, unchecked = measured(checks=RED), measured()
    for found, status in ((claimed, Status.COMPLETE), (unchecked, Status.IN_PROGRESS)):
        story = take(RunState(), found, said(status)).state.story("US-1")
        assert not [words for words in story.notes.findings if "were run" in words]


def test_what_a_person_says_of_a_story_while_it_is_worked_on_is_kept() -> None:
    """The agent at work has not heard it, so its next prompt has it."""
    state = take(RunState(), measured(), said(Status.IN_PROGRESS)).state
    start = Start(story=STORY, state=state.story("US-1"), tree="t1")
    heard = Answered(story="US-1", text="Blue.").applied(state, POLICY)
    story = step(heard, start, said(Status.IN_PROGRESS), measured(tree="t2"), POLICY).state.story(
        "US-1"
    )
    assert [one.text for one in story.notes.answers] == ["Blue."]
    assert (story.totals.iterations, story.streak.unclaimed, story.base.start_tree) == (2, 1, "t0")
