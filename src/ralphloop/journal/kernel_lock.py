"""An exclusive lock that ends with its process, however that dies.

`flock` on `.ralph/lock`, kept open: there is no stale lock to judge, and the file is never removed,
so there is no race about its name.  Where the file system refuses kernel locks, a file in the
machine's temporary directory, named by the repository's path, is locked instead; `note` then says
that other machines are not kept out.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path
from typing import Self

from ralphloop.errors import RepositoryError

LOCK_NAME = "lock"
_REFUSALS = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
_NOTE = (
    "This file system refuses kernel locks; the run is locked on this machine only. "
    "Do not start another one from a second machine."
)


class KernelLock:
    """An open file with the kernel's exclusive lock on it; children do not inherit it."""

    def __init__(self, path: Path, descriptor: int, note: str = "") -> None:
        self._path = path
        self._descriptor = descriptor
        self.note = note

    @classmethod
    def attempt(cls, directory: Path) -> Self | None:
        """The lock, or None where another process has it."""
        try:
            return cls._lock_file(directory / LOCK_NAME)
        except OSError as error:
            if error.errno not in _REFUSALS:
                raise _cannot_lock(directory, error) from error
        try:
            return cls._lock_file(_local_path(directory), _NOTE)
        except OSError as error:
            raise _cannot_lock(directory, error) from error

    @classmethod
    def _lock_file(cls, path: Path, note: str = "") -> Self | None:
        path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            lock = cls(path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), note)
            try:
                fcntl.flock(lock._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.release()
                return None
            except BaseException:  # whatever it was goes on; the descriptor must not
                lock.release()
                raise
            if lock.is_in_place():
                return lock
            lock.release()  # the file was removed between opening and locking: once more

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


def _local_path(directory: Path) -> Path:
    import hashlib
    import tempfile

    room = Path(tempfile.gettempdir()) / f"ralph-locks-{os.getuid()}"
    room.mkdir(mode=0o700, exist_ok=True)
    status = room.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise OSError(errno.EPERM, f"{room} belongs to somebody else")
    digest = hashlib.sha256(os.fsencode(directory.resolve())).hexdigest()
    return room / f"{digest[:32]}.lock"


def _cannot_lock(directory: Path, error: OSError) -> RepositoryError:
    return RepositoryError(
        f"cannot lock the project at {directory / LOCK_NAME}: {error.strerror or error}",
        "Give yourself write permission to that directory, then try again.",
    )
