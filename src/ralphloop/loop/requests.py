"""What a person asks of a run while it goes on; each request is answered in the journal."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from ralphloop.core.events import RequestAnswered
from ralphloop.core.interventions import Answered, AnyIntervention, CircuitReset, StoryMoved
from ralphloop.core.policy import named
from ralphloop.core.run_state import Session
from ralphloop.core.story import Story
from ralphloop.core.story_state import MAX_ANSWER_CHARS, Standing
from ralphloop.journal.records import BY, Request
from ralphloop.loop.runner import Runner
from ralphloop.text.durations import format_duration, parse_duration
from ralphloop.text.plain import clean, counted, one_line

_SAME_START_S = 2.0  # two processes may round the time of boot differently
MOST_DOLLARS = 1e6
MOST_TOKENS = 10**12
MOST_ITERATIONS = 1_000_000


def handle_requests(runner: Runner) -> None:
    """Answer everything that was asked since the last look."""
    for request in runner.journal.pending_requests(runner.run):
        refused = False
        by_agent = _is_agents(runner, request.payload)
        try:
            answer = _answered(runner, request, by_agent=by_agent)
        except Refused as error:
            answer, refused = str(error), True
        runner.journal.answer_request(request.id, answer, now=runner.clock(), refused=refused)
        told = RequestAnswered(
            kind=request.kind, request=request.id, answer=answer, by_agent=by_agent
        )
        moved = named(runner.limits) if request.kind == "budget" else {}
        runner.emit(msgspec.structs.replace(told, **moved))


class Steered(Protocol):
    """A run that a person can change: one that goes on, or the last one while none does."""

    session: Session

    def clock(self) -> float: ...
    def intervene(self, change: AnyIntervention) -> None: ...
    def story(self, name: str) -> Story | None: ...
    def add_note(self, text: str) -> None: ...
    def raise_budget(self, **more: float) -> None: ...


class Refused(Exception):
    """Why nothing is done about a request."""


def pause(runner: Runner, reason: str) -> None:
    """Start no agent until a person resumes."""
    runner.change_desk(msgspec.structs.replace(runner.session.desk, paused=reason))


def _is_agents(runner: Runner, payload: dict[str, Any]) -> bool:
    """Unsigned (the commands sign what a person asks), or of a living process below the agent."""
    from ralphloop.proc.process_table import started_at  # few turns of a session are asked anything
    from ralphloop.proc.tree import is_inside

    try:
        pid, began = payload[BY]
        is_there = abs((started_at(int(pid)) or 0.0) - float(began)) <= _SAME_START_S
    except (KeyError, TypeError, ValueError, OverflowError):
        return True
    return is_there and is_inside(runner.run, os.getpid(), int(pid))


def _answered(runner: Runner, request: Request, *, by_agent: bool) -> str:
    """Do what was asked, and say so; raises where nothing is done about it."""
    if by_agent:
        raise Refused("refused, because the agent itself asked for it")
    match request.kind:
        case "stop":
            runner.stop.request("asked to stop")
            return "stopping"
        case "pause":
            pause(runner, "paused by a person")
            return "pausing after this iteration"
        case "resume":
            if not runner.session.desk.paused:
                raise Refused("it was not paused")
            pause(runner, "")
            return "going on"
        case "reset_circuit":
            runner.intervene(CircuitReset(at=runner.clock()))
            return "the circuit is CLOSED"
    return wished(runner, request.kind, request.payload)


def wished(run: Steered, kind: str, payload: Mapping[str, object]) -> str:
    """What can be asked whether a run goes on or not; raises where nothing is done about it."""
    match kind:
        case "skip" | "set_aside" | "retry" | "answer":
            return _move_story(run, kind, payload)
        case "note":
            if not (text := one_line(str(payload.get("text", "")), 1_000)):
                raise Refused("the note was empty")
            run.add_note(text)
            return "it goes into the next prompt"
        case "budget":
            return _raise_budget(run, payload)
    raise Refused(f"unknown request {kind!r}")


def _move_story(run: Steered, kind: str, payload: Mapping[str, object]) -> str:
    story = str(payload.get("story", ""))
    if run.story(story) is None:
        raise Refused(f"there is no story {one_line(story, 60)!r}")
    if run.session.story(story).standing is Standing.PASSED:
        raise Refused(f"{story} has passed already")
    if kind == "answer":
        if not (text := clean(str(payload.get("text", ""))).strip()[:MAX_ANSWER_CHARS]):
            raise Refused("the answer was empty")
        run.intervene(Answered(story=story, text=text, at=run.clock()))
        return f"{story} is open again, and its next prompt has your answer"
    aside = "" if kind == "retry" else "set aside by a person"
    run.intervene(StoryMoved(story=story, aside=aside))
    return f"{story} is {'set aside' if aside else 'open again'}"


def _raise_budget(run: Steered, payload: Mapping[str, Any]) -> str:
    try:
        dollars = float(payload.get("cost_usd") or 0)
        tokens = int(payload.get("tokens") or 0)
        seconds = parse_duration(payload.get("time") or 0)
        iterations = int(payload.get("iterations") or 0)
    except (TypeError, ValueError) as error:
        raise Refused(f"not a budget: {error}") from None
    counts = ((dollars, MOST_DOLLARS), (tokens, MOST_TOKENS), (iterations, MOST_ITERATIONS))
    if not all(0 <= more <= most for more, most in counts):
        raise Refused("not a budget: it can only be raised, and not without end")
    run.raise_budget(cost_usd=dollars, tokens=tokens, time_s=seconds, iterations=iterations)
    raised = (
        f"${dollars:.2f}" if dollars else "",
        f"{tokens:,} tokens" if tokens else "",
        format_duration(seconds) if seconds else "",
        counted(iterations, "iteration") if iterations else "",
    )
    return f"raised by {', '.join(filter(None, raised)) or 'nothing'}"
