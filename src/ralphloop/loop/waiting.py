"""Waiting is a decision, written down before it begins, so that a restart goes on waiting.

It is measured on the wall clock in short steps, so that suspend and clock jumps end it in time.
"""

from contextlib import suppress
from itertools import chain

from ralphloop.core.model import Decision, ExitDecision, Outcome
from ralphloop.core.policy import HOUR, backoff, reached, time_left
from ralphloop.core.totals import reserve_words, too_full
from ralphloop.loop.judging import Judgement
from ralphloop.loop.prepare import GONE, at_work, back_at
from ralphloop.loop.requests import BY_A_PERSON, handle_requests
from ralphloop.loop.runner import Runner
from ralphloop.text.durations import clock_time, format_duration
from ralphloop.text.plain import counted

_STEP_S = 1.0
_HEARTBEAT_EVERY = 30
_LOOK_AGAIN_S = 5.0
_MOST_JITTER_S = 2.0


async def wait_if_needed(runner: Runner) -> Decision | None:
    """Sit out what has to be sat out; a decision where waiting makes no sense."""
    pending = runner.journal.open_wait(runner.run)
    decision = None
    if pending is not None and pending.kind == "pause":
        runner.journal.end_wait(runner.run, now=runner.clock())  # the desk knows if it still holds
    elif pending is not None:
        decision = await _wait(runner, pending.kind, pending.reason, pending.until)
    # Hold while a person, or the state of the machine, says so.
    while decision is None and (paused := runner.session.desk.paused):
        until = runner.clock() + HOUR
        needs_you = paused != BY_A_PERSON
        decision = await _wait(runner, "pause", paused, until, needs_you=needs_you)
    # No more than so many starts an hour.
    if decision is None and (free_at := runner.free_at()) is not None:
        reason = f"{counted(runner.config.limits.calls_per_hour, 'start')} in the last hour"
        decision = await _wait(runner, "calls", reason, free_at)
    return decision


async def wait_after(runner: Runner, judged: Judgement) -> Decision | None:
    """What an ending that was not the agent's asks for before the next start."""
    now, outages = runner.clock(), runner.session.state.outages
    outcome = judged.step.analysis.outcome
    if outcome in (Outcome.USAGE_LIMIT, Outcome.FATAL):
        if (until := all_away(runner)) is None:
            return None  # another agent takes over
        at = judged.result.response.rate_limit.resets_at
        named = f", resets {clock_time(at, now)}" if at else ", reset time unknown"
        return await wait_for_agent(runner, until, f"usage limit reached{named}")
    delay = backoff(outages, runner.config.limits.backoff)
    row = f", {outages} in a row" if outages > 1 else ""
    reason = f"the start came to nothing ({outcome.words}{row})"
    if crash := judged.result.response.crash:
        reason = f"the agent crashed{row}: {crash}"
    return await _wait(runner, "outage", reason, now + delay)


def all_away(runner: Runner) -> float | None:
    """When the first agent is back, where none may be started now."""
    workers, quota = runner.setup.workers, runner.session.quota
    if at_work(workers, quota, runner.clock()) is not None:
        return None
    return min((until for it in workers if (until := back_at(it, quota)) != GONE), default=None)


async def wait_for_agent(runner: Runner, until: float, reason: str = "") -> Decision | None:
    """Wait for the first agent to be back; unless a reason is given, for its reserve."""
    import random

    now, reserve, known = runner.clock(), runner.limits.reserve, runner.session.state.quota
    full = [too_full(known, reserve, agent=one.name, at=now) for one in runner.setup.workers]
    reason = reason or reserve_words(tuple(dict.fromkeys(chain(*full))), reserve, now)
    # A little more, so that many runs that wait for the same reset do not start as one.
    more = random.uniform(0, _MOST_JITTER_S)  # noqa: S311 - spreads starts, protects nothing
    return await _wait(runner, "quota", reason, until + more)


async def hold(runner: Runner, reason: str) -> Decision | None:
    """Wait a little for something that is wrong to be put right, and say what it is."""
    left = time_left(runner.limits, runner.totals(), runner.clock())
    until = runner.clock() + min(_LOOK_AGAIN_S, left[0] if left else _LOOK_AGAIN_S)
    said, runner.held_for = runner.held_for, reason
    return await _wait(runner, "pause", reason, until, aloud=reason != said, needs_you=True)


async def _wait(
    runner: Runner,
    kind: str,
    reason: str,
    until: float,
    *,
    aloud: bool = True,
    needs_you: bool = False,
) -> Decision | None:
    now = runner.clock()
    if until <= now:
        runner.journal.end_wait(runner.run, now=now)
        return None
    if kind != "pause" and (decision := _refuse(runner, kind, reason, until - now)):
        return decision
    runner.settle()
    while_paused = kind == "pause" and bool(runner.session.desk.paused)
    with runner.waiting(kind, reason, until, aloud=aloud, needs_you=needs_you):
        return await _sleep(runner, until, while_paused=while_paused)


def _refuse(runner: Runner, kind: str, reason: str, seconds: float) -> Decision | None:
    """A wait nobody wants, or one that outlasts the time there is, ends the run now."""
    word = ExitDecision.USAGE_LIMIT if kind == "quota" else ExitDecision.BUDGET_EXHAUSTED
    if not runner.setup.options.wait and kind in ("quota", "calls"):
        return Decision(word=word, reasons=(reason, "--no-wait was given"))
    left = time_left(runner.limits, runner.totals(), runner.clock())
    if left is None or seconds <= left[0]:
        return None
    words = f"waiting {format_duration(seconds)} would outlast {left[1]}"
    return Decision(word=word, reasons=(reason, words))


async def _sleep(runner: Runner, until: float, *, while_paused: bool) -> Decision | None:
    """Sleep in steps; a stop, a resumed pause or a budget that runs out ends it, and says so."""
    import asyncio

    beats = 0
    while (left := until - runner.clock()) > 0 and not runner.stop.requested:
        with suppress(TimeoutError):  # the step is over
            await asyncio.wait_for(runner.stop.wait(), min(_STEP_S, left))
        handle_requests(runner)
        if while_paused and not runner.session.desk.paused:
            break
        beats += 1
        if beats % _HEARTBEAT_EVERY:
            continue
        if over := reached(runner.limits, runner.totals(), runner.clock()):
            return over
    return runner.interrupted if runner.stop.requested else None
