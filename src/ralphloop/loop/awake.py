"""Keep the machine awake while a run goes on, where the system has a way to ask for it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from ralphloop.proc.run import spawn

_WAYS = (
    ("systemd-inhibit", "--what=idle:sleep", "--who=ralph", "--why=a run", "sleep", "infinity"),
    ("caffeinate", "-i"),
)


@contextmanager
def kept_awake(*, wanted: bool) -> Iterator[str]:
    """Yields what keeps the machine awake, or nothing; never a reason not to run."""
    argv = next((way for way in _WAYS if shutil.which(way[0])), None) if wanted else None
    try:
        helper = spawn(argv) if argv else None
    except OSError:
        helper = None
    try:
        yield argv[0] if argv and helper else ""
    finally:
        if helper is not None:
            helper.terminate()
            helper.wait()
