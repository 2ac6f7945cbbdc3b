"""The labelled decision cases: every one must agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralphloop.replay.cases import Case, judge, parse_cases

CASES = Path(__file__).parent.parent / "cases"


def cases_of(path: Path) -> list[Case]:
    """The cases of one file."""
    with path.open("rb") as lines:
        return list(parse_cases(lines, path.name))


FILES = sorted(CASES.glob("*.jsonl"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_decision_is_the_labelled_one(path: Path) -> None:
    """Readers and core agree with the labels in every iteration of every case."""
    wrong = {case.id: found for case in cases_of(path) if (found := judge(case, {}).mismatches)}
    assert wrong == {}


def test_half_of_the_cases_are_honest_work() -> None:
    """The set stays balanced: as many cases that must go on as cases that must stop or warn."""
    cases = [case for path in FILES for case in cases_of(path)]
    goes_on = sum(
        all(i.expect.get("decision", "continue") == "continue" for i in case.iterations)
        for case in cases
    )
    assert goes_on >= len(cases) * 0.45
