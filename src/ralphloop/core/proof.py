"""What a run of a check says test by test, and what may be concluded from it.

Names are the runner's own: the file and the way to the test in it where the runner tells a file
(`tests/test_a.py::TestX::test_y`, `src/sum.test.js > adds > small numbers`), else what stands for
it.  The rows of a parameter table are folded into their function and counted, because their ids
are renumbered by honest work.
"""

from __future__ import annotations

import msgspec

from ralphloop.core import Value


class TestCounts(Value, kw_only=True):
    """How many there were; None: the runner does not say."""

    __test__ = False  # pytest takes the name for a test class

    passed: int | None = None
    failed: int | None = None  # errors included
    skipped: int | None = None
    deselected: int | None = None


class TestReport(Value, kw_only=True):
    """Named results of one run of a check: how many rows of each test ended in that way."""

    __test__ = False

    passed: dict[str, int] = msgspec.field(default_factory=dict)
    failed: dict[str, int] = msgspec.field(default_factory=dict)  # inside a running test
    errors: dict[str, int] = msgspec.field(
        default_factory=dict
    )  # could not be imported, collected or set up
    skipped: dict[str, int] = msgspec.field(default_factory=dict)

    @property
    def counts(self) -> TestCounts:
        """The same in numbers."""
        return TestCounts(
            passed=sum(self.passed.values()),
            failed=sum(self.failed.values()) + sum(self.errors.values()),
            skipped=sum(self.skipped.values()),
        )
