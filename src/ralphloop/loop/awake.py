"""Keep the machine awake while a run goes on, where the system has a way to ask for it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

_WAYS = (
    ("systemd-inhibit", "--what=idle:sleep", "--who=ralph", "--why=a run", "sleep", "infinity"),
    ("caffeinate", "-i"),
)


@contextmanager
def kept_awake(*, wanted: bool) -> Iterator[str]:
    """Yields what keeps the machine awake, or nothing; never a reason not to run."""
    argv = next((way for way in _WAYS if shutil.which(way[0])), None) if wanted else None
    helper = _started(argv) if argv else None
    try:
        yield argv[0] if argv and helper else ""
    finally:
        if helper is not None:
            helper.terminate()
            helper.wait()


def _started(argv: tuple[str, ...]) -> subprocess.Popen[bytes] | None:
    try:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None
