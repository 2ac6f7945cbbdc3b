"""Events as a run tells them, in the shape of `ralph run --json`."""

from __future__ import annotations

from typing import Any

Line = dict[str, Any]


def line(type_: str, /, iteration: int | None = None, **data: Any) -> Line:
    """One event."""
    head = {"v": 1, "type": type_, "ts": "2026-11-15T22:00:00Z", "run": "r1"}
    return {**head, "iteration": iteration, **data}


def started(**more: Any) -> Line:
    """A run of four stories with ten dollars begins."""
    facts = {
        "project": "shop",
        "stories": 4,
        "passed": 0,
        "max_cost_usd": 10.0,
        "circuit": "CLOSED",
    }
    return line("run_started", **{**facts, **more})


def finished(**more: Any) -> Line:
    """An iteration ended."""
    facts = {"story": "US-1", "outcome": "completed", "decision": "continue", "cost_usd": 1.0}
    return line("iteration_finished", 1, **{**facts, **more})


def ended(decision: str, *reasons: str, **more: Any) -> Line:
    """The run ended."""
    facts = {"decision": decision, "reasons": list(reasons), "passed": 3, "total": 4}
    return line("run_finished", **{**facts, "cost_usd": 4.1, **more})


def quota(seconds: float = 3_600.0) -> Line:
    """The run begins to wait for its usage limit."""
    return line(
        "waiting",
        kind="quota",
        reason="usage limit reached, resets 2026-11-16T00:00:00Z",
        until="2026-11-16T00:00:00Z",
        seconds=seconds,
    )


def quota_over() -> Line:
    """The wait is over; whether the limit is lifted remains to be seen."""
    return line("waiting", kind="quota", reason="over", until=None, seconds=0.0)


def tool() -> Line:
    """The agent does something."""
    return line("agent_event", 2, kind="tool", summary="Edit src/a.py")
