"""`ralph status`, and bare `ralph`: how the run stands.  It reads and never spends.

The keys of `--json` are a contract (docs/reference/commands.md): they are only ever added to.
"""

import os
from collections.abc import Iterator

import click

from ralphloop.cli import output
from ralphloop.cli.shared.errands import errand_data
from ralphloop.cli.shared.options import json_option
from ralphloop.config.load import check_config
from ralphloop.core.model import Circuit
from ralphloop.core.planning import ended
from ralphloop.core.policy import limit_words, named
from ralphloop.core.run_state import Standing
from ralphloop.core.totals import TOKENS, UNKNOWN, cost_words, money
from ralphloop.journal.records import JsonValues
from ralphloop.journal.views import circuit_view, iteration_list, session_view
from ralphloop.night.look import doubted, look, reading
from ralphloop.night.values import Night, State, ended_words, next_steps, open_words
from ralphloop.project import find_project
from ralphloop.stories.names import label
from ralphloop.text.durations import clock_time, elapsed, format_duration, iso
from ralphloop.text.plain import against, agreeing, counted, some

_COLOURS = dict.fromkeys((State.RUNNING, State.COMPLETE), "green")  # the others are yellow
_COLOURS |= {State.STOPPED: "red", State.NONE: "dim"}
_MOST_WARNINGS = 3
_MOST_REASONS = 4


@click.command()
@json_option("One object; see docs/reference/commands.md.")
def status(as_json: bool) -> None:
    """Show how the run stands: stories, cost, circuit, last decision, next step."""
    night = look(find_project())
    output.show(status_lines(night), lambda: status_data(night), as_json=as_json)


def status_lines(night: Night) -> Iterator[str]:
    """How the run stands, for people."""
    pausing = night.state is State.PAUSED and night.working
    word = "pausing" if pausing else str(night.state)
    yield from output.row(word, _headline(night), "bold", _COLOURS.get(night.state, "yellow"))
    yield from _current(night)
    yield from _stories(night)
    for errand in night.errands:
        yield from output.row("one-off task", errand.words(night.now))
    if night.book and night.book.ended and not night.is_live:
        yield from output.row("landed", night.book.ended)
    if night.run is not None:
        yield from _spent(night)
    # What is in force for the run, or for a next one: with flags and what a person added.
    limits = night.limits
    hour = night.config.limits.calls_per_hour
    found = limit_words(
        limits.max_iterations, limits.max_cost_usd, limits.max_tokens, limits.max_time
    )
    found += [f"{counted(limits.max_attempts, 'attempt')} a story"] if limits.max_attempts else []
    found += [f"{counted(hour, 'start')} an hour"] if hour else []
    yield from output.row("limits", ", ".join(found) or "none")
    yield from _circuit(night)
    if last := night.last:
        verdict = last.record.verdict
        story = f", {label(last.story)}" if last.story else ""
        how = "passed" if verdict.passed else ended_words(last.outcome)
        machine = night.machine_of(last)
        where = f" on {machine}" if machine else ""
        words = f"iteration {last.n}{story}{where}: {how}"
        reasons = "; ".join(verdict.reasons or night.reasons)
        yield from output.row("last", f"{words}: {reasons}" if reasons else words)
        for warning in night.warnings[:_MOST_WARNINGS]:
            yield from output.row("warning", warning, "yellow")
    if not night.is_live and (why := doubted(night.project)):
        words = f"is {why}: it is shown and not believed; `ralph trust --journal`"
        yield from output.row("journal", words, "yellow")
    if not night.is_live:
        yield from _wrong_settings(night)
    for step in next_steps(night):
        yield from output.row("next", str(step), "bold")


def _wrong_settings(night: Night) -> Iterator[str]:
    """Why the settings would keep the next run from starting, the first few."""
    problems = check_config(night.project.root, env=os.environ).problems
    for problem in problems[:_MOST_WARNINGS]:
        yield from output.row("settings", f"{problem.place}: {problem.message}", "red")
    if problems:
        words = "no run starts before this is corrected; `ralph config validate` lists everything"
        yield from output.row("", words)


def _headline(night: Night) -> str:
    run = night.run
    holder = night.holder
    if run is None and holder is not None:
        age = format_duration(elapsed(holder.since, night.now))
        return f"run {holder.run}, process {holder.pid}, gets ready: checks run, for {age}"
    if run is None and night.errands and night.story_list:
        return f"nothing of the list has run yet in {night.project.root}"
    if run is None:
        return f"no run yet in {night.project.root}"
    if night.is_live:
        process = f", process {holder.pid}" if holder else ""
        branch = f", on {run.branch}" if run.branch else ""
        age = format_duration(elapsed(run.started_at, night.now))
        wait = night.wait
        waits = ""
        if night.state is State.PAUSED:
            after = " after this iteration" if night.working else ""
            waits = f": {night.session.overrides.paused or (wait.reason if wait else '')}{after}"
        elif night.state is State.WAITING and wait:
            until = f"{format_duration(night.wait_s)}, at {clock_time(wait.until, night.now)}"
            waits = f": goes on in {until}: {wait.reason}"
        return f"run {run.id}{process}{branch}, for {age}{waits}"
    ago = format_duration(elapsed(run.ended_at or run.last_activity, night.now))
    if night.died:
        return f"run {run.id}: its process ended {ago} ago without a word; nothing is lost"
    if night.open_again:
        return f"run {run.id}, {ago} ago: all was done then; {open_words(night.open_since)} now"
    words = ended(run.decision or run.status, run.reason, run.used_up)
    more = f"; {open_words(night.open_since)}" if night.open_since else ""
    return f"run {run.id}, {ago} ago: {words}{more}"


def _current(night: Night) -> Iterator[str]:
    for current in night.working:
        lane = night.book.lane_of(current.story) if night.book else 0
        age = format_duration(elapsed(current.started_at, night.now))
        attempt = f", attempt {current.attempt}" if current.attempt > 1 else ""
        story = night.story_list.get(current.story) if night.story_list and current.story else None
        name = label(current.story) if current.story else "the prompt"
        title = f" “{story.title}”" if story else ""
        words = f"{name}{title}{attempt}: iteration {current.n}, for {age}"
        doing = {one.iteration: one.doing for one in night.lanes}.get(current.n, "works")
        words += f"; it {doing}" if doing != "works" else ""
        yield from output.row(f"lane {lane}" if lane else "working on", words)
    for why, stories in list(night.waiting.items())[:_MOST_REASONS]:
        yield from output.row("waiting", f"{some([label(one) for one in stories])}: {why}")


def _stories(night: Night) -> Iterator[str]:
    stories = night.story_list
    if stories is None:
        if night.stories_problem:
            yield from output.row("stories", night.stories_problem, "yellow")
        return
    grades = ", ".join(f"{count} {grade}" for grade, count in night.grades.items())
    parts = [f"{stories.passed} of {stories.total} passed" + (f" ({grades})" if grades else "")]
    if aside := night.count(Standing.SET_ASIDE):
        parts.append(f"{aside} set aside")
    if blocked := night.count(Standing.BLOCKED):
        parts.append(f"{blocked} {agreeing(blocked, 'waits')} for you")
    yield from output.row("stories", ", ".join(parts))
    for words in night.book.edited if night.book else ():
        yield from output.row("", words)


def _spent(night: Night) -> Iterator[str]:
    totals = night.totals
    limits = night.limits
    most = f" of {limits.max_iterations}" if limits.max_iterations else ""
    lost = totals.starts - totals.iterations - len(night.flying)
    without = f", and {counted(lost, 'start')} without an answer" if lost > 0 else ""
    yield from output.row("iterations", f"{totals.iterations}{most}{without}")
    cap = f" of {money(limits.max_cost_usd)}" if limits.max_cost_usd else ""
    estimated = " (estimated in part)" if totals.cost_estimated else ""
    yield from output.row("cost", f"{cost_words(totals.cost_usd, totals.unpriced)}{cap}{estimated}")
    if night.quota:
        yield from output.row("quota", night.quota)
    cached = totals.cache_read_tokens + totals.cache_write_tokens
    parts = f"{totals.input_tokens:,} in, {totals.output_tokens:,} out, {cached:,} cache"
    tokens = f"{totals.total_tokens:,} ({parts})" if totals.total_tokens else UNKNOWN
    if not totals.starts:
        tokens = "none"
    if limits.max_tokens:
        tokens += f"; {totals.fresh_tokens:,} of {limits.max_tokens:,} without cache reads"
    yield from output.row("tokens", tokens)
    end = f" of {format_duration(limits.max_time)}" if limits.max_time else ""
    end += f", until {clock_time(limits.ends_at, night.now)}" if limits.ends_at else ""
    waited = f", {format_duration(totals.waited_s)} of it waiting" if totals.waited_s >= 1 else ""
    yield from output.row("time", f"{format_duration(night.active_s)}{end}{waited}")


def _circuit(night: Night) -> Iterator[str]:
    """How near the circuit is to opening; where all is well there is nothing to say."""
    state = night.circuit
    policy = night.policy
    is_closed = state.circuit is Circuit.CLOSED
    if is_closed and not state.no_progress and not state.same_error:
        return
    counts = f"no progress {against(state.no_progress, policy.no_progress_threshold)}"
    counts += f"; same error {against(state.same_error, policy.same_error_threshold)}"
    reason = f": {state.reason}" if state.reason else ""
    words = counts if is_closed else f"{state.circuit}{reason} ({counts})"
    yield from output.row("circuit", words, output.CIRCUIT[state.circuit])


def status_data(night: Night) -> JsonValues:
    """The object of `--json`: the session with its iterations, and all that surrounds it."""
    run = night.run
    holder = night.holder
    totals = night.totals
    last = night.last
    stories = night.story_list
    wait = night.wait if night.state is State.WAITING else None
    current = night.current if night.is_live else None
    session: JsonValues = {"session_id": None, "started_at": None, "iterations": []}
    if run is not None:
        with reading(night.project) as journal:
            # Where a start was made stands in a long column, which only a fleet needs here.
            is_here = night.book is None or not night.book.fleet
            every = journal.every_iteration(run.id, brief=is_here)
            session = iteration_list(run, night.session.state, every)
    return {
        "v": 1,
        "state": night.state,
        "project": str(night.project.root),
        **session,
        "session": run and session_view(run, night.session.state, stories),
        "run": run
        and {
            **output.picked(run, "id", "status", "mode", "branch"),
            "decision": run.decision or None,
            "reason": run.reason or None,
            **output.picked(run, "started_at", "last_activity", "ended_at"),
            **output.picked(run.totals, "starts", "waited_s"),
            "active_s": night.active_s,
            "can_continue": run.status.is_unfinished and not night.expired,
        },
        "holder": holder and output.picked(holder, "run", "mode", "pid", "host", "since"),
        "waiting": wait
        and {**output.picked(wait, "kind", "reason", "until"), "seconds": night.wait_s},
        "paused": night.session.overrides.paused or None,
        "current": current
        and {
            "iteration": current.n,
            **output.picked(current, "story", "attempt", "started_at"),
            "machine": night.machine_of(current) or None,
            "elapsed_s": elapsed(current.started_at, night.now),
        },
        "lanes": [
            {
                "lane": lane.number,
                "story": lane.story or None,
                "doing": lane.doing,
                "iteration": lane.iteration or None,
                "machine": lane.machine or None,
            }
            for lane in night.lanes
        ],
        "last": last
        and {
            "iteration": last.n,
            **output.picked(last, "story", "outcome", "decision"),
            "machine": night.machine_of(last) or None,
            **output.picked(night, "reasons", "warnings"),
        },
        "stories": {
            "source": stories.source if stories else None,
            "problem": night.stories_problem or None,
            "total": stories.total if stories else 0,
            "passed": stories.passed if stories else 0,
            **{str(it): night.count(it) for it in Standing if it is not Standing.PASSED},
            "grades": night.grades,
            "unreviewed": [look.story.id for look in night.unreviewed],
            "proof": {look.story.id: look.state.reason for look in night.stories if look.grade},
        },
        **output.picked(totals, "cost_usd", "cost_estimated"),
        "cost_known": not totals.unpriced,
        "unpriced_starts": totals.unpriced,
        "tokens": {
            name.removesuffix("_tokens"): getattr(totals, name)
            for name in (*TOKENS, "total_tokens")
        },
        "quota": [
            output.picked(window, "agent", "kind", "used", "resets_at")
            for window in night.session.state.usage_windows
        ],
        "limits": {
            **named(night.limits),
            "reserve": night.limits.reserve,
            "until": iso(night.limits.ends_at) if night.limits.ends_at else None,
        },
        "circuit": circuit_view(night.circuit, night.policy),
        "errands": [errand_data(errand) for errand in night.errands],
        "next": [str(step) for step in next_steps(night)],
    }
