"""One run per work tree.

That a run lives, the kernel's lock tells; the file beside it (`holder`) only names the holder for
people.  Loops inside an agent session are the exception: no process of ours lives as long as they
do, so between two turns the file itself is their lease, with an end.  Both kinds exclude each
other, because the file is written only by whoever has the kernel's lock.

Lock and file are in two places: in the project's own directory, where everybody looks, and in
git's directory of the work tree.  Projects that share a work tree share its commits and its
clean-ups: two runs at once would take each other's half-written files along, or away.

The lock is `flock` on `.ralph/lock`, kept open, and ends with its process, however that dies: there
is no stale lock to judge, and the file is never removed, so there is no race about its name.  A
file system that refuses kernel locks is none to run on: it would refuse the journal's as well.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from ralphloop.atomic import write_atomic
from ralphloop.errors import LockedError, RepositoryError
from ralphloop.journal.holder import HOLDER_NAME, Holder, encode_holder, read_holder
from ralphloop.project import git_directory
from ralphloop.text.durations import iso

LOCK_NAME = "lock"


class KernelLock:
    """An open file with the kernel's exclusive lock on it; children do not inherit it."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    @classmethod
    def attempt(cls, directory: Path) -> Self | None:
        """The lock, or None where another process has it."""
        path = directory / LOCK_NAME
        try:
            directory.mkdir(parents=True, exist_ok=True)
            while (lock := cls._locked(path)) and not lock.is_in_place():
                lock.release()  # the file was removed between opening and locking: once more
            return lock
        except OSError as error:
            raise RepositoryError(
                f"cannot lock the project at {path}: {error.strerror or error}",
                "It must be writable, on a file system that knows locks; then try again.",
            ) from error

    @classmethod
    def _locked(cls, path: Path) -> Self | None:
        lock = cls(path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666))
        try:
            fcntl.flock(lock._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.release()
            return None
        except BaseException:  # whatever it was goes on; the descriptor must not
            lock.release()
            raise
        return lock

    @property
    def is_open(self) -> bool:
        return self._descriptor >= 0

    def is_in_place(self) -> bool:
        """True while the path still names the file we have locked."""
        if not self.is_open:
            return False
        try:
            return os.path.samestat(self._path.stat(), os.fstat(self._descriptor))
        except OSError:
            return False

    def release(self) -> None:
        """Give the lock back; doing it twice changes nothing."""
        if self.is_open:
            os.close(self._descriptor)
            self._descriptor = -1


_HOOK_PATIENCE_S = 2.0
_NAMING_PATIENCE_S = 0.3
_PAUSE_S = 0.02
_SAME_START_S = 2.0
_TREE_ROOM = "ralph"  # in git's directory of the work tree


class RunLock:
    """The project and its work tree, held by this process until `release`."""

    def __init__(self, held: dict[Path, KernelLock], holder: Holder) -> None:
        self._held = held
        self.holder = holder

    @classmethod
    def acquire(cls, directory: Path, *, run: str, now: float) -> Self:
        """Take the project for a run in script mode; LockedError names a live holder."""
        from ralphloop.proc.table import started_at

        pid, project = os.getpid(), str(directory.parent)
        host, began = os.uname().nodename, started_at(pid) or 0.0
        holder = Holder(run, "script", pid, host, now, pid_started=began, project=project)
        return cls(_take_all(directory, holder, now=now), holder)

    @property
    def places(self) -> tuple[Path, ...]:
        """The directories in which it is held."""
        return tuple(self._held)

    def renew_if_deleted(self, now: float) -> bool:
        """Hold the project again where somebody deleted the lock; LockedError if taken by now."""
        renewed = False
        for place, kernel in self._held.items():
            # Without git's directory there is no work tree left to hold.
            if kernel.is_open and not kernel.is_in_place() and _can_be_held(place):
                self._held[place] = _take(place, self.holder, now=now)
                kernel.release()
                _write_holder(place, self.holder)
                renewed = True
        return renewed

    def release(self) -> None:
        """Give the project back; doing it twice changes nothing."""
        for place, kernel in self._held.items():
            if kernel.is_open:
                holder = read_holder(place)
                if holder is not None and holder.run == self.holder.run:
                    (place / HOLDER_NAME).unlink(missing_ok=True)
                kernel.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


@contextmanager
def hook_turn(
    directory: Path, *, session: str, run: str, now: float, lease_s: float
) -> Iterator[Holder]:
    """Hold the project during one turn of a session's loop, and by lease until the next one."""
    before = read_holder(directory)
    holder = Holder(
        run=run,
        mode="hook",
        pid=os.getpid(),
        host=os.uname().nodename,
        since=before.since if before is not None and before.session == session else now,
        session=session,
        renewed_at=now,
        expires_at=now + lease_s,
        project=str(directory.parent),
    )
    held = _take_all(directory, holder, now=now, patience_s=_HOOK_PATIENCE_S)
    try:
        yield holder
    finally:
        _release(held)


def end_lease(directory: Path, *, session: str, now: float) -> bool:
    """Give the project back for a session; False where it did not hold it."""
    asked = Holder("", "hook", 0, "", now, session=session, project=str(directory.parent))
    ended = []
    for place in _places(directory):
        kernel = _take(place, asked, now=now, patience_s=_HOOK_PATIENCE_S)
        try:
            holder = read_holder(place)
            ended.append(holder is not None and holder.is_lease and _is_same(holder, asked))
            if ended[-1]:
                (place / HOLDER_NAME).unlink(missing_ok=True)
        finally:
            kernel.release()
    return ended[0]


def tree_holder(directory: Path, now: float) -> Holder | None:
    """Who holds the work tree from another directory of it; looks only, and takes nothing."""
    _, *trees = _places(directory)
    found = (live_holder(tree, now) for tree in trees)
    here = str(directory.parent)
    return next((holder for holder in found if holder and holder.project != here), None)


def live_holder(directory: Path, now: float) -> Holder | None:
    """Who holds the project now; looks only, and takes nothing."""
    holder = read_holder(directory)
    return holder if holder is not None and _is_live(holder, now) else None


def _places(directory: Path) -> tuple[Path, ...]:
    """Where a run is held: the project's directory, and a room of ours in git's."""
    git = git_directory(directory.parent)
    room = git / _TREE_ROOM if git else None
    return (directory, room) if room and _can_be_held(room) else (directory,)


def _can_be_held(place: Path) -> bool:
    return place.name != _TREE_ROOM or os.access(place.parent, os.W_OK)


def _take_all(
    directory: Path, holder: Holder, *, now: float, patience_s: float = 0.0
) -> dict[Path, KernelLock]:
    """Take every place for this holder and put its name there, or take none."""
    held: dict[Path, KernelLock] = {}
    try:
        for place in _places(directory):
            held[place] = _take(place, holder, now=now, patience_s=patience_s)
            _refuse_lease(place, holder, now=now)
        for place in held:
            _write_holder(place, holder)
    except BaseException:  # whatever it was goes on; the locks must not
        _release(held)
        raise
    return held


def _release(held: dict[Path, KernelLock]) -> None:
    for kernel in held.values():
        kernel.release()


def _take(place: Path, asking: Holder, *, now: float, patience_s: float = 0.0) -> KernelLock:
    """Take the kernel's lock within the given time; LockedError names who has it."""
    deadline = time.monotonic() + patience_s
    while True:
        lock = KernelLock.attempt(place)
        if lock is not None:
            return lock
        # Turns of a session are over soon; a run in script mode is not worth waiting for.
        holder = live_holder(place, now)
        if time.monotonic() >= deadline or (holder and not holder.is_lease):
            raise _held_by(_named_holder(place, now), asking)
        time.sleep(_PAUSE_S)


def _is_same(holder: Holder, asking: Holder) -> bool:
    """The same session in the same project; files from before name no project."""
    return holder.session == asking.session and holder.project in ("", asking.project)


def _write_holder(directory: Path, holder: Holder) -> None:
    write_atomic(directory / HOLDER_NAME, encode_holder(holder), within=directory, durable=False)


def _refuse_lease(place: Path, asking: Holder, *, now: float) -> None:
    holder = read_holder(place)
    if holder is not None and holder.lease_holds(now) and not _is_same(holder, asking):
        raise _held_by(holder, asking)


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
    from ralphloop.proc.table import started_at

    started = started_at(holder.pid)
    return started is not None and (
        not holder.pid_started or abs(started - holder.pid_started) <= _SAME_START_S
    )


def _held_by(holder: Holder | None, asking: Holder) -> LockedError:
    if holder is None:
        return LockedError(
            "another run holds this project (it has not given its name)",
            "Wait a moment and try again; `ralph status` shows what runs.",
        )
    elsewhere = holder.project not in ("", asking.project)
    what = f"holds this work tree from {holder.project}" if elsewhere else "holds this project"
    if holder.is_lease:
        return LockedError(
            f"{_described(holder)} {what}",
            "Say /cancel-ralph in that session, or wait: without a sign of life it gives up at "
            f"{_moment(holder.expires_at)}.",
        )
    there = " there" if elsewhere else ""
    return LockedError(
        f"{_described(holder)} {what}",
        f"Look at it with `ralph status`{there}, or end it with `ralph stop`{there}."
        + (" A run beside it needs a work tree of its own: git worktree add." * elsewhere),
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
