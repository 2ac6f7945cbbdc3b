"""One child process with its three pipes, without a thread and without a buffer.

A chunk is read, handed on and forgotten, which keeps memory flat while an agent prints a gigabyte:
while we are busy with a chunk the pipe is full and the agent waits.

The two clocks of a running agent, how long it may run and how long it may be silent, count
*attended* time.  A laptop that slept or a clock that was set must not look like an agent that hung:
such a gap is not counted, and the silence starts anew, because connections need time to come back.
An agent is stalled when nothing speaks for it: no output, no processor time, no change of files.
"""

import asyncio
import os
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ralphloop.proc.process_table import Proc
from ralphloop.proc.run import exit_of, spawn

CHUNK = 64 * 1024

_POLL_S = 0.02


class Child:
    """A process in a session and process group of its own."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], *, cwd: Path) -> None:
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
        for name in tuple(self._fds):
            self._close(name)

    def _close(self, name: str) -> None:
        if self._fds.pop(name, None) is not None:
            getattr(self._popen, name).close()


async def _ready(fd: int, *, writing: bool) -> None:
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


_GAP_S = 60.0
_BUSY_SHARE = 0.05  # of one core: above what an idle event loop with a spinner needs
_PROBE_PATIENCE_S = 30.0

FileProbe = Callable[[], object]


class Clocks:
    """Counts attended time; all moments are handed in."""

    def __init__(self, *, wall_s: float, stall_s: float, monotonic: float, wall: float) -> None:
        self.wall_s, self.stall_s = wall_s, stall_s
        self._monotonic, self._wall = monotonic, wall
        self._attended = 0.0
        self._last_sign = 0.0

    def tick(self, monotonic: float, wall: float) -> None:
        """Account for the time since the last tick."""
        passed = monotonic - self._monotonic
        jump = abs((wall - self._wall) - passed)
        self._monotonic, self._wall = monotonic, wall
        if passed > _GAP_S or jump > _GAP_S:
            self.sign_of_life()
        else:
            self._attended += passed

    def sign_of_life(self) -> None:
        self._last_sign = self._attended

    @property
    def silent_s(self) -> float:
        return self._attended - self._last_sign

    @property
    def out_of_time(self) -> bool:
        return 0 < self.wall_s <= self._attended

    @property
    def tick_s(self) -> float:
        """How often to look: often enough for the shorter clock, at most once a second."""
        limits = [limit for limit in (self.wall_s, self.stall_s) if limit > 0]
        return max(0.02, min([1.0, *(limit / 20 for limit in limits)]))


class CpuMeter:
    def __init__(self) -> None:
        self._used: dict[tuple[int, float], float] = {}
        self._at: float | None = None

    def is_busy(self, members: Iterable[Proc], at: float) -> bool:
        """True when the tree used a noticeable share of one core since the last call."""
        now = {proc.identity: proc.cpu_s for proc in members}
        used = sum(max(0.0, cpu - self._used.get(who, 0.0)) for who, cpu in now.items())
        since, self._at, self._used = self._at, at, now
        return since is not None and used >= _BUSY_SHARE * max(at - since, 0.01)


class StallWatch:
    """Decides whether a silent agent is stalled; looks at the costly signs only when silent."""

    def __init__(
        self, clocks: Clocks, members: Callable[[], list[Proc]], probe: FileProbe | None
    ) -> None:
        self._clocks = clocks
        self._members = members
        self._probe = probe
        self._cpu = CpuMeter()
        self._sample_s = max(0.1, min(clocks.stall_s / 10, 10.0))
        self._next_sample = 0.0
        self._files: object = None
        self._files_seen = False

    async def is_stalled(self, at: float) -> bool:
        """True when nothing has spoken for the agent for the whole stall time."""
        limit, silent = self._clocks.stall_s, self._clocks.silent_s
        if limit <= 0 or silent < limit / 4:
            self._files_seen = False
            return False
        if at >= self._next_sample:
            self._next_sample = at + self._sample_s
            if self._cpu.is_busy(self._members(), at):
                self._clocks.sign_of_life()
                return False
        if silent >= limit / 2 and not self._files_seen:
            self._files, self._files_seen = await self._look_at_files(), True
        if silent < limit:
            return False
        before, self._files = self._files, await self._look_at_files()
        if before != self._files:
            self._clocks.sign_of_life()
        return before == self._files

    async def _look_at_files(self) -> object:
        if self._probe is None:
            return None
        try:
            return await asyncio.wait_for(asyncio.to_thread(self._probe), _PROBE_PATIENCE_S)
        except (OSError, TimeoutError):
            return self._files  # no answer is no sign either way
