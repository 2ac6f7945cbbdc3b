"""Reading and replacing the user's story file.

Reads are bounded and never block (an agent may have left a pipe where a file was).  A file is
replaced only if it still is what was read, so that an edit made meanwhile is not lost.

The spec file a story belongs to, if it lies inside the repository.  A story list is untrusted and a
spec ends up in a prompt, so `../../etc/passwd`, absolute paths, links that lead out and git's own
directory are errors, not reads.
"""

from __future__ import annotations

import codecs
import os
import stat
from pathlib import Path

import msgspec

from ralphloop.atomic import write_atomic
from ralphloop.core.story import Story
from ralphloop.errors import InputError
from ralphloop.stories.names import label, quoted

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


def resolve_parent_spec(story: Story, *, specs_dir: Path, repo_root: Path) -> Path | None:
    """The real path of the story's spec, looked for in the specs directory, then the root."""
    if story.parent_spec is None:
        return None
    if Path(story.parent_spec).is_absolute():
        raise _error(story, "must be relative to the repository")
    root = Path(os.path.realpath(repo_root))
    candidates = [base / story.parent_spec for base in dict.fromkeys((specs_dir, repo_root))]
    for candidate in candidates:
        # Not Path.resolve: it raises on loops of links.
        real = Path(os.path.realpath(candidate))
        if _is_inside(real, root) and _is_file(real):
            return real
        if os.path.lexists(candidate) and not _is_inside(real, root):
            raise _error(story, "leads out of the repository")
    if not any(_is_inside(Path(os.path.realpath(path)), root) for path in candidates):
        raise _error(story, "leads out of the repository")
    looked = " or ".join(str(base) for base in dict.fromkeys((specs_dir, repo_root)))
    raise _error(story, f"is not a file in {looked}")


def _is_inside(real: Path, root: Path) -> bool:
    return real.is_relative_to(root) and ".git" not in real.relative_to(root).parts


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name too long for the file system
        return False


def _error(story: Story, reason: str) -> InputError:
    return InputError(
        f"{quoted(story.parent_spec or '')} {reason}",
        "Point parent_spec to a file of this repository, or remove it.",
        place=f"story {label(story.id)}: parent_spec",
    )
