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
from ralphloop.core.model import Circuit
from ralphloop.core.story_state import Standing
from ralphloop.core.totals import cost_words, money
from ralphloop.journal.records import IterationRecord
from ralphloop.night.look import look
from ralphloop.night.values import Night, State, next_steps
from ralphloop.project import find_project
from ralphloop.stories.names import label
from ralphloop.text.durations import elapsed, format_duration, iso
from ralphloop.text.plain import counted

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
    night = look(find_project(Path.cwd()), now=time.time())
    if as_json:
        from ralphloop.cli.status_json import status_data

        output.emit_json(status_data(night))
    else:
        output.emit_lines(_lines(night))


def _lines(night: Night) -> Iterator[str]:
    yield from row(night.state, _headline(night), "bold", _COLOURS[night.state])
    yield from _current(night)
    yield from _stories(night)
    if night.run is not None:
        yield from _spent(night)
    yield from _circuit(night)
    yield from _last(night)
    for step in next_steps(night):
        yield from row("next", step, "bold")


def _headline(night: Night) -> str:
    run, holder = night.run, night.holder
    if run is None and holder is not None:
        age = format_duration(elapsed(holder.since, night.now))
        return f"run {holder.run}, process {holder.pid}, gets ready: checks run, for {age}"
    if run is None:
        return f"no run yet in {night.project.root}"
    if night.is_live:
        process = f", process {holder.pid}" if holder else ""
        branch = f", on {run.branch}" if run.branch else ""
        age = format_duration(elapsed(run.started_at, night.now))
        return f"run {run.id}{process}{branch}, for {age}{_waiting(night)}"
    ago = format_duration(elapsed(run.ended_at or run.last_activity, night.now))
    if night.died:
        return f"run {run.id}: its process ended {ago} ago without a word; nothing is lost"
    reason = f": {run.reason}" if run.reason else ""
    return f"run {run.id}, {ago} ago: {run.decision or run.status}{reason}"


def _waiting(night: Night) -> str:
    wait, paused = night.wait, night.session.desk.paused
    if night.state is State.PAUSED:
        return f": {paused or (wait.reason if wait else '')}"
    if night.state is not State.WAITING or wait is None:
        return ""
    left = format_duration(max(0.0, wait.until - night.now))
    return f": goes on in {left}, at {iso(wait.until)}: {wait.reason}"


def _current(night: Night) -> Iterator[str]:
    current = night.current
    if current is None or not night.is_live:
        return
    age = format_duration(elapsed(current.started_at, night.now))
    attempt = f", attempt {current.attempt}" if current.attempt > 1 else ""
    words = f"{_story_words(night, current)}{attempt}: iteration {current.n}, for {age}"
    yield from row("working on", words)


def _story_words(night: Night, iteration: IterationRecord) -> str:
    if iteration.story is None:
        return "the prompt"
    story = night.story_list.get(iteration.story) if night.story_list else None
    return f"{label(iteration.story)} “{story.title}”" if story else label(iteration.story)


def _stories(night: Night) -> Iterator[str]:
    stories = night.story_list
    if stories is None:
        if night.stories_problem:
            yield from row("stories", night.stories_problem, "yellow")
        return
    grades = ", ".join(f"{count} {grade}" for grade, count in night.grades.items())
    parts = [f"{stories.passed} of {stories.total} passed" + (f" ({grades})" if grades else "")]
    if aside := night.count(Standing.SET_ASIDE):
        parts.append(f"{aside} set aside")
    if blocked := night.count(Standing.BLOCKED):
        parts.append(f"{blocked} waiting for a person")
    yield from row("stories", ", ".join(parts))


def _spent(night: Night) -> Iterator[str]:
    totals, limits = night.totals, night.limits
    most = f" of {limits.max_iterations}" if limits.max_iterations else ""
    lost = totals.starts - totals.iterations - (night.current is not None)
    without = f", and {counted(lost, 'start')} without an answer" if lost > 0 else ""
    yield from row("iterations", f"{totals.iterations}{most}{without}")
    cap = f" of {money(limits.max_cost_usd)}" if limits.max_cost_usd else ""
    estimated = " (estimated in part)" if totals.cost_estimated else ""
    yield from row("cost", f"{cost_words(totals.cost_usd, totals.unpriced)}{cap}{estimated}")
    yield from row("tokens", _tokens(night))
    end = f" of {format_duration(limits.max_time)}" if limits.max_time else ""
    waited = f", {format_duration(totals.waited_s)} of it waiting" if totals.waited_s >= 1 else ""
    yield from row("time", f"{format_duration(night.active_s)}{end}{waited}")


def _tokens(night: Night) -> str:
    totals = night.totals
    cached = totals.cache_read_tokens + totals.cache_write_tokens
    parts = f"{totals.input_tokens:,} in, {totals.output_tokens:,} out, {cached:,} cache"
    return f"{totals.total_tokens:,} ({parts})" if totals.total_tokens else "none reported"


def _circuit(night: Night) -> Iterator[str]:
    state, policy = night.circuit, night.policy
    counts = f"no progress {state.no_progress} of {policy.no_progress_threshold}"
    counts += f", same error {state.same_error} of {policy.same_error_threshold}"
    reason = f": {state.reason}" if state.reason and state.circuit is not Circuit.CLOSED else ""
    words = f"{state.circuit}{reason} ({counts})"
    yield from row("circuit", words, *_CIRCUIT_COLOURS[state.circuit])


def _last(night: Night) -> Iterator[str]:
    last = night.last
    if last is None:
        return
    reasons = "; ".join(night.reasons)
    story = f", {label(last.story)}" if last.story else ""
    words = f"iteration {last.n}{story}: {last.outcome}, then {last.decision}"
    yield from row("last", f"{words}: {reasons}" if reasons else words)
    for warning in night.warnings[:_MOST_WARNINGS]:
        yield from row("warning", warning, "yellow")
