"""What a sandbox costs at each start, as a multiple of starting the same program without one.

Measured on `python -c pass`, the lightest agent there could be; a real CLI takes a hundred times as
long as the sandbox around it.  Median of several runs, taken in turns.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ralphloop.config.model import Config
from ralphloop.loop.confine import NoSandbox, working_box
from ralphloop.project import Project

RUNS = 25
LIMIT = 5.0  # of a bare interpreter


def main() -> int:
    """Print the ratio beside its limit; fail when it is exceeded."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        try:
            box = working_box(Config(), Project(root), None, os.environ)
        except NoSandbox as error:
            print(f"no sandbox works here: {error.message}")
            return 0
        bare = [sys.executable, "-S", "-c", "pass"]
        boxed, _ = box.start(bare, root, os.environ)
        times: dict[str, list[float]] = {"bare": [], "boxed": []}
        for _ in range(RUNS):
            for name, command in (("bare", bare), ("boxed", boxed)):
                began = time.perf_counter()
                subprocess.run(command, check=True)
                times[name].append(time.perf_counter() - began)
    usual, confined = (statistics.median(times[name]) for name in ("bare", "boxed"))
    ratio = confined / usual
    print(f"python -c pass {usual * 1000:6.1f} ms, in the sandbox {confined * 1000:6.1f} ms")
    print(f"{ratio:4.1f} ×  (at most {LIMIT:g} ×)")
    return int(ratio > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
