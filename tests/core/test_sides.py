"""Whose word a changed file is."""

from __future__ import annotations

import pytest

from ralphloop.core.sides import PathFacts, Side, side_of

SIDES = {
    "a test that was there": (PathFacts(existed=True, is_test=True), Side.PERSON),
    "a new test": (PathFacts(existed=False, is_test=True), Side.AGENT),
    "a script that verify runs": (PathFacts(existed=True, judges=True), Side.PERSON),
    "code": (PathFacts(existed=True, is_source=True), Side.PRODUCT),
    "new data": (PathFacts(existed=False), Side.PRODUCT),
    "prose": (PathFacts(existed=True, is_prose=True), Side.NEITHER),
    "data that only judges name": (PathFacts(existed=True, named_by_judges=True), Side.PERSON),
    "data that only the product names": (
        PathFacts(existed=True, named_by_product=True),
        Side.PRODUCT,
    ),
    "data that both name": (
        PathFacts(existed=True, named_by_judges=True, named_by_product=True),
        Side.UNKNOWN,
    ),
    "data that nobody names": (PathFacts(existed=True), Side.UNKNOWN),
}


@pytest.mark.parametrize(("facts", "side"), SIDES.values(), ids=SIDES)
def test_a_path_has_a_side(facts: PathFacts, side: Side) -> None:
    """By what it is, whether it was there, and who names it."""
    assert side_of(facts) is side
