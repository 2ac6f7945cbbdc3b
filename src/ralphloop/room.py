"""The two places that are ours alone: `.ralph` in a repository, and the user's state directory.

Nothing in `.ralph` may lead elsewhere: a link shipped with a clone, or planted by an agent that may
not leave the project, would make us write where its author cannot.  What is in it was said by
agents about somebody's work, so nobody else may read it.

What no project may reach (trust records, the heads of journals) is in `$XDG_STATE_HOME/ralph`, else
`~/.local/state/ralph`, which must be ours alone (0700) and no link.  Where there is no such place
(no home, read-only) nothing is kept, which the callers say; nothing is believed for want of it.
"""

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from ralphloop.atomic import write_atomic
from ralphloop.errors import RepositoryError
from ralphloop.project import RALPH_DIR, git_directory

_PRIVATE = 0o700
_PRIVATE_FILE = 0o600
_OF_PEOPLE = "agents"  # declarations a person puts there; we only read them
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_USUAL = 1 << 16
_DEPTH = 1  # deeper are only names nobody can foresee


def ensure_private_dir(directory: Path) -> None:
    """Have the directory to ourselves, or say what stands in the way."""
    refuse_links(directory)
    try:
        directory.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        if stat.S_IMODE(directory.stat().st_mode) & ~_PRIVATE:
            with suppress(PermissionError):  # somebody else's, who lets us in: theirs to close
                directory.chmod(_PRIVATE)
    except OSError as error:
        raise cannot_write(directory, error) from None


def refuse_links(directory: Path) -> None:
    """Go no further where something in the directory leads elsewhere."""
    try:
        link = directory if directory.is_symlink() else None
        if link is None and directory.is_dir():
            link = next(_links(directory, _DEPTH), None)
    except OSError as error:
        raise cannot_write(directory, error) from None
    if link is not None:
        raise RepositoryError(
            f"{link} is a link; ralph writes only to places of its own, so nothing was written",
            f"Look where it leads, then remove it: rm '{link}'",
        )


def cannot_write(directory: Path, error: OSError) -> RepositoryError:
    way_out = "Make the directory writable, or free some space."
    if isinstance(error, FileExistsError | NotADirectoryError):
        way_out = f"A file stands in its place; move it away: mv '{directory}' '{directory}.old'"
    return RepositoryError(f"cannot write to {directory}: {error.strerror or error}", way_out)


def own_opener(name: str, flags: int) -> int:
    """For `open`: through no link, into no pipe and no second name of a file elsewhere.

    From `.ralph` on, each directory is opened in the one before it, so that none of them can be
    exchanged for a link meanwhile.
    """
    parts = Path(name).parts
    at = max((n for n, part in enumerate(parts) if part == RALPH_DIR), default=len(parts) - 1)
    top = Path(*parts[:at])
    below = parts[at:]
    directory = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in below[:-1]:
            inner = os.open(part, _DIRECTORY, dir_fd=directory)
            os.close(directory)
            directory = inner
        wanted = flags & ~os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        file = os.open(below[-1], wanted, 0o600, dir_fd=directory)
    finally:
        os.close(directory)
    found = os.fstat(file)
    if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
        os.close(file)
        raise OSError(errno.EMLINK, "it has a second name elsewhere (a hard link)", name)
    if flags & os.O_TRUNC and stat.S_ISREG(found.st_mode):
        os.ftruncate(file, 0)
    return file


def new_file(path: Path) -> BinaryIO:
    return os.fdopen(own_opener(str(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb", 0)


def _links(directory: Path, depth: int) -> Iterator[Path]:
    """Links in the directory and so far below it; no file is asked anything."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name == _OF_PEOPLE:
                continue
            if entry.is_symlink():
                yield directory / entry.name
            elif depth and entry.is_dir():
                yield from _links(directory / entry.name, depth - 1)


def open_regular(path: Path) -> BinaryIO:
    """The file for reading; OSError for a pipe or a device, which could be waited on for ever."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(descriptor, "rb")


def read_regular(path: Path, *, most: int = -1, within: Path | None = None) -> bytes:
    """The file's content; OSError for what could be waited on, or leads out of `within`."""
    real = path.resolve() if within is not None and path.is_symlink() else None
    if real and within and not real.is_relative_to(within.resolve()):
        raise OSError(errno.EXDEV, "is a link that leads out of the repository", str(path))
    with open_regular(path) as file:
        if most <= _USUAL:
            return file.read(most)
        start = file.read(_USUAL)  # asked for at most 50 MB, Python makes room for 50 MB
        return start + file.read(most - _USUAL) if len(start) == _USUAL else start


_LARGEST = 4 << 20
CLEAN = "clean"  # in the state directory: the trees in which stories are judged


def state_directory(env: Mapping[str, str]) -> Path | None:
    base = env.get("XDG_STATE_HOME", "")
    if Path(base).is_absolute():
        return Path(base) / "ralph"
    home = env.get("HOME", "")
    return Path(home) / ".local" / "state" / "ralph" if Path(home).is_absolute() else None


def common_place(root: Path) -> Path:
    """What a project is known by: git's common directory, which all its work trees share."""
    git = git_directory(root.resolve())
    if git is None:
        return root.resolve()
    with suppress(OSError, ValueError), open_regular(git / "commondir") as file:
        return (git / file.read(4096).decode("utf-8").strip()).resolve()
    return git


def file_of(kind: str, place: Path, env: Mapping[str, str]) -> Path | None:
    import hashlib

    directory = state_directory(env)
    name = hashlib.sha256(os.fsencode(place)).hexdigest()[:32]
    return directory / kind / f"{name}.json" if directory else None


def read_state(path: Path | None) -> bytes | None:
    """What was kept; None where there is nothing, or it is not ours."""
    if path is None or not _is_private(path.parent.parent):
        return None
    try:
        with open_regular(path) as file:
            return file.read(_LARGEST) if not path.is_symlink() else None
    except OSError:
        return None


def write_state(path: Path | None, data: bytes, *, durable: bool = True) -> None:
    """Keep it; raises where there is no place for it."""
    if path is None:
        step = "Set HOME, or XDG_STATE_HOME to a directory of your own."
        raise RepositoryError("there is no directory to remember anything in", step)
    directory = path.parent.parent
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        for place in (directory, path.parent):
            with suppress(FileExistsError):
                place.mkdir(mode=_PRIVATE)
    except OSError as error:
        step = "Make it writable, or set XDG_STATE_HOME to a directory of your own."
        raise RepositoryError(f"cannot write to {directory}: {error.strerror}", step) from None
    if not _is_private(directory) or path.parent.is_symlink() or path.is_symlink():
        step = f"It must be a directory of your own: ls -ld '{directory}'; chmod 700 '{directory}'"
        raise RepositoryError(f"{directory} is a link, or open to others", step)
    write_atomic(path, data, within=directory, durable=durable)
    with suppress(OSError):  # nobody else gets past the directory either
        path.chmod(_PRIVATE_FILE)


def _is_private(directory: Path) -> bool:
    """True for a real directory of ours in which nobody else can write."""
    try:
        found = directory.lstat()
    except OSError:
        return False
    others = stat.S_IMODE(found.st_mode) & 0o022
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not others
