"""One stream of events, from one place: journal, console, log and `--json` all see the same."""

from __future__ import annotations

from collections.abc import Callable

from ralphloop.core.events import Event, LoopEvent
from ralphloop.journal.store import Journal

Sink = Callable[[LoopEvent], None]  # whoever wants to see events; it must not raise


class Bus:
    """Hands every event to the journal and to all sinks."""

    def __init__(
        self, run: str, clock: Callable[[], float], journal: Journal | None, *sinks: Sink
    ) -> None:
        self._run = run
        self._clock = clock
        self._journal = journal
        self._sinks = sinks

    def made(self, what: Event, iteration: int | None = None) -> LoopEvent:
        """An event of now, for a caller that writes it with something else."""
        return LoopEvent(run=self._run, at=self._clock(), what=what, iteration=iteration)

    def emit(self, what: Event, iteration: int | None = None) -> None:
        """Tell everybody."""
        event = self.made(what, iteration)
        if self._journal is not None:
            self._journal.append_events([event])
        self.tell(event)

    def tell(self, event: LoopEvent) -> None:
        """Tell everybody but the journal, which has it."""
        for sink in self._sinks:
            sink(event)
