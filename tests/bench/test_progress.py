"""How far a long benchmark is."""

from __future__ import annotations

import pytest

from benchmarks import progress


def test_the_rest_is_estimated_by_what_the_first_took(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that takes twice as long for the first will do so for the others."""
    now = [0.0]
    monkeypatch.setattr("benchmarks.progress.time.monotonic", lambda: now[0])
    known = {"a": 600.0, "b": 600.0}
    going = progress.Progress(["a", "b", "c"], known, jobs=1)
    assert going.beginning() == "3 to run, about 30 min"
    now[0] = 1200.0
    assert going.after("a") == "1 of 3, about 40 min left"
    now[0] = 2400.0
    assert going.after("b") == "2 of 3, about 20 min left"
    assert going.after("c") == "3 of 3"
