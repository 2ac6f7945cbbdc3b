"""What a person asks of a run while it goes on; each request is answered in the journal."""

import os
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from ralphloop.core.events import RequestAnswered
from ralphloop.core.interventions import Answered, AnyIntervention, CircuitReset, StoryMoved
from ralphloop.core.model import Story
from ralphloop.core.policy import ExtraBudget, named
from ralphloop.core.run_state import MAX_ANSWER_CHARS, Session, Standing
from ralphloop.journal.records import Wish
from ralphloop.loop.run import Run
from ralphloop.loop.workspace import Workspace
from ralphloop.text.durations import format_duration
from ralphloop.text.plain import clean, counted, one_line

BY_A_PERSON = "paused by a person"
_SAME_START_S = 2.0  # two processes may round the time of boot differently
_MOST = (1e6, 10**12, 366 * 86_400.0, 1_000_000)  # dollars, tokens, seconds, iterations


def handle_requests(run: Run, workspace: Workspace) -> None:
    for request in run.journal.pending_requests(run.id):
        by_agent = _is_agents(run, request.payload)
        refused = by_agent
        answer = "refused, because the agent itself asked for it"
        try:
            if not by_agent:
                answer = _answer(run, workspace, request.kind, request.payload)
        except Refused as error:
            answer = str(error)
            refused = True
        run.journal.answer_request(request.id, answer, now=run.clock(), refused=refused)
        told = RequestAnswered(
            kind=request.kind, request=request.id, answer=answer, by_agent=by_agent
        )
        moved = named(run.limits) if request.kind == "budget" else {}
        run.emit(msgspec.structs.replace(told, **moved))


class Refused(Exception):
    """Why nothing is done about a request."""


def pause(run: Run, reason: str) -> None:
    run.change_overrides(msgspec.structs.replace(run.session.overrides, paused=reason))


def _is_agents(run: Run, wish: Wish) -> bool:
    """Unsigned (the commands sign what a person asks), or of a living process below the agent."""
    from ralphloop.proc.process_table import started_at  # few turns of a session are asked anything
    from ralphloop.proc.tree import is_inside

    if wish.by is None:
        return True
    pid, began = wish.by
    try:
        is_there = abs((started_at(pid) or 0.0) - began) <= _SAME_START_S
    except OverflowError:  # no such number is a process
        return True
    return is_there and is_inside(run.id, os.getpid(), pid)


def _answer(run: Run, workspace: Workspace, kind: str, wish: Wish) -> str:
    """Do what was asked, and say so; raises where nothing is done about it."""
    match kind:
        case "stop":
            run.stop.request("asked to stop")
            return "stopping"
        case "pause":
            pause(run, BY_A_PERSON)
            return "pausing after this iteration"
        case "resume":
            if not run.session.overrides.paused:
                raise Refused("it was not paused")
            pause(run, "")
            return "going on"
        case "reset_circuit":
            run.intervene(CircuitReset(at=run.clock()))
            return "the circuit is CLOSED"
    granted = grant_wish(run.session, workspace.story, kind, wish, run.clock())
    change = granted.change
    if isinstance(change, str):
        run.add_note(change, wish.story)
    elif isinstance(change, ExtraBudget):
        run.change_overrides(msgspec.structs.replace(run.session.overrides, extra=change))
    else:
        run.intervene(change)
    return granted.answer


Find = Callable[[str], Story | None]


class GrantedWish(NamedTuple):
    """What changes, and what the person is told."""

    change: AnyIntervention | ExtraBudget | str  # a note by its text
    answer: str


def grant_wish(session: Session, find: Find, kind: str, wish: Wish, now: float) -> GrantedWish:
    """What can be asked whether a run goes on or not; raises where nothing is done about it."""
    match kind:
        case _ if wish.problem:
            raise Refused(f"not a {kind}: {wish.problem}")
        case "skip" | "set_aside" | "retry" | "answer":
            return _story_moved(session, find, kind, wish, now)
        case "note":
            if not (text := one_line(wish.text, 1_000)):
                raise Refused("the note was empty")
            if wish.story and find(wish.story) is None:
                raise Refused(f"there is no story {one_line(wish.story, 60)!r}")
            whose = f" of {wish.story}" if wish.story else ""
            return GrantedWish(text, f"it goes into the next prompt{whose}")
        case "budget":
            return _budget_raised(session.overrides.extra, wish)
    raise Refused(f"unknown request {kind!r}")


def _story_moved(session: Session, find: Find, kind: str, wish: Wish, now: float) -> GrantedWish:
    story = wish.story
    if find(story) is None:
        raise Refused(f"there is no story {one_line(story, 60)!r}")
    if session.story(story).standing is Standing.PASSED:
        raise Refused(f"{story} has passed already")
    if kind == "answer":
        if not (text := clean(wish.text).strip()[:MAX_ANSWER_CHARS]):
            raise Refused("the answer was empty")
        said = f"{story} is open again, and its next prompt has your answer"
        return GrantedWish(Answered(story=story, text=text, at=now, half_opens=True), said)
    aside = "" if kind == "retry" else "set aside by a person"
    moved = StoryMoved(story=story, aside=aside)
    stands = "set aside" if aside else "open again"
    return GrantedWish(moved, f"{story} is {stands}")


def _budget_raised(extra: ExtraBudget, more: Wish) -> GrantedWish:
    dollars = more.cost_usd
    tokens = more.tokens
    seconds = more.time
    iterations = more.iterations
    wanted = (dollars, tokens, seconds, iterations)
    if not all(0 <= one <= most for one, most in zip(wanted, _MOST, strict=True)):
        raise Refused("not a budget: it can only be raised, and not without end")
    words = (
        f"${dollars:.2f}" if dollars else "",
        f"{tokens:,} tokens" if tokens else "",
        format_duration(seconds) if seconds else "",
        counted(iterations, "iteration") if iterations else "",
    )
    raised = extra.raised_by(cost_usd=dollars, tokens=tokens, time_s=seconds, iterations=iterations)
    said = ", ".join(filter(None, words)) or "nothing"
    return GrantedWish(raised, f"raised by {said}")
