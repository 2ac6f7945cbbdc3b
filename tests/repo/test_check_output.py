"""Reading test runners: names of failing tests, and runs that found no test."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.repo.reports import (
    MAX_NAMES,
    collected_nothing,
    failing_tests,
    plain_text,
)
from tests.timing import assert_linear, repeated

PYTEST = """\
============================= test session starts ==============================
collected 4 items

tests/test_calc.py .FF.                                                  [100%]

=================================== FAILURES ===================================
___________________________________ test_add ___________________________________
E       assert 3 == 4
=========================== short test summary info ============================
FAILED tests/test_calc.py::test_add - assert 3 == 4
FAILED tests/test_calc.py::TestMore::test_sub[a b-2] - ValueError: nope - really
ERROR tests/test_broken.py - ImportError: no module
========================= 2 failed, 2 passed, 1 error in 0.12s =================
"""
PYTEST_VERBOSE = """\
tests/test_a.py::test_one PASSED                                         [ 33%]
tests/test_a.py::test_two FAILED                                         [ 66%]
[gw1] [ 90%] FAILED tests/test_a.py::test_three
"""
UNITTEST = """\
F.E
======================================================================
FAIL: test_add (test_calc.CalcTest.test_add)
----------------------------------------------------------------------
AssertionError: 3 != 4
======================================================================
ERROR: test_sub (test_calc.CalcTest)
----------------------------------------------------------------------
Ran 3 tests in 0.001s

FAILED (failures=1, errors=1)
"""
JEST = """\
 FAIL  src/sum.test.js
  ● math › adds numbers

    expect(received).toBe(expected)

  ● Console

 FAIL  src/broken.test.js
  ● Test suite failed to run

    Cannot find module './nope'

Summary of all failing tests
 FAIL  src/sum.test.js
  ● math › adds numbers

Tests:       1 failed, 3 passed, 4 total
"""
VITEST = """\
 FAIL  test/sum.test.ts > math > adds numbers
AssertionError: expected 3 to be 4
 Test Files  1 failed (1)
      Tests  1 failed | 2 passed (3)
"""
MOCHA = """\
  Calculator
    ✓ adds
    1) subtracts

  1 passing (5ms)
  2 failing

  1) Calculator
       subtracts:
     AssertionError: expected 1 to equal 2
      at Context.<anonymous> (test/calc.js:9:14)

  2) Parser reads numbers:
     Error: boom
"""
GO = """\
--- FAIL: TestAdd (0.00s)
    --- FAIL: TestAdd/negative (0.00s)
        calc_test.go:9: got 3
FAIL
FAIL\texample.com/calc\t0.002s
ok  \texample.com/other\t0.001s
FAIL\texample.com/broken [build failed]
FAIL
"""
CARGO = """\
running 3 tests
test tests::adds ... ok
test tests::subtracts ... FAILED
test src/lib.rs - add (line 5) ... FAILED

failures:
    tests::subtracts

test result: FAILED. 1 passed; 2 failed; 0 ignored
"""
MAVEN = """\
[ERROR] Tests run: 3, Failures: 2, Errors: 0, Skipped: 0, Time elapsed: 0.05 s <<< FAILURE! - in com.x.CalcTest
[ERROR] testAdd(com.x.CalcTest)  Time elapsed: 0.003 s  <<< FAILURE!
[ERROR] com.x.CalcTest.testSub -- Time elapsed: 0.002 s <<< ERROR!
[INFO] BUILD FAILURE
"""
GRADLE = """\
> Task :test FAILED

CalcTest > testAdd() FAILED
    org.opentest4j.AssertionFailedError at CalcTest.java:9

CalcTest > nested > subtracts FAILED
"""
RSPEC = """\
Finished in 0.01 seconds
3 examples, 1 failure

Failed examples:

rspec ./spec/calc_spec.rb:7 # Calc adds numbers
rspec ./spec/shared_spec.rb[1:2:1] # Calc shares
"""
PHPUNIT = """\
There were 2 failures:

1) CalcTest::testAdd
Failed asserting that 3 matches expected 4.

2) App\\Tests\\ParserTest::testReads with data set #1
FAILURES!
Tests: 3, Assertions: 3, Failures: 2.
"""
DOTNET = """\
  Failed Calc.Tests.AddTests.Adds [12 ms]
  Error Message:
   Assert.Equal() Failure
  Failed Calc.Tests.AddTests.Theory(x: 1) [< 1 ms]
Failed!  - Failed:     2, Passed:     1, Skipped:     0, Total:     3
"""
TAP = """\
ok 1 - adds
not ok 2 - subtracts
not ok 3 - later # TODO
# tests 3
"""
NODE = """\
✔ adds (0.5ms)
✖ subtracts (1.25ms)
ℹ tests 2
"""


@pytest.mark.parametrize(
    "output, names",
    [
        (
            PYTEST,
            (
                "tests/test_calc.py::test_add",
                "tests/test_calc.py::TestMore::test_sub[a b-2]",
                "tests/test_broken.py",
            ),
        ),
        (PYTEST_VERBOSE, ("tests/test_a.py::test_two", "tests/test_a.py::test_three")),
        (UNITTEST, ("test_calc.CalcTest.test_add", "test_calc.CalcTest.test_sub")),
        (JEST, ("math › adds numbers", "src/broken.test.js")),
        (VITEST, ("test/sum.test.ts > math > adds numbers",)),
        (MOCHA, ("Calculator subtracts", "Parser reads numbers")),
        (
            GO,
            (
                "example.com/calc.TestAdd/negative",
                "example.com/broken",
            ),
        ),
        (CARGO, ("tests::subtracts", "src/lib.rs - add (line 5)")),
        (MAVEN, ("com.x.CalcTest.testAdd", "com.x.CalcTest.testSub")),
        (GRADLE, ("CalcTest > testAdd()", "CalcTest > nested > subtracts")),
        (RSPEC, ("./spec/calc_spec.rb Calc adds numbers", "./spec/shared_spec.rb Calc shares")),
        (
            PHPUNIT,
            ("CalcTest::testAdd", "App\\Tests\\ParserTest::testReads with data set #1"),
        ),
        (DOTNET, ("Calc.Tests.AddTests.Adds", "Calc.Tests.AddTests.Theory(x: 1)")),
        (TAP, ("subtracts",)),
        (NODE, ("subtracts",)),
        ("ERROR something went wrong\nFAILED to connect\n", ()),
        ("error: src/a.py::x\n1) first do this\n", ()),
        ("", ()),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else None,
)
def test_failing_tests_are_named_as_their_runner_names_them(
    output: str, names: tuple[str, ...]
) -> None:
    """Each common runner's failures are found, and prose is not mistaken for one."""
    assert failing_tests(output) == names


def test_names_do_not_depend_on_line_numbers() -> None:
    """The same rspec example on another line is the same name."""
    moved = RSPEC.replace(":7", ":70")
    assert failing_tests(moved) == failing_tests(RSPEC)


def test_at_most_fifty_names_are_kept() -> None:
    """The list is bounded, and so is each name."""
    many = "".join(f"FAILED tests/t.py::test_{n} - x\n" for n in range(500))
    assert len(failing_tests(many)) == MAX_NAMES
    (name,) = failing_tests(f"FAILED tests/t.py::test_{'x' * 5000}\n")
    assert len(name) <= 300


@pytest.mark.parametrize(
    "output, code",
    [
        ("collected 0 items\n\n===== no tests ran in 0.01s =====\n", 5),
        ("no tests ran in 0.00s\n", 5),
        ("make: *** [test] Error 5\nno tests ran in 0.01s\n", 2),
        ("3 deselected in 0.02s\n", 5),
        ("----\nRan 0 tests in 0.000s\n\nOK\n", 0),
        ("----\nRan 0 tests in 0.000s\n\nNO TESTS RAN\n", 5),
        ("?   \texample.com/a\t[no test files]\n?   \texample.com/b\t[no test files]\n", 0),
        ("ok  \texample.com/a\t0.001s [no tests to run]\n", 0),
        ("running 0 tests\n\ntest result: ok. 0 passed; 0 failed\n", 0),
        ("No tests found, exiting with code 1\n", 1),
        ("\nNo test files found, exiting with code 1\n", 1),
        ('Error: No test files found: "test"\n', 1),
        ("\n  0 passing (1ms)\n", 0),
        ("[INFO] No tests to run.\n[INFO] BUILD SUCCESS\n", 0),
        ("> Task :test NO-SOURCE\nBUILD SUCCESSFUL\n", 0),
        ("No examples found.\n\n0 examples, 0 failures\n", 0),
        ("No tests executed!\n", 1),
        ("> No tests found for given includes: [a.B](--tests filter)\n", 1),
        ("No test is available in /x/bin/App.dll.\n", 0),
        ("# tests 0\n# pass 0\n", 0),
    ],
)
def test_a_run_without_tests_is_neither_red_nor_green(output: str, code: int) -> None:
    """Each runner's way to say that there was nothing to run."""
    assert collected_nothing(output, code)


@pytest.mark.parametrize(
    "output, code",
    [
        (PYTEST, 1),
        ("5 passed in 0.1s\n", 0),
        ("collected 0 items / 1 error\n1 error in 0.1s\n", 2),
        ("no tests collected, 1 error in 0.12s\n", 2),
        ("?   \ta\t[no test files]\nok  \tb\t0.01s\n", 0),
        ("?   \ta\t[no test files]\nFAIL\tb [build failed]\n", 1),
        ("ok  \ta\t0.001s [no tests to run]\nok  \tb\t(cached)\n", 0),
        ("running 0 tests\nrunning 4 tests\n", 0),
        ("error: could not compile\nrunning 0 tests\n", 101),
        ("  0 passing\n  1 failing\n", 1),
        ("Ran 0 tests in 0.0s\nRan 12 tests in 0.1s\n", 0),
        ("Tests run: 0, Failures: 0\nTests run: 3, Failures: 0\n", 0),
        ("All done!\n", 0),
        ("", 0),
        ("", 1),
    ],
)
def test_a_run_with_tests_or_errors_is_judged_by_its_exit_code(output: str, code: int) -> None:
    """One module without tests, or a build error, does not make the run empty."""
    assert not collected_nothing(output, code)


def test_colours_control_characters_and_progress_bars_are_removed() -> None:
    """What is stored is what a person would have read in the end."""
    raw = b"\x1b[31mFAILED\x1b[0m tests/a.py::x\r\n 10%\r 50%\r100% done\n\x1b]0;title\x07\x00ok\xff\n"
    assert plain_text(raw) == "FAILED tests/a.py::x\n100% done\nok\ufffd\n"


@given(st.binary(max_size=400))
def test_any_output_can_be_read(output: bytes) -> None:
    """No bytes make the readers fail."""
    text = plain_text(output)
    assert len(failing_tests(text)) <= MAX_NAMES
    collected_nothing(text, 0)


@pytest.mark.parametrize(
    "piece",
    ["\n", " ", "=", "FAIL ", "FAILED a::b ", "--- FAIL: x\n", "1) x\n", "● ", "1 ", "\x1b["],
)
def test_hostile_output_is_read_in_linear_time(piece: str) -> None:
    """Eight times the output costs about eight times the reading, whatever it is made of."""

    def read(text: str) -> None:
        failing_tests(text)
        collected_nothing(text, 0)
        plain_text(text.encode())

    assert_linear(repeated(piece), read, 16_000)
