"""What makes a story pass, and what the grade says."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ralphloop.core.grading import DOUBT, ChangedTests, Grade, Proof, judge_story
from ralphloop.core.model import CheckResult, CheckStatus
from ralphloop.core.mutation import Mutation, Survivor, Watched
from ralphloop.core.proof import Fate, OldTest, Trial

GREEN = (CheckResult(name="tests", status=CheckStatus.PASSED),)
RED = (CheckResult(name="tests", status=CheckStatus.FAILED),)
NO_TESTS = (CheckResult(name="tests", status=CheckStatus.NO_TESTS),)
PROVEN = CheckResult(name="verify", status=CheckStatus.PASSED)
DISPROVEN = CheckResult(name="verify", status=CheckStatus.FAILED)
TESTED = Trial(proven=("test_new",))
CHANGED = OldTest(name="test_old", fate=Fate.CHANGED, was="assert 3 == 4", now="assert 4 == 3")
WEAKENED = OldTest(name="test_old", fate=Fate.WEAKENED)
LOOK = Trial(old=(CHANGED,), proven=("test_new",))
WEAK = Trial(old=(WEAKENED,), proven=("test_new",))
MADE_UP = Trial(contradictions=("the results are made up",), proven=("test_new",))
NOTICED = Mutation(
    watched=(Watched(name="f()", place="a.py:1", test="test_new", what="x"),), starts=1
)
ASK: ChangedTests = "ask"
REVIEW: ChangedTests = "review"

PASSES = {
    "verify that was red": (
        Proof(claimed=True, checks=(*GREEN, PROVEN), verify_was=CheckStatus.FAILED),
        Grade.VERIFIED,
    ),
    "verify that was red, ignored files": (
        Proof(claimed=True, changed=False, checks=(PROVEN,), verify_was=CheckStatus.FAILED),
        Grade.CHECKED,
    ),
    "verify that nobody saw red": (Proof(claimed=True, checks=(PROVEN,)), Grade.CHECKED),
    "verify that was green": (
        Proof(claimed=True, checks=(PROVEN,), verify_was=CheckStatus.PASSED),
        Grade.CHECKED,
    ),
    "verify that was green, a test that proves it": (
        Proof(claimed=True, checks=(PROVEN,), verify_was=CheckStatus.PASSED, trial=TESTED),
        Grade.VERIFIED,
    ),
    "turned green": (
        Proof(claimed=True, checks=GREEN, turned_green=("test_a",)),
        Grade.VERIFIED,
    ),
    "red without it": (Proof(claimed=True, checks=GREEN, trial=TESTED), Grade.VERIFIED),
    "green without it too": (
        Proof(claimed=True, checks=GREEN, trial=Trial(vacuous=("test_new",))),
        Grade.CHECKED,
    ),
    "not to be loaded without it": (
        Proof(claimed=True, checks=GREEN, trial=Trial(unloadable=("test_new",))),
        Grade.CHECKED,
    ),
    "missing a name without it": (
        Proof(claimed=True, checks=GREEN, trial=Trial(reached=("test_new",))),
        Grade.CHECKED,
    ),
    "missing a name without it, and mutants that could not be tried": (
        Proof(
            claimed=True,
            checks=GREEN,
            trial=Trial(reached=("test_new",), mutation=Mutation(untried=("no mutants",))),
        ),
        Grade.CHECKED,
    ),
    "a test that notices": (
        Proof(claimed=True, checks=GREEN, trial=Trial(mutation=NOTICED)),
        Grade.VERIFIED,
    ),
    "a test that notices, and an old one that fails now and then": (
        Proof(claimed=True, checks=GREEN, trial=Trial(mutation=NOTICED, unsteady=("test_old",))),
        Grade.CHECKED,
    ),
    "a test that notices, and more functions than can be tried": (
        Proof(claimed=True, checks=GREEN, trial=Trial(mutation=replace(NOTICED, too_many=3))),
        Grade.CHECKED,
    ),
    "all green": (Proof(claimed=True, checks=GREEN), Grade.CHECKED),
    "no checks": (Proof(claimed=True), Grade.CLAIMED),
    "no tests collected": (Proof(claimed=True, checks=NO_TESTS), Grade.CLAIMED),
    "already there": (
        Proof(claimed=True, changed=False, already_done=True, checks=GREEN, trial=TESTED),
        Grade.CHECKED,
    ),
    "already there, no checks": (
        Proof(claimed=True, changed=False, already_done=True),
        Grade.CLAIMED,
    ),
    "stood by what was found": (
        Proof(claimed=True, checks=(*GREEN, PROVEN), doubts=("x",), challenged=("x", "y")),
        Grade.NEEDS_REVIEW,
    ),
    "another expectation": (Proof(claimed=True, checks=GREEN, trial=LOOK), Grade.CHECKED),
    "another expectation, verify turned green": (
        Proof(claimed=True, checks=(PROVEN,), verify_was=CheckStatus.FAILED, trial=LOOK),
        Grade.CHECKED,
    ),
    "another expectation, to be reviewed": (
        Proof(claimed=True, checks=GREEN, trial=LOOK, changed_tests=REVIEW),
        Grade.NEEDS_REVIEW,
    ),
    "another expectation, answered for": (
        Proof(claimed=True, checks=GREEN, trial=LOOK, changed_tests=ASK, challenged=LOOK.look_at),
        Grade.NEEDS_REVIEW,
    ),
    "stood by weaker tests": (
        Proof(claimed=True, checks=GREEN, trial=WEAK, challenged=WEAK.challenges),
        Grade.NEEDS_REVIEW,
    ),
    "doubted once more in other words": (
        Proof(
            claimed=True,
            checks=GREEN,
            doubts=(f"{DOUBT}review.sh: still not",),
            challenged=(f"{DOUBT}review.sh: it does not round",),
        ),
        Grade.NEEDS_REVIEW,
    ),
    "tolerated red": (Proof(claimed=True, checks=RED, tolerated=("tests",)), Grade.CLAIMED),
}
FAILS = {
    "not claimed": Proof(claimed=False, checks=(*GREEN, PROVEN)),
    "red check": Proof(claimed=True, checks=(*RED, PROVEN)),
    "red verify": Proof(claimed=True, checks=(*GREEN, DISPROVEN)),
    "nothing changed": Proof(claimed=True, changed=False, checks=GREEN),
    "nothing changed, verify was green": Proof(
        claimed=True, changed=False, checks=(PROVEN,), verify_was=CheckStatus.PASSED
    ),
    "nothing changed, verify found no tests before": Proof(
        claimed=True, changed=False, checks=(PROVEN,), verify_was=CheckStatus.NO_TESTS
    ),
    "found for the first time": Proof(claimed=True, checks=GREEN, doubts=("settings changed",)),
    "found, and red": Proof(claimed=True, checks=RED, doubts=("x",), challenged=("x",)),
    "weaker tests": Proof(claimed=True, checks=GREEN, trial=WEAK),
    "another expectation, to be asked about": Proof(
        claimed=True, checks=GREEN, trial=LOOK, changed_tests=ASK
    ),
    "made up": Proof(claimed=True, checks=GREEN, trial=MADE_UP),
    "made up, and told so before": Proof(
        claimed=True, checks=GREEN, trial=MADE_UP, challenged=MADE_UP.contradictions
    ),
}


@pytest.mark.parametrize(("proof", "grade"), PASSES.values(), ids=PASSES.keys())
def test_a_story_passes_with_its_grade(proof: Proof, grade: Grade) -> None:
    """Green checks make it pass; the grade says how much they prove."""
    verdict = judge_story(proof)
    assert (verdict.passed, verdict.grade) == (True, grade)


@pytest.mark.parametrize("proof", FAILS.values(), ids=FAILS.keys())
def test_a_claim_alone_is_worth_nothing(proof: Proof) -> None:
    """Red, unchanged, unclaimed, made up or not yet answered for: no pass, and the reason is said."""
    verdict = judge_story(proof)
    assert verdict.passed is False
    assert verdict.reasons


def test_what_is_found_is_put_to_the_agent() -> None:
    """A finding and a contradiction are told, a mere look for a person is not."""
    for trial, told in ((WEAK, "test_old"), (MADE_UP, "made up"), (LOOK, "")):
        asked = judge_story(Proof(claimed=True, checks=GREEN, trial=trial)).asked
        assert told in " ".join(asked)
        assert bool(asked) is bool(told)


def test_a_changed_expectation_is_shown_with_both_values() -> None:
    """Whoever looks at it sees the name, what it said before and what it says now."""
    [line] = judge_story(Proof(claimed=True, checks=GREEN, trial=LOOK)).look_at
    assert "test_old" in line
    assert "assert 3 == 4" in line
    assert "assert 4 == 3" in line


def test_an_agent_is_asked_once_for_a_test_of_what_is_run_in_vain() -> None:
    """It passes afterwards as it would have, whatever the agent answers; verified work is not asked."""
    survivor = Survivor(name="half()", place="a.py:3", what="returns something else", is_own=True)
    vain = Trial(mutation=Mutation(survivors=(survivor,), starts=1))
    proof = Proof(claimed=True, checks=GREEN, trial=vain, ask_for_tests="auto")
    first = judge_story(proof)
    assert not first.passed
    words = "no test notices if half() returns something else (a.py:3): add a test that does"
    assert first.asked[0].startswith(words)
    moved = replace(survivor, place="a.py:9")
    later = Trial(mutation=Mutation(survivors=(moved,), starts=1))
    again = judge_story(replace(proof, trial=later, challenged=first.asked))
    assert (again.passed, again.grade) == (True, Grade.CHECKED)
    assert judge_story(replace(proof, ask_for_tests="off")).grade is Grade.CHECKED
    proven = replace(vain, proven=("tests/test_a.py::test_half",))
    assert judge_story(replace(proof, trial=proven)).grade is Grade.VERIFIED
