"""One start of an agent, over and done with, as a value."""

from __future__ import annotations

from enum import StrEnum

from ralphloop.core.model import ProcessEnd, Response, Value


class Cause(StrEnum):
    """Why the supervisor stopped an agent."""

    NONE = "none"  # it ended by itself
    WALL_CLOCK = "wall_clock"
    STALLED = "stalled"
    REQUESTED = "requested"
    RESULT = "result"  # it had said its result and did not go
    FATAL = "fatal"


class Finished(Value, kw_only=True):
    """How it ended, what it said, and what it left behind."""

    end: ProcessEnd
    response: Response
    cause: Cause = Cause.NONE
    stopped_because: str = ""  # in words; empty where it ended by itself
    leftovers: tuple[str, ...] = ()  # what had to be stopped after it was done, by name
    stderr_tail: str = ""
    asked: Response | None = None  # what came when its missing status block was asked for
    output_bytes: int = 0
