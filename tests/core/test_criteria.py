"""Which test speaks of a criterion, and what is said where none does."""

from __future__ import annotations

from ralphloop.core.criteria import CriterionEvidence, evidence_for
from ralphloop.core.proof import CheckStatus, Trial

TEXTS = {
    "tests/test_isbn.py::test_valid": "def test_valid():\n    assert is_valid('978-3')",
    "tests/test_isbn.py::test_wrong_check_digit": (
        "def test_wrong_check_digit():\n    assert is_valid('978-4') is False"
    ),
    "tests/test_cart.py::test_total": "def test_total():\n    assert total([1]) == 1",
}


def test_a_test_speaks_of_a_criterion_by_its_name_and_its_values() -> None:
    """The one that shares most words and quoted values, with what it showed before."""
    [found] = evidence_for(
        ["`978-4` is refused: its check digit is wrong"],
        Trial(proven=("tests/test_isbn.py::test_wrong_check_digit",)),
        TEXTS,
    )
    assert found.source == "tests/test_isbn.py::test_wrong_check_digit"
    assert found.words == "test_wrong_check_digit: fails before, passes after"


def test_where_no_test_speaks_of_it_there_is_the_verify_or_nothing() -> None:
    """None is told as none, never as the next best test."""
    asked = ["A receipt is printed in landscape"]
    assert evidence_for(asked, Trial(), TEXTS) == (CriterionEvidence(criterion=asked[0]),)
    [shown] = evidence_for(
        asked, Trial(), TEXTS, verify=CheckStatus.PASSED, verify_was=CheckStatus.FAILED
    )
    assert (shown.source, shown.words) == ("verify", "verify: red before, green after")
    [none] = evidence_for(asked, Trial(), TEXTS, verify=CheckStatus.FAILED)
    assert none.words == "no test speaks of it"


def test_a_test_that_only_misses_a_name_is_said_to() -> None:
    """It is shown beside the criterion, and not as a proof of it."""
    [found] = evidence_for(
        ["The total of a cart is shown"],
        Trial(reached=("tests/test_cart.py::test_total",)),
        {"tests/test_cart.py::test_total": "def test_total():\n    assert cart().total == 1"},
    )
    assert found.words == "test_total: misses what is new before, passes after"


SHIPPING = {
    "t::test_heavy_parcels": "def test_heavy_parcels():\n    assert shipping(3, 20) == 9.9",
    "t::test_rows": (
        "@parametrize('weight, worth', [(1.5, 20)])\ndef test_rows(weight, worth):\n"
        "    assert shipping(weight, worth) == 4.9"
    ),
    "t::test_other_words": "def test_other_words():\n    with raises(ValueError): read('soon')",
}


def test_a_call_that_a_criterion_shows_has_to_be_made() -> None:
    """With what is handed in, there or in a table; words in its place leave it open."""
    asked = [
        "shipping(3, 20) is 9.9: above that",
        "shipping(1.5, 20) is 4.9",
        "shipping(3, 50) is 0: from 50.00 on it is free",
        "shipping(a weight, a worth) of heavy parcels is known",
    ]
    found = [one.source for one in evidence_for(asked, Trial(), SHIPPING)]
    assert found == ["t::test_heavy_parcels", "t::test_rows", "", "t::test_heavy_parcels"]


def test_an_error_that_a_criterion_names_is_not_all_that_is_said_of_it() -> None:
    """A test that expects the same error of something else says nothing about it."""
    asked = ["Weights that add up to nothing raise ValueError", "Reading soon raises ValueError"]
    found = [one.source for one in evidence_for(asked, Trial(), SHIPPING)]
    assert found == ["", "t::test_other_words"]
