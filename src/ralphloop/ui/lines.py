"""Events as lines of plain words: for logs, pipes and the scrolling part of the console.

Names and words in events come from story files and agents; whatever they hold besides words, such
as terminal control sequences, is taken off here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ralphloop.core.totals import money, spent_words
from ralphloop.text.durations import format_duration
from ralphloop.text.plain import clean, counted

Event = Mapping[str, Any]
_SIMPLE = {
    "status_asked": "    asked for the status block that its answer lacks",
    "story_set_aside": "  ⊘ {story} is set aside: {reason}",
    "story_blocked": "  ? {story} waits for you: {reason}",
    "story_reopened": "  ↻ {story} is open again: {reason}",
    "circuit_changed": "  circuit {before} → {after}: {reason}",
    "request_answered": "  {kind}: {answer}",
}
_QUIET = (
    "story_passed",
    "story_set_aside",
    "story_blocked",
    "story_reopened",
    "circuit_changed",
    "run_finished",
)


def event_lines(event: Event, *, verbosity: int = 0) -> Iterator[str]:
    """What there is to say about an event; nothing for most agent steps unless asked."""
    kind = event["type"]
    if verbosity < 0 and kind not in _QUIET:
        return
    if kind == "agent_event" and verbosity < 1:
        return
    told: Iterable[str] = ()
    if kind in _SIMPLE:
        told = (_SIMPLE[kind].format(**event),)
    elif kind in _TELLERS:
        told = _TELLERS[kind](event)
    yield from (" ".join(clean(line).split("\n")) for line in told)


def short_duration(seconds: float) -> str:
    """A duration with tenths while they still matter."""
    return f"{seconds:.1f}s" if seconds < 10 else format_duration(seconds)


def _run_started(event: Event) -> Iterator[str]:
    verb = "goes on" if event["continued"] else "starts"
    stories = (
        f", {event['passed']} of {event['stories']} stories passed" if event["stories"] else ""
    )
    agent = f"{event['agent']}{' ' + event['model'] if event['model'] else ''}"
    where = f" on branch {event['branch']}" if event["branch"] else ""
    yield f"run {event['run']} {verb}: {event['project']}{where}, agent {agent}{stories}"
    limits = []
    if event["max_iterations"]:
        limits.append(counted(event["max_iterations"], "iteration"))
    if event["max_cost_usd"]:
        limits.append(money(event["max_cost_usd"]))
    if event["max_time_s"]:
        limits.append(format_duration(event["max_time_s"]))
    yield f"limits: {', '.join(limits) or 'none'}; circuit {event['circuit']}"


def _preflight(event: Event) -> Iterator[str]:
    for line in event["said"]:
        yield f"preflight: {line}"


def _iteration_started(event: Event) -> Iterator[str]:
    story = f"{event['story']}: {event['title']}" if event["story"] else "the prompt"
    attempt = f", attempt {event['attempt']}" if event["attempt"] > 1 else ""
    yield f"[{event['iteration']}] {story}{attempt} ({event['prompt_tokens']:,} prompt tokens)"
    for part in event["left_out"]:
        yield f"    left out of the prompt: {part}"


def _agent_event(event: Event) -> Iterator[str]:
    mark = {"True": "ok ", "False": "!! "}.get(str(event.get("ok")), "")
    yield f"    {mark}{event['kind']}: {event['summary']}"


def _iteration_finished(event: Event) -> Iterator[str]:
    took = short_duration(event["duration_s"])
    spent = spent_words(event["cost_usd"], event.get("unpriced", 0))
    yield f"    {event['outcome']} in {took}, {spent}, {_work(event)}"
    if event["outcome_reason"] and event["outcome"] != "completed":
        yield f"    {event['outcome_reason']}"
    if event["checks"]:
        yield "    checks: " + ", ".join(f"{name} {s}" for name, s in event["checks"].items())
    if event["claimed"] and not event["passed"]:
        yield f"    it says done, but {'; '.join(event['verdict'])}"
    for words in (*event["warnings"], *event["stuck"], *event["findings"]):
        yield f"    ! {words}"


def _work(event: Event) -> str:
    files, commits = event["files_changed"], event["commits"]
    if not files and not commits:
        return "nothing changed"
    return f"{counted(files, 'file')} changed, {counted(commits, 'commit')}"


def _story_passed(event: Event) -> Iterator[str]:
    yield f"  ✓ {event['story']} passed ({event['grade']}): {'; '.join(event['reasons'])}"


def _waiting(event: Event) -> Iterator[str]:
    if event["until"] is None or event["seconds"] < 1:
        return
    if event["kind"] == "pause":
        yield f"  on hold: {event['reason']}"
        return
    yield f"  waiting {format_duration(event['seconds'])} until {event['until']}: {event['reason']}"


def _run_finished(event: Event) -> Iterator[str]:
    stories = f"{event['passed']} of {event['total']} stories passed, " if event["total"] else ""
    yield (
        f"run ended: {event['decision']}. {stories}{counted(event['iterations'], 'iteration')},"
        f" {spent_words(event['cost_usd'], event.get('unpriced', 0))}, {event['tokens']:,} tokens,"
        f" {format_duration(event['duration_s'])}"
    )
    for reason in event["reasons"]:
        yield f"  {reason}"
    if event["decision"] != "blocked":  # then they are the reasons
        yield from (f"  ? {words}" for words in event.get("waiting", ()))


_TELLERS = {
    "run_started": _run_started,
    "preflight": _preflight,
    "iteration_started": _iteration_started,
    "agent_event": _agent_event,
    "iteration_finished": _iteration_finished,
    "story_passed": _story_passed,
    "waiting": _waiting,
    "run_finished": _run_finished,
}
