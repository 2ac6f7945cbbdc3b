"""From what was read to what is shown.  Pure: the clock and the time zone are handed in.

The state of a run is told in the words a person would use, each with its reason; the time left is
told with its basis, because a number alone would be believed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import tzinfo
from typing import Any

from ralphloop.core.endings import ENDINGS
from ralphloop.core.money import cost_words, money
from ralphloop.core.story import Story, StoryList
from ralphloop.journal.records import RunRecord, RunStatus
from ralphloop.text.durations import elapsed, format_duration
from ralphloop.text.plain import counted, one_line
from ralphloop.ui.monitor import paint, panels
from ralphloop.ui.monitor.paint import bar, line, plain
from ralphloop.ui.monitor.values import Facts, Line, Screen, Span, State, StoryRow, Tone

_WEAK_GRADES = ("claimed", "needs review", "")
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
    state = state_of(facts, now)
    return Screen(
        header=tuple(_header(facts, state, now)),
        now=tuple(panels.now(facts, state, now)),
        actions=tuple(map(panels.action_line, facts.actions)) if facts.is_working else (),
        checks=tuple(panels.checks(facts)),
        circuit=tuple(panels.circuit(facts, now)),
        quota=tuple(panels.quota(facts, now, zone)),
        learned=tuple(panels.learned(facts)),
        health=tuple(panels.health(facts, now, zone)),
        facts=facts,
        stories_note=facts.list_problem or _standings(facts) or "Enter opens one",
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


def state_of(facts: Facts, now: float) -> State:
    """The state in one word, with its reason."""
    run = facts.run
    if facts.trouble:
        words = (facts.trouble, facts.way_out)
        return State(paint.FAILED, "JOURNAL UNREADABLE", Tone.BAD, *words)
    if facts.starting:
        words = ("the checks run once before the first story", "")
        return State(paint.CLOCK, "STARTING", Tone.BUSY, *words)
    if run is None:
        return State(paint.OPEN, "NO RUN YET", Tone.QUIET, "", "start one with: ralph run")
    if run.status is RunStatus.RUNNING:
        return _running(facts, run, now)
    if run.status in (RunStatus.SUPERSEDED, RunStatus.EXPIRED):
        return State(paint.STOPPED, str(run.status).upper(), Tone.QUIET, one_line(run.reason, 300))
    name, tone = _ENDINGS.get(run.decision, (run.decision.upper(), Tone.PLAIN))
    ending = ENDINGS.get(run.decision)
    advice = f"next: {ending.next_step}" if ending else ""
    mark = {Tone.GOOD: paint.PASSED, Tone.BAD: paint.FAILED}.get(tone, paint.STOPPED)
    return State(mark, name, tone, one_line(run.reason, 300), advice)


def _running(facts: Facts, run: RunRecord, now: float) -> State:
    wait = facts.wait
    if not facts.live:
        ago = format_duration(elapsed(run.last_activity, now))
        words = (f"its process is gone; last seen {ago} ago", "next: ralph run --continue")
        return State(paint.FAILED, "DIED", Tone.BAD, *words)
    if wait is not None and wait.kind == "pause":
        return State(paint.PAUSED, "PAUSED", Tone.WARN, one_line(wait.reason), "p lets it go on")
    if wait is not None:
        left = format_duration(max(0.0, wait.until - now))
        return State(paint.CLOCK, "WAITING", Tone.WARN, f"{left} more: {one_line(wait.reason)}")
    if facts.paused:
        words = ("after this iteration", "p lets it go on")
        return State(paint.PAUSED, "PAUSING", Tone.WARN, *words)
    return State(paint.RUNNING, "RUNNING", Tone.BUSY)


def _header(facts: Facts, state: State, now: float) -> Iterator[tuple[Line, Line]]:
    """Two or three lines: what, how it goes, why."""
    run, setting = facts.run, facts.setting
    left: list[Span] = [(f" {one_line(facts.project, 60)}", Tone.STRONG)]
    time = ""
    if run is not None:
        most, longest = setting("limits", "max_iterations"), setting("limits", "max_time")
        left.append((f" · {one_line(run.branch, 60)}" if run.branch else "", Tone.QUIET))
        of = f" of {format_duration(longest + facts.extra_time)}" if longest else ""
        time = f"  {format_duration(_elapsed(facts, now))}{of} "
    left.append((f"  {state.mark} {state.name}", state.tone))
    if run is not None:
        done = f"{run.totals.iterations} of {most}" if most else str(run.totals.iterations)
        left.append((f"  {done} iterations", Tone.PLAIN))
    asked = ", ".join(dict.fromkeys(one_line(request.kind, 20) for request in facts.pending))
    left.append((f"  asked: {asked}" if asked else "", Tone.WARN))
    yield tuple(left), line(time)
    yield tuple(_progress(facts, now)), tuple(_money(facts))
    if state.reason:
        yield line((f" {state.reason}", state.tone)), ()


def _progress(facts: Facts, now: float) -> Iterator[Span]:
    total = sum(bool(row.key) for row in facts.stories)
    passed = facts.count(paint.PASSED, paint.REVIEW)
    yield " ", Tone.PLAIN
    if total:
        yield from bar(passed / total)
        yield f" {passed}/{total} passed", Tone.STRONG
    if facts.run is not None and facts.live and (eta := _eta(facts, facts.run, now)):
        yield f"  {eta}", Tone.PLAIN


def _money(facts: Facts) -> Iterator[Span]:
    if facts.run is None:
        return
    totals, most = facts.run.totals, float(facts.setting("limits", "max_cost_usd"))
    spent = (
        f"  {'~' if totals.cost_estimated else ''}{cost_words(totals.cost_usd, totals.unpriced)}"
    )
    if not most:
        yield f"{spent} spent ", Tone.PLAIN
        return
    share = totals.cost_usd / (most + facts.extra_cost)
    tone = Tone.BAD if share >= 1 else Tone.WARN if share >= 0.8 else Tone.PLAIN
    yield f"{spent} of {money(most + facts.extra_cost)} ", tone


def _elapsed(facts: Facts, now: float) -> float:
    if facts.run is None:
        return 0.0
    since = elapsed(facts.run.last_activity, now) if facts.live else 0.0
    return facts.run.totals.active_s + since


def _eta(facts: Facts, run: RunRecord, now: float) -> str:
    """The time left and what it is computed from."""
    left = facts.count(paint.OPEN, paint.RUNNING, paint.WAITING)
    done = run.totals.tasks_completed
    if not left or not facts.stories[0].key:
        return ""
    stories = counted(left, "story")
    if not done:
        return f"{stories} left; no estimate before one passes"
    wait = facts.wait
    waiting = max(0.0, wait.until - now) if wait and wait.kind != "pause" else 0.0
    waited = run.totals.waited_s + (elapsed(wait.started_at, now) if wait else 0.0)
    each = max(0.0, _elapsed(facts, now) - waited) / done
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


def story_rows(
    stories: StoryList | None, states: Mapping[str, Mapping[str, Any]], current: str | None
) -> tuple[StoryRow, ...]:
    """One row a story: those of the list, then those only the journal remembers."""
    listed = stories.stories if stories else ()
    passed = {story.id for story in listed if story.passes}
    rows = [_row(story, states.get(story.id, {}), passed, current) for story in listed]
    known = {story.id for story in listed}
    for name in sorted(states.keys() - known):
        if name or not listed:
            title = "no longer in the story list" if name else "the prompt"
            rows.append(_row(Story(id=name, title=title, index=0), states[name], passed, current))
    return tuple(rows)


def _row(story: Story, state: Mapping[str, Any], passed: set[str], current: str | None) -> StoryRow:
    mark, words, tone = _standing(story, state, passed, current)
    attempts = state.get("attempts")
    return StoryRow(
        key=story.id,
        id=one_line(story.id, 60),
        title=one_line(story.title, 200),
        mark=mark,
        standing=words,
        tone=tone,
        attempts=attempts if type(attempts) is int else 0,
        verdict=one_line(str(state.get("reason", "")), 300),
    )


def _standing(
    story: Story, state: Mapping[str, Any], passed: set[str], current: str | None
) -> tuple[str, str, Tone]:
    standing = state.get("standing", "open")
    if story.id == current and standing == "open":
        return paint.RUNNING, "running", Tone.BUSY
    if story.passes or standing == "passed":
        grade = one_line(str(state.get("grade", "")), 20)
        mark = paint.REVIEW if grade == "needs review" else paint.PASSED
        return mark, grade or "passed", Tone.WARN if grade in _WEAK_GRADES else Tone.GOOD
    if standing == "blocked":
        return paint.BLOCKED, "waits for you", Tone.WARN
    if standing == "set_aside":
        return paint.ASIDE, "set aside", Tone.WARN
    needs = [one_line(name, 20) for name in story.depends_on if name not in passed]
    if needs:
        more = f" +{len(needs) - 1}" if len(needs) > 1 else ""
        return paint.WAITING, f"waits on {needs[0]}{more}", Tone.QUIET
    return paint.OPEN, "begun" if state.get("iterations") else "open", Tone.PLAIN
