"""Loaded by Python itself where this directory is on its path: kills the process at a kill point.

`RALPH_KILL_AT=name` names the point, `name:3` the third time it is passed.  The variable is taken
away at once: it speaks of this process alone, not of what it starts.
"""

from __future__ import annotations

import os
import signal
import sys


def arm(setting: str) -> None:
    """Listen to the audit events of `ralphloop.atomic.kill_point`."""
    name, _, passes = setting.partition(":")
    left = int(passes or 1)
    if left < 1:
        raise ValueError(f"RALPH_KILL_AT={setting} could never kill")

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event == "ralphloop.kill_point" and arguments == (name,):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


if point := os.environ.pop("RALPH_KILL_AT", ""):
    arm(point)
