"""Writes that are either there or not, whatever kills the process.

A temporary file beside the real target is synced and renamed over it; killed in between, we leave
at most that file, which `clean_leftovers` finds by its name.  Links are followed, because people
link their `prd.json`, but never out of the directory given as `within`: a link planted by a
sandboxed agent must not make us write where the agent itself may not.
"""

import errno
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ralphloop.errors import RepositoryError

_TEMPORARY = re.compile(r"\.ralph-[0-9]{1,9}-[0-9a-f]{8}\.tmp")
_LEFTOVER_AGE_S = 60.0
_PERMISSION = "Give yourself write permission to its directory, then try again."
_NEXT_STEPS = {
    errno.ENOSPC: "Free some disk space, then try again.",
    errno.EDQUOT: "Your disk quota is used up: free some space, then try again.",
    errno.EROFS: "The file system is read-only: make it writable, then try again.",
    errno.EACCES: _PERMISSION,
    errno.EPERM: _PERMISSION,
    errno.EISDIR: "A directory stands in its place: move it away, then try again.",
    errno.ENOENT: "Create its directory, then try again.",
    errno.ELOOP: "Its links lead in a circle: repair them, then try again.",
}


def write_atomic(
    path: Path,
    data: bytes,
    *,
    within: Path | None = None,
    durable: bool = True,
    parents: bool = False,
) -> None:
    """Replace the file's content in one step; the mode of an existing file is kept."""
    with _problems_named(path):
        target = _real_target(path, within)
        if parents:
            target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.parent / temporary_name()
        with temporary.open("xb") as file:
            try:
                with suppress(FileNotFoundError):
                    _take_over(file.fileno(), target.stat())
                file.write(data)
                file.flush()
                if durable:
                    os.fsync(file.fileno())
                kill_point("atomic.written")
                temporary.replace(target)
                kill_point("atomic.renamed")
            except BaseException:  # an interrupt too must leave no half file
                temporary.unlink(missing_ok=True)
                raise
        if durable:
            sync_directory(target.parent)


def append(path: Path, data: bytes, *, within: Path | None = None) -> None:
    """Add to the end of the file; one that has to be created is synced, with its name."""
    with _problems_named(path):
        target = _real_target(path, within)
        is_new = not target.exists()
        # Non-blocking, so that a pipe put in the file's place cannot hang the run.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        with os.fdopen(os.open(target, flags, 0o666), "wb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            if found.st_nlink > 1:
                raise OSError(errno.EMLINK, "it has a second name elsewhere (a hard link)")
            file.write(data)
            file.flush()
            kill_point("append.written")
            if is_new:
                os.fsync(file.fileno())
        if is_new:
            sync_directory(target.parent)


def sync_file(path: Path) -> None:
    """Make what was written to a file survive a power cut; one that is gone has nothing to lose."""
    with _problems_named(path), suppress(FileNotFoundError):
        _sync(path, os.O_NONBLOCK)


def sync_directory(directory: Path) -> None:
    try:
        _sync(directory, os.O_DIRECTORY)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise  # these two: the file system has no such thing and needs none


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, os.O_RDONLY | flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def temporary_name() -> str:
    """A file name that `clean_leftovers` recognises once this process is gone."""
    return f".ralph-{os.getpid()}-{os.urandom(4).hex()}.tmp"


def clean_leftovers(directory: Path, *, now: float) -> list[Path]:
    """Remove temporary files of processes that are gone; those of live writers stay."""
    with os.scandir(directory) as entries:
        found = [Path(entry.path) for entry in entries if _TEMPORARY.fullmatch(entry.name)]
    removed = []
    for path in found:
        with suppress(OSError):  # just renamed by its writer, or not ours: it disturbs nobody
            status = path.lstat()
            writer = int(path.name.split("-")[1])
            # Process ids come round again, in containers at once: age decides where one is in use.
            is_gone = now - status.st_mtime > _LEFTOVER_AGE_S or not is_alive(writer)
            if stat.S_ISREG(status.st_mode) and is_gone:
                path.unlink()
                removed.append(path)
    return removed


def kill_point(name: str) -> None:
    """Say that this moment has come: tests listen, and kill the process here."""
    sys.audit("ralphloop.kill_point", name)


def _real_target(path: Path, within: Path | None) -> Path:
    """Where a path leads; raises where that is out of `within`."""
    try:
        target = path.resolve()
    except RuntimeError as error:  # how pathlib reports a circle of links before Python 3.13
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from error
    if within is None:
        return target
    if within.is_symlink() or not target.is_relative_to(within.resolve()):
        raise RepositoryError(
            f"{path} is a link that leads out of the project, to {target}; nothing was written",
            "Replace the link by a file, or remove it.",
        )
    return target


def _take_over(descriptor: int, old: os.stat_result) -> None:
    new = os.fstat(descriptor)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with suppress(PermissionError):  # only root may give files away; the content matters more
            os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # somebody else's process is alive all the same
    return True


@contextmanager
def _problems_named(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        look = "Look at the file and its directory, then try again."
        step = _NEXT_STEPS.get(error.errno or 0, look)
        raise RepositoryError(f"cannot write {path}: {error.strerror or error}", step) from error
