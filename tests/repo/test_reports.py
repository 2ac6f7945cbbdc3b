"""What runners report, read: recorded files and outputs of real runners."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralphloop.core.proof import TestCounts, TestReport
from ralphloop.repo.reports import (
    read_cargo,
    read_counts,
    read_go,
    read_junit,
    read_lines,
    read_tap,
    tally,
)

RECORDINGS = Path(__file__).parent / "recordings"
CARGO = """\
     Running unittests src/lib.rs (target/debug/deps/demo-1)
running 4 tests
test tests::later ... ignored
test tests::panics - should panic ... ok
test tests::works::case_1 ... ok
test tests::works::case_2_zero ... FAILED

test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.68s
     Running tests/it.rs (target/debug/deps/it-2)
test outside ... ok
   Doc-tests demo
test src/lib.rs - add (line 2) ... ok
test src/lib.rs - sub (line 9) - compile ... ok
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.03s
"""
GO = """\
=== RUN   TestAdd
--- PASS: TestAdd (0.00s)
=== RUN   TestTable
=== RUN   TestTable/one
=== RUN   TestTable/two
--- FAIL: TestTable (0.00s)
    --- PASS: TestTable/one (0.00s)
    --- FAIL: TestTable/two (0.00s)
=== RUN   TestLater
    a_test.go:9: not today
--- SKIP: TestLater (0.00s)
FAIL
FAIL\texample.com/shop/cart\t0.003s
ok  \texample.com/shop\t0.002s [no tests to run]
FAIL\texample.com/shop/broken [build failed]
?   \texample.com/shop/none\t[no test files]
"""
TAP = """\
TAP version 13
ok 1 - adds
not ok 2 - subtracts
  ---
  message: 3 == 4
  ...
ok 3 - later # SKIP not today
ok 4 adds
1..4
"""


def test_vitest_writes_junit() -> None:
    """The file, the groups and the test; what could not be loaded or imported is an error."""
    report = tally(read_junit([RECORDINGS / "vitest.xml"]) or [])
    assert report is not None
    assert list(report.passed) == [
        "vt/a.test.js > math > adds",
        "vt/a.test.js > each 1",
        "vt/a.test.js > each 3",
    ]
    assert "vt/a.test.js > math > deep > fails [x]" in report.failed
    assert list(report.errors) == ["vt/a.test.js > dyn", "vt/b.test.js", "vt/c.test.js"]
    assert report.said["vt/a.test.js > notfn"] == "nothere is not a function"


def test_cargo_names_every_test() -> None:
    """Behind its binary; rows of a table count under their function, lines of documentation not."""
    report = tally(read_cargo(CARGO))
    assert report == TestReport(
        passed={
            "src/lib.rs::tests::panics": 1,
            "src/lib.rs::tests::works": 1,
            "tests/it.rs::outside": 1,
            "demo (doc)::src/lib.rs - add": 1,
            "demo (doc)::src/lib.rs - sub - compile": 1,
        },
        failed={"src/lib.rs::tests::works": 1},
        skipped={"src/lib.rs::tests::later": 1},
    )


def test_go_names_every_test_behind_its_package() -> None:
    """Subtests are rows of their function; a package that does not build is an error."""
    report = tally(read_go(GO))
    assert report == TestReport(
        passed={"example.com/shop/cart.TestAdd": 1, "example.com/shop/cart.TestTable": 1},
        failed={"example.com/shop/cart.TestTable": 1},
        errors={"example.com/shop/broken": 1},
        skipped={"example.com/shop/cart.TestLater": 1},
    )


def test_tap_is_read_from_whatever_prints_it() -> None:
    """Only with a plan or a version; `ok` alone is a word."""
    report = tally(read_tap(TAP))
    assert report == TestReport(passed={"adds": 2}, failed={"subtracts": 1}, skipped={"later": 1})
    assert read_tap("ok 1 is a fine number\n") == []


@pytest.mark.parametrize(
    "content",
    [
        "",
        '["a", "passed"]\n',  # it did not come to the end
        '["a", "passed"]\n"end"\n["b", "passed"]\n',
        '["a", "perfect"]\n"end"\n',
        '{"a": 1}\n"end"\n',
        "[" * 100_000,
        "no json\n",
    ],
)
def test_half_a_report_is_none(content: str, tmp_path: Path) -> None:
    """What a dying or lying process wrote is not made the best of."""
    (tmp_path / "report").write_text(content)
    assert read_lines(tmp_path / "report") is None


@pytest.mark.parametrize(
    "content", ["", "<html/>", "<testsuites><testsuite>", "<testsuite/>", "\0", "<a>" * 50_000]
)
def test_what_is_no_junit_is_no_report(content: str, tmp_path: Path) -> None:
    """Neither an error nor an empty report."""
    (tmp_path / "report.xml").write_text(content)
    assert tally(read_junit([tmp_path / "report.xml"]) or []) is None


@pytest.mark.parametrize(
    "output, counts",
    [
        ("408 passed, 6 deselected in 1.02s\n", TestCounts(passed=408, deselected=6)),
        (
            "== 1 failed, 3 passed, 2 skipped, 1 error in 0.50s ==\n",
            TestCounts(passed=3, failed=2, skipped=2),
        ),
        ("Ran 5 tests in 0.1s\n\nOK (skipped=2)\n", TestCounts(passed=3, skipped=2)),
        (
            "Ran 5 tests in 0.1s\n\nFAILED (failures=1, errors=1)\n",
            TestCounts(passed=3, failed=2),
        ),
        (
            "Tests:       5 failed, 1 skipped, 1 todo, 5 passed, 12 total\n",
            TestCounts(passed=5, failed=5, skipped=2),
        ),
        (
            "      Tests  5 failed | 3 passed | 1 skipped | 1 todo (10)\n",
            TestCounts(passed=3, failed=5, skipped=2),
        ),
        ("  3 passing (5ms)\n  1 pending\n", TestCounts(passed=3, skipped=1)),
        (CARGO, TestCounts(passed=3, failed=1, skipped=1, deselected=3)),
        ("# pass 2\n# fail 1\n# skipped 1\n", TestCounts(passed=2, failed=1, skipped=1)),
        ("Found 3 errors in 1 file (checked 4 source files)\n", None),
        ("I passed 3 tests yesterday\n", None),
    ],
)
def test_numbers_are_read_where_names_are_not_to_be_had(
    output: str, counts: TestCounts | None
) -> None:
    """Only from lines that are a runner's own summary."""
    assert read_counts(output) == counts
