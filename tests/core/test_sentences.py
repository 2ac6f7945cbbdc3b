"""Each sentence about a story's proof, as a person reads it."""

from __future__ import annotations

import pytest

from ralphloop.core.grading import Proof, judge_story
from ralphloop.core.model import CheckResult, CheckStatus
from ralphloop.core.proof import Fate, OldTest, Trial
from ralphloop.core.sentences import is_about_the_agent, short_name

GREEN = (CheckResult(name="pytest -q", status=CheckStatus.PASSED),)
FILE = "tests/test_shop.py::TestShop::"


def reasons(trial: Trial) -> str:
    """Why a green story has its grade."""
    told = judge_story(Proof(claimed=True, checks=GREEN, trial=trial))
    return "; ".join(told.reasons)


def test_a_story_is_proved_by_named_tests() -> None:
    """Without files and classes, and at most three of them."""
    one = reasons(Trial(proven=(f"{FILE}test_x",)))
    assert one == "proved by test_x (fails before, passes after)"
    many = reasons(Trial(proven=tuple(f"{FILE}test_{letter}" for letter in "abcd")))
    assert many == "proved by test_a, test_b, test_c and 1 more (fail before, pass after)"
    script = reasons(Trial(proven=("src/sum.test.js > adds > small",)))
    assert script == "proved by small (fails before, passes after)"


@pytest.mark.parametrize(
    ("test", "short"),
    {
        "example.org/shop/cart.TestTotal": "TestTotal",
        "shop.ExampleCart_Total": "ExampleCart_Total",
        "tests.timed.test_timed.TestSerializer.test_loads": "test_loads",
        "tests/test_shop.py": "tests/test_shop.py",  # a file that could not be loaded
        "src/cart.test.ts > adds > 1.Test of it": "1.Test of it",
        "adds 1.5": "adds 1.5",
        "org.acme.CartTest.adds": "org.acme.CartTest.adds",
    }.items(),
)
def test_a_test_is_named_without_package_module_and_class(test: str, short: str) -> None:
    """Go tells tests by packages, pytest by modules where a class comes from another file."""
    assert short_name(test) == short


def test_what_else_is_to_be_looked_at_is_not_taken_for_more_tests() -> None:
    """Two endings of the same form in a row cannot be told apart."""
    gone = tuple(OldTest(name=f"test_{letter}", fate=Fate.GONE) for letter in "abcd")
    kept = OldTest(name="test_x", fate=Fate.UNCLEAR)
    told = reasons(Trial(old=(*gone, kept)))
    assert told == (
        "look at: tests gone together with the code: test_a, test_b, test_c and 1 more;"
        " 1 more to look at"
    )


def test_a_story_that_is_not_proven_says_why() -> None:
    """Tests that import, that only miss a name, that pass anyway."""
    words = {
        "the tests only import the new file (test_x)": Trial(unloadable=(f"{FILE}test_x",)),
        "the new tests pass without it too (test_x)": Trial(vacuous=(f"{FILE}test_x",)),
    }
    for why, trial in words.items():
        assert reasons(trial) == f"pytest -q green; not proven: {why}"


def test_a_weakened_test_is_told_by_what_each_version_does() -> None:
    """And the agent is asked to explain it."""
    weak = Trial(old=(OldTest(name=f"{FILE}test_total", fate=Fate.WEAKENED),))
    assert reasons(weak) == (
        "asked to explain: test weakened: test_total. Its old version fails on the new code;"
        " the new version passes on the old code too"
    )


def test_a_changed_expectation_says_which_test_met_which_code() -> None:
    """Two values alone are a riddle: each stands with the test and the code that gave it."""
    changed = OldTest(
        name=f"{FILE}test_total", fate=Fate.CHANGED, was="assert 4 == 3", now="assert 3 == 4"
    )
    assert Trial(old=(changed,)).look_at == (
        "test_total expects something else now (the old test with the new code: assert 4 == 3;"
        " the new test with the old code: assert 3 == 4)",
    )


def test_what_an_older_version_asked_about_is_not_asked_again() -> None:
    """Its words were others; the finding is the same, and the agent stood by it."""
    weak = Trial(old=(OldTest(name=f"{FILE}test_total", fate=Fate.WEAKENED),))
    before = (
        "as they were they fail on the new code, as they are they pass on the old too:"
        f" {FILE}test_total"
    )
    proof = Proof(claimed=True, checks=GREEN, trial=weak, challenged=(before,))
    assert judge_story(proof).grade == "needs review"


def test_a_setting_that_an_agent_lacks_is_about_all_of_its_starts() -> None:
    """It is said once in a run, not with each start that tries again; what it did is said anew."""
    assert is_about_the_agent('to let it use git: [sandbox] git = "guarded" (the sandbox kept x)')
    assert is_about_the_agent('to allow it: [sandbox] write = ["/x"] (the sandbox kept /x/y)')
    assert not is_about_the_agent("the sandbox kept /etc/passwd from being written")
