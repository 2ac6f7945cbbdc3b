"""What four reports of one check, side by side, say of a story: row by row, and for all of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.core.grading import Grade, Proof, judge_story
from ralphloop.core.model import CheckResult, CheckStatus
from ralphloop.core.proof import (
    Canary,
    Fate,
    Runs,
    TestCounts,
    TestReport,
    Trial,
    concluded,
    disbelief,
    fewer,
)
from ralphloop.text.stubs import MARK

GREEN = (CheckResult(name="tests", status=CheckStatus.PASSED),)


def report(text: str = "", **said: str) -> TestReport:
    """`a b! c? d~`: passed, failed, error, skipped; `said` by the bare name."""
    kinds = {"!": "failed", "?": "errors", "~": "skipped"}
    found: dict[str, dict[str, int]] = {}
    for word in text.split():
        kind = kinds.get(word[-1], "passed")
        found.setdefault(kind, {})[word.rstrip("!?~")] = 1
    return TestReport(**found, said=said)


FATES = {
    "weakened": (Runs(end=report("t"), old_tests=report("t!"), new_tests=report("t")), "weakened"),
    "changed": (Runs(end=report("t"), old_tests=report("t!"), new_tests=report("t!")), "changed"),
    "removed": (Runs(end=report(), old_tests=report("t!"), new_tests=report()), "removed"),
    "skipped": (Runs(end=report("t~"), old_tests=report("t!"), new_tests=report("t~")), "skipped"),
    "never loaded": (
        Runs(end=report("t"), old_tests=report("t!"), new_tests=report("t?")),
        "unclear",
    ),
    "gone with its code": (Runs(end=report(), old_tests=report("t?"), new_tests=report()), "gone"),
    "gone with what it called": (
        Runs(
            end=report(),
            old_tests=report("t!", t="AttributeError: module 'x' has no attribute 'old'"),
            new_tests=report(),
        ),
        "gone",
    ),
    "not tried": (Runs(end=report()), "unclear"),
    "not there when tried": (
        Runs(end=report(), old_tests=report(), new_tests=report()),
        "unclear",
    ),
}


@pytest.mark.parametrize(("runs", "fate"), FATES.values(), ids=FATES)
def test_what_became_of_an_old_test(runs: Runs, fate: str) -> None:
    """The old form on the new code and the new form on the old code tell it."""
    import msgspec

    runs = msgspec.structs.replace(runs, before=report("t"), tests_changed=True)
    assert [one.fate for one in concluded(runs).old] == [fate]


def test_a_removed_test_that_would_still_pass_is_only_said() -> None:
    """Nothing is hidden by it, so nobody is asked."""
    before, end = report("t u"), report("u")
    runs = Runs(before=before, end=end, old_tests=report("t u"), tests_changed=True)
    trial = concluded(runs)
    assert (trial.old, trial.idle) == ((), ("t",))


def test_a_test_that_was_moved_is_told_once() -> None:
    """Neither as one that was removed nor as a new one that proves nothing."""
    old, new = "tests/test_cart.py::test_total", "tests/unit/test_cart.py::test_total"
    runs = Runs(
        before=report(old),
        end=report(new),
        old_tests=report(old),
        new_tests=report(new),
        tests_changed=True,
    )
    trial = concluded(runs)
    assert trial == Trial(moved=(new,))
    assert trial.remarks == ("not proven: tests were moved, and pass without it too (test_total)",)


@pytest.mark.parametrize("only_removed", [True, False])
def test_tests_beside_a_file_that_went_are_not_told_as_changed(only_removed: bool) -> None:
    """With the old file back, nothing of its package compiles: it says nothing of the others."""
    runs = Runs(
        before=report("shop.TestOld shop.TestKept"),
        end=report("shop.TestKept"),
        old_tests=report("shop?"),
        new_tests=report("shop.TestKept"),
        tests_changed=True,
        only_removed=only_removed,
    )
    fates = {one.name: one.fate for one in concluded(runs).old}
    kept = {} if only_removed else {"shop.TestKept": Fate.UNCLEAR}
    assert fates == {"shop.TestOld": Fate.GONE, **kept}


def test_tests_that_cannot_be_compared_are_told_where_no_test_went() -> None:
    """A file that they need went then: nobody knows what they would have said with it."""
    runs = Runs(
        before=report("shop.TestKept"),
        end=report("shop.TestKept"),
        old_tests=report("shop?"),
        new_tests=report("shop.TestKept"),
        tests_changed=True,
        only_removed=True,
    )
    assert [one.fate for one in concluded(runs).old] == [Fate.UNCLEAR]


def test_an_inherited_test_that_was_moved_is_told_once() -> None:
    """It is named by the module and the class that run it; its text stands in another file."""
    old, new = "test_cart.TestCart.test_total", "unit.test_cart.TestCart.test_total"
    runs = Runs(
        before=report(old),
        end=report(new),
        old_tests=report(old),
        new_tests=report(new),
        tests_changed=True,
    )
    assert concluded(runs) == Trial(moved=(new,))


def test_a_test_that_vanished_without_a_changed_test_file_is_challenged() -> None:
    """Missing, skipped and cut rows alike; where code files hold tests, it is only looked at."""
    before = TestReport(passed={"a": 1, "b": 1, "c": 3, "d": 1})
    end = TestReport(passed={"c": 2, "d": 1}, skipped={"b": 1})
    trial = concluded(Runs(before=before, end=end))
    assert {one.name: one.fate for one in trial.old} == dict.fromkeys("abc", Fate.LOST)
    assert trial.challenges
    unsure = concluded(Runs(before=before, end=end, is_unsure=True))
    assert unsure.challenges == ()
    assert unsure.look_at


PROOFS = {
    "fails without it": ("n!", {}, Trial(proven=("n",))),
    "passes without it": ("n", {}, Trial(vacuous=("n",))),
    "fails in one of its rows": ("n n!", {}, Trial(proven=("n",))),
    "cannot be collected": ("n?", {}, Trial(unloadable=("n",))),
    "was not run": ("", {}, Trial(unseen=("n",))),
    "only imports": ("n!", {"n": "ImportError: cannot import name 'x'"}, Trial(reached=("n",))),
    "imports inside": ("n?", {"n": "ImportError: cannot import name 'x'"}, Trial(reached=("n",))),
    "meets a stub": ("n!", {"n": f"shop.{MARK}: {MARK}: x"}, Trial(reached=("n",))),
    "has no such parameter": (
        "n!",
        {"n": "TypeError: total() got an unexpected keyword argument 'vat'"},
        Trial(reached=("n",)),
    ),
    "expects another value": ("n!", {"n": "AssertionError: 3 != 4"}, Trial(proven=("n",))),
    "is skipped there": ("n~", {}, Trial(skipping=("n",))),
    "has no such method": (
        "n!",
        {"n": "AttributeError: 'A' object has no attribute 'b'"},
        Trial(reached=("n",)),
    ),
}


@pytest.mark.parametrize(("crossed", "said", "expected"), PROOFS.values(), ids=PROOFS)
def test_what_a_new_test_proves(crossed: str, said: dict[str, str], expected: Trial) -> None:
    """Only one that fails on the old code by what it does proves the story; a missing name does not."""
    runs = Runs(
        before=report("t"),
        end=report("t n"),
        old_tests=report("t"),
        new_tests=report(f"t {crossed}", **said),
        tests_changed=True,
    )
    assert concluded(runs) == expected


def told(text: str, status: CheckStatus = CheckStatus.PASSED) -> CheckResult:
    """What a check told, by names."""
    return CheckResult(name="pytest", status=status, report=report(text))


def numbers(**counts: int) -> CheckResult:
    """What it told in numbers, or not at all."""
    told = TestCounts(**counts) if counts else None
    return CheckResult(name="pytest", status=CheckStatus.PASSED, counts=told)


DISBELIEVED = {
    "no results any more": (told("t"), numbers(), True, Canary.UNTRIED),
    "failed and ended well": (told("t"), told("t!"), True, Canary.UNTRIED),
    "failed and ended well, in numbers": (
        numbers(passed=9),
        numbers(passed=3, failed=6),
        False,
        Canary.UNTRIED,
    ),
    "no test ran": (
        numbers(passed=9),
        numbers(passed=0),
        False,
        Canary.UNTRIED,
    ),
    "the canary lives": (told("t"), told("t"), True, Canary.PASSED),
    "the canary is gone": (told("t"), told("t"), True, Canary.ABSENT),
}
BELIEVED = {
    "all as it was": (told("t"), told("t u"), True, Canary.FAILED),
    "the canary never failed here": (told("t"), told("t"), False, Canary.ABSENT),
    "red with failures": (told("t"), told("t!", CheckStatus.FAILED), True, Canary.FAILED),
    "always green with failures": (told("t u!"), told("t u!"), False, Canary.UNTRIED),
    "never any results": (numbers(), numbers(), False, Canary.UNTRIED),
    "no numbers any more": (numbers(passed=9), numbers(), False, Canary.UNTRIED),
}


@pytest.mark.parametrize("case", DISBELIEVED.values(), ids=DISBELIEVED)
def test_a_check_that_contradicts_itself_is_no_evidence(
    case: tuple[CheckResult, CheckResult, bool, Canary],
) -> None:
    """The story never passes on it, told before or not."""
    before, now, behaved, canary = case
    trial = disbelief(before, now, behaved=behaved, canary=canary)
    assert trial.contradictions
    proof = Proof(claimed=True, checks=GREEN, trial=trial, challenged=trial.contradictions)
    assert not judge_story(proof).passed


@pytest.mark.parametrize("case", BELIEVED.values(), ids=BELIEVED)
def test_each_contradiction_counts_only_where_the_baseline_behaved(
    case: tuple[CheckResult, CheckResult, bool, Canary],
) -> None:
    """What was so before the story says nothing about it."""
    before, now, behaved, canary = case
    assert disbelief(before, now, behaved=behaved, canary=canary) == Trial()


def test_fewer_tests_in_numbers() -> None:
    """Without names: fewer and no test file changed is a challenge, otherwise a look."""
    before, now = (numbers(passed=n) for n in (414, 408))
    assert fewer(before, now, tests_changed=False).challenges
    changed = fewer(before, now, tests_changed=True)
    assert not changed.challenges
    assert changed.look_at
    assert fewer(now, before, tests_changed=False) == Trial()
    left_out = numbers(passed=408, deselected=6)
    assert fewer(before, left_out, tests_changed=True).challenges


NAMES = st.sampled_from([f"tests/test_{file}.py::test_{n}" for file in "ab" for n in range(4)])
ROWS = st.dictionaries(NAMES, st.integers(1, 3), max_size=6)
REPORTS = st.builds(TestReport, passed=ROWS, failed=ROWS, errors=ROWS, skipped=ROWS)
MAYBE = st.none() | REPORTS
RUNS = st.builds(
    Runs,
    before=MAYBE,
    end=MAYBE,
    old_tests=MAYBE,
    new_tests=MAYBE,
    tests_changed=st.booleans(),
    is_unsure=st.booleans(),
    flaky=st.frozensets(NAMES),
)


@given(RUNS)
def test_verified_always_has_a_test_that_is_red_without_the_story(runs: Runs) -> None:
    """Whatever was reported: no grade above `checked` without it, and none above what is doubted."""
    trial = concluded(runs)
    verdict = judge_story(Proof(claimed=True, checks=GREEN, trial=trial))
    if verdict.grade is Grade.VERIFIED:
        assert runs.new_tests is not None
        assert runs.end is not None
        assert set(trial.proven) <= set(runs.new_tests.failed) & set(runs.end.passed)
        assert not trial.old
        assert not set(trial.proven) & runs.flaky


@given(REPORTS, REPORTS, st.booleans())
def test_work_that_keeps_every_old_test_is_never_challenged(
    end: TestReport, crossed: TestReport, changed: bool
) -> None:
    """Old tests that pass as they were, and are all still there: nothing to ask, nothing to see."""
    before = TestReport(passed=dict(end.passed))
    old = TestReport(passed=dict(before.passed))
    runs = Runs(before=before, end=end, old_tests=old, new_tests=crossed, tests_changed=changed)
    trial = concluded(runs)
    assert trial.challenges == trial.look_at == trial.idle == ()


@given(RUNS)
def test_an_old_test_is_told_once(runs: Runs) -> None:
    """Each has one fate, and what is said to the agent is the same each time."""
    trial = concluded(runs)
    names = [one.name for one in trial.old]
    assert len(names) == len(set(names))
    assert not set(names) & set(trial.idle)
    assert concluded(runs).challenges == trial.challenges


@given(RUNS, RUNS)
def test_two_checks_together_say_what_each_says(one: Runs, other: Runs) -> None:
    """Nothing of either is lost, and nothing appears that neither said."""
    both = concluded(one).joined(concluded(other))
    assert set(both.proven) == {*concluded(one).proven, *concluded(other).proven}
    assert set(both.old) == {*concluded(one).old, *concluded(other).old}


def test_what_nobody_looked_at_has_not_behaved_and_no_tests_are_none() -> None:
    """A check is believed after it was tried, and one that found no test passed none."""
    (green,) = GREEN
    assert not green.behaved
    none = CheckResult(name="tests", status=CheckStatus.NO_TESTS)
    assert none.numbers == TestCounts(passed=0)
