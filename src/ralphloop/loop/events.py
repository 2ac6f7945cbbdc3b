"""One stream of events, from one place: journal, console, log and `--json` all see the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ralphloop.core.model import Value
from ralphloop.journal.records import NewEvent
from ralphloop.journal.store import Journal
from ralphloop.text.durations import iso

RUN_STARTED = "run_started"
PREFLIGHT = "preflight"
ITERATION_STARTED = "iteration_started"
AGENT_EVENT = "agent_event"
STATUS_ASKED = "status_asked"  # its answer had no status block
ITERATION_FINISHED = "iteration_finished"
STORY_PASSED = "story_passed"
STORY_SET_ASIDE = "story_set_aside"
STORY_BLOCKED = "story_blocked"  # it waits for a person
STORY_REOPENED = "story_reopened"  # what passed its checks could not be committed
CIRCUIT_CHANGED = "circuit_changed"
WAITING = "waiting"
REQUEST_ANSWERED = "request_answered"
RUN_FINISHED = "run_finished"


class LoopEvent(Value, kw_only=True):
    """Something that happened in a run."""

    type: str
    at: float
    run: str
    iteration: int | None = None
    data: dict[str, Any]

    def as_line(self) -> dict[str, Any]:
        """The published shape of `ralph run --json`."""
        head = {"v": 1, "type": self.type, "ts": iso(self.at), "run": self.run}
        return {**head, "iteration": self.iteration, **self.data}


class Sink(Protocol):
    """Whoever wants to see events; it must not raise."""

    def __call__(self, event: LoopEvent, /) -> None: ...


class Bus:
    """Hands every event to the journal and to all sinks."""

    def __init__(
        self, run: str, clock: Callable[[], float], journal: Journal | None, *sinks: Sink
    ) -> None:
        self._run = run
        self._clock = clock
        self._journal = journal
        self._sinks = sinks

    def made(self, type_: str, iteration: int | None = None, /, **data: Any) -> LoopEvent:
        """An event of now, for a caller that writes it with something else."""
        return LoopEvent(
            type=type_, at=self._clock(), run=self._run, iteration=iteration, data=data
        )

    def emit(self, type_: str, iteration: int | None = None, /, **data: Any) -> None:
        """Tell everybody."""
        event = self.made(type_, iteration, **data)
        if self._journal is not None:
            self._journal.append_events([as_record(event)])
        self.tell(event)

    def tell(self, event: LoopEvent) -> None:
        """Tell everybody but the journal, which has it."""
        for sink in self._sinks:
            sink(event)


def as_record(event: LoopEvent) -> NewEvent:
    """The event as the journal keeps it."""
    return NewEvent(
        run=event.run, at=event.at, type=event.type, iteration=event.iteration, data=event.data
    )
