"""Who holds the project: one small JSON file beside the lock.

A loop inside an agent session has no process that lives as long as it does, so there the file
itself is the claim: a lease of that session id, renewed at every turn.  Hooks ask for it on every
stop of every session, so only a little of the standard library is used here.
"""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

HOLDER_NAME = "holder.json"
_LARGEST_FILE = 64 * 1024
_CLOCK_SLACK_S = 60.0
_SAFELY = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY


class Holder(NamedTuple):
    run: str
    mode: str  # script or hook
    pid: int
    host: str
    since: float
    pid_started: float = 0.0
    session: str = ""  # hook mode: the agent session that carries the loop
    renewed_at: float = 0.0
    expires_at: float = 0.0
    project: str = ""  # the directory it works in

    @property
    def is_lease(self) -> bool:
        return self.mode == "hook"

    def lease_holds(self, now: float) -> bool:
        """True while the lease runs; a clock set back before its renewal voids it."""
        return self.is_lease and self.renewed_at - _CLOCK_SLACK_S <= now < self.expires_at


def read_holder(directory: Path) -> Holder | None:
    """The holder the file names; None where there is none or it cannot be read."""
    try:
        descriptor = os.open(directory / HOLDER_NAME, _SAFELY)
        try:
            data = os.read(descriptor, _LARGEST_FILE)
        finally:
            os.close(descriptor)
        # What JSON has no numbers for is no time; `int` refuses it.
        values: dict[str, Any] = json.loads(data, parse_constant=int)
        kinds = Holder.__annotations__.items()
        return Holder(**{name: kind(values[name]) for name, kind in kinds if name in values})
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None  # absent, not ours to read, or damaged: then it names nobody


def active_lease(directory: Path, session: str, now: float) -> Holder | None:
    """The lease this agent session holds; None means: nothing to do for its hooks."""
    holder = read_holder(directory)
    if holder is not None and holder.session == session and holder.lease_holds(now):
        return holder
    return None
