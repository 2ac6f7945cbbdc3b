"""`ralph status`: how the run stands, what it has cost, and what to do next; `ralph stories`: every
story, when it runs and why then, and what became of it so far.

They read and never spend; bare `ralph` is `ralph status`.  The keys of `--json` are a contract with
other tools, described in docs/reference/commands.md; they are only ever added to.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import click

from ralphloop.cli import output
from ralphloop.cli.given import json_option
from ralphloop.core.grading import Grade
from ralphloop.core.model import Circuit
from ralphloop.core.planning import ended
from ralphloop.core.policy import named
from ralphloop.core.story import StoryList
from ralphloop.core.story_state import Standing
from ralphloop.core.totals import TOKENS, cost_words, money, spent_words
from ralphloop.errors import InputError
from ralphloop.journal.records import JsonValues, RunRecord
from ralphloop.journal.views import circuit_view, iteration_list, session_view
from ralphloop.night.look import Placed, all_iterations, arranged, doubted, look
from ralphloop.night.values import Night, State, ended_words, next_steps
from ralphloop.project import find_project, relative
from ralphloop.stories.names import label
from ralphloop.text.durations import clock_time, elapsed, format_duration, iso
from ralphloop.text.plain import against, agreeing, counted, some

_COLOURS = {
    State.RUNNING: "green",
    State.WAITING: "yellow",
    State.PAUSED: "yellow",
    State.STOPPED: "red",
    State.COMPLETE: "green",
    State.NONE: "dim",
}
_MOST_WARNINGS = 3
_MOST_REASONS = 4
_STORY_COLOURS = {
    Standing.PASSED: "green",
    Standing.BLOCKED: "yellow",
    Standing.SET_ASIDE: "yellow",
    Standing.OPEN: "dim",
}
_MARKS = {Standing.PASSED: "ok", Standing.BLOCKED: "?", Standing.SET_ASIDE: "-", Standing.OPEN: "-"}
_STORY_INDENT = 5


@click.command()
@json_option("One object; see docs/reference/commands.md.")
def status(as_json: bool) -> None:
    """Show how the run stands: stories, cost, circuit, last decision, next step."""
    show_status(as_json=as_json)


def show_status(*, as_json: bool = False) -> None:
    """Print the status of the project around the current directory."""
    night = look(find_project(), now=time.time())
    output.show(_lines(night), lambda: status_data(night), as_json=as_json)


def _lines(night: Night) -> Iterator[str]:
    pausing = night.state is State.PAUSED and night.working
    label = "pausing" if pausing else str(night.state)
    yield from output.row(label, _headline(night), "bold", _COLOURS[night.state])
    yield from _current(night)
    yield from _stories(night)
    if night.book and night.book.ended and not night.is_live:
        yield from output.row("landed", night.book.ended)
    if night.run is not None:
        yield from _spent(night)
    yield from _limits(night)
    yield from _circuit(night)
    yield from _last(night)
    if not night.is_live and (why := doubted(night.project)):
        words = f"is {why}: it is shown and not believed; `ralph trust --journal`"
        yield from output.row("journal", words, "yellow")
    for step in next_steps(night):
        yield from output.row("next", str(step), "bold")


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
        wait, waits = night.wait, ""
        if night.state is State.PAUSED:
            after = " after this iteration" if night.working else ""
            waits = f": {night.session.desk.paused or (wait.reason if wait else '')}{after}"
        elif night.state is State.WAITING and wait:
            until = f"{format_duration(night.wait_s)}, at {clock_time(wait.until, night.now)}"
            waits = f": goes on in {until}: {wait.reason}"
        return f"run {run.id}{process}{branch}, for {age}{waits}"
    ago = format_duration(elapsed(run.ended_at or run.last_activity, night.now))
    if night.died:
        return f"run {run.id}: its process ended {ago} ago without a word; nothing is lost"
    return f"run {run.id}, {ago} ago: {ended(run.decision or run.status, run.reason)}"


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
    totals, limits = night.totals, night.limits
    most = f" of {limits.max_iterations}" if limits.max_iterations else ""
    lost = totals.starts - totals.iterations - (len(night.flying) or night.current is not None)
    without = f", and {counted(lost, 'start')} without an answer" if lost > 0 else ""
    yield from output.row("iterations", f"{totals.iterations}{most}{without}")
    cap = f" of {money(limits.max_cost_usd)}" if limits.max_cost_usd else ""
    estimated = " (estimated in part)" if totals.cost_estimated else ""
    yield from output.row("cost", f"{cost_words(totals.cost_usd, totals.unpriced)}{cap}{estimated}")
    if night.quota:
        yield from output.row("quota", night.quota)
    cached = totals.cache_read_tokens + totals.cache_write_tokens
    parts = f"{totals.input_tokens:,} in, {totals.output_tokens:,} out, {cached:,} cache"
    tokens = f"{totals.total_tokens:,} ({parts})" if totals.total_tokens else "none reported"
    if limits.max_tokens:
        tokens += f"; {totals.fresh_tokens:,} of {limits.max_tokens:,} without cache reads"
    yield from output.row("tokens", tokens)
    end = f" of {format_duration(limits.max_time)}" if limits.max_time else ""
    end += f", until {clock_time(limits.ends_at, night.now)}" if limits.ends_at else ""
    waited = f", {format_duration(totals.waited_s)} of it waiting" if totals.waited_s >= 1 else ""
    yield from output.row("time", f"{format_duration(night.active_s)}{end}{waited}")


def _limits(night: Night) -> Iterator[str]:
    """What is in force for the run, or for a next one: with flags and what a person added."""
    limits, hour = night.limits, night.config.limits.calls_per_hour
    found = (
        limits.max_iterations and counted(limits.max_iterations, "iteration"),
        limits.max_cost_usd and money(limits.max_cost_usd),
        limits.max_tokens and f"{limits.max_tokens:,} tokens",
        limits.max_time and format_duration(limits.max_time),
        limits.max_attempts and f"{counted(limits.max_attempts, 'attempt')} a story",
        hour and f"{counted(hour, 'start')} an hour",
    )
    yield from output.row("limits", ", ".join(str(each) for each in found if each) or "none")


def _circuit(night: Night) -> Iterator[str]:
    state, policy = night.circuit, night.policy
    counts = f"no progress {against(state.no_progress, policy.no_progress_threshold)}"
    counts += f"; same error {against(state.same_error, policy.same_error_threshold)}"
    reason = f": {state.reason}" if state.reason and state.circuit is not Circuit.CLOSED else ""
    words = f"{state.circuit}{reason} ({counts})"
    yield from output.row("circuit", words, output.CIRCUIT[state.circuit])


def _last(night: Night) -> Iterator[str]:
    last = night.last
    if last is None:
        return
    verdict = last.record.verdict
    reasons = "; ".join(verdict.reasons or night.reasons)
    story = f", {label(last.story)}" if last.story else ""
    words = f"iteration {last.n}{story}: {'passed' if verdict.passed else ended_words(last)}"
    yield from output.row("last", f"{words}: {reasons}" if reasons else words)
    for warning in night.warnings[:_MOST_WARNINGS]:
        yield from output.row("warning", warning, "yellow")


def status_data(night: Night) -> JsonValues:
    """The object of `--json`: the session with its iterations, and all that surrounds it."""
    run, holder, totals, last = night.run, night.holder, night.totals, night.last
    stories = night.story_list
    wait = night.wait if night.state is State.WAITING else None
    current = night.current if night.is_live else None
    session: JsonValues = {"session_id": None, "started_at": None, "session": None}
    session["iterations"] = []
    if run is not None:
        session = iteration_list(run, night.session.state, all_iterations(night.project, run.id))
        session["session"] = session_view(
            run,
            night.session.state,
            stories_completed=night.story_list.passed if night.story_list else 0,
            stories_failed=night.count(Standing.SET_ASIDE, Standing.BLOCKED),
        )
    return {
        "v": 1,
        "state": night.state,
        "project": str(night.project.root),
        **session,
        "run": run and _run_data(night, run),
        "holder": holder and output.picked(holder, "run", "mode", "pid", "host", "since"),
        "waiting": wait
        and {**output.picked(wait, "kind", "reason", "until"), "seconds": night.wait_s},
        "paused": night.session.desk.paused or None,
        "current": current
        and {
            "iteration": current.n,
            **output.picked(current, "story", "attempt", "started_at"),
            "elapsed_s": elapsed(current.started_at, night.now),
        },
        "last": last
        and {
            "iteration": last.n,
            **output.picked(last, "story", "outcome", "decision"),
            **output.picked(night, "reasons", "warnings"),
        },
        "stories": {
            "source": stories.source if stories else None,
            "problem": night.stories_problem or None,
            "total": stories.total if stories else 0,
            "passed": stories.passed if stories else 0,
            **{str(it): night.count(it) for it in Standing if it is not Standing.PASSED},
            "grades": night.grades,
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
            for window in night.session.state.quota
        ],
        "limits": {
            **named(night.limits),
            "reserve": night.limits.reserve,
            "until": iso(night.limits.ends_at) if night.limits.ends_at else None,
        },
        "circuit": circuit_view(night.circuit, night.policy),
        "next": [str(step) for step in next_steps(night)],
    }


def _run_data(night: Night, run: RunRecord) -> JsonValues:
    return {
        **output.picked(run, "id", "status", "mode", "branch"),
        "decision": run.decision or None,
        "reason": run.reason or None,
        **output.picked(run, "started_at", "last_activity", "ended_at"),
        **output.picked(run.totals, "starts", "waited_s"),
        "active_s": night.active_s,
        "can_continue": run.status.is_unfinished and not night.expired,
    }


def show_stories(*, as_json: bool) -> None:
    """List the stories: order and reason, state, grade, attempts, cost."""
    night = look(find_project(), now=time.time())
    found = night.story_list
    if found is None and night.stories_problem:
        step = "`ralph init` makes a story list; `ralph doctor` checks one."
        raise InputError(night.stories_problem, step)
    if found is None:
        words = "the last run was a plain loop without stories"
        raise InputError(words, "`ralph status` shows how it stands.")
    listed = list(arranged(found, night.session.stories))
    data = {"v": 1, **output.picked(found, "source", "total", "passed")}
    data["stories"] = [_story_data(placed) for placed in listed]
    output.show(_as_lines(found, listed, night.project.root), data, as_json=as_json)


def _as_lines(story_list: StoryList, listed: list[Placed], root: Path) -> Iterator[str]:
    for placed in listed:
        seen = placed.look
        mark = str(placed.position) if placed.position else _MARKS[seen.standing]
        name, colour = f"{label(seen.story.id)}: {seen.story.title}", _STORY_COLOURS[seen.standing]
        if seen.grade == Grade.NEEDS_REVIEW:
            mark, colour = "!", "yellow"
        yield from output.row(f"{mark:>3}", name, colour, width=_STORY_INDENT)
        yield from output.row("", _facts(placed), width=_STORY_INDENT)
        if seen.bring_back:
            yield from output.row("", f"its work is kept: `{seen.bring_back}`", width=_STORY_INDENT)
    total = f"{story_list.passed} of {counted(story_list.total, 'story')} passed"
    states = [placed.look.state for placed in listed]
    spent = spent_words(sum(s.cost_usd for s in states), sum(s.unpriced for s in states))
    yield ""
    yield f"{total}, {spent}, from {relative(Path(story_list.source), root)}"


def _facts(placed: Placed) -> str:
    seen, state = placed.look, placed.look.state
    parts = [f"{seen.standing} ({seen.grade})" if seen.grade else str(seen.standing)]
    if seen.standing in (Standing.BLOCKED, Standing.SET_ASIDE):
        parts = []  # the reason says it
    if state.iterations:
        parts.append(counted(state.iterations, "iteration"))
    if seen.failed:
        parts.append(counted(seen.failed, "failed attempt"))
    if state.cost_usd or state.unpriced:
        parts.append(spent_words(state.cost_usd, state.unpriced))
    told = ", ".join(parts)
    return f"{told}: {placed.why}" if placed.why and told else told or placed.why


def _story_data(placed: Placed) -> JsonValues:
    seen, story, state = placed.look, placed.look.story, placed.look.state
    return {
        **output.picked(story, "id", "title"),
        "order": placed.position,
        "why": placed.why,
        "state": seen.standing,
        "grade": seen.grade or None,
        "attempts": seen.failed,
        **output.picked(state, "iterations", "cost_usd"),
        "cost_known": not state.unpriced,
        "reason": state.reason or None,
        "depends_on": story.depends_on,
        "saved_ref": state.saved_ref or None,
        "bring_back": seen.bring_back or None,
    }
