"""`ralph status --json`: the session with its iterations one by one, and all that surrounds it.

The keys are a contract with other tools, described in docs/reference/commands.md; they are only
ever added to.
"""

from __future__ import annotations

from ralphloop.core.limits import named
from ralphloop.core.story_state import Standing
from ralphloop.core.totals import Totals
from ralphloop.journal.holder import Holder
from ralphloop.journal.records import JsonObject, RunRecord
from ralphloop.journal.views import circuit_view, iteration_list, session_view
from ralphloop.night.past import all_iterations
from ralphloop.night.values import Night, State, next_steps
from ralphloop.text.durations import elapsed, iso


def status_data(night: Night) -> JsonObject:
    """The whole object."""
    totals = night.totals
    return {
        "v": 1,
        "state": str(night.state),
        "project": str(night.project.root),
        **_iterations(night),
        "session": _session(night),
        "run": _run(night),
        "holder": _holder(night.holder),
        "waiting": _waiting(night),
        "paused": night.session.desk.paused or None,
        "current": _current(night),
        "last": _last(night),
        "stories": _stories(night),
        "cost_usd": totals.cost_usd,
        "cost_estimated": totals.cost_estimated,
        "cost_known": not totals.unpriced,
        "unpriced_starts": totals.unpriced,
        "tokens": _tokens(totals),
        "limits": named(night.limits),
        "circuit": circuit_view(night.circuit, night.policy),
        "next": list(next_steps(night)),
    }


def _iterations(night: Night) -> JsonObject:
    if night.run is None:
        return {"session_id": None, "started_at": None, "iterations": []}
    return iteration_list(night.run, all_iterations(night.project, night.run.id))


def _session(night: Night) -> JsonObject | None:
    if night.run is None:
        return None
    return session_view(
        night.run,
        stories_completed=night.story_list.passed if night.story_list else 0,
        stories_failed=night.count(Standing.SET_ASIDE) + night.count(Standing.BLOCKED),
        circuit_state=str(night.circuit.circuit),
    )


def _run(night: Night) -> JsonObject | None:
    run: RunRecord | None = night.run
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
        "active_s": night.active_s,
        "waited_s": run.totals.waited_s,
        "can_continue": run.status.is_unfinished and not night.expired,
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


def _waiting(night: Night) -> JsonObject | None:
    wait = night.wait
    if wait is None or night.state is not State.WAITING:
        return None
    left = max(0.0, wait.until - night.now)
    return {"kind": wait.kind, "reason": wait.reason, "until": iso(wait.until), "seconds": left}


def _current(night: Night) -> JsonObject | None:
    current = night.current
    if current is None or not night.is_live:
        return None
    return {
        "iteration": current.n,
        "story": current.story,
        "attempt": current.attempt,
        "started_at": iso(current.started_at),
        "elapsed_s": elapsed(current.started_at, night.now),
    }


def _last(night: Night) -> JsonObject | None:
    last = night.last
    if last is None:
        return None
    return {
        "iteration": last.n,
        "story": last.story,
        "outcome": last.outcome,
        "decision": last.decision,
        "reasons": night.reasons,
        "warnings": night.warnings,
    }


def _stories(night: Night) -> JsonObject:
    stories = night.story_list
    return {
        "source": stories.source if stories else None,
        "problem": night.stories_problem or None,
        "total": stories.total if stories else 0,
        "passed": stories.passed if stories else 0,
        "open": night.count(Standing.OPEN),
        "set_aside": night.count(Standing.SET_ASIDE),
        "blocked": night.count(Standing.BLOCKED),
        "grades": night.grades,
    }


def _tokens(totals: Totals) -> JsonObject:
    return {
        "input": totals.input_tokens,
        "output": totals.output_tokens,
        "cache_read": totals.cache_read_tokens,
        "cache_write": totals.cache_write_tokens,
        "total": totals.total_tokens,
    }
