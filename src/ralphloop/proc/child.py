"""One child process with its three pipes, without a thread and without a buffer.

While we are busy with a chunk the agent waits: memory stays flat while it prints a gigabyte.

Its clocks count *attended* time.  A laptop that slept or a clock that was set must not look like an
agent that hung: such a gap is not counted, and the silence starts anew, because connections need
time to come back.  An agent is stalled without output, processor time and change of files.
"""

import asyncio
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from ralphloop.proc.process_table import Proc, ProcIdentity
from ralphloop.proc.run import exit_of, spawn

CHUNK = 64 * 1024

_POLL_S = 0.02


class Child:
    def __init__(self, argv: Sequence[str], env: Mapping[str, str], *, cwd: Path) -> None:
        pipe = subprocess.PIPE
        self._popen = spawn(argv, cwd=cwd, env=env, stdin=pipe, stdout=pipe, stderr=pipe)
        self.pid = self._popen.pid
        names = ("stdin", "stdout", "stderr")
        self._pipes: dict[str, IO[bytes]] = {name: getattr(self._popen, name) for name in names}
        for opened in self._pipes.values():
            os.set_blocking(opened.fileno(), False)

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
        try:
            await self.write(data)
        finally:
            self._pipes["stdin"].close()

    async def write(self, data: bytes) -> None:
        """Say something more; nobody has to listen."""
        pipe = self._pipes["stdin"]
        view = memoryview(data)
        try:
            while view and not pipe.closed:
                try:
                    view = view[os.write(pipe.fileno(), view[:CHUNK]) :]
                except BlockingIOError:
                    await _ready(pipe.fileno(), writing=True)
        except (BrokenPipeError, ConnectionResetError):
            pass

    async def read(self, stream: str, take: Callable[[bytes], None]) -> None:
        """Hand every chunk of `stdout` or `stderr` to `take`, until its end."""
        pipe = self._pipes[stream]
        while True:
            try:
                chunk = os.read(pipe.fileno(), CHUNK)
            except BlockingIOError:
                await _ready(pipe.fileno(), writing=False)
                continue
            if not chunk:
                break
            take(chunk)
            await asyncio.sleep(0)  # a flood must not keep the clocks from being looked at
        pipe.close()

    def reap(self) -> None:
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(1.0)

    def close(self) -> None:
        for opened in self._pipes.values():
            opened.close()


async def _ready(fd: int, *, writing: bool) -> None:
    """Wait until something can be read there, or written."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    if writing:
        loop.add_writer(fd, ready.set)
    else:
        loop.add_reader(fd, ready.set)
    try:
        await ready.wait()
    finally:
        if writing:
            loop.remove_writer(fd)
        else:
            loop.remove_reader(fd)


_GAP_S = 60.0
_BUSY_SHARE = 0.05  # of one core: above what an idle event loop with a spinner needs
_PROBE_PATIENCE_S = 30.0

FileProbe = Callable[[], object]


class Clocks:
    """Counts attended time; all moments are handed in."""

    def __init__(
        self,
        members: Callable[[], list[Proc]],
        wall_s: float,
        stall_s: float,
        *,
        monotonic: float,
        wall: float,
    ) -> None:
        """Begin to count; `members` are those of the agent's tree who live."""
        self.wall_s = wall_s
        self.stall_s = stall_s
        self._monotonic = monotonic
        self._wall = wall
        self._attended = 0.0
        self._last_sign = 0.0
        self._members = members
        self._used: dict[ProcIdentity, float] = {}  # processor time, when last looked
        self._used_at: float | None = None
        self._next_sample = 0.0
        self._files: object = None
        self._files_seen = False

    def tick(self, monotonic: float, wall: float) -> None:
        passed = monotonic - self._monotonic
        jump = abs((wall - self._wall) - passed)
        self._monotonic = monotonic
        self._wall = wall
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

    async def is_stalled(self, at: float, probe: FileProbe | None) -> bool:
        """True when nothing has spoken for it for the whole stall time; costly signs come last."""
        limit = self.stall_s
        silent = self.silent_s
        if limit <= 0 or silent < limit / 4:
            self._files_seen = False
            return False
        if at >= self._next_sample:
            self._next_sample = at + max(0.1, min(limit / 10, 10.0))
            if self._is_busy(at):
                self.sign_of_life()
                return False
        if silent >= limit / 2 and not self._files_seen:
            self._files = await self._look_at_files(probe)
            self._files_seen = True
        if silent < limit:
            return False
        before = self._files
        self._files = await self._look_at_files(probe)
        if before != self._files:
            self.sign_of_life()
        return before == self._files

    def _is_busy(self, at: float) -> bool:
        """True when the tree used a noticeable share of one core since the last call."""
        now = {proc.identity: proc.cpu_s for proc in self._members()}
        used = sum(max(0.0, cpu - self._used.get(who, 0.0)) for who, cpu in now.items())
        since = self._used_at
        self._used_at = at
        self._used = now
        return since is not None and used >= _BUSY_SHARE * max(at - since, 0.01)

    async def _look_at_files(self, probe: FileProbe | None) -> object:
        if probe is None:
            return None
        try:
            return await asyncio.wait_for(asyncio.to_thread(probe), _PROBE_PATIENCE_S)
        except (OSError, TimeoutError):
            return self._files  # no answer is no sign either way
