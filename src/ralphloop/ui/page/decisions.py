"""What a person decides on the page, as values; the command says how it is done.

A decision may take minutes, because sending a story back runs the checks without it.  So it is a
*job*: whoever asked waits a moment for its end, and else looks again until there is one.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from enum import StrEnum
from typing import NamedTuple

from ralphloop.errors import ExitCode, RalphError

_PATIENCE_S = 8.0
_MOST_JOBS = 20


class PageDecisionKind(StrEnum):
    ACCEPT = "accept"
    SEND_BACK = "send_back"
    UNDO = "undo"
    TAKE_PROPOSAL = "take_proposal"
    DROP_PROPOSAL = "drop_proposal"


class PageDecision(NamedTuple):
    kind: PageDecisionKind
    what: str  # the story, or the proposal
    text: str = ""  # why it is sent back, or what will be seen
    choice: str = ""  # what becomes of what stands on it


class DecidedWay(NamedTuple):
    """One way out where a decision cannot be carried out alone."""

    choice: str
    label: str


class NeedsChoice(RalphError):
    """Something stands on a story, and the person has to say what becomes of it."""

    exit_code = ExitCode.BLOCKED

    def __init__(self, message: str, ways: tuple[DecidedWay, ...]) -> None:
        super().__init__(message, "Say what is to become of it.")
        self.ways = ways


CarryOut = Callable[[PageDecision], str]  # what was done, in words


class Job:
    """A decision on its way."""

    def __init__(self, decision: PageDecision, work: "asyncio.Future[str]") -> None:
        self.decision = decision
        self._work = work

    @property
    def is_over(self) -> bool:
        return self._work.done()

    @property
    def words(self) -> str:
        """What was done; raises why it was not."""
        return self._work.result()

    async def wait(self) -> None:
        """Until it is over, or a moment has passed."""
        await asyncio.wait([self._work], timeout=_PATIENCE_S)


class Jobs:
    """Decisions that were not told yet, by what they are about."""

    def __init__(self, carry_out: CarryOut, worker: Executor) -> None:
        self._carry_out = carry_out
        self._worker = worker
        self._known: dict[str, Job] = {}

    def begin(self, decision: PageDecision) -> Job:
        """Carry it out, or go on with the one that is on its way for the same thing."""
        known = self._known.get(decision.what)
        if known is not None and not known.is_over:
            return known
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._worker, self._carry_out, decision)
        work.add_done_callback(_look_at_it)
        self._known.pop(decision.what, None)
        self._known[decision.what] = Job(decision, work)
        while len(self._known) > _MOST_JOBS:
            del self._known[next(iter(self._known))]
        return self._known[decision.what]

    def of(self, what: str) -> Job | None:
        return self._known.get(what)

    def told(self, job: Job) -> None:
        """Somebody heard how it ended."""
        if self._known.get(job.decision.what) is job:
            del self._known[job.decision.what]


def _look_at_it(work: "asyncio.Future[str]") -> None:
    """Nobody may come back for an error; asyncio would print it then."""
    if not work.cancelled():
        work.exception()
