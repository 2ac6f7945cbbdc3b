"""`ralph status --json`: the session with its iterations one by one, and all that surrounds it.

The keys are a contract with other tools, described in docs/reference/commands.md; they are only
ever added to.
"""

from __future__ import annotations

from collections.abc import Iterator

from ralphloop.cli.next_steps import next_steps
from ralphloop.cli.overview import Overview, State
from ralphloop.core.durations import elapsed, iso
from ralphloop.core.spending import Totals
from ralphloop.core.story_state import Standing
from ralphloop.journal.holder import Holder
from ralphloop.journal.reader import JournalReader
from ralphloop.journal.records import IterationRecord, JsonObject, RunRecord
from ralphloop.journal.views import circuit_view, iteration_list, session_view

_PAGE = 1_000


def status_data(overview: Overview) -> JsonObject:
    """The whole object."""
    totals = overview.totals
    return {
        "v": 1,
        "state": str(overview.state),
        "project": str(overview.project.root),
        **_iterations(overview),
        "session": _session(overview),
        "run": _run(overview),
        "holder": _holder(overview.holder),
        "waiting": _waiting(overview),
        "paused": overview.session.desk.paused or None,
        "current": _current(overview),
        "last": _last(overview),
        "stories": _stories(overview),
        "cost_usd": totals.cost_usd,
        "cost_estimated": totals.cost_estimated,
        "cost_known": not totals.unpriced,
        "unpriced_starts": totals.unpriced,
        "tokens": _tokens(totals),
        "limits": _limits(overview),
        "circuit": circuit_view(overview.circuit, overview.policy),
        "next": list(next_steps(overview)),
    }


def _iterations(overview: Overview) -> JsonObject:
    if overview.run is None:
        return {"session_id": None, "started_at": None, "iterations": []}
    return iteration_list(overview.run, _all_iterations(overview, overview.run.id))


def _all_iterations(overview: Overview, run: str) -> Iterator[IterationRecord]:
    with JournalReader.open(overview.project.journal) as journal:
        after = 0
        while page := journal.iterations(run, after=after, limit=_PAGE, brief=True):
            yield from page
            after = page[-1].n


def _session(overview: Overview) -> JsonObject | None:
    if overview.run is None:
        return None
    return session_view(
        overview.run,
        stories_completed=overview.stories.passed if overview.stories else 0,
        stories_failed=overview.count(Standing.SET_ASIDE) + overview.count(Standing.BLOCKED),
        circuit_state=str(overview.circuit.circuit),
    )


def _run(overview: Overview) -> JsonObject | None:
    run: RunRecord | None = overview.run
    if run is None:
        return None
    return {
        "id": run.id,
        "status": str(run.status),
        "mode": run.mode,
        "branch": run.branch,
        "decision": run.decision or None,
        "reason": run.reason or None,
        "started_at": iso(run.started_at),
        "last_activity": iso(run.last_activity),
        "ended_at": iso(run.ended_at) if run.ended_at is not None else None,
        "starts": run.totals.starts,
        "active_s": overview.active_s,
        "waited_s": run.totals.waited_s,
        "can_continue": run.status.is_unfinished and not overview.expired,
    }


def _holder(holder: Holder | None) -> JsonObject | None:
    if holder is None:
        return None
    return {
        "run": holder.run,
        "mode": holder.mode,
        "pid": holder.pid,
        "host": holder.host,
        "since": iso(holder.since),
    }


def _waiting(overview: Overview) -> JsonObject | None:
    wait = overview.wait
    if wait is None or overview.state is not State.WAITING:
        return None
    left = max(0.0, wait.until - overview.now)
    return {"kind": wait.kind, "reason": wait.reason, "until": iso(wait.until), "seconds": left}


def _current(overview: Overview) -> JsonObject | None:
    current = overview.current
    if current is None or not overview.is_live:
        return None
    return {
        "iteration": current.n,
        "story": current.story,
        "attempt": current.attempt,
        "started_at": iso(current.started_at),
        "elapsed_s": elapsed(current.started_at, overview.now),
    }


def _last(overview: Overview) -> JsonObject | None:
    last = overview.last
    if last is None:
        return None
    return {
        "iteration": last.n,
        "story": last.story,
        "outcome": last.outcome,
        "decision": last.decision,
        "reasons": overview.reasons,
        "warnings": overview.warnings,
    }


def _stories(overview: Overview) -> JsonObject:
    stories = overview.stories
    return {
        "source": stories.source if stories else None,
        "problem": overview.stories_problem or None,
        "total": stories.total if stories else 0,
        "passed": stories.passed if stories else 0,
        "open": overview.count(Standing.OPEN) + overview.count(Standing.PASSED),
        "set_aside": overview.count(Standing.SET_ASIDE),
        "blocked": overview.count(Standing.BLOCKED),
        "grades": overview.grades,
    }


def _tokens(totals: Totals) -> JsonObject:
    return {
        "input": totals.input_tokens,
        "output": totals.output_tokens,
        "cache_read": totals.cache_read_tokens,
        "cache_write": totals.cache_write_tokens,
        "total": totals.total_tokens,
    }


def _limits(overview: Overview) -> JsonObject:
    """What the session may use; 0 means no limit.  A person may have raised it on the way."""
    limits, extra = overview.config.limits, overview.session.desk.extra
    return {
        "max_iterations": limits.max_iterations and limits.max_iterations + extra.iterations,
        "max_cost_usd": limits.max_cost_usd and limits.max_cost_usd + extra.cost_usd,
        "max_time_s": limits.max_time and limits.max_time + extra.time_s,
    }
