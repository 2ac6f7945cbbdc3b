"""Waiting is a decision, written down before it begins, so that a restart goes on waiting.

It is measured on the wall clock in short steps, so that suspend and clock jumps end it in time.
"""

from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from itertools import chain

from ralphloop.core.accounts import Party
from ralphloop.core.model import Decision, ExitDecision, Outcome
from ralphloop.core.policy import HOUR, backoff, reached, time_left
from ralphloop.core.run_state import AGENT_GONE
from ralphloop.core.totals import reserve_words, too_full
from ralphloop.loop.judging import Judgement
from ralphloop.loop.prepare import at_work, back_at, first_back, on_accounts
from ralphloop.loop.requests import BY_A_PERSON, handle_requests
from ralphloop.loop.run import Run
from ralphloop.loop.workspace import Workspace
from ralphloop.text.durations import clock_time, format_duration
from ralphloop.text.plain import counted, some

_NAP_S = 1.0
_HEARTBEAT_EVERY = 30
_LOOK_AGAIN_S = 5.0
_MOST_JITTER_S = 2.0


async def wait_if_needed(run: Run, workspace: Workspace) -> Decision | None:
    """Sit out what has to be sat out; a decision where waiting makes no sense."""
    pending = run.journal.open_wait(run.id)
    decision = None
    # The overrides know if a pause still holds, and somebody else may work by now.
    is_needless = pending is not None and (
        pending.kind == "pause" or (pending.kind == "quota" and all_away(run) is None)
    )
    if is_needless:
        run.journal.end_wait(run.id, now=run.clock())
    elif pending is not None:
        decision = await _wait(run, workspace, pending.kind, pending.reason, pending.until)
    # Hold while a person, or the state of the machine, says so.
    while decision is None and (paused := run.session.overrides.paused):
        until = run.clock() + HOUR
        needs_you = paused != BY_A_PERSON
        decision = await _wait(run, workspace, "pause", paused, until, needs_you=needs_you)
    # No more than so many starts an hour.
    if decision is None and (free_at := run.free_at()) is not None:
        reason = f"{counted(run.config.limits.calls_per_hour, 'start')} in the last hour"
        decision = await _wait(run, workspace, "calls", reason, free_at)
    return decision


async def wait_after(run: Run, workspace: Workspace, judged: Judgement) -> Decision | None:
    """What an ending that was not the agent's asks for before the next start."""
    now = run.clock()
    outages = run.session.state.outages
    outcome = judged.step.analysis.outcome
    if outcome in (Outcome.USAGE_LIMIT, Outcome.FATAL):
        if (until := all_away(run)) is None:
            return None  # another agent takes over
        at = judged.result.response.rate_limit.resets_at
        named = f", resets {clock_time(at, now)}" if at else ", reset time unknown"
        account = judged.begun.worker.account
        whose = f" of {Party(judged.begun.worker.name, account).name}" if account else ""
        return await wait_for_agent(run, workspace, until, f"usage limit{whose} reached{named}")
    delay = backoff(outages, run.config.limits.backoff)
    row = f", {outages} in a row" if outages > 1 else ""
    reason = f"the start failed ({outcome.words}{row})"
    if crash := judged.result.response.crash:
        reason = f"the agent crashed{row}: {crash}"
    return await _wait(run, workspace, "outage", reason, now + delay)


def all_away(run: Run) -> float | None:
    """When the first agent is back, where none may be started now."""
    workers = run.workers
    available_at = run.session.state.agent_available_at
    if at_work(workers, available_at, run.clock()) is not None:
        return None
    return first_back(workers, available_at)


def slots_away(run: Run) -> int:
    """How many starts at once other machines could make, had their accounts not to wait."""
    now = run.clock()
    available_at = run.session.state.agent_available_at
    waits = (
        place.slots
        for place in run.setup.places.values()
        if at_work(on_accounts(run.setup.workers, [place]), available_at, now) is None
    )
    return sum(waits)


async def wait_for_agent(
    run: Run, workspace: Workspace, until: float, reason: str = ""
) -> Decision | None:
    """Wait for the first agent to be back.

    It ends before that where a machine has come whose account need not wait.
    """
    import random

    reason = reason or _why_all_wait(run)
    # A little more, so that many runs that wait for the same reset do not start as one.
    more = random.uniform(0, _MOST_JITTER_S)  # noqa: S311 - spreads starts, protects nothing
    parties = frozenset(one.clocks.of_limit for one in run.workers)
    has_come = partial(_somebody_else_may_work, run, parties)
    return await _wait(run, workspace, "quota", reason, until + more, is_over=has_come)


def _why_all_wait(run: Run) -> str:
    """Why no agent may be started now, where that was found out before: a reserve, or a limit."""
    now = run.clock()
    reserve = run.limits.reserve
    known = run.session.state.usage_windows
    full = [too_full(known, reserve, agent=one.clocks.of_limit, at=now) for one in run.workers]
    if words := reserve_words(tuple(dict.fromkeys(chain(*full))), reserve, now):
        return words
    available_at = run.session.state.agent_available_at
    able = (one for one in run.workers if back_at(one, available_at) != AGENT_GONE)
    waiting = dict.fromkeys(one.clocks.of_limit for one in able)
    return f"the usage limit of {some(tuple(waiting))} is not lifted yet"


def _somebody_else_may_work(run: Run, parties: Collection[str]) -> bool:
    """Whether an agent need not wait whose account is not among these."""
    others = [one for one in run.workers if one.clocks.of_limit not in parties]
    return at_work(others, run.session.state.agent_available_at, run.clock()) is not None


async def hold(run: Run, workspace: Workspace, reason: str) -> Decision | None:
    """Wait a little for something that is wrong to be put right, and say what it is."""
    left = time_left(run.limits, run.totals(), run.clock())
    pause = min(_LOOK_AGAIN_S, left.seconds) if left else _LOOK_AGAIN_S
    until = run.clock() + pause
    said = run.held_for
    run.held_for = reason
    return await _wait(run, workspace, "pause", reason, until, aloud=reason != said, needs_you=True)


async def _wait(
    run: Run,
    workspace: Workspace,
    kind: str,
    reason: str,
    until: float,
    *,
    aloud: bool = True,
    needs_you: bool = False,
    is_over: Callable[[], bool] | None = None,
) -> Decision | None:
    now = run.clock()
    if until <= now:
        run.journal.end_wait(run.id, now=now)
        return None
    if kind != "pause" and (decision := _refuse(run, kind, reason, until - now)):
        return decision
    if kind == "pause" and run.session.overrides.paused:
        is_over = partial(_is_resumed, run)
    with run.waiting(kind, reason, until, aloud=aloud, needs_you=needs_you):
        return await _sleep(run, workspace, until, is_over or _never)


def _refuse(run: Run, kind: str, reason: str, seconds: float) -> Decision | None:
    """A wait nobody wants, or one that outlasts the time there is, ends the run now."""
    word = ExitDecision.USAGE_LIMIT if kind == "quota" else ExitDecision.BUDGET_EXHAUSTED
    if not run.setup.options.wait and kind in ("quota", "calls"):
        return Decision(word=word, reasons=(reason, "--no-wait was given"))
    left = time_left(run.limits, run.totals(), run.clock())
    if left is None or seconds <= left.seconds:
        return None
    words = f"waiting {format_duration(seconds)} would outlast {left.words}"
    return Decision(word=word, reasons=(reason, words), limit=left.limit)


def _is_resumed(run: Run) -> bool:
    return not run.session.overrides.paused


def _never() -> bool:
    return False


async def _sleep(
    run: Run, workspace: Workspace, until: float, is_over: Callable[[], bool]
) -> Decision | None:
    """Sleep in steps; a stop, what makes it needless or a budget that runs out ends it."""
    import asyncio

    beats = 0
    while (left := until - run.clock()) > 0 and not run.stop.requested:
        with suppress(TimeoutError):  # the step is over
            await asyncio.wait_for(run.stop.wait(), min(_NAP_S, left))
        handle_requests(run, workspace)
        if is_over():
            break
        beats += 1
        if beats % _HEARTBEAT_EVERY:
            continue
        if over := reached(run.limits, run.totals(), run.clock()):
            return over
    return run.interrupted if run.stop.requested else None
