"""The end of an agent, written down before anything is measured or checked.

Checks may take longer than the agent did, and a run that ends among them must not pay twice: its
successor judges from what stands here instead of starting the agent again.
"""

from __future__ import annotations

import msgspec

from ralphloop.agents.base import Finished
from ralphloop.core.iteration import Carried
from ralphloop.core.model import Value
from ralphloop.journal.records import IterationRecord
from ralphloop.loop.iteration import Begun
from ralphloop.loop.runner import Runner


class AgentEnd(Value, kw_only=True):
    """What is known once an agent has ended."""

    n: int
    agent: str
    finished: Finished
    carried: Carried = Carried()
    asking: bool = False  # it is asked for its status block; nobody asks a second time


def write_end(runner: Runner, begun: Begun, finished: Finished, *, asking: bool = False) -> None:
    """Keep how the agent of this iteration ended, until the iteration is finished."""
    end = AgentEnd(
        n=begun.number,
        agent=begun.member.name,
        finished=finished,
        carried=begun.carried,
        asking=asking,
    )
    runner.journal.keep_agent_end(_key(runner.run), end)


def read_end(runner: Runner, cut: IterationRecord) -> AgentEnd | None:
    """How the agent of an unfinished iteration ended; None: it was still at work."""
    try:
        end = msgspec.convert(runner.journal.meta(_key(cut.run)), AgentEnd)
    except msgspec.ValidationError:
        return None  # there is none, or another version wrote it
    return end if end.n == cut.n else None


def _key(run: str) -> str:
    return f"agent_end:{run}"
