"""The clocks of a running agent count only the time in which we were awake."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ralphloop.proc.child import Clocks
from ralphloop.proc.process_table import Proc


def _clocks(
    wall_s: float = 100, stall_s: float = 50, members: Callable[[], list[Proc]] = list
) -> Clocks:
    return Clocks(members, wall_s, stall_s, monotonic=1000.0, wall=5000.0)


def test_time_that_passes_is_counted() -> None:
    """Ordinary ticks add up to the limit."""
    clocks = _clocks()
    for n in range(1, 100):
        clocks.tick(1000.0 + n, 5000.0 + n)
    assert not clocks.out_of_time
    assert clocks.silent_s == 99
    clocks.tick(1100.0, 5100.0)
    assert clocks.out_of_time


def test_suspend_is_not_counted() -> None:
    """A machine that slept for an hour does not kill the agent when it wakes."""
    clocks = _clocks()
    clocks.tick(1030.0, 5030.0)
    clocks.tick(1031.0, 5031.0 + 3600)
    assert not clocks.out_of_time
    assert clocks.silent_s == 0
    clocks.tick(1041.0, 8641.0)
    assert clocks.silent_s == 10


def test_a_tick_that_comes_far_too_late_is_not_counted() -> None:
    """Where the monotonic clock runs on while we are stopped, the gap is seen as well."""
    clocks = _clocks()
    clocks.tick(1010.0, 5010.0)
    clocks.tick(1900.0, 5900.0)
    assert not clocks.out_of_time
    assert clocks.silent_s == 0


def test_a_clock_set_back_is_not_a_stall() -> None:
    """Setting the wall clock has no effect but a fresh silence."""
    clocks = _clocks()
    clocks.tick(1010.0, 5010.0)
    clocks.tick(1011.0, 1.0)
    assert clocks.silent_s == 0
    assert not clocks.out_of_time


def test_the_clock_is_looked_at_often_enough() -> None:
    """Ticks fit the shorter limit and are never rarer than a second."""
    assert _clocks(3600, 600).tick_s == 1.0
    assert _clocks(0, 0).tick_s == 1.0
    assert _clocks(2, 600).tick_s == 0.1


def _proc(pid: int, cpu: float) -> Proc:
    return Proc(pid=pid, parent=1, session=1, started=float(pid), alive=True, cpu_s=cpu)


def test_processor_time_tells_work_from_waiting() -> None:
    """Five percent of a core is work; the blinking of an idle event loop is not."""
    members: list[Proc] = []
    watch = _clocks(0, 50, lambda: members)

    def is_busy(at: float, *seen: Proc) -> bool:
        members[:] = seen
        return watch._is_busy(at)

    assert not is_busy(0.0, _proc(1, 5.0))
    assert not is_busy(10.0, _proc(1, 5.1))
    assert is_busy(20.0, _proc(1, 5.1), _proc(2, 3.0))
    assert not is_busy(30.0, _proc(2, 3.0))


def test_the_file_probe_is_asked_rarely_and_decides_last() -> None:
    """Looking at files is costly: once at half time, once at the end."""
    calls: list[int] = []

    def probe() -> object:
        calls.append(1)
        return "same"

    async def silence() -> int:
        clocks = _clocks(0, 50)
        for n in range(1, 60):
            clocks.tick(1000.0 + n, 5000.0 + n)
            if await clocks.is_stalled(1000.0 + n, probe):
                return n
        return 0

    assert asyncio.run(silence()) == 50
    assert len(calls) == 2


def test_a_probe_that_fails_is_no_sign_of_life() -> None:
    """A file system that does not answer does not keep a dead agent alive."""

    def probe() -> object:
        raise OSError("gone")

    async def silence() -> bool:
        clocks = _clocks(0, 50)
        stalled = False
        for n in range(1, 60):
            clocks.tick(1000.0 + n, 5000.0 + n)
            stalled = stalled or await clocks.is_stalled(1000.0 + n, probe)
        return stalled

    assert asyncio.run(silence())
