"""Values altered so that whoever looks at them notices, and whoever only asks for the kind does not."""

from __future__ import annotations

import asyncio
import datetime as dt
import enum
import importlib.util
from collections import OrderedDict
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any, NamedTuple
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.repo.mutant_runs import MUTANTS


def _loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("ralph_bending", MUTANTS / "ralph_bending.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


bending = _loaded()


class Pair(NamedTuple):
    left: int
    right: str


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass(frozen=True)
class Money:
    amount: int
    currency: str = "EUR"


class Slotted:
    __slots__ = ("x",)

    def __init__(self, x: int) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slotted) and self.x == other.x

    __hash__ = None  # type: ignore[assignment]


_PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.binary()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(_PLAIN)
def test_plain_values_are_altered_within_their_kind(value: Any) -> None:
    """Another value, the same every time, of the same type, and there where it was there."""
    bent = bending.bend(value)
    assert bent != value
    assert bent == bending.bend(value)
    assert value is None or type(bent) is type(value)
    assert isinstance(value, bool) or not value or bent


@pytest.mark.parametrize(
    "value",
    [
        Money(3),
        Slotted(3),
        Pair(1, "a"),
        Colour.RED,
        Decimal("1.5"),
        Fraction(1, 3),
        dt.date(2026, 1, 1),
        dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        dt.timedelta(seconds=1),
        dt.time(3),
        PurePosixPath("a"),
        Path("a"),
        {1, 2},
        frozenset(),
        OrderedDict(a=1),
        range(3),
        bytearray(b"a"),
        complex(1, 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_objects_are_altered_within_their_kind(value: Any) -> None:
    """Data classes, names, dates, paths and sets as well."""
    bent = bending.bend(value)
    assert bent != value
    assert bent == bending.bend(value)


def test_what_comes_later_is_altered_when_it_comes() -> None:
    """Functions, generators and coroutines hand out altered values."""

    async def later() -> int:
        return 1

    async def asked() -> int:
        value: int = await bending.bend(later())
        return value

    def plus(x: int) -> int:
        return x + 1

    assert bending.bend(plus)(1) == 3
    assert list(bending.bend(iter([1, 2]))) == [2, 3]
    assert asyncio.run(asked()) == 2


@pytest.mark.parametrize("value", [Mock(), ValueError("x"), pytest, Money, dt.UTC])
def test_what_cannot_be_altered_is_left_alone(value: Any) -> None:
    """And counts as not tried."""
    before = bending.count[0]
    assert bending.bend(value) is value
    assert bending.count[0] == before
