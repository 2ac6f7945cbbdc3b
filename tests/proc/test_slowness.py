"""How much longer things take now: what is judged must not hang on what else the machine does."""

from __future__ import annotations

import os

import pytest

from ralphloop.proc.slowness import slowness


@pytest.mark.parametrize(
    ("wanting", "times"),
    [(0.0, 1.0), (2.0, 1.0), (5.0, 2.5), (60.0, 4.0)],
    ids=["idle", "as many as cores", "busy", "overloaded"],
)
def test_it_is_by_those_that_want_a_core(
    monkeypatch: pytest.MonkeyPatch, wanting: float, times: float
) -> None:
    """Never less than alone, and bounded."""
    monkeypatch.setattr(os, "getloadavg", lambda: (wanting, 0.0, 0.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert slowness() == times


def test_a_system_without_such_a_number_counts_as_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then everything is as on a quiet machine."""

    def unknown() -> tuple[float, float, float]:
        raise OSError

    monkeypatch.setattr(os, "getloadavg", unknown)
    assert slowness() == 1.0
