"""After a run: tell whoever asked to be told, tidy up, say what to do next."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import msgspec

from ralphloop.core.model import ExitDecision
from ralphloop.loop.setup import Setup
from ralphloop.loop.start import Ended

_ON_END_TIMEOUT_S = 60.0
_NEXT = {
    ExitDecision.PROJECT_COMPLETE: "Look at it: ralph stories, git log.",
    ExitDecision.CIRCUIT_OPEN: (
        "Look at the reason (ralph status), then: ralph run --continue --reset-circuit"
    ),
    ExitDecision.TEST_SATURATION: "Look at the story, then: ralph run --continue",
    ExitDecision.BLOCKED: "Give it what it needs, then: ralph run --continue",
    ExitDecision.MAX_ITERATIONS: "To go on: ralph run --continue --max-iterations N",
    ExitDecision.BUDGET_EXHAUSTED: "To go on: ralph run --continue --max-cost X (or --max-time)",
    ExitDecision.USAGE_LIMIT: "When the limit is lifted: ralph run --continue",
    ExitDecision.NO_RUNNABLE_STORY: "See ralph stories; ralph run tries them again.",
    ExitDecision.ERROR: "Fix it (ralph doctor), then: ralph run --continue",
    ExitDecision.INTERRUPTED: "To go on: ralph run --continue",
}


def next_step(ended: Ended) -> Iterator[str]:
    """What the person can do now."""
    yield f"next: {_NEXT[ended.decision.word]}"


def after_run(setup: Setup, ended: Ended) -> None:
    """Run the `on_end` command with the result on its input; its failure is only said."""
    argv = setup.config.session.on_end
    if not argv:
        return
    result = {
        "run": ended.run,
        "decision": str(ended.decision.word),
        "reasons": list(ended.decision.reasons),
        "exit_code": int(ended.exit_code),
        "passed": ended.passed,
        "total": ended.total,
        "cost_usd": ended.totals.cost_usd,
        "tokens": ended.totals.total_tokens,
        "iterations": ended.totals.iterations,
        "duration_s": ended.totals.active_s,
    }
    try:
        subprocess.run(
            argv,
            cwd=setup.project.root,
            input=msgspec.json.encode(result),
            timeout=_ON_END_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return  # the run is over; a notification that fails changes nothing
