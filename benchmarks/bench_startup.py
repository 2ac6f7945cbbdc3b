"""Start-up in CPU time, as a multiple of a bare interpreter on the same machine.

Best of several runs: the floor is what the program costs, the rest is what else the machine did.
"""

from __future__ import annotations

import resource
import subprocess
import sys

RUNS = 15
CASES = {
    "ralph --version": ([sys.executable, "-m", "ralphloop", "--version"], 6.0),
    "ralph --help": ([sys.executable, "-m", "ralphloop", "--help"], None),
    "ralph config show": ([sys.executable, "-m", "ralphloop", "config", "show"], None),
}


def cpu_seconds(command: list[str]) -> float:
    """User and system time of the cheapest of several runs."""
    return min(_one_run(command) for _ in range(RUNS))


def _one_run(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def main() -> int:
    """Print each ratio beside its limit; fail when one is exceeded."""
    bare = cpu_seconds([sys.executable, "-c", "pass"])
    print(f"{'python -c pass':<20} {bare * 1000:6.1f} ms")
    exceeded = False
    for name, (command, limit) in CASES.items():
        seconds = cpu_seconds(command)
        ratio = seconds / bare
        allowed = f"  (at most {limit:g} ×)" if limit else ""
        print(f"{name:<20} {seconds * 1000:6.1f} ms  {ratio:4.1f} ×{allowed}")
        exceeded |= limit is not None and ratio > limit
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())
