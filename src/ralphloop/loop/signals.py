"""Signals: the first Ctrl+C is gentle, the second is at once; a hangup goes on in the log."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ralphloop.errors import ExitCode
from ralphloop.proc import programs
from ralphloop.proc.run import spawn
from ralphloop.proc.threads import StopSignal
from ralphloop.room import own_opener


@contextmanager
def signals_to(
    stop: StopSignal, log: Path, tell: Callable[[str], None]
) -> Iterator[list[ExitCode]]:
    """Turn signals into requests to stop while the loop runs; what they make of its exit code."""
    loop = asyncio.get_running_loop()
    codes = list[ExitCode]()

    def interrupt() -> None:
        again = stop.requested
        stop.request("interrupted (Ctrl+C)")
        tell("stopping at once" if again else "stopping gently; Ctrl+C again stops at once")

    def terminate() -> None:
        codes.append(ExitCode.TERMINATED)
        stop.request("terminated (SIGTERM)")

    def hang_up() -> None:  # the terminal is gone: what would have been shown goes to the log
        descriptor = own_opener(str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for stream in (sys.stdout, sys.stderr):
            os.dup2(descriptor, stream.fileno())
        os.close(descriptor)

    loop.add_signal_handler(signal.SIGINT, interrupt)
    loop.add_signal_handler(signal.SIGTERM, terminate)
    loop.add_signal_handler(signal.SIGHUP, hang_up)
    try:
        yield codes
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.remove_signal_handler(number)


_WAYS = (
    ("systemd-inhibit", "--what=idle:sleep", "--who=ralph", "--why=a run", "sleep", "infinity"),
    ("caffeinate", "-i"),
)


@contextmanager
def kept_awake(*, wanted: bool) -> Iterator[None]:
    """Keep the machine awake where something can; never a reason not to run."""
    argv = next((way for way in _WAYS if programs.find(way[0])), None) if wanted else None
    with ExitStack() as ending:
        if argv:
            with suppress(OSError):
                program = programs.program(argv[0])
                helper = spawn((program, *argv[1:]), env=programs.trusted_environment())
                ending.callback(helper.wait)
                ending.callback(helper.terminate)  # which comes first
        yield
