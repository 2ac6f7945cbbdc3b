"""Events as a run tells them."""

from __future__ import annotations

from typing import Any

from ralphloop.core.events import IterationFinished, LoopEvent, event_of
from ralphloop.core.iteration import Iteration
from ralphloop.core.model import Analysis, Decision, ExitDecision, Outcome, Story
from ralphloop.core.totals import Expense
from ralphloop.text.status_block import Status, StatusBlock


def line(type_: str, /, iteration: int | None = None, **data: Any) -> LoopEvent:
    """One event."""
    return LoopEvent(run="r1", at=1_794_780_000.0, what=event_of(type_, data), iteration=iteration)


def started(**more: Any) -> LoopEvent:
    """A run of four stories with ten dollars begins."""
    facts = {
        "project": "shop",
        "stories": 4,
        "passed": 0,
        "max_cost_usd": 10.0,
        "circuit": "CLOSED",
    }
    return line("run_started", **{**facts, **more})


def finished(
    *,
    story: str = "US-1",
    outcome: str = "completed",
    decision: str = "continue",
    status: str = "IN_PROGRESS",
    recommendation: str = "",
    cost_usd: float = 1.0,
    output_tokens: int = 0,
) -> LoopEvent:
    """An iteration ended."""
    block = StatusBlock(status=Status(status), recommendation=recommendation)
    ended = Iteration(
        story=Story(id=story, title=story, index=0),
        analysis=Analysis(outcome=Outcome(outcome), status=block),
        decision=Decision(word=ExitDecision(decision)),
    )
    what = IterationFinished(
        iteration=ended, spent=Expense(cost_usd=cost_usd, output_tokens=output_tokens)
    )
    return LoopEvent(run="r1", at=1_794_780_000.0, what=what, iteration=1)


def ended(decision: str, *reasons: str, **more: Any) -> LoopEvent:
    """The run ended."""
    facts = {"decision": decision, "reasons": list(reasons), "passed": 3, "total": 4}
    return line("run_finished", **{**facts, "cost_usd": 4.1, **more})


def quota(seconds: float = 3_600.0) -> LoopEvent:
    """The run begins to wait for its usage limit."""
    return line(
        "waiting",
        kind="quota",
        reason="usage limit reached, resets 2026-11-16T00:00:00Z",
        until="2026-11-16T00:00:00Z",
        seconds=seconds,
    )


def quota_over() -> LoopEvent:
    """The wait is over; whether the limit is lifted remains to be seen."""
    return line("waiting", kind="quota", reason="over", until=None, seconds=0.0)


def tool() -> LoopEvent:
    """The agent does something."""
    return line("agent_event", 2, kind="tool", summary="Edit src/a.py")
