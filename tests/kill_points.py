"""Every kill point there is, read from the source, so that no new one escapes the tests."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

from ralphloop.core.iteration import AnyEffect

SOURCE = Path(__file__).parents[1] / "src" / "ralphloop"


def to_be_killed_at(point: str) -> dict[str, str]:
    """The environment in which a process kills itself at a point; `name:3`: at the third pass."""
    path = (str(Path(__file__).parent / "killing"), str(SOURCE.parent), str(SOURCE.parents[1]))
    return {"RALPH_KILL_AT": point, "PYTHONPATH": os.pathsep.join(path)}


def _found(pattern: str, *rooms: str) -> list[str]:
    files = sorted(path for room in rooms for path in SOURCE.glob(room))
    return re.findall(pattern, "".join(path.read_text() for path in files))


def _moments(names: Iterable[str], *moments: str) -> tuple[str, ...]:
    return tuple(f"{name}.{moment}" for name in names for moment in moments)


_NAMES = (
    *_found(r'\.write\("(\w+)"', "journal/*.py"),
    *_found(r'\.put\("(\w+)"', "journal/*.py", "loop/*.py"),
)
_WRITES = [f"journal.{name}" for name in dict.fromkeys(_NAMES)]

ATOMIC_POINTS = tuple(_found(r'kill_point\("([a-z_.]+)"\)', "atomic.py"))
JOURNAL_POINTS = (
    *ATOMIC_POINTS,
    *_found(r'kill_point\("([a-z_.]+)"\)', "journal/*.py"),
    *_moments(_WRITES, "uncommitted", "committed"),
)
EXPERIMENT_POINTS = tuple(
    _found(r'kill_point\("([a-z_.]+)"\)', "repo/experiment.py", "loop/exchanging.py")
)
REJECTION_POINTS = tuple(_found(r'kill_point\("([a-z_.]+)"\)', "loop/rejecting.py"))
BRINGING_BACK_POINTS = tuple(_found(r'kill_point\("([a-z_.]+)"\)', "loop/bringing_back.py"))
EFFECT_POINTS = _moments(
    [f"effect.{kind().kind}" for kind in get_args(AnyEffect)], "before", "after"
)
LANE_POINTS = tuple(_found(r'kill_point\("([a-z_.]+)"\)', "lanes/*.py", "loop/effects.py"))
FOLLOW_POINTS = tuple(_found(r'kill_point\("([a-z_.]+)"\)', "forge/follower.py"))
QUEUE_POINTS = tuple(_found(r'kill_point\("([a-z_.]+)"\)', "forge/queue_run.py"))
