"""The panels beside the stories, as lines of words.  Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo

from ralphloop.core.model import CheckResult, CheckStatus, Circuit
from ralphloop.core.totals import spent_words
from ralphloop.text.durations import elapsed, format_duration
from ralphloop.text.plain import counted, one_line
from ralphloop.ui.monitor import paint
from ralphloop.ui.monitor.paint import clock, fit, line, number, pips, spark
from ralphloop.ui.monitor.values import Action, Facts, Headline, Line, Span, Tone

_CIRCUIT_TONES = {Circuit.CLOSED: Tone.GOOD, Circuit.HALF_OPEN: Tone.WARN, Circuit.OPEN: Tone.BAD}
_CHECKS = {
    CheckStatus.PASSED: (paint.PASSED, Tone.GOOD),
    CheckStatus.FAILED: (paint.FAILED, Tone.BAD),
    CheckStatus.NO_TESTS: (paint.OPEN, Tone.WARN),
}


def now(facts: Facts, state: Headline, at: float) -> Iterator[Line]:
    """The current iteration, or what stands in its place."""
    newest = facts.night.newest
    if newest is None or not facts.night.is_working:
        yield from _instead(facts, state)
        return
    title = next((row.title for row in facts.stories if row.mark == paint.RUNNING), "")
    name = f"{one_line(newest.story, 60)} {title}" if newest.story else "the prompt"
    yield line((name, Tone.STRONG))
    most = facts.night.limits.max_attempts
    of = f"/{most}" if most and newest.attempt <= most else ""
    attempt = f"attempt {newest.attempt}{of}"
    since = format_duration(elapsed(newest.started_at, at))
    yield line(f"iteration {newest.n}, {attempt}, {since}")
    yield _sign_of_life(facts, at)
    made, before = facts.usage.output_tokens, facts.night.session.story(newest.story)
    tokens = f"{number(facts.usage.total_tokens - made)} in, {number(made)} out"
    yield line((f"{tokens} · {spent_words(before.cost_usd, before.unpriced)} before", Tone.QUIET))


def _sign_of_life(facts: Facts, at: float) -> Line:
    if facts.answered:
        return line(("the agent is through; measuring and checking", Tone.BUSY))
    quiet = elapsed(facts.last_output, at) if facts.last_output else 0.0
    stall, agent = facts.night.config.limits.stall_timeout, facts.night.config.agent
    if stall and quiet > stall / 2:
        most = format_duration(stall)
        return line((f"no output for {format_duration(quiet)} (of {most})", Tone.WARN))
    name = one_line(f"{agent.name} {agent.model}", 40)
    words = f"last output {format_duration(quiet)} ago"
    return line((words, Tone.GOOD if quiet < 60 else Tone.PLAIN), (f" · {name}", Tone.QUIET))


def _instead(facts: Facts, state: Headline) -> Iterator[Line]:
    words = [text for text in (state.reason, state.advice) if text]
    for place, text in enumerate(words or ["between two iterations"]):
        yield line((text, state.tone if place == 0 else Tone.PLAIN))
    if facts.night.run is not None and facts.night.newest is not None:
        on = f" on {one_line(facts.night.newest.story, 60)}" if facts.night.newest.story else ""
        yield line((f"last: iteration {facts.night.newest.n}{on}", Tone.QUIET))
        totals = facts.night.totals
        spent = f"{totals.starts} starts, {number(totals.total_tokens)} tokens"
        yield line((f"{spent}, {format_duration(totals.waited_s)} waited", Tone.QUIET))


def action_line(action: Action) -> Line:
    """One thing the agent did, with its result."""
    mark: Span = ("· ", Tone.PLAIN)
    if action.ok is not None:
        good = (f"{paint.PASSED} ", Tone.GOOD)
        mark = good if action.ok else (f"{paint.FAILED} ", Tone.BAD)
    if action.kind == "text":
        return line(mark, (f"“{action.words}”", Tone.QUIET))
    return line(mark, action.words)


def checks(facts: Facts) -> Iterator[Line]:
    """Every check with its last result."""
    if not facts.night.checks:
        yield line(("none have run; without checks a story is only claimed", Tone.QUIET))
    for result, iteration in facts.night.checks:
        mark, tone = _CHECKS[result.status]
        words = f"{str(result.status).replace('_', ' ')}{', flaky' if result.flaky else ''}"
        when = f"iteration {iteration}" if iteration else "before the first"
        told = f"{words} {result.duration_s:.1f} s, {when}"
        yield line((f"{mark} ", tone), f"{_command(result)}  ", (told, tone))
        for name in result.failing_tests[:3]:
            yield line((f"    {one_line(name, 200)}", Tone.BAD))


def _command(result: CheckResult) -> str:
    """The command without the directory its program lies in."""
    program, space, rest = one_line(result.name, 120).partition(" ")
    return program.rsplit("/", 1)[-1] + space + rest


def circuit(facts: Facts, at: float) -> Iterator[Line]:
    """The state, both counters against their thresholds, the output's trend, the last change."""
    state, policy = facts.night.circuit, facts.night.policy
    since = f" for {_roughly(elapsed(state.since, at))}" if state.since else ""
    opened = f", opened {state.opened_count} times" if state.opened_count else ""
    yield line((str(state.circuit), _CIRCUIT_TONES[state.circuit]), f"{since}{opened}")
    for label, count, most in (
        ("no progress", state.no_progress, policy.no_progress_threshold),
        ("same error", state.same_error, policy.same_error_threshold),
    ):
        yield (_label(label), *pips(count, most), (f" {count} of {most}", Tone.PLAIN))
    lengths = facts.night.session.state.lengths
    if trend := spark(lengths):
        newest = f" {number(lengths[-1])}"
        yield (_label("output size"), (trend, Tone.BUSY), (newest, Tone.QUIET))
    moves = [move for move in state.history if not move.is_note]
    if moves:
        ago = f"{_roughly(elapsed(moves[-1].at, at))} ago" if moves[-1].at else ""
        words = f"{moves[-1].before} → {moves[-1].after} {ago}: {one_line(moves[-1].reason)}"
        yield line((words, Tone.QUIET))
    if state.same_error and state.last_error:
        yield line((f"error: {one_line(state.last_error)}", Tone.WARN))


def quota(facts: Facts, at: float, zone: tzinfo | None) -> Iterator[Line]:
    """The countdown, the starts of this hour, the newest word of the provider."""
    countdown = _countdown(facts, at, zone)
    yield line(countdown or ("no wait", Tone.GOOD))
    if countdown and facts.night.wait:
        yield line((one_line(facts.night.wait.reason), Tone.QUIET))
    yield line(f"{_starts(facts)} in the last hour")
    if facts.limit_words:
        yield line((f"newest word: {facts.limit_words}", Tone.QUIET))


def _countdown(facts: Facts, at: float, zone: tzinfo | None) -> Span | None:
    wait = facts.night.wait
    if wait is None or wait.kind == "pause" or not facts.night.is_live:
        return None
    left = format_duration(max(0.0, wait.until - at))
    return f"goes on in {left} ({clock(wait.until, zone)})", Tone.WARN


def _starts(facts: Facts) -> str:
    most, calls = facts.night.config.limits.calls_per_hour, facts.night.calls
    return f"{calls} of {most} starts" if most else f"{calls} starts"


def learned(facts: Facts) -> Iterator[Line]:
    """What was captured, by category, the skills made of it, and when the next are made."""
    found = facts.learned
    if not facts.night.config.learning.enabled:
        yield line(("learning is off", Tone.QUIET))
        return
    captured = (f"{found.captured} captured", Tone.STRONG if found.captured else Tone.QUIET)
    yield line(captured, f", {counted(found.skills, 'skill')}")
    if found.categories:
        yield line(", ".join(f"{name} {count}" for name, count in found.categories))
    if soon := _next_aggregation(facts):
        yield line((f"next aggregation in {soon}", Tone.QUIET))


def _next_aggregation(facts: Facts) -> str:
    settings = facts.night.config.learning
    every = settings.every
    if not facts.stories or not every or not settings.enabled:
        return ""
    left = every - facts.count(paint.PASSED, paint.REVIEW, paint.BLOCKED, paint.ASIDE) % every
    return counted(left, "story")


def health(facts: Facts, at: float, zone: tzinfo | None) -> Iterator[Line]:
    """The last four panels in five lines, for narrow windows."""
    marks = [f"{_CHECKS[result.status][0]} {_command(result)}" for result, _ in facts.night.checks]
    failed = any(result.status is CheckStatus.FAILED for result, _ in facts.night.checks)
    tone = (Tone.BAD if failed else Tone.GOOD) if marks else Tone.QUIET
    yield line(_label("checks", 8), (", ".join(marks) or "none have run", tone))
    state, policy = facts.night.circuit, facts.night.policy
    trend = spark(facts.night.session.state.lengths, 18)
    name = (str(state.circuit), _CIRCUIT_TONES[state.circuit])
    yield line(_label("circuit", 8), name, (f" {trend}", Tone.BUSY))
    loud = Tone.WARN if state.no_progress or state.same_error else Tone.QUIET
    most, same = policy.no_progress_threshold, policy.same_error_threshold
    counts = f"no progress {state.no_progress}/{most}, same error {state.same_error}/{same}"
    yield line((counts, loud))
    calm = (f"no wait, {_starts(facts)}", Tone.PLAIN)
    yield line(_label("quota", 8), _countdown(facts, at, zone) or calm)
    soon = _next_aggregation(facts)
    yield line(
        _label("learned", 8), f"{facts.learned.captured}{f', next in {soon}' if soon else ''}"
    )


def _roughly(seconds: float) -> str:
    """Whole minutes: what nobody counts must not redraw the screen every second."""
    return f"{seconds // 60:.0f}m" if 60 <= seconds < 3600 else format_duration(seconds)


def _label(text: str, width: int = 13) -> Span:
    return fit(text, width), Tone.QUIET
