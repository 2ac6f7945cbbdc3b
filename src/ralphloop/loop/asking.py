"""Asking instead of guessing: an answer without a status block is put back to its conversation.

Once for each start, without tools where the agent can be started so, for two minutes at most.  The
asking is written ahead, so that nobody asks twice; what is measured is measured after it.  It is no
iteration, but a start of the agent for the hour, and its money is the start's.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from ralphloop.agents.base import Finished
from ralphloop.core.events import StatusAsked
from ralphloop.core.iteration import Result
from ralphloop.core.limits import HOUR, money_left
from ralphloop.core.model import Evidence, Outcome, Response
from ralphloop.core.spending import cost_of
from ralphloop.core.step import Need, needs
from ralphloop.errors import RalphError
from ralphloop.loop.ahead import write_end
from ralphloop.loop.iteration import Begun, request_for, result_of, run_request
from ralphloop.loop.runner import Runner

_WALL_S = 120.0


async def asked_for_status(runner: Runner, begun: Begun, finished: Finished) -> Finished:
    """The same, with what came where its missing block had to be asked for."""
    result = msgspec.structs.replace(
        result_of(finished, begun), can_be_asked=_can_be_asked(runner, begun, finished)
    )
    known = Evidence(used=runner.totals())
    if needs(runner.session.state, begun.start, result, known, runner.policy) is not Need.STATUS:
        return finished
    write_end(runner, begun, finished, asking=True)
    now = runner.clock()
    runner.journal.count_asking(now=now, since=now - HOUR)
    runner.bus.emit(StatusAsked(), begun.number)
    return await _asked(runner, begun, finished, result)


def asking_transcript(begun: Begun) -> Path:
    """Where what it says when it is asked is written down."""
    return begun.transcript.with_suffix(".status.log")


def _can_be_asked(runner: Runner, begun: Begun, finished: Finished) -> bool:
    if runner.stop.requested or not begun.member.agent.resumes or not finished.response.session_id:
        return False
    most = runner.config.limits.calls_per_hour
    return not most or runner.journal.starts_since(runner.clock() - HOUR) < most


async def _asked(runner: Runner, begun: Begun, finished: Finished, result: Result) -> Finished:
    from ralphloop.agents.process import Rules
    from ralphloop.prompts.build import ASK_FOR_STATUS

    left = money_left(runner.limits, runner.totals())
    if left is not None:
        left = max(0.0, left - cost_of(result.response, begun.state))
    request = msgspec.structs.replace(
        request_for(runner, begun, budget_usd=left),
        prompt=ASK_FOR_STATUS,
        session_id=None,
        resume=finished.response.session_id,
        max_turns=1,
        tools=False,
    )
    try:
        again = await run_request(
            runner, begun, request, Rules(wall_s=_WALL_S), asking_transcript(begun)
        )
    except (RalphError, OSError) as error:  # it could not be asked: its words have to do
        failed = Response(reader="", outcome=Outcome.STARTUP_ERROR, reason=str(error))
        return msgspec.structs.replace(finished, asked=failed)
    took = finished.end.duration_s + again.end.duration_s
    return msgspec.structs.replace(
        finished,
        asked=again.response,
        end=msgspec.structs.replace(finished.end, duration_s=took),
        leftovers=(*finished.leftovers, *again.leftovers),
    )
