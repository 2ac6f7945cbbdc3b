"""Costs compared with each other: no test asks how fast, or how busy, a machine is.

What must not take long although it could is tested with a wait nobody would live to see, so that
only the time-out of pytest could end it otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

FOR_EVER_S = 1_000  # longer than any test may take

_T = TypeVar("_T")


def cpu(work: Callable[[], object], times: int = 3) -> float:
    """The least CPU time of this process over several runs."""
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def assert_linear(make: Callable[[int], _T], work: Callable[[_T], object], size: int) -> None:
    """Eight times as much costs at most twenty times as much; a quadratic way would take 64."""
    small = cpu(partial(work, make(size)))
    large = cpu(partial(work, make(8 * size)), times=2)
    assert large <= 20 * small + 0.05, (small, large)


def repeated(piece: str) -> Callable[[int], str]:
    """Makes a text of nothing but this, of any size."""
    return lambda size: piece * (size // len(piece))
