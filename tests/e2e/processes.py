"""Finding what a test started, by its work directory and its TMPDIR."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import psutil


def processes_of(place: Path) -> list[psutil.Process]:
    """Every process that works below a directory or keeps its temporary files there."""
    return [process for process in psutil.process_iter() if _belongs_to(process, place)]


def named(process: psutil.Process) -> str:
    """A process for people."""
    try:
        return f"{process.pid} {' '.join(process.cmdline())}"
    except psutil.Error:
        return f"{process.pid} (gone since)"


def agent_process(place: Path, program: Path) -> psutil.Process:
    """The one process of a CLI below a directory; for a launcher, the launcher."""
    found = [process for process in processes_of(place) if str(program) in named(process)]
    return min(found, key=lambda process: process.create_time())


def wait_until(ready: Callable[[], bool], what: str, timeout_s: float = 30.0) -> None:
    """Wait for something to become true."""
    deadline = time.monotonic() + timeout_s
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout_s:.0f} s: {what}")
        time.sleep(0.05)


def _belongs_to(process: psutil.Process, place: Path) -> bool:
    try:
        places = (process.cwd(), process.environ().get("TMPDIR", ""))
    except psutil.Error:
        return False  # gone, or somebody else's
    return any(Path(it).is_relative_to(place) for it in places if it)
