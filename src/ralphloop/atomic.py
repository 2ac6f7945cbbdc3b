"""Writes that are either there or not, whatever kills the process.

`write_atomic` writes a temporary file beside the real target, syncs it and renames it over the
target; `append` adds to the end, and `sync_file` makes that survive a power cut.  Both follow
links, because people link their `prd.json`, but never out of the directory given as `within`: a
link planted by a sandboxed agent must not make us write where the agent itself may not.  A process
killed in between leaves at most a temporary file, which `clean_leftovers` finds by its name.

Kill points are a testing aid.  Code that must survive a crash calls `kill_point(name)` at the
moments that matter; with `RALPH_KILL_AT=name` in the environment the process kills itself there
(`name:3`: the third time it passes), otherwise the call does nothing.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import stat
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ralphloop.errors import RepositoryError, UsageError

KILL_VARIABLE = "RALPH_KILL_AT"

_TEMPORARY = re.compile(r"\.ralph-[0-9]{1,9}-[0-9a-f]{8}\.tmp")
_LEFTOVER_AGE_S = 60.0
_NEXT_STEPS = {
    errno.ENOSPC: "Free some disk space, then try again.",
    errno.EDQUOT: "Your disk quota is used up: free some space, then try again.",
    errno.EROFS: "The file system is read-only: make it writable, then try again.",
    errno.EACCES: "Give yourself write permission to its directory, then try again.",
    errno.EPERM: "Give yourself write permission to its directory, then try again.",
    errno.EISDIR: "A directory stands in its place: move it away, then try again.",
    errno.ENOENT: "Create its directory, then try again.",
    errno.ELOOP: "Its links lead in a circle: repair them, then try again.",
}


def write_atomic(
    path: Path, data: bytes, *, within: Path | None = None, durable: bool = True
) -> None:
    """Replace the file's content in one step; the mode of an existing file is kept."""
    try:
        target = _real_target(path, within)
        _replace(target, data, durable=durable)
        if durable:
            sync_directory(target.parent)
    except OSError as error:
        raise _cannot_write(path, error) from error


def append(path: Path, data: bytes, *, within: Path | None = None) -> None:
    """Add to the end of the file; one that has to be created is synced, with its name."""
    try:
        target = _real_target(path, within)
        is_new = not target.exists()
        _append(target, data, durable=is_new)
        if is_new:
            sync_directory(target.parent)
    except OSError as error:
        raise _cannot_write(path, error) from error


def sync_file(path: Path) -> None:
    """Make what was written to a file survive a power cut; one that is gone has nothing to lose."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _cannot_write(path, error) from error


def sync_directory(directory: Path) -> None:
    """Make the names in a directory survive a power cut."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise  # these two: the file system has no such thing and needs none
    finally:
        os.close(descriptor)


def temporary_name() -> str:
    """A file name that `clean_leftovers` recognises once this process is gone."""
    return f".ralph-{os.getpid()}-{os.urandom(4).hex()}.tmp"


def clean_leftovers(directory: Path, *, now: float) -> list[Path]:
    """Remove temporary files of processes that are gone; those of live writers stay."""
    with os.scandir(directory) as entries:
        found = [Path(entry.path) for entry in entries if _TEMPORARY.fullmatch(entry.name)]
    return [path for path in found if _remove_leftover(path, now)]


def kill_point(name: str) -> None:
    """End this process here if the environment asks for it (see the module's docstring)."""
    bomb = _armed_bomb()
    if bomb is not None and bomb.goes_off_at(name):
        os.kill(os.getpid(), signal.SIGKILL)


class _Bomb:
    """A kill point's name and how often it is still passed before it kills."""

    def __init__(self, name: str, passes: int) -> None:
        self._name = name
        self._passes_left = passes

    def goes_off_at(self, name: str) -> bool:
        if name == self._name:
            self._passes_left -= 1
            return self._passes_left == 0
        return False


@cache
def _armed_bomb() -> _Bomb | None:
    setting = os.environ.get(KILL_VARIABLE, "")
    if not setting:
        return None
    name, _, passes = setting.partition(":")
    if passes and not (passes.isascii() and passes.isdigit() and int(passes) > 0):
        raise UsageError(f"{KILL_VARIABLE}={setting}: the count must be a number above zero")
    return _Bomb(name, int(passes or 1))


class _Owner(NamedTuple):
    """What a replacement takes over from the file it replaces."""

    mode: int
    uid: int
    gid: int


def _real_target(path: Path, within: Path | None) -> Path:
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


def _replace(target: Path, data: bytes, *, durable: bool) -> None:
    temporary = target.parent / temporary_name()
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        try:
            _take_over(descriptor, _owner_of(target))
            _write_all(descriptor, data)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        kill_point("atomic.written")
        temporary.replace(target)
        kill_point("atomic.renamed")
    except BaseException:  # an interrupt too must leave no half file
        temporary.unlink(missing_ok=True)
        raise


def _append(target: Path, data: bytes, *, durable: bool) -> None:
    # Non-blocking, so that a pipe put in the file's place cannot hang the run.
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(target, flags, 0o666)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        _write_all(descriptor, data)
        kill_point("append.written")
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _owner_of(target: Path) -> _Owner | None:
    try:
        status = target.stat()
    except FileNotFoundError:
        return None
    return _Owner(stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid)


def _take_over(descriptor: int, owner: _Owner | None) -> None:
    if owner is None:
        return
    mine = os.fstat(descriptor)
    if (mine.st_uid, mine.st_gid) != (owner.uid, owner.gid):
        try:
            os.fchown(descriptor, owner.uid, owner.gid)
        except PermissionError:
            pass  # only root may give files away; the content matters more than the owner
    os.fchmod(descriptor, owner.mode)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _remove_leftover(path: Path, now: float) -> bool:
    try:
        if not _is_leftover(path, now):
            return False
        path.unlink()
    except OSError:
        return False  # just renamed by its writer, or not ours to remove: it disturbs nobody
    return True


def _is_leftover(path: Path, now: float) -> bool:
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        return False
    # Process ids come round again, in containers at once: age decides where the id is in use.
    writer = int(path.name.split("-")[1])
    return now - status.st_mtime > _LEFTOVER_AGE_S or not is_alive(writer)


def is_alive(pid: int) -> bool:
    """True while a process has this id, whoever's it is."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # somebody else's process is alive all the same
    return True


def _cannot_write(path: Path, error: OSError) -> RepositoryError:
    reason = error.strerror or str(error)
    step = _NEXT_STEPS.get(error.errno or 0, "Look at the file and its directory, then try again.")
    return RepositoryError(f"cannot write {path}: {reason}", step)
