"""Git is not always left in peace: what it was asked then is asked again, within a bound.

A git of ours may be killed (out of memory), and a person's `git commit` holds a lock for as long as
their editor is open.  Neither says anything about the work, so neither ends the night: the step is
begun again, at first without a word, then the run is on hold and says why, and goes on by itself
once it is over.  Only what stays longer than `git.patience` ends the run.

What is given here must be steps that can be begun again, whatever of them was done already.
"""

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from ralphloop.core.events import Waiting
from ralphloop.core.policy import time_left
from ralphloop.errors import GitDisturbed
from ralphloop.loop.run import Run
from ralphloop.proc.threads import in_thread
from ralphloop.repo.work_tree import who_holds
from ralphloop.text.durations import format_duration, iso

_T = TypeVar("_T")
_SHORTLY_S = 3.0  # nobody has to hear of it
_FIRST_PAUSE_S = 0.5  # doubles with each time that git was killed
_LONGEST_PAUSE_S = 30.0
_LOOK_AGAIN_S = 10.0  # at a lock: locks that are dead are cleared by whoever meets them
_GLANCE_S = 0.2
_IN_A_HURRY_S = 30.0  # a person waits for the turn of their session


async def steadily(run: Run, steps: Callable[[], Awaitable[_T]]) -> _T:
    """Take steps until git was left in peace; raises what stays, or GitDisturbed at a stop."""
    disturbance = Disturbance(run)
    try:
        while True:
            try:
                return await steps()
            except GitDisturbed as error:
                caught = error
            await disturbance.sit_out(caught)
    finally:
        disturbance.over()


async def steadily_now(run: Run, work: Callable[[], _T]) -> _T:
    """The same for work that takes no time, in which nobody else has to be heard."""

    async def steps() -> _T:
        return work()

    return await steadily(run, steps)


class Disturbance:
    """How long, and how often in a row, git has not been left in peace."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._since = 0.0
        self._deadline = 0.0
        self._times = 0
        self._is_told = False

    async def sit_out(self, error: GitDisturbed) -> None:
        """Wait until it is worth another try; raises where it stayed, or nobody wants to wait."""
        now = time.monotonic()
        if not self._times:
            self._since = now
            self._deadline = now + self._patience()
        self._times += 1
        stayed = now - self._since
        left = self._deadline - now
        if left <= 0 or self._run.stop.requested:
            raise self._final(error, stayed)
        if max(stayed, _age(error.lock)) < _SHORTLY_S:
            await self._wait(error, min(left, _FIRST_PAUSE_S))
            return
        self._hold(error, left)
        await self._wait(error, min(left, self._pause(error)))

    def over(self) -> None:
        """Git is left in peace, or the run ends: it is on hold no longer."""
        run = self._run
        if self._is_told:
            self._is_told = False
            run.journal.end_wait(run.id, now=run.clock())
            run.emit(Waiting(kind="pause", reason="over"))

    def _patience(self) -> float:
        """Seconds that git may be disturbed, but never longer than the run itself has."""
        run = self._run
        wanted = self._run.config.git.patience
        if run.patience is not None:
            return min(wanted, _IN_A_HURRY_S, run.patience.left())
        if run.journal.find_run(run.id) is None:
            return wanted
        left = time_left(run.limits, run.totals(), run.clock())
        return min(wanted, left.seconds) if left else wanted

    def _pause(self, error: GitDisturbed) -> float:
        if error.lock:
            return _LOOK_AGAIN_S
        return min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(self._times, 10))

    async def _wait(self, error: GitDisturbed, seconds: float) -> None:
        """Sleep; what ends it early is a stop, or that the lock is gone."""
        lock = Path(error.lock)
        stop = self._run.stop
        deadline = time.monotonic() + seconds

        def sleep(gone: Callable[[], bool]) -> None:
            while not (gone() or stop.requested) and time.monotonic() < deadline:
                if error.lock and not lock.exists():
                    return
                time.sleep(_GLANCE_S)

        await in_thread(sleep)

    def _hold(self, error: GitDisturbed, seconds: float) -> None:
        """Write down and say that the run is on hold, and for what; once."""
        if self._is_told:
            return
        self._is_told = True
        run = self._run
        reason = f"{error.message}, {self._times} times in a row; it is tried again"
        if error.lock:
            found = who_holds(Path(error.lock))
            reason = f"{found.words}; the run goes on by itself when it is gone ({found.fix})"
        now = run.clock()
        until = now + seconds
        run.journal.begin_wait(run.id, kind="pause", reason=reason, now=now, until=until)
        needs_you = bool(error.lock)
        held = Waiting(
            kind="pause", reason=reason, until=iso(until), seconds=seconds, needs_you=needs_you
        )
        run.emit(held)

    def _final(self, error: GitDisturbed, stayed: float) -> GitDisturbed:
        """The same, with how long it was waited for and what a person can do."""
        stopped = self._run.stop.requested
        waited = f"; waited for {format_duration(stayed)}" if stayed >= 1 else ""
        if not error.lock:
            return GitDisturbed(f"{error.message}{waited}", error.next_step, stopped=stopped)
        found = who_holds(Path(error.lock))
        fix = f"{found.fix[0].upper()}{found.fix[1:]}; then: ralph run --continue"
        return GitDisturbed(f"{found.words}{waited}", fix, lock=error.lock, stopped=stopped)


def _age(lock: str) -> float:
    """Seconds since a lock was taken; 0: there is none, any more."""
    try:
        return time.time() - Path(lock).stat().st_mtime if lock else 0.0
    except OSError:
        return 0.0
