"""Long pieces of work beside the event loop, and the wish that they end.

Checks and commits take minutes in which a signal, a request or Ctrl+C must be heard: they run in a
thread, and everything between them runs in the event loop, so that the state it works on is never
shared between threads.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio

_T = TypeVar("_T")

# A long piece of work; it asks now and then whether anybody still waits for it.
Work = Callable[[Callable[[], bool]], _T]


async def in_thread(work: Work[_T]) -> _T:
    """What the work returns or raises; a caller that is cancelled waits until it has ended."""
    import asyncio
    import threading

    abandoned = threading.Event()
    running = asyncio.ensure_future(asyncio.to_thread(work, abandoned.is_set))
    try:
        await asyncio.wait([running])
    except asyncio.CancelledError:  # the work ends with the task that waits for it
        abandoned.set()
        await asyncio.wait([running])
        raise
    return running.result()


async def side_by_side(works: Iterable[Coroutine[Any, Any, _T]]) -> list[_T]:
    """What pieces of work return, in their order; where one raises, the others are cancelled."""
    import asyncio

    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


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
        self.requested = True
        self.reason = reason
        if self._event is not None:
            self._event.set()

    async def wait(self) -> None:
        """Return once somebody asked to stop."""
        import asyncio

        if self._event is None:
            self._event = asyncio.Event()
            if self.requested:
                self._event.set()
        await self._event.wait()
