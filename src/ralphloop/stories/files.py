"""Reading and replacing the user's story file.

Reads are bounded and never block (an agent may have left a pipe where a file was).  A file is
replaced only if it still is what was read, so that an edit made meanwhile is not lost.
"""

from __future__ import annotations

import codecs
import os
import stat
from pathlib import Path

import msgspec

from ralphloop.atomic import write_atomic
from ralphloop.errors import InputError

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Snapshot(msgspec.Struct, frozen=True):
    """A file's content and the marks by which a later change of it is seen."""

    data: bytes
    state: os.stat_result


class Text(msgspec.Struct, frozen=True):
    """Decoded content that can be encoded again to the same bytes."""

    content: str
    bom: bytes
    codec: str

    def encoded(self, content: str) -> bytes:
        return self.bom + content.encode(self.codec)


def read(path: Path, max_bytes: int) -> Snapshot:
    """The whole file, refused where it is none or too large."""
    check = f"Check {path}."
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        reason = f"cannot be read: {(error.strerror or str(error)).lower()}"
        raise InputError(reason, check, place=path.name) from None
    state = os.fstat(descriptor)
    if not stat.S_ISREG(state.st_mode):
        os.close(descriptor)
        raise InputError("is not a regular file", check, place=path.name)
    with os.fdopen(descriptor, "rb") as file:
        # Not `max_bytes` at once: room for a gigabyte would be made to read a kilobyte.
        data = file.read(min(state.st_size, max_bytes) + 1)
        if len(data) > state.st_size:  # it has grown meanwhile
            data += file.read(max(0, max_bytes + 1 - len(data)))
    if len(data) > max_bytes:
        reason = f"is larger than {max_bytes // 1_000_000} MB"
        raise InputError(reason, "Split it into several files.", place=path.name)
    return Snapshot(data, state)


def decode(data: bytes, path: Path) -> Text:
    """The text of a file, as UTF-8 unless a byte order mark says otherwise."""
    bom, codec = next(((b, c) for b, c in _BOMS if data.startswith(b)), (b"", "utf-8"))
    try:
        return Text(data[len(bom) :].decode(codec), bom, codec)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, len(bom) + error.start) + 1
        place = f"{path.name}: line {line}"
        step = f"Save {path} as UTF-8 and run the command again. Nothing was changed."
        raise InputError("is not UTF-8 text", step, place=place) from None


def replace(path: Path, data: bytes, before: Snapshot, *, within: Path | None) -> bool:
    """Put `data` in the file's place; False, and nothing done, if it changed since `before`."""
    if not _is_current(path, before.state):
        return False
    write_atomic(path, data, within=within)
    return True


def _is_current(path: Path, state: os.stat_result) -> bool:
    try:
        return _marks(path.stat()) == _marks(state)
    except FileNotFoundError:
        return False


def _marks(state: os.stat_result) -> tuple[int, int, int, int]:
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns
