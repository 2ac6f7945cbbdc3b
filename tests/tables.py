"""Tables of cases of which a few are tried with every change, and all of them by `make slow`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest


def some_of(cases: Mapping[str, Any], usual: Iterable[str]) -> list[Any]:
    """Each case by its name; those that are not among the usual ones are marked slow."""
    wanted = set(usual)
    assert wanted <= cases.keys(), wanted - cases.keys()
    return [
        pytest.param(case, id=name, marks=() if name in wanted else pytest.mark.slow)
        for name, case in cases.items()
    ]


def every(nth: int, cases: Sequence[Any], first: int = 0) -> list[Any]:
    """All cases; those between each `nth` one are marked slow."""
    return [
        pytest.param(case, marks=() if (number - first) % nth == 0 else pytest.mark.slow)
        for number, case in enumerate(cases)
    ]
