"""The page of guarantees says what the tests say."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.guarantees import PAGE, ROOT, Promise, kept_by, last_value, page, promises

SAID = promises()
ROWS = [*SAID.burn, *SAID.honest]


def test_the_page_lists_every_promise_and_no_other() -> None:
    """Ways, bounds and tests are those of the table (`make guarantees` writes it anew)."""
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(SAID, lambda row: last_value(row, text))


def test_what_was_measured_is_within_the_bound() -> None:
    """A number from a run stands in every row, and it is no more than was promised."""
    text = PAGE.read_text(encoding="utf-8")
    for row in ROWS:
        row.hold(float(last_value(row, text).partition(",")[0].removeprefix("$")))


def test_every_way_to_burn_has_a_bound_and_a_name_of_its_own() -> None:
    """A bound begins with its number; two rows of one name could not be told apart."""
    assert [row.way for row in SAID.burn if not row.bound.lstrip("$")[:1].isdigit()] == []
    assert [row.way for row in SAID.honest if row.bound] == []
    assert len({row.way for row in ROWS}) == len(ROWS)


def test_every_promise_has_its_test() -> None:
    """Each test that is named exists, with the case that is named."""
    files = sorted({f"tests/{row.test.partition('::')[0]}" for row in ROWS})
    command = [sys.executable, "-m", "pytest", "--guarantees", "--collect-only", "-q", *files]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = [line for line in ended.stdout.splitlines() if "::" in line]
    assert [row for row in ROWS if not any(kept_by(name, [row]) for name in found)] == []


def test_more_than_was_promised_is_a_failure() -> None:
    """As much as the bound says holds, more does not."""
    row = Promise(way="talk", test="test_it.py::test_it", bound="4 starts")
    row.hold(4)
    with pytest.raises(AssertionError, match="talk: 5 measured, 4 starts promised"):
        row.hold(5)
