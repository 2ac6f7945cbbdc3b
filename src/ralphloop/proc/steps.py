"""Long steps in two faces, and the wish that they end.

Checks and commits take minutes in which a signal, a request or Ctrl+C must be heard, but in a hook,
which serves one turn, there is nothing to hear.  So what both share is a generator:

    results = yield from aside(lambda abandoned: run_checks(…, stop=abandoned))

`beside` does each in a thread while the event loop goes on; `in_turn` needs no event loop, whose
import costs a hook a quarter of its time.  Everything in between runs where the generator is
driven, so the state it works on is never shared between threads.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio

_T = TypeVar("_T")

# A long piece of work; it asks now and then whether anybody still waits for it.
Work = Callable[[Callable[[], bool]], _T]
Steps = Generator[Work[Any], Any, _T]


def aside(work: Work[_T]) -> Steps[_T]:
    """Have a long piece of work done, whichever way; what it raises is raised here."""
    outcome: Callable[[], _T] = yield work
    return outcome()


def short(work: Callable[[], _T]) -> Steps[_T]:
    """Something that takes no time, as steps."""
    yield from ()
    return work()


def in_turn(steps: Steps[_T]) -> _T:
    try:
        work = next(steps)
        while True:
            work = steps.send(partial(work, lambda: False))
    except StopIteration as end:
        result: _T = end.value
        return result


async def beside(steps: Steps[_T]) -> _T:
    """Take the steps, the long ones in a thread, so that everybody else is heard meanwhile."""
    import asyncio
    import threading

    abandoned = threading.Event()
    try:
        work = next(steps)
        while True:
            running = asyncio.ensure_future(asyncio.to_thread(work, abandoned.is_set))
            try:
                await asyncio.wait([running])
            except asyncio.CancelledError:  # the work ends with the task that waits for it
                abandoned.set()
                await asyncio.wait([running])
                raise
            work = steps.send(running.result)
    except StopIteration as end:
        result: _T = end.value
        return result


class StopSignal:
    """A request to stop what runs, at once if asked twice; only who waits needs an event loop."""

    def __init__(self) -> None:
        self.requested = False
        self.reason = ""
        self.at_once = False
        self._event: asyncio.Event | None = None

    def request(self, reason: str = "interrupted") -> None:
        """Stop gently; a second request is immediate."""
        if self.requested:
            self.at_once = True
            return
        self.requested, self.reason = True, reason
        if self._event is not None:
            self._event.set()

    async def wait(self) -> None:
        import asyncio

        if self._event is None:
            self._event = asyncio.Event()
            if self.requested:
                self._event.set()
        await self._event.wait()
