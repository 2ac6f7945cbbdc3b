"""How busy the machine is: what takes ten seconds alone takes longer beside others."""

import os

_SLOWEST = 4.0


def slowness() -> float:
    """How many times longer than alone a process takes now, by those that want a core; 1 to 4."""
    try:
        wanting = os.getloadavg()[0]
    except OSError:  # some systems keep no such number
        return 1.0
    return min(_SLOWEST, max(1.0, wanting / (os.cpu_count() or 1)))
