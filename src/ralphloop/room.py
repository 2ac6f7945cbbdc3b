"""Our own directory in the user's repository: `.ralph`, for us alone.

Everything we write lands there, so nothing in it may lead elsewhere: a link shipped with a clone,
or planted by an agent that may not leave the project, would make us write where its author cannot.
`claim` is asked before anything is written; `own_opener` opens the files that are written in place;
`open_regular` reads what somebody may have replaced by something that is no file.
What is in the directory was said by agents about somebody's work, so nobody else may read it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from ralphloop.errors import RepositoryError

_PRIVATE = 0o700
_OF_PEOPLE = "agents"  # declarations a person puts there; we only read them
_DEPTH = 1  # deeper are only names nobody can foresee


def claim(directory: Path) -> None:
    """Have the directory to ourselves, or say what stands in the way."""
    try:
        if (link := next(_links(directory, _DEPTH), None)) is not None:
            raise RepositoryError(
                f"{link} is a link; ralph writes only to places of its own, so nothing was written",
                f"Look where it leads, then remove it: rm '{link}'",
            )
        directory.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        if stat.S_IMODE(directory.stat().st_mode) & ~_PRIVATE:
            with suppress(PermissionError):  # somebody else's, who lets us in: theirs to close
                directory.chmod(_PRIVATE)
    except OSError as error:
        raise cannot_write(directory, error) from None


def cannot_write(directory: Path, error: OSError) -> RepositoryError:
    """Why nothing can be written there."""
    way_out = "Make the directory writable, or free some space."
    if isinstance(error, FileExistsError | NotADirectoryError):
        way_out = f"A file stands in its place; move it away: mv '{directory}' '{directory}.old'"
    return RepositoryError(f"cannot write to {directory}: {error.strerror or error}", way_out)


def own_opener(name: str, flags: int) -> int:
    """For `open`: neither through a link nor into a pipe that somebody put in the file's place."""
    return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)


def new_file(path: Path) -> BinaryIO:
    """The file, emptied, for unbuffered writing."""
    return os.fdopen(own_opener(str(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb", 0)


def _links(path: Path, depth: int) -> Iterator[Path]:
    """The first link on the way into the directory and below it."""
    if path.is_symlink():
        yield path
    elif depth >= 0 and path.is_dir():
        with os.scandir(path) as entries:
            ours = [entry for entry in entries if entry.name != _OF_PEOPLE]
        for entry in ours:
            yield from _links(path / entry.name, depth - 1)


def open_regular(path: Path) -> BinaryIO:
    """The file for reading; OSError for a pipe or a device, which could be waited on for ever."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(descriptor, "rb")
