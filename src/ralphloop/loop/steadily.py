"""Git is not always left in peace: what it was asked then is asked again, within a bound.

A git of ours may be killed (out of memory), and a person's `git commit` holds a lock for as long as
their editor is open.  Neither says anything about the work, so neither ends the night: the step is
begun again, at first without a word, then the run is on hold and says why, and goes on by itself
once it is over.  Only what stays longer than `git.patience` ends the run.

What is given here must be steps that can be begun again, whatever of them was done already.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ralphloop.core.events import Waiting
from ralphloop.core.policy import time_left
from ralphloop.errors import GitDisturbed
from ralphloop.loop.runner import Runner
from ralphloop.proc.steps import Steps, aside
from ralphloop.repo.work_tree import who_holds
from ralphloop.text.durations import format_duration, iso

_T = TypeVar("_T")
_SHORTLY_S = 3.0  # nobody has to hear of it
_FIRST_PAUSE_S = 0.5  # doubles with each time that git was killed
_LONGEST_PAUSE_S = 30.0
_LOOK_AGAIN_S = 10.0  # at a lock: locks that are dead are cleared by whoever meets them
_GLANCE_S = 0.2
_IN_A_HURRY_S = 30.0  # a person waits for the turn of their session


def steadily(runner: Runner, steps: Callable[[], Steps[_T]]) -> Steps[_T]:
    """Take steps until git was left in peace; raises what stays, or GitDisturbed at a stop."""
    disturbance = Disturbance(runner)
    try:
        while True:
            try:
                return (yield from steps())
            except GitDisturbed as error:
                caught = error
            yield from disturbance.sit_out(caught)
    finally:
        disturbance.over()


class Disturbance:
    """How long, and how often in a row, git has not been left in peace."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._since = 0.0
        self._deadline = 0.0
        self._times = 0
        self._is_told = False

    def sit_out(self, error: GitDisturbed) -> Steps[None]:
        """Wait until it is worth another try; raises where it stayed, or nobody wants to wait."""
        now = time.monotonic()
        if not self._times:
            self._since = now
            self._deadline = now + self._patience()
        self._times += 1
        stayed, left = now - self._since, self._deadline - now
        if left <= 0 or self._runner.stop.requested:
            raise self._final(error, stayed)
        if max(stayed, _age(error.lock)) < _SHORTLY_S:
            yield from self._wait(error, min(left, _FIRST_PAUSE_S))
            return
        self._hold(error, left)
        yield from self._wait(error, min(left, self._pause(error)))

    def over(self) -> None:
        """Git is left in peace, or the run ends: it is on hold no longer."""
        runner = self._runner
        if self._is_told:
            self._is_told = False
            runner.journal.end_wait(runner.run, now=runner.clock())
            runner.emit(Waiting(kind="pause", reason="over"))

    def _patience(self) -> float:
        """Seconds that git may be disturbed, but never longer than the run itself has."""
        runner, wanted = self._runner, self._runner.config.git.patience
        if runner.patience is not None:
            return min(wanted, _IN_A_HURRY_S, runner.patience.left())
        if runner.journal.find_run(runner.run) is None:
            return wanted
        left = time_left(runner.limits, runner.totals(), runner.clock())
        return min(wanted, left[0]) if left else wanted

    def _pause(self, error: GitDisturbed) -> float:
        if error.lock:
            return _LOOK_AGAIN_S
        return min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(self._times, 10))

    def _wait(self, error: GitDisturbed, seconds: float) -> Steps[None]:
        """Sleep; what ends it early is a stop, or that the lock is gone."""
        lock, stop = Path(error.lock), self._runner.stop
        deadline = time.monotonic() + seconds

        def sleep(gone: Callable[[], bool]) -> None:
            while not (gone() or stop.requested) and time.monotonic() < deadline:
                if error.lock and not lock.exists():
                    return
                time.sleep(_GLANCE_S)

        yield from aside(sleep)

    def _hold(self, error: GitDisturbed, seconds: float) -> None:
        """Write down and say that the run is on hold, and for what; once."""
        if self._is_told:
            return
        self._is_told = True
        runner = self._runner
        reason = f"{error.message}, {self._times} times in a row; it is tried again"
        if error.lock:
            found = who_holds(Path(error.lock))
            reason = f"{found.words}; the run goes on by itself when it is gone ({found.fix})"
        now = runner.clock()
        until = now + seconds
        runner.journal.begin_wait(runner.run, kind="pause", reason=reason, now=now, until=until)
        needs_you = bool(error.lock)
        held = Waiting(
            kind="pause", reason=reason, until=iso(until), seconds=seconds, needs_you=needs_you
        )
        runner.emit(held)

    def _final(self, error: GitDisturbed, stayed: float) -> GitDisturbed:
        """The same, with how long it was waited for and what a person can do."""
        stopped = self._runner.stop.requested
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
