"""One child process with its three pipes, without a thread and without a buffer.

`asyncio`'s own subprocesses keep what they read in a `StreamReader` and wait in a thread.  Here a
chunk is read, handed on and forgotten, which is what keeps memory flat while an agent prints a
gigabyte: while we are busy with a chunk the pipe is full and the agent waits.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ralphloop.proc.run import exit_of, spawn

CHUNK = 64 * 1024

_POLL_S = 0.02


class Child:
    """A process in a session and process group of its own."""

    def __init__(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> None:
        pipe = subprocess.PIPE
        self._popen = spawn(argv, cwd=cwd, env=env, stdin=pipe, stdout=pipe, stderr=pipe)
        self._fds = {
            name: stream.fileno()
            for name in ("stdin", "stdout", "stderr")
            if (stream := getattr(self._popen, name))
        }
        for fd in self._fds.values():
            os.set_blocking(fd, False)

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def exit_code(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._popen.poll()

    async def exited(self) -> None:
        """Wait until the process itself has ended, whoever still holds its pipes."""
        with exit_of(self.pid) as its_exit:
            while self._popen.poll() is None:
                if its_exit is not None:
                    await _ready(its_exit, writing=False)
                else:
                    await asyncio.sleep(_POLL_S)  # no such thing on this system: look now and then

    async def write_all(self, data: bytes) -> None:
        """Hand over the prompt and close; an agent that does not read it is free not to."""
        fd = self._fds["stdin"]
        view = memoryview(data)
        try:
            while view:
                try:
                    view = view[os.write(fd, view[:CHUNK]) :]
                except BlockingIOError:
                    await _ready(fd, writing=True)
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            self._close("stdin")

    async def read(self, stream: str, take: Callable[[bytes], None]) -> None:
        """Hand every chunk of `stdout` or `stderr` to `take`, until its end."""
        fd = self._fds[stream]
        while True:
            try:
                chunk = os.read(fd, CHUNK)
            except BlockingIOError:
                await _ready(fd, writing=False)
                continue
            if not chunk:
                break
            take(chunk)
            await asyncio.sleep(0)  # a flood must not keep the clocks from being looked at
        self._close(stream)

    def reap(self) -> None:
        """Collect the exit code of a process that was just killed."""
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(1.0)

    def close(self) -> None:
        """Close what is still open; whoever holds the other end keeps it."""
        for name in tuple(self._fds):
            self._close(name)

    def _close(self, name: str) -> None:
        if self._fds.pop(name, None) is not None:
            pipe = getattr(self._popen, name)
            pipe.close()


async def _ready(fd: int, *, writing: bool) -> None:
    """Wait until a descriptor can be read or written."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def now() -> None:
        if not ready.done():
            ready.set_result(None)

    watch, forget = (
        (loop.add_writer, loop.remove_writer) if writing else (loop.add_reader, loop.remove_reader)
    )
    watch(fd, now)
    try:
        await ready
    finally:
        forget(fd)
