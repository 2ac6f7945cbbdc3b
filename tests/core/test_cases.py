"""The labelled decision cases: every one must agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralphloop.replay.cases import Case, judge, parse_cases

CASES = Path(__file__).parent.parent / "cases"


def all_cases() -> list[Case]:
    """The cases of every file in the case set."""
    found: list[Case] = []
    for path in sorted(CASES.glob("*.jsonl")):
        with path.open("rb") as lines:
            found += parse_cases(lines, path.name)
    return found


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.id)
def test_the_decision_is_the_labelled_one(case: Case) -> None:
    """Readers and core agree with the label in every iteration."""
    assert judge(case, {}).mismatches == ()


def test_half_of_the_cases_are_honest_work() -> None:
    """The set stays balanced: as many cases that must go on as cases that must stop or warn."""
    cases = all_cases()
    goes_on = sum(
        all(i.expect.get("decision", "continue") == "continue" for i in case.iterations)
        for case in cases
    )
    assert goes_on >= len(cases) * 0.45
