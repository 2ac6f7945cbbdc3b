"""A leash: whoever hears nothing for too long has to take it that nobody is there any more."""

import time


def clock() -> float:
    """Seconds that go on while the machine sleeps, where the system has such a clock."""
    by_boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if by_boot is None else time.clock_gettime(by_boot)


class Leash:
    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._heard = clock()

    def hear(self) -> None:
        """Somebody is there."""
        self._heard = clock()

    @property
    def is_cut(self) -> bool:
        return clock() - self._heard > self._lease_s
