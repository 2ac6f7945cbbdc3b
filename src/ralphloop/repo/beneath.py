"""Files below a directory, each reached by descriptors: no link on the way is ever followed.

What runs while files are exchanged may put a link where a directory was, to a place that it cannot
reach itself and we can.  So every directory on the way is opened in the one before it, and what is
no directory ends the way.  Whatever stands where a file has to go can be read first and kept, so
that nothing that a person saved there is thrown away.

Moving takes no room on the disk; to another file system it is copied, and the copy is whole before
the first one goes.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from ralphloop.atomic import temporary_name

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_WAY = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_CHUNK = 1 << 20
_MOST_FILES = 1_000
_MOST_BYTES = 64 << 20
LINK = ".link"  # behind the name under which the words of a link are kept

Found = dict[str, bytes]  # contents by paths from the root


class Spot(NamedTuple):
    """A name in a directory that is open."""

    directory: int
    name: str


@contextmanager
def _opened(directory: int | Path, name: str = "") -> Iterator[int]:
    """A directory, or one in it, as a descriptor for as long as it is needed."""
    if isinstance(directory, Path):
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    else:
        descriptor = os.open(name, _DIRECTORY, dir_fd=directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def place_of(root: Path, path: str, *, make: bool = False) -> Iterator[Spot]:
    """Where a path is; OSError where the way there leads through something else."""
    *parents, name = path.split("/")
    with _opened(root) as top:
        directory = os.dup(top)
        try:
            for parent in parents:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(parent, dir_fd=directory)
                inner = os.open(parent, _DIRECTORY, dir_fd=directory)
                os.close(directory)
                directory = inner
            yield Spot(directory, name)
        finally:
            os.close(directory)


def look_at(root: Path, path: str) -> os.stat_result | None:
    """What is at a path, as itself; None where there is nothing, or no way there."""
    try:
        with place_of(root, path) as place:
            return _stat(place)
    except OSError as error:
        if error.errno in _NO_WAY:
            return None
        raise


def obstacle_on_the_way(root: Path, path: str) -> str:
    """The first part of the way to a path that is there and is no directory; empty: none."""
    parts = path.split("/")
    for length in range(1, len(parts)):
        part = "/".join(parts[:length])
        found = look_at(root, part)
        if found is not None and not stat.S_ISDIR(found.st_mode):
            return part
    return ""


def names_in(root: Path, path: str) -> list[str]:
    """What a directory holds, in order; nothing where there is none, or no way there."""
    try:
        with place_of(root, path) as place, _opened(place.directory, place.name) as inner:
            return sorted(os.listdir(inner))  # noqa: PTH208 - by its descriptor
    except OSError as error:
        if error.errno in _NO_WAY:
            return []
        raise


def read(root: Path, path: str, most: int = -1) -> bytes | None:
    """The content of a regular file, or its first bytes; None for anything else."""
    try:
        with place_of(root, path) as place:
            return _content(place, most)
    except OSError as error:
        if error.errno in _NO_WAY:
            return None
        raise


def remove(root: Path, path: str) -> None:
    """Delete a file or a link, and the directories that it leaves empty."""
    try:
        with place_of(root, path) as place:
            os.unlink(place.name, dir_fd=place.directory)
    except OSError as error:
        if error.errno not in _NO_WAY:
            raise
    _prune(root, path)


def _prune(root: Path, path: str) -> None:
    """Remove the directories above a path, as long as they are empty."""
    parts = path.split("/")[:-1]
    with suppress(OSError):  # the first that is not empty
        while parts:
            with place_of(root, "/".join(parts)) as place:
                os.rmdir(place.name, dir_fd=place.directory)
            parts.pop()


def standing(root: Path, path: str) -> Found:
    """The contents of what stands at a path or on the way to it, so many of them."""
    found: Found = {}
    path = obstacle_on_the_way(root, path) or path
    with suppress(FileNotFoundError), place_of(root, path) as place:
        _gather(place, path, found)
    return found


def clear(root: Path, path: str) -> None:
    """Make way for a file: whatever stands at the path, or on the way to it, is gone."""
    path = obstacle_on_the_way(root, path) or path
    with suppress(FileNotFoundError), place_of(root, path) as place:
        _take_down(place)


def _gather(place: Spot, path: str, found: Found) -> None:
    seen = _stat(place)
    if seen is None or len(found) >= _MOST_FILES:
        return
    if stat.S_ISDIR(seen.st_mode):
        with _opened(place.directory, place.name) as inner:
            for name in sorted(os.listdir(inner)):  # noqa: PTH208 - by its descriptor
                _gather(Spot(inner, name), f"{path}/{name}", found)
    elif stat.S_ISLNK(seen.st_mode):
        found[f"{path}{LINK}"] = _words_of(place)
    elif seen.st_size + sum(map(len, found.values())) <= _MOST_BYTES:
        content = _content(place)
        if content is not None:
            found[path] = content


def _take_down(place: Spot) -> None:
    """Remove what is at a place, whatever it is."""
    seen = _stat(place)
    if seen is None:
        return
    if not stat.S_ISDIR(seen.st_mode):
        os.unlink(place.name, dir_fd=place.directory)
        return
    with _opened(place.directory, place.name) as inner:
        for name in os.listdir(inner):  # noqa: PTH208 - by its descriptor
            _take_down(Spot(inner, name))
    os.rmdir(place.name, dir_fd=place.directory)


def move_out(root: Path, path: str, room: Path, name: str) -> None:
    """Move a file, a link or a directory as itself into a room of ours."""
    with place_of(root, path) as place, _opened(room) as there:
        _move(place, Spot(there, name), durable=True)


def move_in(room: Path, name: str, root: Path, path: str, *, durable: bool = True) -> None:
    """Move it to its path, in place of whatever file is there; `durable`: it is the only copy."""
    source_parent, _, source = name.rpartition("/")
    with (
        _opened(room / source_parent) as there,
        place_of(root, path, make=True) as place,
    ):
        _move(Spot(there, source), place, durable=durable)


def touch(root: Path, path: str, seconds: float | None = None) -> None:
    """Give a file or link this time, or that of now."""
    times = None if seconds is None else (seconds, seconds)
    with place_of(root, path) as place:
        os.utime(place.name, times, dir_fd=place.directory, follow_symlinks=False)


def _move(source: Spot, target: Spot, *, durable: bool) -> None:
    try:
        os.replace(
            source.name, target.name, src_dir_fd=source.directory, dst_dir_fd=target.directory
        )
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy(source, target, durable=durable)
        os.unlink(source.name, dir_fd=source.directory)


def _copy(source: Spot, target: Spot, *, durable: bool) -> None:
    """The same file or link on another file system; it is there whole, or not at all."""
    found = os.stat(source.name, dir_fd=source.directory, follow_symlinks=False)
    is_link = stat.S_ISLNK(found.st_mode)
    if not is_link and not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EXDEV, "it is on another file system, and no file", source.name)
    draft = Spot(target.directory, temporary_name())
    try:
        if is_link:
            words = os.readlink(source.name, dir_fd=source.directory)
            os.symlink(words, draft.name, dir_fd=draft.directory)
        else:
            _copy_content(source, draft, stat.S_IMODE(found.st_mode), durable=durable)
        times = (found.st_atime_ns, found.st_mtime_ns)
        os.utime(draft.name, ns=times, dir_fd=draft.directory, follow_symlinks=False)
        os.replace(draft.name, target.name, src_dir_fd=draft.directory, dst_dir_fd=target.directory)
    except BaseException:  # an interrupt too must leave no half file
        with suppress(FileNotFoundError):
            os.unlink(draft.name, dir_fd=draft.directory)
        raise


def _copy_content(source: Spot, target: Spot, mode: int, *, durable: bool) -> None:
    reading = os.open(source.name, _FILE, dir_fd=source.directory)
    with os.fdopen(reading, "rb") as old:
        writing = os.open(target.name, _NEW, mode, dir_fd=target.directory)
        with os.fdopen(writing, "wb") as new:
            os.fchmod(new.fileno(), mode)
            while chunk := old.read(_CHUNK):
                new.write(chunk)
            new.flush()
            if durable:
                os.fsync(new.fileno())


def _stat(place: Spot) -> os.stat_result | None:
    try:
        return os.stat(place.name, dir_fd=place.directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _content(place: Spot, most: int = -1) -> bytes | None:
    """What a regular file holds; None for anything else."""
    found = _stat(place)
    if found is None or not stat.S_ISREG(found.st_mode):
        return None
    descriptor = os.open(place.name, _FILE, dir_fd=place.directory)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(most) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None


def _words_of(place: Spot) -> bytes:
    return os.fsencode(os.readlink(place.name, dir_fd=place.directory))
