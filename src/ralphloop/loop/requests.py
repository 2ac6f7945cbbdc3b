"""What a person asks of a run while it goes on; each request is answered in the journal."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from ralphloop.core.events import RequestAnswered
from ralphloop.core.interventions import CircuitReset, StoryMoved
from ralphloop.core.policy import named
from ralphloop.core.run_state import Desk
from ralphloop.core.story_state import Standing
from ralphloop.journal.records import BY, Request
from ralphloop.journal.session import save_part
from ralphloop.loop.runner import Runner
from ralphloop.text.durations import format_duration, parse_duration
from ralphloop.text.plain import counted, one_line

_MAX_NOTES = 10
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
        except _Refused as error:
            answer, refused = str(error), True
        runner.journal.answer_request(request.id, answer, now=runner.clock(), refused=refused)
        told = RequestAnswered(
            kind=request.kind, request=request.id, answer=answer, by_agent=by_agent
        )
        moved = named(runner.limits) if request.kind == "budget" else {}
        runner.emit(msgspec.structs.replace(told, **moved))


def pause(runner: Runner, reason: str) -> None:
    """Start no agent until a person resumes."""
    _change_desk(runner, paused=reason)


def add_note(runner: Runner, text: str) -> None:
    """Something for the prompts to come, once."""
    if text not in (notes := runner.session.desk.notes):
        _change_desk(runner, notes=(*notes, text)[-_MAX_NOTES:])


def _change_desk(runner: Runner, **changes: Any) -> None:
    desk: Desk = msgspec.structs.replace(runner.session.desk, **changes)
    runner.session.desk = desk
    save_part(runner.journal, runner.session, runner.session.desk)


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


class _Refused(Exception):
    """Why nothing is done about a request."""


def _answered(runner: Runner, request: Request, *, by_agent: bool) -> str:
    """Do what was asked, and say so; raises where nothing is done about it."""
    if by_agent:
        raise _Refused("refused, because the agent itself asked for it")
    match request.kind:
        case "stop":
            runner.stop.request("asked to stop")
            return "stopping"
        case "pause":
            pause(runner, "paused by a person")
            return "pausing after this iteration"
        case "resume":
            if not runner.session.desk.paused:
                raise _Refused("it was not paused")
            _change_desk(runner, paused="")
            return "going on"
        case "skip" | "set_aside" | "retry":
            return _move_story(runner, request)
        case "reset_circuit":
            runner.intervene(CircuitReset(at=runner.clock()))
            return "the circuit is CLOSED"
        case "note":
            return _note(runner, one_line(str(request.payload.get("text", "")), 1_000))
        case "budget":
            return _raise_budget(runner, request.payload)
    raise _Refused(f"unknown request {request.kind!r}")


def _note(runner: Runner, text: str) -> str:
    if not text:
        raise _Refused("the note was empty")
    add_note(runner, text)
    return "it goes into the next prompt"


def _move_story(runner: Runner, request: Request) -> str:
    story = str(request.payload.get("story", ""))
    aside = "" if request.kind == "retry" else "set aside by a person"
    if runner.story(story) is None:
        raise _Refused(f"there is no story {one_line(story, 60)!r}")
    if runner.session.story(story).standing is Standing.PASSED:
        raise _Refused(f"{story} has passed already")
    runner.intervene(StoryMoved(story=story, aside=aside))
    return f"{story} is {'set aside' if aside else 'open again'}"


def _raise_budget(runner: Runner, payload: dict[str, Any]) -> str:
    extra = runner.session.desk.extra
    try:
        dollars = float(payload.get("cost_usd") or 0)
        tokens = int(payload.get("tokens") or 0)
        seconds = parse_duration(payload.get("time") or 0)
        iterations = int(payload.get("iterations") or 0)
    except (TypeError, ValueError) as error:
        raise _Refused(f"not a budget: {error}") from None
    counts = ((dollars, MOST_DOLLARS), (tokens, MOST_TOKENS), (iterations, MOST_ITERATIONS))
    if not all(0 <= more <= most for more, most in counts):
        raise _Refused("not a budget: it can only be raised, and not without end")
    extra = msgspec.structs.replace(
        extra,
        cost_usd=extra.cost_usd + dollars,
        tokens=extra.tokens + tokens,
        time_s=extra.time_s + seconds,
        iterations=extra.iterations + iterations,
    )
    _change_desk(runner, extra=extra)
    raised = (
        f"${dollars:.2f}" if dollars else "",
        f"{tokens:,} tokens" if tokens else "",
        format_duration(seconds) if seconds else "",
        counted(iterations, "iteration") if iterations else "",
    )
    return f"raised by {', '.join(filter(None, raised)) or 'nothing'}"
