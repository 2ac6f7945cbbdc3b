"""What Python keeps of a source beside it, and that it may be of another text.

Python knows its bytecode by the size of the source and the second in which that was written.  An
agent, or an exchange of files, may write another text of the same size in the same second (or date
it so): then a check runs the one that is gone, and says what is not so.  The bytecode stays
as it is, since a repository may hold it; the source gets a second of its own.
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath

from ralphloop.repo import beneath

_CACHE = "__pycache__"
_SUFFIX = ".py"
_COMPILED = ".pyc"
_TIMED_HEADER = 12  # bytes: four of a version, four of flags, four of the second
_BY_TIME = bytes(4)  # the flags of bytecode that is known by time and size
_UNASKED = b"\x01\x00\x00\x00"  # those of bytecode that is run whatever its source says
_MOST_SECONDS = 60  # how far a source is put into the future at most


def is_bytecode(path: str) -> bool:
    """What Python keeps of a source: whoever runs it writes it, and it is nobody's work."""
    return path.endswith(_COMPILED) or _CACHE in PurePosixPath(path).parts


def hides_its_source(content: bytes) -> bool:
    """Whether this is bytecode that Python runs without a look at the source beside it."""
    return content[4:8] == _UNASKED


def outdate_bytecode(root: Path, paths: Iterable[str]) -> None:
    """Let Python compile these sources anew, whatever time somebody gave them."""
    for path in paths:
        if not path.endswith(_SUFFIX):
            continue
        with suppress(OSError):  # it is gone meanwhile, or not ours to date: it is as it was
            _give_a_second_of_its_own(root, path)


def _give_a_second_of_its_own(root: Path, path: str) -> None:
    source = beneath.look_at(root, path)
    if source is None:
        return
    second = int(source.st_mtime)
    taken = _seconds_compiled(root, path)
    if second not in taken:
        return
    for later in range(second + 1, second + _MOST_SECONDS):
        if later not in taken:
            beneath.touch(root, path, float(later))
            return


def _seconds_compiled(root: Path, path: str) -> set[int]:
    """The seconds of which there is bytecode of a source, by any version of Python."""
    pure = PurePosixPath(path)
    cache = pure.parent / _CACHE
    found = set()
    for name in beneath.names_in(root, str(cache)):
        if not (name.startswith(f"{pure.stem}.") and name.endswith(_COMPILED)):
            continue
        header = beneath.read(root, str(cache / name), most=_TIMED_HEADER) or b""
        if len(header) == _TIMED_HEADER and header[4:8] == _BY_TIME:
            found.add(int.from_bytes(header[8:], "little"))
    return found
