"""What is left of a run's limits for the runs that follow it."""

import time
from typing import NamedTuple

from ralphloop.config.model import Config
from ralphloop.journal.records import RunRecord
from ralphloop.night.look import reading
from ralphloop.project import Project

_MOST_RUNS = 500


class LimitsLeft(NamedTuple):
    flags: dict[str, object]  # limits as the next run is told them
    used_up: str = ""  # which one is, in words; empty: none


def left_of(
    project: Project,
    config: Config,
    since: float,
    until: float,
    *,
    night: str = "",
    going_on: str = "",
) -> LimitsLeft:
    """What all runs since a moment, and the night they belong to, have left; `until` 0: no end.

    The run that is to go on counts its own.
    """
    runs = dict[str, RunRecord]()
    if project.journal.exists():
        with reading(project) as journal:
            runs = {run.id: run for run in journal.runs(_MOST_RUNS) if run.started_at >= since}
            before = journal.find_run(night) if night else None
        if before is not None:
            runs[before.id] = before
    spent = [run.totals for name, run in runs.items() if name != going_on]
    used: dict[str, float] = {
        "max_cost_usd": sum(it.cost_usd for it in spent),
        "max_tokens": sum(it.input_tokens + it.output_tokens for it in spent),
        "max_iterations": sum(it.iterations for it in spent),
    }
    flags: dict[str, object] = {}
    for name, much in used.items():
        limit = getattr(config.limits, name)
        if limit and limit - much <= 0:
            return LimitsLeft({}, f"limits.{name} of the run is used up")
        if limit:
            flags[f"limits.{name}"] = limit - much
    if until:
        seconds = until - time.time()
        if seconds <= 0:
            return LimitsLeft({}, "the time of the run is over")
        flags["limits.max_time"] = f"{max(1, int(seconds))}s"
    return LimitsLeft(flags)


def pause(every: float, until: float) -> None:
    """Wait a while, no longer than the run has time."""
    left = until - time.time() if until else every
    time.sleep(max(0.0, min(every, left)))
