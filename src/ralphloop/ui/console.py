"""The live console: events as lines that scroll, and on a terminal a status that stays.

Names and words in events come from story files and agents; whatever they hold besides words, such
as terminal control sequences, is taken off.  The lines also serve pipes, logs and the monitor.
Each printed line begins with the local time, a new day with its date; a title is told once.

The status shows what a person wants to know at a glance: story, iteration, elapsed, cost, the last
agent action, time since the last sign of life, circuit, progress over stories, a countdown.  It
only knows events; where there is no terminal the lines alone are printed.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from msgspec.structs import replace

from ralphloop.core import events
from ralphloop.core.events import LoopEvent
from ralphloop.core.model import ExitDecision, Outcome
from ralphloop.core.planning import decided
from ralphloop.core.quota import Windows, quota_words, updated
from ralphloop.core.totals import money, spent_words
from ralphloop.text.durations import clock_time, format_duration, parse_iso
from ralphloop.text.plain import clean, counted, on_screen, one_line, some
from ralphloop.ui import clock

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

_MOST_LOOKS = 3
_QUIET = (events.StoryPassed, events.StoryHeldBack, events.CircuitChanged, events.RunFinished)
_HELD_BACK: dict[type[events.StoryHeldBack], tuple[str, str]] = {
    events.StorySetAside: ("⊘", "is set aside"),
    events.StoryBlocked: ("?", "waits for you"),
    events.StoryReopened: ("↻", "is open again"),
}
_BAR = 24
_CIRCUITS = {"CLOSED": "green", "HALF_OPEN": "yellow", "OPEN": "red"}

_STYLES = {  # by how a line begins, on a terminal
    "✓": "green",
    "⊘": "yellow",
    "?": "bold cyan",
    "!": "yellow",
    "it says done, but": "yellow",
    "warning": "yellow",
    "circuit": "magenta",
    "run ended": "bold",
    "[": "bold",
}


class PlainConsole:
    """Lines only: for pipes, logs and terminals that cannot do more."""

    def __init__(self, *, verbosity: int = 0) -> None:
        self._verbosity = verbosity
        self._titled: set[str] = set()
        self._lanes: dict[int | None, int] = {}  # iteration → the lane it is in
        self._day = ""

    def show(self, event: LoopEvent) -> None:
        """Print what there is to say."""
        day, at = clock(event.at, form="%Y-%m-%d"), clock(event.at, form="%H:%M")
        if isinstance(event.what, events.IterationStarted) and event.what.lane:
            self._lanes[event.iteration] = event.what.lane
        if event.iteration in self._lanes:
            at = f"{at} {self._lanes[event.iteration]}│"
        for line in event_lines(event, verbosity=self._verbosity, titled=self._titled):
            if self._day not in ("", day):
                self._print(at, day)
            self._day = day
            self._print(at, line)

    def _print(self, at: str, line: str) -> None:
        try:
            shown = one_line(line, 2_000) if "\n" in line else on_screen(line, colours=False)
            sys.stdout.write(f"{at} {shown}\n")
            sys.stdout.flush()
        except OSError:
            pass  # whoever was looking is gone; the run goes on

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None


@dataclass
class _Shown:
    """What the status line tells: how the session began, and what came since."""

    run: events.RunStarted = field(default_factory=events.RunStarted)
    cost: float = 0.0
    unpriced: int = 0
    tokens: int = 0
    passed: int = 0
    circuit: str = "CLOSED"
    quota: Windows = ()
    iteration: int | None = None
    story: str | None = None
    title: str = ""
    action: str = ""
    wait: tuple[str, float] | None = None
    flying: dict[int | None, str] = field(default_factory=dict)  # what each lane does


class LiveConsole(PlainConsole):
    """Lines above, a status below that is redrawn twice a second."""

    def __init__(self, *, verbosity: int = 0) -> None:
        super().__init__(verbosity=verbosity)
        self._live: Live | None = None
        self._began = time.monotonic()
        self._facts = _Shown()
        self._sign = time.monotonic()

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.live import Live

        self._live = Live(
            get_renderable=self._status,
            console=Console(highlight=False, soft_wrap=False),
            refresh_per_second=2,
            transient=True,
        )
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None and not self._screen_is_gone():
            self._live.stop()

    def show(self, event: LoopEvent) -> None:
        """Remember what the status needs, and print the lines above it."""
        self._remember(event)
        super().show(event)

    def _print(self, at: str, line: str) -> None:
        if self._live is None or self._screen_is_gone():
            super()._print(at, line)
            return
        from rich.text import Text

        words, console = one_line(line, 2_000), self._live.console
        indent = " " * (len(line) - len(line.lstrip(" ")) + len(at) + 1)
        mark = next((mark for mark in _STYLES if words.startswith(mark)), "")
        hang = indent + "  " * (len(mark) == 1)  # below the words, not below their mark
        try:
            room = max(20, console.width - len(hang))
            for row, text in enumerate(Text(words, _STYLES.get(mark, "")).wrap(console, room)):
                head = (at.ljust(len(indent)), "dim") if row == 0 else hang
                console.print(Text.assemble(head, text), soft_wrap=True)
        except OSError:
            self._screen_is_gone()  # in this very moment; the run goes on

    def _screen_is_gone(self) -> bool:
        """The terminal was closed, or its place is taken by the log: draw no more."""
        if sys.stdout.isatty():
            return False
        if self._live is not None:
            live, self._live = self._live, None
            live.console.quiet = True
            with suppress(OSError):
                live.stop()
        return True

    def _remember(self, event: LoopEvent) -> None:
        facts = self._facts
        self._sign = time.monotonic()
        match event.what:
            case events.RunStarted() as run:
                facts.run, facts.circuit, facts.quota = run, run.circuit, run.quota
                self._began = self._sign - run.active_s  # of a session that may be continued
            case events.RequestAnswered(max_cost_usd=float(cost), max_time_s=float(time_s)) as what:
                raised = {"max_cost_usd": cost, "max_time_s": time_s}
                facts.run = replace(facts.run, **raised, max_tokens=what.max_tokens or 0)
            case events.IterationStarted() as what:
                facts.iteration, facts.story, facts.title = event.iteration, what.story, what.title
                facts.wait, facts.action = None, "starting"
                if what.lane:
                    facts.flying[event.iteration] = f"lane {what.lane}  {what.story}: {what.title}"
            case events.AgentStep() as what:
                facts.action = step_words(what)
            case events.IterationFinished() as what:
                facts.flying.pop(event.iteration, None)
                facts.cost += what.spent.cost_usd
                facts.unpriced += what.spent.unpriced
                facts.tokens += what.spent.fresh_tokens
                facts.action = what.iteration.analysis.outcome.words
                kept = what.iteration
                facts.quota = updated(facts.quota, kept.response.windows, kept.agent)
            case events.StoryPassed():
                facts.passed += 1
            case events.CircuitChanged(after=after):
                facts.circuit = after
            case events.Waiting(until=until, reason=reason):
                facts.wait = (reason, parse_iso(until)) if until else None

    def _status(self) -> RenderableType:
        from rich.text import Text

        facts, run, now = self._facts, self._facts.run, time.monotonic()
        passed, total = run.passed + facts.passed, run.stories
        filled = _BAR * passed // total if total else 0
        bar = f"{'█' * filled}{'░' * (_BAR - filled)} {passed}/{total}"
        without = "plain loop" if run.project else "getting ready"
        text = Text(bar if total else without, no_wrap=True, overflow="ellipsis")
        if facts.iteration:
            story = one_line(facts.story or "the prompt", 60)
            text.append(f"  [{facts.iteration}] {story}", "bold")
            text.append(f" {one_line(facts.title, 40)}")
        text.append(f"\n{format_duration(now - self._began)}")
        text.append(f" of {format_duration(run.max_time_s)}" if run.max_time_s else "")
        text.append(f"  {spent_words(run.cost_usd + facts.cost, run.unpriced + facts.unpriced)}")
        text.append(f" of {money(run.max_cost_usd)}" if run.max_cost_usd else "")
        if run.max_tokens:
            text.append(f"  {run.tokens + facts.tokens:,} of {run.max_tokens:,} tokens")
        quota = quota_words(facts.quota, time.time())
        text.append(f"  {quota}" if quota else "")
        text.append("  circuit ").append(facts.circuit, _CIRCUITS.get(facts.circuit, ""))
        if facts.wait:
            reason, until = facts.wait
            left = format_duration(max(0, until - time.time()))
            return text.append(f"  waiting {left}: {one_line(reason, 60)}", "dim")
        for words in facts.flying.values():
            text.append(f"\n{one_line(words, 100)}")
        action = one_line(facts.action, 60)
        return text.append(f"  {action} ({format_duration(now - self._sign)} ago)", "dim")


def console_for(*, verbosity: int, env: Mapping[str, str]) -> PlainConsole:
    """The richest console this output can show."""
    capable = sys.stdout.isatty() and env.get("TERM", "") not in ("", "dumb")
    return LiveConsole(verbosity=verbosity) if capable else PlainConsole(verbosity=verbosity)


# --- events as lines -------------------------------------------------------------------------


def event_lines(
    event: LoopEvent, *, verbosity: int = 0, titled: set[str] | None = None
) -> Iterator[str]:
    """What there is to say about an event; nothing for most agent steps unless asked.

    Stories whose title was told already are in `titled`.
    """
    if verbosity < 0 and not isinstance(event.what, _QUIET):
        return
    if verbosity < 1 and isinstance(event.what, events.AgentStep):
        return
    yield from (" ".join(clean(line).split("\n")) for line in _told(event, titled))


def short_duration(seconds: float) -> str:
    """A duration with tenths while they still matter."""
    return f"{seconds:.1f}s" if seconds < 10 else format_duration(seconds)


def step_words(step: events.AgentStep) -> str:
    """What an agent says or does, for a person; its status block says nothing to them."""
    words = step.summary.split("---RALPH_STATUS---")[0].strip()
    match step.kind:
        case "tool" | "limit" | "result":
            return words
        case "tool_result":
            return words if step.ok is not False else f"{words} failed"
        case "text":
            return f"“{words}”" if words else ""
    return f"{step.kind}: {words}"


def _told(  # noqa: C901, PLR0912, PLR0915 - one case a kind
    event: LoopEvent, titled: set[str] | None
) -> Iterator[str]:
    match event.what:
        case events.RunStarted() as what:
            yield from _run_started(event.run, what)
        case events.Preflight(said=said):
            yield from (f"preflight: {line}" for line in said)
        case events.IterationStarted() as what:
            yield from _iteration_started(event.iteration, what, titled)
        case events.AgentChanged(agent=agent, away=""):
            yield f"  {agent} works again"
        case events.AgentChanged(agent=agent, away=away, until=until):
            back = f"is away until {clock_time(parse_iso(until), event.at)}" if until else ""
            yield f"  {agent} takes over: {away} {back or 'cannot work in this run'}"
        case events.AgentStep() as what:
            mark = "ok " if what.ok is True else "!! " if what.ok is False else ""
            yield from (f"    {mark}{words}" for words in [step_words(what)] if words)
        case events.ExperimentBegun(what=words):
            yield f"    trying {words}"
        case events.StatusAsked():
            yield "    asked for the status block that its answer lacks"
        case events.IterationFinished() as what:
            yield from _iteration_finished(what, event.at)
        case events.StoryPassed() as what:
            yield f"  ✓ {what.story} passed ({what.grade}): {'; '.join(what.reasons)}"
        case events.StoryHeldBack() as what:
            mark, words = _HELD_BACK[type(what)]
            yield f"  {mark} {what.story} {words}: {what.reason}"
        case events.Landing(story=story, ahead=ahead):
            yield f"  {story} waits for landing, {ahead} before it" if ahead else f"  {story} lands"
        case events.StoryReturned() as what:
            yield f"  ↻ {what.story} goes back to its lane: {what.reason}"
        case events.LaneLeft(story=story, reason=reason):
            yield f"  ! {story}: {reason}"
        case events.LeftoversKept(ref=ref, files=files):
            back = f"git restore --source={ref} -- {shlex.quote(f':/{files[0]}')}"
            yield f"    kept at {ref}: {some(files)}; one of them is yours? {back}"
        case events.CircuitChanged() as what:
            yield f"  circuit {what.before} → {what.after}: {what.reason}"
        case events.RequestAnswered() as what:
            yield f"  {what.kind}: {what.answer}"
        case events.Waiting(kind="pause", until=str(), reason=reason, seconds=s) if s >= 1:
            yield f"  on hold: {reason}"
        case events.Waiting(until=str(until), reason=reason, seconds=s) if s >= 1:
            end = clock_time(parse_iso(until), event.at)
            yield f"  waiting {format_duration(s)} until {end}: {reason}"
        case events.RunFinished() as what:
            yield from _run_finished(what, event.at)


def _run_started(run: str, what: events.RunStarted) -> Iterator[str]:
    verb = "goes on" if what.continued else "starts"
    total = counted(what.stories, "story")
    stories = f", {what.passed} of {total} passed" if what.stories else ""
    agent = f"{what.agent}{' ' + what.model if what.model else ''}"
    where = f" on branch {what.branch}" if what.branch else ""
    yield f"run {run} {verb}: {what.project}{where}, agent {agent}{stories}"
    limits = (
        what.max_iterations and counted(what.max_iterations, "iteration"),
        what.max_cost_usd and money(what.max_cost_usd),
        what.max_tokens and f"{what.max_tokens:,} tokens",
        what.max_time_s and format_duration(what.max_time_s),
        what.ends_at and f"until {clock_time(what.ends_at, what.ends_at)}",
        what.reserve and f"{what.reserve:.0%} of each usage window is left",
    )
    told = ", ".join(str(limit) for limit in limits if limit)
    yield f"limits: {told or 'none'}; circuit {what.circuit}"


def _iteration_started(
    number: int | None, what: events.IterationStarted, titled: set[str] | None
) -> Iterator[str]:
    story = f"{what.story}: {what.title}" if what.story else "the prompt"
    if titled is not None and what.story:
        is_known = story in titled
        titled.add(story)
        story = what.story if is_known else story
    attempt = f", attempt {what.attempt}" if what.attempt > 1 else ""
    by = f", {what.by}" if what.by else ""
    yield f"[{number}] {story}{attempt}{by} ({what.prompt_tokens:,} prompt tokens)"
    yield from (f"    left out of the prompt: {part}" for part in what.left_out)


def _iteration_finished(what: events.IterationFinished, at: float) -> Iterator[str]:
    kept, analysis = what.iteration, what.iteration.analysis
    took = short_duration(kept.end.duration_s)
    spent = spent_words(what.spent.cost_usd, what.spent.unpriced)
    files, commits = kept.changed.count, kept.evidence.commits or 0
    work = f"{counted(files, 'file')} changed" if files or commits else "nothing changed"
    work += f", {counted(commits, 'commit')}" if commits else ""
    quota = quota_words(kept.response.windows, at)
    ended = analysis.outcome
    how = "completed in" if ended is Outcome.COMPLETED else f"{ended.words} after"
    yield f"    {how} {took}, {spent}, {work}{f', {quota}' if quota else ''}"
    if kept.why_it_ended and analysis.outcome is not Outcome.COMPLETED:
        yield f"    {kept.why_it_ended}"
    if checks := what.checks:
        yield "    checks: " + ", ".join(
            f"{name} {status.replace('_', ' ')}" for name, status in checks.items()
        )
    if analysis.story_claimed and not kept.verdict.passed:
        yield f"    it says done, but {'; '.join(kept.verdict.reasons)}"
    yield from (f"    look at: {words}" for words in kept.verdict.look_at[:_MOST_LOOKS])
    stuck = (pattern.detail for pattern in analysis.stuck)
    for words in (*what.all_warnings, *stuck, *kept.findings):
        yield f"    ! {words}"


def _run_finished(what: events.RunFinished, at: float) -> Iterator[str]:
    total = counted(what.total, "story")
    stories = f"{what.passed} of {total} passed, " if what.total else ""
    how = decided(what.decision, "; ".join(what.reasons))
    yield (
        f"run ended: {how}. {stories}{counted(what.iterations, 'iteration')},"
        f" {spent_words(what.cost_usd, what.unpriced)}, {what.tokens:,} tokens,"
        f" {format_duration(what.duration_s)}"
    )
    yield from (f"  {reason}" for reason in what.reasons)
    if quota := quota_words(what.quota, at, resets=True):
        yield f"  quota: {quota}"
    if what.decision is not ExitDecision.BLOCKED:  # then they are the reasons
        yield from (f"  ? {words}" for words in what.waiting)
