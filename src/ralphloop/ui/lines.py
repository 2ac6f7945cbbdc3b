"""Events as lines of plain words: for logs, pipes and the scrolling part of the console.

Names and words in events come from story files and agents; whatever they hold besides words, such
as terminal control sequences, is taken off here.
"""

from __future__ import annotations

from collections.abc import Iterator

from ralphloop.core import events
from ralphloop.core.events import LoopEvent
from ralphloop.core.model import ExitDecision, Outcome
from ralphloop.core.totals import money, spent_words
from ralphloop.text.durations import format_duration
from ralphloop.text.plain import clean, counted

_QUIET = (
    events.StoryPassed,
    events.StoryHeldBack,
    events.CircuitChanged,
    events.RunFinished,
)


def event_lines(event: LoopEvent, *, verbosity: int = 0) -> Iterator[str]:
    """What there is to say about an event; nothing for most agent steps unless asked."""
    if verbosity < 0 and not isinstance(event.what, _QUIET):
        return
    if verbosity < 1 and isinstance(event.what, events.AgentStep):
        return
    yield from (" ".join(clean(line).split("\n")) for line in _told(event))


def short_duration(seconds: float) -> str:
    """A duration with tenths while they still matter."""
    return f"{seconds:.1f}s" if seconds < 10 else format_duration(seconds)


def _told(event: LoopEvent) -> Iterator[str]:  # noqa: C901, PLR0912 - one case a kind
    match event.what:
        case events.RunStarted() as what:
            yield from _run_started(event.run, what)
        case events.Preflight(said=said):
            yield from (f"preflight: {line}" for line in said)
        case events.IterationStarted() as what:
            story = f"{what.story}: {what.title}" if what.story else "the prompt"
            attempt = f", attempt {what.attempt}" if what.attempt > 1 else ""
            yield f"[{event.iteration}] {story}{attempt} ({what.prompt_tokens:,} prompt tokens)"
            yield from (f"    left out of the prompt: {part}" for part in what.left_out)
        case events.AgentStep() as what:
            mark = "ok " if what.ok is True else "!! " if what.ok is False else ""
            yield f"    {mark}{what.kind}: {what.summary}"
        case events.StatusAsked():
            yield "    asked for the status block that its answer lacks"
        case events.IterationFinished() as what:
            yield from _iteration_finished(what)
        case events.StoryPassed() as what:
            yield f"  ✓ {what.story} passed ({what.grade}): {'; '.join(what.reasons)}"
        case events.StorySetAside() as what:
            yield f"  ⊘ {what.story} is set aside: {what.reason}"
        case events.StoryBlocked() as what:
            yield f"  ? {what.story} waits for you: {what.reason}"
        case events.StoryReopened() as what:
            yield f"  ↻ {what.story} is open again: {what.reason}"
        case events.CircuitChanged() as what:
            yield f"  circuit {what.before} → {what.after}: {what.reason}"
        case events.RequestAnswered() as what:
            yield f"  {what.kind}: {what.answer}"
        case events.Waiting(kind="pause", until=str(), reason=reason, seconds=s) if s >= 1:
            yield f"  on hold: {reason}"
        case events.Waiting(until=str(until), reason=reason, seconds=s) if s >= 1:
            yield f"  waiting {format_duration(s)} until {until}: {reason}"
        case events.RunFinished() as what:
            yield from _run_finished(what)


def _run_started(run: str, what: events.RunStarted) -> Iterator[str]:
    verb = "goes on" if what.continued else "starts"
    stories = f", {what.passed} of {what.stories} stories passed" if what.stories else ""
    agent = f"{what.agent}{' ' + what.model if what.model else ''}"
    where = f" on branch {what.branch}" if what.branch else ""
    yield f"run {run} {verb}: {what.project}{where}, agent {agent}{stories}"
    limits = []
    if what.max_iterations:
        limits.append(counted(what.max_iterations, "iteration"))
    if what.max_cost_usd:
        limits.append(money(what.max_cost_usd))
    if what.max_time_s:
        limits.append(format_duration(what.max_time_s))
    yield f"limits: {', '.join(limits) or 'none'}; circuit {what.circuit}"


def _iteration_finished(what: events.IterationFinished) -> Iterator[str]:
    kept, analysis = what.iteration, what.iteration.analysis
    took = short_duration(kept.end.duration_s)
    spent = spent_words(what.spent.cost_usd, what.spent.unpriced)
    files, commits = kept.changed.count, kept.evidence.commits or 0
    work = f"{counted(files, 'file')} changed, {counted(commits, 'commit')}"
    yield f"    {analysis.outcome} in {took}, {spent}, {work if files or commits else _NOTHING}"
    if kept.why_it_ended and analysis.outcome is not Outcome.COMPLETED:
        yield f"    {kept.why_it_ended}"
    if checks := what.checks:
        yield "    checks: " + ", ".join(f"{name} {status}" for name, status in checks.items())
    if analysis.story_claimed and not kept.verdict.passed:
        yield f"    it says done, but {'; '.join(kept.verdict.reasons)}"
    stuck = (pattern.detail for pattern in analysis.stuck)
    for words in (*what.all_warnings, *stuck, *kept.findings):
        yield f"    ! {words}"


_NOTHING = "nothing changed"


def _run_finished(what: events.RunFinished) -> Iterator[str]:
    stories = f"{what.passed} of {what.total} stories passed, " if what.total else ""
    yield (
        f"run ended: {what.decision}. {stories}{counted(what.iterations, 'iteration')},"
        f" {spent_words(what.cost_usd, what.unpriced)}, {what.tokens:,} tokens,"
        f" {format_duration(what.duration_s)}"
    )
    yield from (f"  {reason}" for reason in what.reasons)
    if what.decision is not ExitDecision.BLOCKED:  # then they are the reasons
        yield from (f"  ? {words}" for words in what.waiting)
