"""What an agent printed, on disk as it comes, within a bound.

Once its head is full, the newest output goes to two segments that replace each other; at the end
they are joined to the head, with a line that says how much was left out.  So memory holds nothing,
and after a crash `join_tail` does what closing would have done.

A full disk must not end the agent's work: then writing stops.
"""

from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Self

from ralphloop.room import new_file, own_opener

MIB = 1024 * 1024


class CappedFile:
    """One file with a bounded head and a bounded tail; it is there once something is written."""

    def __init__(self, path: Path, *, head: int, tail: int) -> None:
        self.path = path
        self._stopped = False
        self.written = 0
        self._room, self._segment = head, max(1, tail // 2)  # room in the file that is open
        self._file: BinaryIO | None = None
        for stale in _segments(path):
            stale.unlink(missing_ok=True)

    def open(self) -> BinaryIO:
        self._file = new_file(self.path)
        return self._file

    def write(self, chunk: bytes) -> None:
        """Append; what does not fit into the head goes to the tail."""
        self.written += len(chunk)
        rest = memoryview(chunk)
        try:
            file = self._file or self.open()
            while rest and not self._stopped:
                if not self._room:
                    file.close()
                    older, newest = _segments(self.path)
                    if newest.exists():
                        newest.replace(older)
                    self._file = file = new_file(newest)
                    self._room = self._segment
                sent = file.write(rest[: self._room])
                self._room -= sent
                rest = rest[sent:]
        except OSError:
            self._stopped = True

    def close(self) -> None:
        if self._file is None:
            return
        self._file.close()
        with suppress(OSError):
            join_tail(self.path, produced=self.written)


def _segments(path: Path) -> tuple[Path, Path]:
    return path.with_name(f"{path.name}.tail-old"), path.with_name(f"{path.name}.tail")


def join_tail(path: Path, produced: int | None = None) -> None:
    """Append the tail segments, if there are any, to the transcript they belong to."""
    parts = [part for part in _segments(path) if part.exists()]
    if not parts:
        return
    kept = path.stat().st_size + sum(part.stat().st_size for part in parts)
    left_out = f"{produced - kept:,} bytes of output" if produced is not None else "Output"
    with open(path, "ab", opener=own_opener) as whole:
        if produced is None or produced > kept:
            whole.write(f"\n[ralph: {left_out} left out here]\n".encode())
        for part in parts:
            with part.open("rb") as source:
                while piece := source.read(MIB):
                    whole.write(piece)
    for part in parts:
        part.unlink()


class Transcript:
    """Output and errors of one start: `x.log` and, once there are any, `x.log.stderr`."""

    def __init__(
        self, path: Path, *, head: int = 48 * MIB, tail: int = 16 * MIB, err: int = 4 * MIB
    ) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        stderr_path(path).unlink(missing_ok=True)
        self._out = CappedFile(path, head=head, tail=tail)
        self._err = CappedFile(stderr_path(path), head=err // 2, tail=err // 2)
        self._out.open()
        self.out = self._out.write
        self.err = self._err.write

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._out.close()
        self._err.close()


def stderr_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.stderr")
