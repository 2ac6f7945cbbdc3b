"""One run per repository.

That a run lives, the kernel's lock tells; the file beside it (`holder`) only names the holder for
people.  Loops inside an agent session are the exception: no process of ours lives as long as they
do, so between two turns the file itself is their lease, with an end.  Both kinds exclude each
other, because the file is written only by whoever has the kernel's lock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from ralphloop.atomic import write_atomic
from ralphloop.core.durations import iso
from ralphloop.errors import LockedError
from ralphloop.journal.holder import HOLDER_NAME, Holder, encode_holder, read_holder
from ralphloop.journal.kernel_lock import KernelLock

_HOOK_PATIENCE_S = 2.0
_NAMING_PATIENCE_S = 0.3
_PAUSE_S = 0.02
_SAME_START_S = 2.0


class RunLock:
    """The project, held by this process until `release`."""

    def __init__(self, directory: Path, kernel: KernelLock, holder: Holder) -> None:
        self._directory = directory
        self._kernel = kernel
        self.holder = holder

    @classmethod
    def acquire(cls, directory: Path, *, run: str, now: float) -> Self:
        """Take the project for a run in script mode; LockedError names a live holder."""
        kernel = _take(directory, now=now)
        try:
            _refuse_foreign_lease(directory, now=now)
            if kernel.note:
                _refuse_other_machine(directory)
            holder = _this_process(run=run, now=now)
            _write_holder(directory, holder)
        except BaseException:  # whatever it was goes on; the lock must not
            kernel.release()
            raise
        return cls(directory, kernel, holder)

    @property
    def note(self) -> str:
        """What is unusual about this lock, in words; empty where nothing is."""
        return self._kernel.note

    def renew_if_deleted(self, now: float) -> bool:
        """Hold the project again where somebody deleted the lock; LockedError if taken by now."""
        if not self._kernel.is_open or self._kernel.is_in_place():
            return False
        held = _take(self._directory, now=now)
        self._kernel.release()
        self._kernel = held
        _write_holder(self._directory, self.holder)
        return True

    def release(self) -> None:
        """Give the project back; doing it twice changes nothing."""
        if self._kernel.is_open:
            _forget_holder(self._directory, self.holder.run)
            self._kernel.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


@contextmanager
def hook_turn(
    directory: Path, *, session: str, run: str, now: float, lease_s: float
) -> Iterator[Holder]:
    """Hold the project during one turn of a session's loop, and by lease until the next one."""
    kernel = _take(directory, now=now, patience_s=_HOOK_PATIENCE_S)
    try:
        _refuse_foreign_lease(directory, now=now, session=session)
        before = read_holder(directory)
        since = before.since if before is not None and before.session == session else now
        holder = Holder(
            run=run,
            mode="hook",
            pid=os.getpid(),
            host=os.uname().nodename,
            since=since,
            session=session,
            renewed_at=now,
            expires_at=now + lease_s,
        )
        _write_holder(directory, holder)
        yield holder
    finally:
        kernel.release()


def end_lease(directory: Path, *, session: str, now: float) -> bool:
    """Give the project back for a session; False where it did not hold it."""
    kernel = _take(directory, now=now, patience_s=_HOOK_PATIENCE_S)
    try:
        holder = read_holder(directory)
        if holder is None or not holder.is_lease or holder.session != session:
            return False
        (directory / HOLDER_NAME).unlink(missing_ok=True)
        return True
    finally:
        kernel.release()


def live_holder(directory: Path, now: float) -> Holder | None:
    """Who holds the project now; looks only, and takes nothing."""
    holder = read_holder(directory)
    return holder if holder is not None and _is_live(holder, now) else None


def process_started(pid: int) -> float | None:
    """When a process began, in epoch seconds; None where it is gone."""
    import psutil

    try:
        return float(psutil.Process(pid).create_time())
    except (psutil.Error, ValueError, OverflowError):
        return None


def _take(directory: Path, *, now: float, patience_s: float = 0.0) -> KernelLock:
    """Take the kernel's lock within the given time; LockedError names who has it."""
    deadline = time.monotonic() + patience_s
    while True:
        lock = KernelLock.attempt(directory)
        if lock is not None:
            return lock
        # Turns of a session are over soon; a run in script mode is not worth waiting for.
        if time.monotonic() >= deadline or _is_script(live_holder(directory, now)):
            raise _held_by(_named_holder(directory, now))
        time.sleep(_PAUSE_S)


def _is_script(holder: Holder | None) -> bool:
    return holder is not None and not holder.is_lease


def _this_process(*, run: str, now: float) -> Holder:
    pid = os.getpid()
    return Holder(
        run=run,
        mode="script",
        pid=pid,
        host=os.uname().nodename,
        since=now,
        pid_started=process_started(pid) or 0.0,
    )


def _write_holder(directory: Path, holder: Holder) -> None:
    write_atomic(directory / HOLDER_NAME, encode_holder(holder), within=directory, durable=False)


def _forget_holder(directory: Path, run: str) -> None:
    holder = read_holder(directory)
    if holder is not None and holder.run == run:
        (directory / HOLDER_NAME).unlink(missing_ok=True)


def _refuse_foreign_lease(directory: Path, *, now: float, session: str = "") -> None:
    holder = read_holder(directory)
    if holder is not None and holder.lease_holds(now) and holder.session != session:
        raise _held_by(holder)


def _refuse_other_machine(directory: Path) -> None:
    # Without a kernel lock that reaches there, nobody here can tell whether it still lives.
    holder = read_holder(directory)
    if holder is not None and not holder.is_lease and holder.host != os.uname().nodename:
        raise LockedError(
            f"{_described(holder)} may still hold this project: it did not sign off, and this "
            "file system refuses the lock that would tell",
            f"Make sure that run has ended, then remove {directory / HOLDER_NAME}.",
        )


def _named_holder(directory: Path, now: float) -> Holder | None:
    """The holder, given a moment to write its name."""
    deadline = time.monotonic() + _NAMING_PATIENCE_S
    while True:
        holder = live_holder(directory, now)
        if holder is not None or time.monotonic() >= deadline:
            return holder
        time.sleep(_PAUSE_S)


def _is_live(holder: Holder, now: float) -> bool:
    if holder.is_lease:
        return holder.lease_holds(now)
    if holder.host != os.uname().nodename:
        return True  # out of sight; the kernel's lock decided already
    started = process_started(holder.pid)
    return started is not None and (
        not holder.pid_started or abs(started - holder.pid_started) <= _SAME_START_S
    )


def _held_by(holder: Holder | None) -> LockedError:
    if holder is None:
        return LockedError(
            "another run holds this project (it has not given its name)",
            "Wait a moment and try again; `ralph status` shows what runs.",
        )
    if holder.is_lease:
        return LockedError(
            f"{_described(holder)} holds this project",
            "Say /cancel-ralph in that session, or wait: without a sign of life it gives up at "
            f"{_moment(holder.expires_at)}.",
        )
    return LockedError(
        f"{_described(holder)} holds this project",
        "Look at it with `ralph status`, or end it with `ralph stop`.",
    )


def _described(holder: Holder) -> str:
    since = f"since {_moment(holder.since)}"
    if holder.is_lease:
        return f"a loop inside agent session {holder.session} (run {holder.run}, {since})"
    where = "" if holder.host == os.uname().nodename else f" on {holder.host}"
    return f"another run ({holder.run}, process {holder.pid}{where}, {since})"


def _moment(epoch: float) -> str:
    try:
        return iso(epoch)
    except ValueError:
        return "an unknown time"
