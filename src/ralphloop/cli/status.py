"""`ralph status`: how the run stands, what it has cost, and what to do next.

It reads and never spends; bare `ralph` is the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import click

from ralphloop.cli import output
from ralphloop.cli.layout import row
from ralphloop.cli.next_steps import next_steps
from ralphloop.cli.overview import Overview, State, look
from ralphloop.core.durations import elapsed, format_duration, iso
from ralphloop.core.model import Circuit
from ralphloop.core.money import cost_words, money
from ralphloop.core.story_state import Standing
from ralphloop.core.text import counted
from ralphloop.journal.records import IterationRecord
from ralphloop.project import find_project
from ralphloop.stories.names import label

_COLOURS = {
    State.RUNNING: "green",
    State.WAITING: "yellow",
    State.PAUSED: "yellow",
    State.STOPPED: "red",
    State.COMPLETE: "green",
    State.NONE: "dim",
}
_CIRCUIT_COLOURS = {Circuit.CLOSED: (), Circuit.HALF_OPEN: ("yellow",), Circuit.OPEN: ("red",)}
_MOST_WARNINGS = 3


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One object; see docs/reference/commands.md.")
def status(as_json: bool) -> None:
    """Show how the run stands: stories, cost, circuit, last decision, next step."""
    show_status(as_json=as_json)


def show_status(*, as_json: bool = False) -> None:
    """Print the status of the project around the current directory."""
    overview = look(find_project(Path.cwd()), now=time.time())
    if as_json:
        from ralphloop.cli.status_json import status_data

        output.emit_json(status_data(overview))
    else:
        output.emit_lines(_lines(overview))


def _lines(overview: Overview) -> Iterator[str]:
    yield from row(overview.state, _headline(overview), "bold", _COLOURS[overview.state])
    yield from _current(overview)
    yield from _stories(overview)
    if overview.run is not None:
        yield from _spent(overview)
    yield from _circuit(overview)
    yield from _last(overview)
    for step in next_steps(overview):
        yield from row("next", step, "bold")


def _headline(overview: Overview) -> str:
    run, holder = overview.run, overview.holder
    if run is None and holder is not None:
        age = format_duration(elapsed(holder.since, overview.now))
        return f"run {holder.run}, process {holder.pid}, gets ready: checks run, for {age}"
    if run is None:
        return f"no run yet in {overview.project.root}"
    if overview.is_live:
        process = f", process {holder.pid}" if holder else ""
        branch = f", on {run.branch}" if run.branch else ""
        age = format_duration(elapsed(run.started_at, overview.now))
        return f"run {run.id}{process}{branch}, for {age}{_waiting(overview)}"
    ago = format_duration(elapsed(run.ended_at or run.last_activity, overview.now))
    if overview.died:
        return f"run {run.id}: its process ended {ago} ago without a word; nothing is lost"
    reason = f": {run.reason}" if run.reason else ""
    return f"run {run.id}, {ago} ago: {run.decision or run.status}{reason}"


def _waiting(overview: Overview) -> str:
    wait, paused = overview.wait, overview.session.desk.paused
    if overview.state is State.PAUSED:
        return f": {paused or (wait.reason if wait else '')}"
    if overview.state is not State.WAITING or wait is None:
        return ""
    left = format_duration(max(0.0, wait.until - overview.now))
    return f": goes on in {left}, at {iso(wait.until)}: {wait.reason}"


def _current(overview: Overview) -> Iterator[str]:
    current = overview.current
    if current is None or not overview.is_live:
        return
    age = format_duration(elapsed(current.started_at, overview.now))
    attempt = f", attempt {current.attempt}" if current.attempt > 1 else ""
    words = f"{_story_words(overview, current)}{attempt}: iteration {current.n}, for {age}"
    yield from row("working on", words)


def _story_words(overview: Overview, iteration: IterationRecord) -> str:
    if iteration.story is None:
        return "the prompt"
    story = overview.stories.get(iteration.story) if overview.stories else None
    return f"{label(iteration.story)} “{story.title}”" if story else label(iteration.story)


def _stories(overview: Overview) -> Iterator[str]:
    stories = overview.stories
    if stories is None:
        if overview.stories_problem:
            yield from row("stories", overview.stories_problem, "yellow")
        return
    grades = ", ".join(f"{count} {grade}" for grade, count in overview.grades.items())
    parts = [f"{stories.passed} of {stories.total} passed" + (f" ({grades})" if grades else "")]
    if aside := overview.count(Standing.SET_ASIDE):
        parts.append(f"{aside} set aside")
    if blocked := overview.count(Standing.BLOCKED):
        parts.append(f"{blocked} waiting for a person")
    yield from row("stories", ", ".join(parts))


def _spent(overview: Overview) -> Iterator[str]:
    totals, limits = overview.totals, overview.config.limits
    extra = overview.session.desk.extra
    most = f" of {limits.max_iterations + extra.iterations}" if limits.max_iterations else ""
    lost = totals.starts - totals.iterations - (overview.current is not None)
    without = f", and {counted(lost, 'start')} without an answer" if lost > 0 else ""
    yield from row("iterations", f"{totals.iterations}{most}{without}")
    cap = f" of {money(limits.max_cost_usd + extra.cost_usd)}" if limits.max_cost_usd else ""
    estimated = " (estimated in part)" if totals.cost_estimated else ""
    yield from row("cost", f"{cost_words(totals.cost_usd, totals.unpriced)}{cap}{estimated}")
    yield from row("tokens", _tokens(overview))
    end = f" of {format_duration(limits.max_time + extra.time_s)}" if limits.max_time else ""
    waited = f", {format_duration(totals.waited_s)} of it waiting" if totals.waited_s >= 1 else ""
    yield from row("time", f"{format_duration(overview.active_s)}{end}{waited}")


def _tokens(overview: Overview) -> str:
    totals = overview.totals
    cached = totals.cache_read_tokens + totals.cache_write_tokens
    parts = f"{totals.input_tokens:,} in, {totals.output_tokens:,} out, {cached:,} cache"
    return f"{totals.total_tokens:,} ({parts})" if totals.total_tokens else "none reported"


def _circuit(overview: Overview) -> Iterator[str]:
    state, policy = overview.circuit, overview.policy
    counts = f"no progress {state.no_progress} of {policy.no_progress_threshold}"
    counts += f", same error {state.same_error} of {policy.same_error_threshold}"
    reason = f": {state.reason}" if state.reason and state.circuit is not Circuit.CLOSED else ""
    words = f"{state.circuit}{reason} ({counts})"
    yield from row("circuit", words, *_CIRCUIT_COLOURS[state.circuit])


def _last(overview: Overview) -> Iterator[str]:
    last = overview.last
    if last is None:
        return
    reasons = "; ".join(overview.reasons)
    story = f", {label(last.story)}" if last.story else ""
    words = f"iteration {last.n}{story}: {last.outcome}, then {last.decision}"
    yield from row("last", f"{words}: {reasons}" if reasons else words)
    for warning in overview.warnings[:_MOST_WARNINGS]:
        yield from row("warning", warning, "yellow")
