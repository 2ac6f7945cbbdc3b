"""Checks against their baseline: failures that are tolerated, red turned green."""

from __future__ import annotations

from ralphloop.config.model import Baseline
from ralphloop.core.model import CheckResult, CheckStatus, Comparison
from ralphloop.repo.checks import compare
from ralphloop.repo.reports import MAX_NAMES

TOLERATE: Baseline = "tolerate"


def _red(*tests: str, name: str = "pytest") -> CheckResult:
    return CheckResult(name=name, status=CheckStatus.FAILED, failing_tests=tests)


def _green(name: str = "pytest", *, flaky: bool = False) -> CheckResult:
    return CheckResult(name=name, status=CheckStatus.PASSED, flaky=flaky)


def test_strict_lets_nothing_red_through() -> None:
    """Even a failure that was there before is not tolerated."""
    assert compare([_red("a")], [_red("a")]) == Comparison()


def test_tolerate_lets_named_old_failures_through() -> None:
    """A subset of what failed before is tolerated and listed."""
    seen = compare([_red("a", "b")], [_red("b")], TOLERATE)
    assert seen.tolerated == ("pytest",)
    assert seen.tolerated_failures == ("b",)
    assert seen.turned_green == ("a",)


def test_a_new_failure_is_never_tolerated() -> None:
    """One test that did not fail before makes the check red."""
    assert compare([_red("a")], [_red("a", "c")], TOLERATE).tolerated == ()


def test_failures_without_names_are_never_tolerated() -> None:
    """A check that failed before and fails now without naming tests stays red."""
    assert compare([_red()], [_red()], TOLERATE).tolerated == ()
    assert compare([_red("a")], [_red()], TOLERATE).tolerated == ()
    assert compare([_red()], [_red("a")], TOLERATE).tolerated == ()


def test_a_list_of_names_that_was_cut_is_never_tolerated() -> None:
    """Beyond the limit nobody knows what else failed."""
    many = tuple(f"t{n}" for n in range(MAX_NAMES))
    assert compare([_red(*many)], [_red(*many)], TOLERATE).tolerated == ()


def test_a_check_that_was_green_or_unknown_is_never_tolerated() -> None:
    """Without a red baseline there is nothing to tolerate."""
    assert compare([_green()], [_red("a")], TOLERATE).tolerated == ()
    assert compare([], [_red("a")], TOLERATE).tolerated == ()
    assert compare([_red("a", name="lint")], [_red("a")], TOLERATE).tolerated == ()


def test_a_check_turned_green_is_noted() -> None:
    """Red before and green now proves something; green before does not."""
    assert compare([_red("a")], [_green()]).turned_green == ("pytest",)
    assert compare([_green()], [_green()]).turned_green == ()
    assert compare([], [_green()]).turned_green == ()


def test_a_flaky_green_proves_nothing() -> None:
    """A check that fails every second time did not turn green by the story's work."""
    assert compare([_red("a")], [_green(flaky=True)]).turned_green == ()


def test_a_crash_does_not_turn_tests_green() -> None:
    """A run that names no test says nothing about the ones that failed before."""
    assert compare([_red("a")], [_red()]).turned_green == ()
    nothing = CheckResult(name="pytest", status=CheckStatus.NO_TESTS)
    assert compare([_red("a")], [nothing]).turned_green == ()
