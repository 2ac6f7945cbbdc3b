"""Telling stories about tests from stories that merely must pass them."""

from __future__ import annotations

import pytest

from ralphloop.stories.shapes import is_about_tests
from tests.timing import assert_linear, repeated

ABOUT = [
    "Add unit tests for the parser",
    "Test the login flow",
    "Improve testing of the API",
    "Raise coverage to 80 %",
    "Move to pytest",
    "Write the e2e spec for checkout",
    "TESTS for billing",
    "Repair tests/test_login.py",
    "Add LoginTests",
    "Playwright specs for the cart",
    "Integration-test the importer",
    "Tests d'intégration",
]

NOT_ABOUT = [
    "Use the latest version",
    "Build the contest page",
    "Attest the build",
    "Greatest hits list",
    "Fixed the acrobats module",
    "Protestant church finder",
    "Add an A/B test for the price page",
    "A/B testing of the header",
    "Inspect the spectrum",
    "Write the API spec",
    "Detestable bugs",
    "Testimonials section",
    "Add a majestic banner",
    "",
]

GATES = [
    "Tests pass",
    "All tests pass",
    "All tests pass.",
    "Typecheck passes",
    "Unit tests pass",
    "All existing tests still pass",
    "Typecheck, lint and tests pass",
    "`npm test` passes",
    "pytest passes",
    "pytest -q is green",
    "Test suite is green",
    "No failing tests",
    "AC3: Tests pass",
    "All unit and integration tests pass in CI",
    "npm run test succeeds without errors",
]

CRITERIA = [
    "A test covers the empty list",
    "Unit tests exist for every branch",
    "Coverage is above 90 %",
    "Tests pass and three new tests cover the parser",
    "AC2: there is a regression test for #12",
]


@pytest.mark.parametrize("title", ABOUT)
def test_a_title_that_names_tests_is_about_them(title: str) -> None:
    """Words for tests in a title make the story one about tests."""
    assert is_about_tests(title, [])


@pytest.mark.parametrize("title", NOT_ABOUT)
def test_letters_inside_other_words_are_no_tests(title: str) -> None:
    """Words that merely contain the letters, and experiments, are not tests."""
    assert not is_about_tests(title, [])
    assert not is_about_tests("Add the field", [title])


@pytest.mark.parametrize("criterion", GATES)
def test_the_usual_gates_do_not_make_a_story_about_tests(criterion: str) -> None:
    """What generators append to every story says nothing about this one."""
    assert not is_about_tests("Add the field", ["The field is shown", criterion])


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_criterion_that_asks_for_tests_does(criterion: str) -> None:
    """A criterion beyond the gates that names tests makes the story one about tests."""
    assert is_about_tests("Add the field", ["The field is shown", criterion])


def test_a_title_made_of_gate_words_is_about_tests() -> None:
    """To make the tests pass can be a story's very purpose."""
    assert is_about_tests("All tests pass", [])


def test_a_huge_text_is_looked_at_in_linear_time() -> None:
    """A hostile title or criterion costs what its size costs."""
    assert_linear(repeated("a/b-"), lambda title: is_about_tests(title, []), 64_000)
    assert_linear(repeated("test "), lambda text: is_about_tests("Add it", [text]), 64_000)
