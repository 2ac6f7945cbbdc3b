"""From what was read to what is shown.  Pure: the clock and the time zone are handed in.

The state of a run is told in the words a person would use, each with its reason; the time left is
told with its basis, because a number alone would be believed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import tzinfo

import msgspec

from ralphloop.core.endings import ENDINGS
from ralphloop.core.totals import cost_words, money
from ralphloop.journal.records import RunRecord, RunStatus
from ralphloop.night.values import Night
from ralphloop.text.durations import elapsed, format_duration
from ralphloop.text.plain import counted, one_line
from ralphloop.ui.monitor import paint, panels
from ralphloop.ui.monitor.paint import bar, line, plain
from ralphloop.ui.monitor.values import Facts, Headline, Line, Screen, Span, Tone

_ENDINGS = {  # decision → how the state is called, and its tone
    "project_complete": ("COMPLETE", Tone.GOOD),
    "blocked": ("WAITS FOR YOU", Tone.WARN),
    "circuit_open": ("CIRCUIT OPEN", Tone.BAD),
    "test_saturation": ("HALTED", Tone.BAD),
    "max_iterations": ("LIMIT REACHED", Tone.WARN),
    "budget_exhausted": ("LIMIT REACHED", Tone.WARN),
    "usage_limit": ("USAGE LIMIT", Tone.WARN),
    "no_runnable_story": ("NOTHING TO RUN", Tone.WARN),
    "error": ("ERROR", Tone.BAD),
    "interrupted": ("STOPPED", Tone.PLAIN),
}


def build(facts: Facts, now: float, zone: tzinfo | None = None) -> Screen:
    """Everything the screen shows at this moment."""
    facts = msgspec.structs.replace(facts, night=replace(facts.night, now=now))
    state = state_of(facts)
    return Screen(
        header=tuple(_header(facts, state)),
        now=tuple(panels.now(facts, state, now)),
        actions=tuple(map(panels.action_line, facts.actions)) if facts.night.is_working else (),
        checks=tuple(panels.checks(facts)),
        circuit=tuple(panels.circuit(facts, now)),
        quota=tuple(panels.quota(facts, now, zone)),
        learned=tuple(panels.learned(facts)),
        health=tuple(panels.health(facts, now, zone)),
        facts=facts,
        stories_note=facts.night.stories_problem or _standings(facts) or "Enter opens one",
    )


def snapshot(screen: Screen, width: int, zone: tzinfo | None = None) -> Iterator[str]:
    """The whole screen as plain lines, for terminals that cannot draw."""
    for left, right in screen.header:
        yield plain(paint.beside(left, right, width)).rstrip()
    for title, rows in (
        ("Stories", (paint.story_line(row, width - 2) for row in screen.facts.stories[:200])),
        ("Now", (*screen.now, *screen.actions[-5:])),
        ("Checks", screen.checks),
        ("Circuit", screen.circuit),
        ("Quota", screen.quota),
        ("Learnings", screen.learned),
        ("Log", (paint.log_line(entry, width - 2, zone) for entry in screen.facts.log[-20:])),
    ):
        yield f"\n{title}:"
        yield from (f"  {plain(row).rstrip()}" for row in rows)


# --- header ----------------------------------------------------------------------------------


def state_of(facts: Facts) -> Headline:
    """The state in one word, with its reason."""
    night, run = facts.night, facts.night.run
    if facts.trouble:
        words = (facts.trouble, facts.way_out)
        return Headline(paint.FAILED, "JOURNAL UNREADABLE", Tone.BAD, *words)
    if run is None and night.holder is not None:
        words = ("the checks run once before the first story", "")
        return Headline(paint.CLOCK, "STARTING", Tone.BUSY, *words)
    if run is None:
        return Headline(paint.OPEN, "NO RUN YET", Tone.QUIET, "", "start one with: ralph run")
    if run.status is RunStatus.RUNNING:
        return _running(night, run)
    if run.status in (RunStatus.SUPERSEDED, RunStatus.EXPIRED):
        return Headline(
            paint.STOPPED, str(run.status).upper(), Tone.QUIET, one_line(run.reason, 300)
        )
    name, tone = _ENDINGS.get(run.decision, (run.decision.upper(), Tone.PLAIN))
    ending = ENDINGS.get(run.decision)
    advice = f"next: {ending.next_step}" if ending else ""
    mark = {Tone.GOOD: paint.PASSED, Tone.BAD: paint.FAILED}.get(tone, paint.STOPPED)
    return Headline(mark, name, tone, one_line(run.reason, 300), advice)


def _running(night: Night, run: RunRecord) -> Headline:
    wait = night.wait
    if night.died:
        ago = format_duration(elapsed(run.last_activity, night.now))
        words = (f"its process is gone; last seen {ago} ago", "next: ralph run --continue")
        return Headline(paint.FAILED, "DIED", Tone.BAD, *words)
    if wait is not None and wait.kind == "pause":
        return Headline(paint.PAUSED, "PAUSED", Tone.WARN, one_line(wait.reason), "p lets it go on")
    if wait is not None:
        left = format_duration(max(0.0, wait.until - night.now))
        return Headline(paint.CLOCK, "WAITING", Tone.WARN, f"{left} more: {one_line(wait.reason)}")
    if night.session.desk.paused:
        words = ("after this iteration", "p lets it go on")
        return Headline(paint.PAUSED, "PAUSING", Tone.WARN, *words)
    return Headline(paint.RUNNING, "RUNNING", Tone.BUSY)


def _header(facts: Facts, state: Headline) -> Iterator[tuple[Line, Line]]:
    """Two or three lines: what, how it goes, why."""
    night, run = facts.night, facts.night.run
    left: list[Span] = [(f" {one_line(night.project.root.name, 60)}", Tone.STRONG)]
    time = ""
    if run is not None:
        most, longest = night.limits.max_iterations, night.limits.max_time
        left.append((f" · {one_line(run.branch, 60)}" if run.branch else "", Tone.QUIET))
        of = f" of {format_duration(longest)}" if longest else ""
        time = f"  {format_duration(night.active_s)}{of} "
    left.append((f"  {state.mark} {state.name}", state.tone))
    if run is not None:
        done = f"{run.totals.iterations} of {most}" if most else str(run.totals.iterations)
        left.append((f"  {done} iterations", Tone.PLAIN))
    asked = ", ".join(dict.fromkeys(one_line(request.kind, 20) for request in night.pending))
    left.append((f"  asked: {asked}" if asked else "", Tone.WARN))
    yield tuple(left), line(time)
    yield tuple(_progress(facts)), tuple(_money(night))
    if state.reason:
        yield line((f" {state.reason}", state.tone)), ()


def _progress(facts: Facts) -> Iterator[Span]:
    total = sum(bool(row.key) for row in facts.stories)
    passed = facts.count(paint.PASSED, paint.REVIEW)
    yield " ", Tone.PLAIN
    if total:
        yield from bar(passed / total)
        yield f" {passed}/{total} passed", Tone.STRONG
    if facts.night.run is not None and facts.night.is_live and (eta := _eta(facts)):
        yield f"  {eta}", Tone.PLAIN


def _money(night: Night) -> Iterator[Span]:
    if night.run is None:
        return
    totals, most = night.totals, night.limits.max_cost_usd
    spent = (
        f"  {'~' if totals.cost_estimated else ''}{cost_words(totals.cost_usd, totals.unpriced)}"
    )
    if not most:
        yield f"{spent} spent ", Tone.PLAIN
        return
    share = totals.cost_usd / most
    tone = Tone.BAD if share >= 1 else Tone.WARN if share >= 0.8 else Tone.PLAIN
    yield f"{spent} of {money(most)} ", tone


def _eta(facts: Facts) -> str:
    """The time left and what it is computed from."""
    left = facts.count(paint.OPEN, paint.RUNNING, paint.WAITING)
    night, now = facts.night, facts.night.now
    done = night.totals.tasks_completed
    if not left or not facts.stories[0].key:
        return ""
    stories = counted(left, "story")
    if not done:
        return f"{stories} left; no estimate before one passes"
    wait = night.wait
    waiting = max(0.0, wait.until - now) if wait and wait.kind != "pause" else 0.0
    waited = night.totals.waited_s + (elapsed(wait.started_at, now) if wait else 0.0)
    each = max(0.0, night.active_s - waited) / done
    also = f" + {_about(waiting)} wait" if waiting >= 60 else ""
    return f"~{_about(left * each + waiting)}: {stories} left at ~{_about(each)} each{also}"


def _about(seconds: float) -> str:
    """A duration no more exact than an estimate is."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


# --- stories ---------------------------------------------------------------------------------


def _standings(facts: Facts) -> str:
    """How many stories need a person."""
    kinds = ((paint.BLOCKED, "for you"), (paint.REVIEW, "to review"), (paint.ASIDE, "set aside"))
    found = ((facts.count(mark), words) for mark, words in kinds)
    return ", ".join(f"{count} {words}" for count, words in found if count)
