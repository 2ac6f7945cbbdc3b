"""What an agent printed, on disk as it comes, within a bound.

A transcript grows until its head is full.  From then on the newest output goes to two segments
beside it that replace each other, and when the transcript is closed the tail they hold is joined
to the head, with one line that says how much was left out.  So the disk never holds more than
head and tail, memory holds nothing, and a crash loses nothing that was written: `join_tail` does
afterwards what closing would have done.

Output arrives here redacted.  A full disk must not end the agent's work: writing stops, the
reason is kept in `problem`.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Protocol, Self

from ralphloop.room import new_file, own_opener

MIB = 1024 * 1024
_SEGMENTS = (".tail", ".tail-old")
_STDERR = ".stderr"


class TranscriptSink(Protocol):
    """Where a running agent's output goes."""

    def out(self, chunk: bytes) -> None: ...
    def err(self, chunk: bytes) -> None: ...


class CappedFile:
    """One file with a bounded head and a bounded tail."""

    def __init__(self, path: Path, *, head: int, tail: int) -> None:
        self.path = path
        self.problem = ""
        self.written = 0
        self._head, self._segment = head, max(1, tail // 2)
        self._in_segment = 0
        for ending in _SEGMENTS:
            _remove(f"{path}{ending}")
        self._file: BinaryIO | None = new_file(path)
        self._spill: BinaryIO | None = None

    def write(self, chunk: bytes) -> None:
        """Append; what does not fit into the head goes to the tail."""
        room = max(0, self._head - self.written)
        self.written += len(chunk)
        if self.problem:
            return
        try:
            self._write_head(chunk[:room])
            self._write_tail(chunk[room:])
        except OSError as error:
            self.problem = f"{self.path.name}: {error.strerror or error}"

    def close(self) -> None:
        """Close, and join the tail to the head."""
        if self._file is not None:
            self._file.close()
        if self._spill is None:
            return
        self._spill.close()
        self._file = self._spill = None
        try:
            join_tail(self.path, produced=self.written)
        except OSError as error:
            self.problem = self.problem or f"{self.path.name}: {error.strerror or error}"

    def _write_head(self, piece: bytes) -> None:
        if piece and self._file is not None:
            _write_all(self._file, piece)

    def _write_tail(self, piece: bytes) -> None:
        while piece:
            if self._spill is None or self._in_segment >= self._segment:
                self._next_segment()
            part = piece[: self._segment - self._in_segment]
            if self._spill is not None:
                _write_all(self._spill, part)
            self._in_segment += len(part)
            piece = piece[len(part) :]

    def _next_segment(self) -> None:
        newest, older = _segments(self.path)
        if self._spill is not None:
            self._spill.close()
            newest.replace(older)
        self._spill = new_file(newest)
        self._in_segment = 0


def _write_all(file: BinaryIO, piece: bytes) -> None:
    view = memoryview(piece)
    while view:
        view = view[file.write(view) :]


def _segments(path: Path) -> tuple[Path, Path]:
    return path.with_name(path.name + _SEGMENTS[0]), path.with_name(path.name + _SEGMENTS[1])


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108 - three times for each start, and hardly ever needed


def join_tail(path: Path, produced: int | None = None) -> None:
    """Append the tail segments, if there are any, to the transcript they belong to."""
    newest, older = _segments(path)
    parts = [part for part in (older, newest) if part.exists()]
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
    """Output and error output of one start, side by side: `x.log` and `x.log.stderr`.

    The second is there once there is something in it.
    """

    def __init__(
        self, path: Path, *, head: int = 48 * MIB, tail: int = 16 * MIB, err: int = 4 * MIB
    ) -> None:
        self.path = path
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
        self._out = CappedFile(path, head=head, tail=tail)
        self._err: CappedFile | None = None
        self._err_bytes = err
        self._err_problem = ""
        _remove(f"{path}{_STDERR}")

    def out(self, chunk: bytes) -> None:
        self._out.write(chunk)

    def err(self, chunk: bytes) -> None:
        if self._err is None and not self._err_problem:
            path, half = stderr_path(self.path), self._err_bytes // 2
            try:
                self._err = CappedFile(path, head=half, tail=half)
            except OSError as error:
                self._err_problem = f"{path.name}: {error.strerror or error}"
        if self._err is not None:
            self._err.write(chunk)

    @property
    def problem(self) -> str:
        """Why something could not be written; empty where all went well."""
        return self._out.problem or self._err_problem or (self._err.problem if self._err else "")

    def close(self) -> None:
        self._out.close()
        if self._err is not None:
            self._err.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def stderr_path(path: Path) -> Path:
    """Where the error output beside a transcript is kept."""
    return path.with_name(path.name + _STDERR)
