"""What makes a story pass, and what the grade says."""

from __future__ import annotations

import pytest

from ralphloop.core.grading import Grade, Proof, judge_story
from ralphloop.core.model import CheckResult, CheckStatus

GREEN = (CheckResult(name="tests", status=CheckStatus.PASSED),)
RED = (CheckResult(name="tests", status=CheckStatus.FAILED),)
NO_TESTS = (CheckResult(name="tests", status=CheckStatus.NO_TESTS),)
PROVEN = CheckResult(name="verify", status=CheckStatus.PASSED)
DISPROVEN = CheckResult(name="verify", status=CheckStatus.FAILED)

PASSES = {
    "verify command": (Proof(claimed=True, checks=GREEN, verify=PROVEN), Grade.VERIFIED),
    "verify alone": (Proof(claimed=True, verify=PROVEN), Grade.VERIFIED),
    "verify that was red": (
        Proof(claimed=True, checks=GREEN, verify=PROVEN, verify_was=CheckStatus.FAILED),
        Grade.VERIFIED,
    ),
    "verify that was red, ignored files": (
        Proof(claimed=True, changed=False, verify=PROVEN, verify_was=CheckStatus.FAILED),
        Grade.VERIFIED,
    ),
    "verify that was green": (
        Proof(claimed=True, verify=PROVEN, verify_was=CheckStatus.PASSED),
        Grade.CHECKED,
    ),
    "verify that was green, new tests": (
        Proof(claimed=True, verify=PROVEN, verify_was=CheckStatus.PASSED, tests_added=True),
        Grade.VERIFIED,
    ),
    "turned green": (Proof(claimed=True, checks=GREEN, turned_green=True), Grade.VERIFIED),
    "tests added": (Proof(claimed=True, checks=GREEN, tests_added=True), Grade.VERIFIED),
    "all green": (Proof(claimed=True, checks=GREEN), Grade.CHECKED),
    "no checks": (Proof(claimed=True), Grade.CLAIMED),
    "no tests collected": (Proof(claimed=True, checks=NO_TESTS), Grade.CLAIMED),
    "already there": (
        Proof(claimed=True, changed=False, already_done=True, checks=GREEN, tests_added=True),
        Grade.CHECKED,
    ),
    "already there, no checks": (
        Proof(claimed=True, changed=False, already_done=True),
        Grade.CLAIMED,
    ),
    "stood by its tampering": (
        Proof(claimed=True, checks=GREEN, verify=PROVEN, tampering=("x",), challenged=True),
        Grade.NEEDS_REVIEW,
    ),
    "tolerated red": (Proof(claimed=True, checks=RED, tolerated=("tests",)), Grade.CLAIMED),
}
FAILS = {
    "not claimed": Proof(claimed=False, checks=GREEN, verify=PROVEN),
    "red check": Proof(claimed=True, checks=RED, verify=PROVEN),
    "red verify": Proof(claimed=True, checks=GREEN, verify=DISPROVEN),
    "nothing changed": Proof(claimed=True, changed=False, checks=GREEN),
    "nothing changed, verify was green": Proof(
        claimed=True, changed=False, verify=PROVEN, verify_was=CheckStatus.PASSED
    ),
    "nothing changed, verify found no tests before": Proof(
        claimed=True, changed=False, verify=PROVEN, verify_was=CheckStatus.NO_TESTS
    ),
    "tampering, first time": Proof(claimed=True, checks=GREEN, tampering=("test deleted",)),
    "tampering and red": Proof(claimed=True, checks=RED, tampering=("x",), challenged=True),
}


@pytest.mark.parametrize(("proof", "grade"), PASSES.values(), ids=PASSES.keys())
def test_a_story_passes_with_its_grade(proof: Proof, grade: Grade) -> None:
    """Green checks make it pass; the grade says how much they prove."""
    verdict = judge_story(proof)
    assert (verdict.passed, verdict.grade) == (True, grade)


@pytest.mark.parametrize("proof", FAILS.values(), ids=FAILS.keys())
def test_a_claim_alone_is_worth_nothing(proof: Proof) -> None:
    """Red, unchanged, unclaimed or first-time tampered work does not pass, and the reason is said."""
    verdict = judge_story(proof)
    assert verdict.passed is False
    assert verdict.reasons
