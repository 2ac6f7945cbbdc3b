"""Red tests: which of them turned green, and what became of the others."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ralphloop.core.grading import VERIFY, Grade, Proof, judge_story
from ralphloop.core.model import CheckResult, CheckStatus
from ralphloop.core.proof import (
    Fate,
    OwnCommand,
    Runs,
    TestReport,
    Trial,
    concluded,
    own_command,
)
from ralphloop.repo.checks import compare

RED = TestReport(failed={"a.py::t": 1}, passed={"a.py::u": 1})
GREEN = TestReport(passed={"a.py::t": 1, "a.py::u": 1})
GONE = TestReport(passed={"a.py::u": 1})
SKIPPED = TestReport(passed={"a.py::u": 1}, skipped={"a.py::t": 1})
PASSED = CheckResult(name=VERIFY, status=CheckStatus.PASSED, report=GREEN)
FAILED = CheckResult(name=VERIFY, status=CheckStatus.FAILED, report=RED)
SILENT_RED = CheckResult(name=VERIFY, status=CheckStatus.FAILED)
SILENT_GREEN = CheckResult(name=VERIFY, status=CheckStatus.PASSED)
NONE_FOUND = CheckResult(name=VERIFY, status=CheckStatus.FAILED, ran_nothing=True)


def fates(trial: Trial) -> dict[str, Fate]:
    """What became of each test."""
    return {one.name: one.fate for one in trial.old}


@pytest.mark.parametrize(
    ("end", "tried", "crossed", "fate"),
    [
        (GREEN, GREEN, RED, None),  # honest, whatever else the test side did
        (GREEN, RED, GREEN, Fate.WEAKENED),
        (GREEN, RED, RED, Fate.CHANGED),
        (GONE, RED, RED, Fate.UNSOLVED),
        (SKIPPED, RED, RED, Fate.UNSOLVED),
        (RED, RED, RED, None),  # as red as it was
        (GREEN, GONE, RED, None),  # it stands in a file that was not run again, as it was
    ],
)
def test_a_red_test_has_its_fate(
    end: TestReport, tried: TestReport, crossed: TestReport, fate: Fate | None
) -> None:
    """Green as it was is nothing to say; anything else is said by its name."""
    runs = Runs(before=RED, end=end, old_tests=tried, new_tests=crossed, tests_changed=True)
    assert fates(concluded(runs)) == ({"a.py::t": fate} if fate else {})


def test_a_red_test_that_is_gone_is_found_without_a_change_of_the_tests() -> None:
    """Code alone can make a test skip itself; what would still pass as it was is only said."""
    skipped = concluded(Runs(before=RED, end=SKIPPED))
    assert fates(skipped) == {"a.py::t": Fate.UNSOLVED}
    assert skipped.challenges == ("red test gone or skipped instead of green: t",)
    assert concluded(Runs(before=RED, end=GREEN)).old == ()
    idle = concluded(Runs(before=RED, end=GONE, old_tests=GREEN, tests_changed=True))
    assert (idle.old, idle.idle) == ((), ("a.py::t",))


def test_the_tests_of_a_file_that_could_not_be_loaded_were_red() -> None:
    """By the names that it turns out to hold; a fixture is no test."""
    broken = TestReport(errors={"a.py": 1, "setUpClass (b.T)": 1}, passed={"a.py::u": 1})
    runs = Runs(before=broken, end=GREEN, old_tests=GREEN, new_tests=broken, tests_changed=True)
    assert concluded(runs).old == ()
    emptied = TestReport(failed={"a.py::t": 1}, passed={"a.py::u": 1})
    runs = Runs(before=broken, end=GREEN, old_tests=emptied, new_tests=GREEN, tests_changed=True)
    assert fates(concluded(runs)) == {"a.py::t": Fate.WEAKENED}
    gone = Runs(before=broken, end=TestReport(passed={"c.py::x": 1, "a.py::u": 1}))
    assert fates(concluded(gone)) == {}


OWN = OwnCommand(
    command="sh accept.sh", red=TestReport(failed={"a.py::t": 1}), end=GREEN, tests_changed=True
)
SILENT = OwnCommand(command="sh accept.sh", tests_changed=True, had_changed=True)


def with_runs(
    own: OwnCommand, old: CheckResult | None, new: CheckResult | None = None
) -> OwnCommand:
    """The same with what came out."""
    return replace(own, old_tests=old, new_tests=new)


@pytest.mark.parametrize(
    ("own", "fate"),
    [
        (with_runs(OWN, FAILED, PASSED), Fate.WEAKENED),
        (with_runs(OWN, FAILED, FAILED), Fate.CHANGED),
        (with_runs(SILENT, SILENT_RED, SILENT_GREEN), Fate.WEAKENED),
        (with_runs(SILENT, SILENT_RED, SILENT_RED), Fate.CHANGED),
        (with_runs(SILENT, SILENT_RED, None), Fate.UNCLEAR),
    ],
)
def test_a_command_that_is_red_with_the_tests_as_they_were_proves_nothing(
    own: OwnCommand, fate: Fate
) -> None:
    """Its tests are named, or itself where it names none."""
    trial = own_command(own, VERIFY)
    assert trial.discounted == (VERIFY,)
    assert [one.fate for one in trial.old] == [fate]


def test_a_command_whose_tests_came_with_the_story_is_discounted_and_nobody_is_blamed() -> None:
    """There was nothing to make easier: red as they were, and said."""
    for own in (
        with_runs(OWN, NONE_FOUND, None),
        with_runs(OwnCommand(command="make accept", tests_changed=True), SILENT_RED, SILENT_GREEN),
    ):
        trial = own_command(own, VERIFY)
        assert (trial.discounted, trial.old) == ((VERIFY,), ())
        assert trial.untried == ("verify is red with the tests as they were",)


@pytest.mark.parametrize(
    ("own", "proven"),
    [
        (OwnCommand(command="x"), ("a.py::t",)),
        (OwnCommand(command="x", by_chance=frozenset({"a.py::t"})), ()),
        (OwnCommand(command="x", settings_changed=True), ()),
    ],
    ids=["twice", "by chance", "settings"],
)
def test_a_test_that_came_with_the_story_proves_it_by_failing_without_its_code(
    own: OwnCommand, proven: tuple[str, ...]
) -> None:
    """Unless it did so by chance, or the settings of the runner changed with it."""
    ran = replace(own, end=GREEN, tests_changed=True, old_tests=NONE_FOUND, new_tests=FAILED)
    assert own_command(ran, VERIFY).proven == proven


def test_a_command_that_is_green_with_the_tests_as_they_were_proves_the_story() -> None:
    """Also where nothing of the tests changed, unless a red test is gone."""
    assert own_command(with_runs(OWN, PASSED), VERIFY) == Trial()
    untouched = OwnCommand(command="x", red=OWN.red, end=GREEN)
    assert own_command(untouched, VERIFY) == Trial()
    gone = OwnCommand(command="x", red=OWN.red, end=SKIPPED)
    assert own_command(gone, VERIFY).discounted == (VERIFY,)
    green = Proof(claimed=True, checks=(PASSED,), verify_was=CheckStatus.FAILED)
    assert judge_story(green).grade is Grade.VERIFIED
    doubted = Proof(
        claimed=True,
        checks=(PASSED,),
        verify_was=CheckStatus.FAILED,
        trial=Trial(discounted=(VERIFY,)),
    )
    verdict = judge_story(doubted)
    assert verdict.grade is Grade.CHECKED
    assert "not green with the tests as they were" in verdict.reasons[-1]


def red_check(*tests: str, report: TestReport | None = None) -> CheckResult:
    """A check with these failing tests."""
    return CheckResult(name="c", status=CheckStatus.FAILED, failing_tests=tests, report=report)


def green_check(*tests: str) -> CheckResult:
    """A check in which these tests ran and passed."""
    report = TestReport(passed=dict.fromkeys(tests, 1))
    return CheckResult(name="c", status=CheckStatus.PASSED, report=report)


@pytest.mark.parametrize(
    ("was", "now", "green"),
    [
        (red_check("a.py::t[1]"), green_check("a.py::t"), ("c",)),
        (red_check("a.py"), green_check("a.py::t"), ("c",)),
        (red_check("p.T/row"), green_check("p.T"), ("c",)),
        (red_check("a.py::t"), green_check("a.py::tt"), ()),
        (red_check("a.py::tt"), green_check("a.py::t"), ()),
        (red_check("a.py::t", "a.py::u"), green_check("a.py::u"), ("a.py::u",)),
        (red_check(), green_check("a.py::t"), ("c",)),
        (
            red_check("a.py::t", "a.py::u", "a.py::v"),
            red_check("a.py::v", report=GONE),
            ("a.py::u",),
        ),
    ],
)
def test_turned_green_is_what_ran_and_passed(
    was: CheckResult, now: CheckResult, green: tuple[str, ...]
) -> None:
    """A whole check where all of its red tests did; a row by its function, a file by its tests."""
    assert compare([was], [now]).turned_green == green


def test_what_an_earlier_story_turned_green_is_not_turned_again() -> None:
    """Only the check of the newest passed story says what is still red."""
    was, now = red_check("a.py::t"), green_check("a.py::t")
    assert compare([was], [now], "strict", [now]).turned_green == ()
    assert compare([was], [now], "strict", [was]).turned_green == ("c",)
