"""Long pieces of work beside the event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from ralphloop.proc.threads import in_thread


def test_what_the_work_returns_is_returned_and_others_run_meanwhile() -> None:
    """The event loop goes on while a thread works."""
    goes_on = threading.Event()

    def work(_: Callable[[], bool]) -> bool:
        return goes_on.wait(10)

    async def both() -> bool:
        working = asyncio.create_task(in_thread(work))
        await asyncio.sleep(0)
        goes_on.set()
        return await working

    assert asyncio.run(both())


def test_what_the_work_raises_is_raised() -> None:
    """An error in the thread is the caller's."""

    def work(_: Callable[[], bool]) -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        asyncio.run(in_thread(work))


def test_a_caller_that_is_cancelled_waits_until_the_work_has_ended() -> None:
    """Nobody leaves a thread behind that still writes: it is told, and waited for."""
    ended: list[bool] = []

    def work(abandoned: Callable[[], bool]) -> None:
        end = time.monotonic() + 10
        while not abandoned() and time.monotonic() < end:
            time.sleep(0.01)
        ended.append(abandoned())

    async def cancel() -> None:
        working = asyncio.create_task(in_thread(work))
        await asyncio.sleep(0.05)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working

    asyncio.run(cancel())
    assert ended == [True]
