"""`Screen`: what is shown at one moment, panel by panel, as lines of words.  Pure.

The time left is told with its basis, because a number alone would be believed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from textwrap import wrap
from typing import NamedTuple

from msgspec import UNSET

from ralphloop.core.grading import Grade
from ralphloop.core.model import CheckResult, CheckStatus, Circuit
from ralphloop.core.run_state import Standing
from ralphloop.core.totals import (
    cost_words,
    money,
    quota_words,
    spent_words,
    token_words,
    valid,
)
from ralphloop.journal.records import RunStatus
from ralphloop.night.values import Advice, Night, next_steps
from ralphloop.text.durations import clock, elapsed, format_duration
from ralphloop.text.plain import against, counted, number, one_line
from ralphloop.ui.console import LogLine
from ralphloop.ui.monitor import paint
from ralphloop.ui.monitor.moments import Facts, StoryRow
from ralphloop.ui.monitor.paint import CIRCUIT_TONES, Line, Span, Tone, cut, fit, line, plain

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
_CHECKS = {
    CheckStatus.PASSED: (paint.PASSED, Tone.GOOD),
    CheckStatus.FAILED: (paint.FAILED, Tone.BAD),
    CheckStatus.NO_TESTS: (paint.OPEN, Tone.WARN),
}
_WIDE_ROW = 70  # from here on a story's row has room for its verdict
_SHORT = {"waits for you": "for you", "needs review": "review"}


class Headline(NamedTuple):
    mark: str
    name: str
    tone: Tone
    reason: str = ""
    advice: str = ""


@dataclass(frozen=True)
class Screen:
    """Everything there is to show at this moment; the panels are called as on the screen."""

    facts: Facts
    at: float

    @cached_property
    def night(self) -> Night:
        return replace(self.facts.night, now=self.at)

    @cached_property
    def state(self) -> Headline:
        """How the run stands, in one word, with its reason."""
        facts = self.facts
        night = self.night
        run = self.night.run
        if facts.trouble:
            words = (facts.trouble, facts.way_out)
            return Headline(paint.FAILED, "JOURNAL UNREADABLE", Tone.BAD, *words)
        if run is None and night.holder is not None:
            reason = "the checks run once before the first story"
            return Headline(paint.CLOCK, "STARTING", Tone.BUSY, reason)
        if run is None:
            return Headline(paint.OPEN, "NO RUN YET", Tone.QUIET)
        reason = one_line(run.reason, 300)
        if run.status is RunStatus.RUNNING:
            return _running(night, run.last_activity)
        if run.status in (RunStatus.SUPERSEDED, RunStatus.EXPIRED):
            return Headline(paint.STOPPED, str(run.status).upper(), Tone.QUIET, reason)
        name, tone = _ENDINGS.get(run.decision, (run.decision.upper(), Tone.PLAIN))
        mark = {Tone.GOOD: paint.PASSED, Tone.BAD: paint.FAILED}.get(tone, paint.STOPPED)
        return Headline(mark, name, tone, reason)

    @cached_property
    def steps(self) -> tuple[Advice, ...]:
        """What there is to do where no run goes on."""
        is_over = self.night.holder is None and not self.facts.trouble
        return tuple(next_steps(self.night)) if is_over else ()

    def todo(self) -> Iterator[Line]:
        """The same as lines, what needs a person first."""
        for step in self.steps:
            tone = Tone.WARN if step.kind in ("answer", "review") else Tone.PLAIN
            yield line((f"{step.words} ", tone), (step.command, Tone.STRONG))

    def header(self, width: int) -> Iterator[Line]:
        """Two or three lines: what, how it goes, why."""
        night = self.night
        run = self.night.run
        state = self.state
        left: list[Span] = [(f" {one_line(night.project.root.name, 60)}", Tone.STRONG)]
        right = ""
        if run is not None and run.branch:
            left.append((f" · {one_line(run.branch, 60)}", Tone.QUIET))
        left.append((f"  {state.mark} {state.name}", state.tone))
        if run is not None:
            most = night.limits.max_iterations
            longest = night.limits.max_time
            of = f" of {format_duration(longest)}" if longest else ""
            right = f"  {format_duration(night.active_s)}{of} "
            done = f"{run.totals.iterations} of {most}" if most else str(run.totals.iterations)
            noun = counted(most or run.totals.iterations, "iteration").partition(" ")[2]
            left.append((f"  {done} {noun}", Tone.PLAIN))
        left.append((f"  asked: {night.asked}" if night.asked else "", Tone.WARN))
        yield paint.beside(tuple(left), line(right), width)
        passed: list[Span] = [(" ", Tone.PLAIN)]
        if night.total:
            words = (f" {night.passed}/{night.total} passed", Tone.STRONG)
            passed += [*paint.bar(night.passed / night.total), words]
        if run is not None and night.is_live and (time_left := self._time_left()):
            passed.append((f"  {time_left}", Tone.PLAIN))
        yield paint.beside(tuple(passed), tuple(self._money()), width)
        if state.reason:
            yield line((cut(f" {state.reason}", width), state.tone))

    def _time_left(self) -> str:
        night = self.night
        wait = self.night.wait
        left = night.count(Standing.OPEN)
        done = night.totals.tasks_completed
        if not left:
            return ""
        stories = counted(left, "story")
        if not done:
            return f"{stories} left; no estimate before one passes"
        waiting = night.wait_s if wait and wait.kind != "pause" else 0.0
        waited = night.totals.waited_s + (elapsed(wait.started_at, self.at) if wait else 0.0)
        each = max(0.0, night.active_s - waited) / done
        also = f" + {_about(waiting)} wait" if waiting >= 60 else ""
        return f"~{_about(left * each + waiting)}: {stories} left at ~{_about(each)} each{also}"

    def _money(self) -> Iterator[Span]:
        if self.night.run is None:
            return
        totals = self.night.totals
        limits = self.night.limits
        about = "~" if totals.cost_estimated else ""
        spent = f"  {about}{cost_words(totals.cost_usd, totals.unpriced)}"
        of = f"of {money(limits.max_cost_usd)}" if limits.max_cost_usd else "spent"
        yield f"{spent} {of} ", _nearly(totals.cost_usd, limits.max_cost_usd)
        if most := limits.max_tokens:
            tone = _nearly(totals.fresh_tokens, most)
            yield f" {totals.fresh_tokens:,} of {most:,} tokens ", tone
        if quota := quota_words(self.night.session.state.usage_windows, self.at):
            yield f" {quota} ", Tone.PLAIN

    @property
    def stories_note(self) -> str:
        """Why there is no list, or how many stories need a person."""
        night = self.night
        found = {
            "for you": night.count(Standing.BLOCKED),
            "to review": night.grades.get(Grade.NEEDS_REVIEW, 0),
            "set aside": night.count(Standing.SET_ASIDE),
        }
        standings = ", ".join(f"{count} {words}" for words, count in found.items() if count)
        return night.stories_problem or standings or "Enter opens one"

    def now(self) -> Iterator[Line]:
        """The current iteration, or what stands in its place."""
        facts = self.facts
        night = self.night
        newest = self.night.current
        for lane in night.lanes:
            tone = Tone.BUSY if lane.iteration else Tone.QUIET
            yield line((f"{lane.number}│ ", Tone.QUIET), (lane.words(self.at), tone))
        if newest is None or not night.working:
            yield from self._instead()
            return
        title = next((row.title for row in facts.stories if row.id == newest.story), "")
        name = f"{one_line(newest.story, 60)} {title}" if newest.story else "the prompt"
        yield line((name, Tone.STRONG))
        most = night.limits.max_attempts
        of = f"/{most}" if most and newest.attempt <= most else ""
        since = format_duration(elapsed(newest.started_at, self.at))
        yield line(f"iteration {newest.n}, attempt {newest.attempt}{of}, {since}")
        last = facts.last_output
        config = night.config
        quiet = elapsed(last, self.at) if last else 0.0
        stall = config.limits.stall_timeout
        if facts.answered:
            yield line(("the agent is through; measuring and checking", Tone.BUSY))
        elif stall and quiet > stall / 2:
            words = f"no output for {format_duration(quiet)} (of {format_duration(stall)})"
            yield line((words, Tone.WARN))
        else:
            model = one_line(f"{config.agent.name} {config.agent.models}", 40)
            words = f"last output {format_duration(quiet)} ago"
            tone = Tone.GOOD if quiet < 60 else Tone.PLAIN
            yield line((words, tone), (f" · {model}", Tone.QUIET))
        made = facts.usage.output_tokens
        before = night.session.story(newest.story)
        tokens = f"{number(facts.usage.total_tokens - made)} in, {number(made)} out"
        spent = ""
        if before.totals.iterations:
            spent = f" · {spent_words(before.totals.cost_usd, before.totals.unpriced)} on it before"
        yield line((f"{tokens}{spent}", Tone.QUIET))

    def _instead(self) -> Iterator[Line]:
        night = self.night
        state = self.state
        newest = self.night.newest
        if self.steps:  # which stand above, as the reason does
            yield line("no run goes on")
        elif state.reason or state.advice:
            words = [text for text in (state.reason, state.advice) if text]
            yield line((words[0], state.tone))
            yield from (line(text) for text in words[1:])
        else:
            yield line(("between two iterations", state.tone))
        if night.run is not None and newest is not None:
            on = f" on {one_line(newest.story, 60)}" if newest.story else ""
            yield line((f"last: iteration {newest.n}{on}", Tone.QUIET))
            totals = night.totals
            used = token_words(totals.total_tokens, totals.starts, number)
            spent = f"{counted(totals.starts, 'start')}, {used}"
            waited = f", {format_duration(totals.waited_s)} waited" if totals.waited_s >= 1 else ""
            yield line((f"{spent}{waited}", Tone.QUIET))

    def actions(self) -> Iterator[Line]:
        marks = {UNSET: ("· ", Tone.PLAIN), True: ("✓ ", Tone.GOOD), False: ("✗ ", Tone.BAD)}
        for action in self.facts.actions if self.night.working else ():
            words = (action.summary, Tone.PLAIN)
            if action.kind == "text":
                words = (f"“{action.summary}”", Tone.QUIET)
            yield (marks[action.ok], words)

    def checks(self) -> Iterator[Line]:
        """Every check with its last result, what did not pass first."""
        last: dict[str, tuple[CheckResult, int]] = {}  # and the iteration; 0: before the first
        for each in self.night.iterations:
            for result in each.checks:
                last.setdefault(result.name, (result, each.n))
        for result in self.night.session.baseline.results:
            last.setdefault(result.name, (result, 0))
        found = sorted(last.values(), key=lambda one: one[0].status is CheckStatus.PASSED)
        if not found:
            yield line(("none have run; without checks a story is only claimed", Tone.QUIET))
        for result, iteration in found:
            mark, tone = _CHECKS[result.status]
            words = f"{str(result.status).replace('_', ' ')}{', flaky' if result.flaky else ''}"
            when = f"iteration {iteration}" if iteration else "before the first"
            told = f"{words} {result.duration_s:.1f} s, {when}"
            # The command without the directory its program lies in.
            program, space, rest = one_line(result.name, 120).partition(" ")
            command = program.rsplit("/", 1)[-1] + space + rest
            yield line((f"{mark} ", tone), f"{command}  ", (told, tone))
            for name in result.failing_tests[:3]:
                yield line((f"    {one_line(name, 200)}", Tone.BAD))

    def circuit(self) -> Iterator[Line]:
        state = self.night.circuit
        policy = self.night.policy
        since = f" for {_roughly(elapsed(state.since, self.at))}" if state.since else ""
        opened = f", opened {counted(state.opened_count, 'time')}" if state.opened_count else ""
        told = "all well" if state.circuit is Circuit.CLOSED else str(state.circuit)
        yield line((told, CIRCUIT_TONES[state.circuit]), f"{since}{opened}")
        for label, count, most in (
            ("no progress", state.no_progress, policy.no_progress_threshold),
            ("same error", state.same_error, policy.same_error_threshold),
        ):
            pips = paint.pips(count, most)
            words = (f" {against(count, most)}", Tone.PLAIN)
            yield (_label(label), *pips, words)
        lengths = self.night.session.state.lengths
        if trend := paint.spark(lengths):
            newest = (f" {number(lengths[-1])}", Tone.QUIET)
            yield (_label("output size"), (trend, Tone.BUSY), newest)
        if move := next((one for one in reversed(state.history) if not one.is_note), None):
            ago = f"{_roughly(elapsed(move.at, self.at))} ago" if move.at else ""
            words_of = f"{move.before} → {move.after} {ago}: {one_line(move.reason)}"
            yield line((words_of, Tone.QUIET))
        if state.same_error and state.last_error:
            yield line((f"error: {one_line(state.last_error)}", Tone.WARN))

    def quota(self) -> Iterator[Line]:
        night = self.night
        wait = self.night.wait
        most = night.config.limits.calls_per_hour
        calls = night.calls
        starts = f"{calls} of {counted(most, 'start')}" if most else counted(calls, "start")
        starts = f"{starts} in the last hour"
        if wait is not None and wait.kind != "pause" and night.is_live:
            at = clock(wait.until, form="%H:%M")
            yield line((f"goes on in {format_duration(night.wait_s)} ({at})", Tone.WARN))
            yield line((one_line(wait.reason), Tone.QUIET))
            yield line(starts)
        else:
            yield line(("no wait", Tone.GOOD), f", {starts}")
        for window in valid(night.session.state.usage_windows, self.at):
            tone = Tone.WARN if window.used >= 0.8 else Tone.PLAIN
            yield line((quota_words((window,), self.at, resets=True), tone))
        for words in night.accounts_away:
            yield line((words, Tone.WARN))
        if self.facts.limit_words:
            yield line((self.facts.limit_words, Tone.QUIET))

    def learned(self) -> Iterator[Line]:
        found = self.facts.learned
        settings = self.night.config.learning
        if not settings.enabled:
            yield line(("learning is off", Tone.QUIET))
            return
        captured = (f"{found.captured} captured", Tone.STRONG if found.captured else Tone.QUIET)
        yield line(captured, f", {counted(found.skills, 'skill')}")
        if found.categories:
            yield line(", ".join(f"{name} {count}" for name, count in found.categories))
        if found.waiting:
            yield line((f"{found.waiting} to decide: ralph learnings review", Tone.WARN))
        if self.facts.stories and settings.every:
            over = self.night.total - self.night.count(Standing.OPEN)
            soon = counted(settings.every - over % settings.every, "story")
            yield line((f"next aggregation in {soon}", Tone.QUIET))

    def health(self) -> Iterator[Line]:
        """How the last four panels begin, in five lines for narrow windows."""
        state = self.night.circuit
        policy = self.night.policy
        most = policy.no_progress_threshold
        same = policy.same_error_threshold
        counts = f"no progress {state.no_progress}/{most}, same error {state.same_error}/{same}"
        loud = Tone.WARN if state.no_progress or state.same_error else Tone.QUIET
        yield (_label("checks", 8), *next(self.checks()))
        trend = (f" {paint.spark(self.night.session.state.lengths, 18)}", Tone.BUSY)
        yield (_label("circuit", 8), *next(self.circuit()), trend)
        yield line((counts, loud))
        yield (_label("quota", 8), *next(self.quota()))
        yield (_label("learned", 8), *next(self.learned()))

    def as_text(self, width: int) -> Iterator[str]:
        """The whole screen as plain lines, for terminals that cannot draw."""
        facts = self.facts
        yield from (plain(row).rstrip() for row in self.header(width))
        if todo := [f"  {words}" for row in self.todo() for words in wrap(plain(row), width - 2)]:
            yield from ("\nWhat to do:", *todo)
        for title, rows in (
            ("Stories", list(story_lines(facts.stories[:200], width - 2))),
            ("Now", [*self.now(), *list(self.actions())[-5:]]),
            ("Checks", self.checks()),
            ("Circuit", self.circuit()),
            ("Quota", self.quota()),
            ("Learnings", self.learned()),
            ("Log", [log_line(entry) for entry in facts.log[-20:]]),
        ):
            yield f"\n{title}:"
            yield from (cut(f"  {plain(row)}".rstrip(), width) for row in rows)


def story_lines(rows: Sequence[StoryRow], width: int) -> Iterator[Line]:
    """Each story's mark, name, title, failed attempts, standing and, where there is room, why."""
    longest = max((paint.width_of(row.title) for row in rows), default=0)
    wide = width >= _WIDE_ROW
    for row in rows:
        standing = row.standing if wide else _SHORT.get(row.standing, row.standing)
        name = min(12 if wide else 8, max(6, len(row.id)))
        size = 15 if wide else 9
        rest = width - name - size - 7
        why = max(0, rest - longest) if wide else 0
        yield (
            (f"{row.mark} ", row.tone),
            (fit(row.id, name) + " ", Tone.STRONG),
            (fit(row.title, rest - why) + " ", Tone.PLAIN),
            (fit(f"{row.attempts}{paint.FAILED}" if row.attempts else "", 3), Tone.WARN),
            (fit(standing, size), row.tone),
            (cut(row.verdict, why), Tone.QUIET),
        )


def log_line(entry: LogLine) -> Line:
    head = f"{clock(entry.at, form='%H:%M:%S')} {entry.lane}"
    return ((head, Tone.QUIET), (entry.text, entry.tone))


def _running(night: Night, last_activity: float) -> Headline:
    wait = night.wait
    if night.died:
        ago = format_duration(elapsed(last_activity, night.now))
        words = (f"its process is gone; last seen {ago} ago", "next: ralph run --continue")
        return Headline(paint.FAILED, "DIED", Tone.BAD, *words)
    if wait is not None and wait.kind == "pause":
        return Headline(paint.PAUSED, "PAUSED", Tone.WARN, one_line(wait.reason), "p lets it go on")
    if wait is not None:
        left = format_duration(night.wait_s)
        return Headline(paint.CLOCK, "WAITING", Tone.WARN, f"{left} more: {one_line(wait.reason)}")
    if night.session.overrides.paused:
        words = ("after this iteration", "p lets it go on")
        return Headline(paint.PAUSED, "PAUSING", Tone.WARN, *words)
    return Headline(paint.RUNNING, "RUNNING", Tone.BUSY)


def _nearly(used: float, most: float) -> Tone:
    """The louder, the less is left."""
    share = used / most if most else 0.0
    if share >= 1:
        return Tone.BAD
    return Tone.WARN if share >= 0.8 else Tone.PLAIN


def _about(seconds: float) -> str:
    """A duration no more exact than an estimate is."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _roughly(seconds: float) -> str:
    """Whole minutes: what nobody counts must not redraw the screen every second."""
    return f"{seconds // 60:.0f}m" if 60 <= seconds < 3600 else format_duration(seconds)


def _label(text: str, width: int = 13) -> Span:
    return fit(text, width), Tone.QUIET
