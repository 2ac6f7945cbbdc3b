"""Checks now against checks before: what is new, what was red already, what turned green.

`strict` lets nothing red through.  `tolerate` lets a red check through when every test that fails
now is named and failed before under the same name; a failure that cannot be named test by test, or
a list so long that it was cut, is never tolerated.  A flaky pass never counts as turned green.
"""

from __future__ import annotations

from collections.abc import Iterable

from ralphloop.config.model import Baseline
from ralphloop.core.model import CheckResult, CheckStatus, Comparison


def compare(
    baseline: Iterable[CheckResult],
    now: Iterable[CheckResult],
    mode: Baseline = Baseline.STRICT,
) -> Comparison:
    """Weigh checks that just ran against how they stood before; checks pair up by name."""
    before = {result.name: result for result in baseline}
    tolerated: list[CheckResult] = []
    green: list[str] = []
    for result in now:
        earlier = before.get(result.name)
        green += _turned_green(earlier, result)
        if mode is Baseline.TOLERATE and _is_known(earlier, result):
            tolerated.append(result)
    return Comparison(
        tolerated=tuple(result.name for result in tolerated),
        tolerated_failures=tuple(t for result in tolerated for t in result.failing_tests),
        turned_green=tuple(green),
    )


def _turned_green(earlier: CheckResult | None, result: CheckResult) -> list[str]:
    """The check itself, or tests of a check that still fails for other reasons."""
    if earlier is None or earlier.status is not CheckStatus.FAILED:
        return []
    if result.status is CheckStatus.PASSED:
        return [] if result.flaky else [result.name]
    if result.status is not CheckStatus.FAILED or not _is_complete(result):
        return []  # a crash before the first test names nothing, and proves nothing
    return [test for test in earlier.failing_tests if test not in result.failing_tests]


def _is_known(earlier: CheckResult | None, result: CheckResult) -> bool:
    if earlier is None or earlier.status is not CheckStatus.FAILED:
        return False
    failed = result.status is CheckStatus.FAILED and _is_complete(result)
    return failed and set(result.failing_tests) <= set(earlier.failing_tests)


def _is_complete(result: CheckResult) -> bool:
    """True where the failures are named, and the list of names was not cut."""
    from ralphloop.workspace.check_output import MAX_NAMES

    return 0 < len(result.failing_tests) < MAX_NAMES
