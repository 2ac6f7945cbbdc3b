"""The wish that a run ends: said once, it is gentle; said again, it means at once.

It is asked and answered without an event loop; only who waits for it needs one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio


class StopSignal:
    """A request to stop what runs; asked twice, it means at once."""

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
