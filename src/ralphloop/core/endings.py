"""How a run can end, in words: what there is to say, what to do about it, with which command."""

from __future__ import annotations

import msgspec

from ralphloop.core.model import ExitDecision

_ON = "ralph run --continue"


class Ending(msgspec.Struct, frozen=True):
    words: str  # the end of a sentence that begins with the project
    advice: str
    command: str

    @property
    def next_step(self) -> str:
        return f"{self.advice} {self.command}"


ENDINGS: dict[str, Ending] = {
    ExitDecision.PROJECT_COMPLETE: Ending("all done", "Look at it:", "git log --stat"),
    ExitDecision.CIRCUIT_OPEN: Ending(
        "the circuit is open", "Look at why the circuit opened, then:", f"{_ON} --reset-circuit"
    ),
    ExitDecision.TEST_SATURATION: Ending(
        "only tests were written", "Look at the story, then:", _ON
    ),
    ExitDecision.BLOCKED: Ending(
        "waits for you", "Give it what it asks for (ralph stories), then:", _ON
    ),
    ExitDecision.MAX_ITERATIONS: Ending(
        "out of iterations", "To go on with more of them:", f"{_ON} --max-iterations N"
    ),
    ExitDecision.BUDGET_EXHAUSTED: Ending(
        "out of budget", "To go on with more (or --max-time):", f"{_ON} --max-cost X"
    ),
    ExitDecision.USAGE_LIMIT: Ending(
        "stopped by the usage limit", "Once the usage limit is lifted:", _ON
    ),
    ExitDecision.NO_RUNNABLE_STORY: Ending(
        "nothing left that can run", "See ralph stories; a new run tries again:", "ralph run"
    ),
    ExitDecision.ERROR: Ending(
        "ended by an error", "Find out what is wrong (ralph doctor), then:", _ON
    ),
    ExitDecision.INTERRUPTED: Ending("interrupted", "To go on:", _ON),
}
