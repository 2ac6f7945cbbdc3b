"""Steps that are the same in a hook, one after the other, and in the loop, beside it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import pytest

from ralphloop.proc.steps import Steps, aside, beside, in_turn

T = TypeVar("T")
Driver = Callable[[Steps[T]], T]


def _beside(steps: Steps[T]) -> T:
    return asyncio.run(beside(steps))


both = pytest.mark.parametrize("drive", [in_turn, _beside])


def _sum(seen: list[int]) -> Steps[int]:
    first = yield from aside(lambda _: 1)
    seen.append(threading.get_ident())
    second = yield from aside(lambda _: first + 1)
    return first + second


@both
def test_results_come_back_to_the_step_that_asked(drive: Driver[int]) -> None:
    """Each piece of work is done once, in order, and what lies between stays in this thread."""
    seen: list[int] = []
    assert drive(_sum(seen)) == 3
    assert seen == [threading.get_ident()]


@both
def test_an_error_is_raised_where_the_work_was_asked_for(drive: Driver[str]) -> None:
    """A step can answer for what it asked; what it does not catch goes on to the caller."""

    def fail(_: object) -> None:
        raise ValueError("broken")

    def caught() -> Steps[str]:
        try:
            yield from aside(fail)
        except ValueError as error:
            return f"caught {error}"
        return "nothing happened"

    def uncaught() -> Steps[str]:
        yield from aside(fail)
        return "nothing happened"

    assert drive(caught()) == "caught broken"
    with pytest.raises(ValueError, match="broken"):
        drive(uncaught())


def test_long_work_is_beside_the_event_loop_and_not_in_it() -> None:
    """Whoever else waits is served while a piece of work takes its time."""
    heard = threading.Event()

    async def both_at_once() -> bool:
        asyncio.get_running_loop().call_later(0.01, heard.set)
        return await beside(aside(lambda _: heard.wait(10)))

    assert asyncio.run(both_at_once())


def test_work_that_nobody_waits_for_is_told_and_waited_for() -> None:
    """A cancelled task ends only when its work has."""
    ended: list[str] = []

    def work(abandoned: Callable[[], bool]) -> None:
        while not abandoned():
            time.sleep(0.01)
        ended.append("told")

    async def cancelled() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(beside(aside(work)), timeout=0.1)
        assert ended == ["told"]

    asyncio.run(cancelled())
