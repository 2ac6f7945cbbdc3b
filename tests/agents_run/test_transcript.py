"""A transcript is on disk as it comes, bounded, and says what was left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.agents.transcript import (
    CappedFile,
    Transcript,
    join_tail,
    stderr_path,
)

GAP = re.compile(rb"\n\[ralph: ([\d,]+) bytes of output left out here\]\n")


def test_small_output_is_kept_as_it_is(tmp_path: Path) -> None:
    """Within the bound a transcript is what was written, on disk at once."""
    path = tmp_path / "deep" / "t.log"
    with Transcript(path) as transcript:
        transcript.out(b"one\n")
        assert path.read_bytes() == b"one\n"
        assert not stderr_path(path).exists()
        transcript.err(b"oops\n")
        transcript.out(b"two\n")
    assert path.read_bytes() == b"one\ntwo\n"
    assert stderr_path(path).read_bytes() == b"oops\n"
    assert sorted(p.name for p in path.parent.iterdir()) == ["t.log", "t.log.stderr"]


@given(chunks=st.lists(st.binary(max_size=60), max_size=40))
def test_head_and_tail_survive_and_the_gap_is_counted(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes]
) -> None:
    """Whatever comes: the head is whole, the end is the end, and the count is right."""
    path = tmp_path_factory.mktemp("t") / "t.log"
    file = CappedFile(path, head=100, tail=80)
    file.open()
    for chunk in chunks:
        file.write(chunk)
    file.close()
    everything, kept = b"".join(chunks), path.read_bytes()
    assert kept[:100] == everything[:100]
    gap = GAP.search(kept, min(100, len(kept)))
    if gap is None:
        assert kept == everything
        return
    tail = kept[gap.end() :]
    assert everything.endswith(tail)
    assert 40 <= len(tail) <= 80
    assert int(gap.group(1).replace(b",", b"")) == len(everything) - 100 - len(tail)


def test_a_crash_loses_nothing_that_was_written(tmp_path: Path) -> None:
    """The tail lies beside the head until somebody joins them, and joining twice is harmless."""
    path = tmp_path / "t.log"
    file = CappedFile(path, head=10, tail=20)
    file.write(b"0123456789" + b"a" * 100 + b"the end")
    assert path.read_bytes() == b"0123456789"
    join_tail(path)
    joined = path.read_bytes()
    join_tail(path)
    assert path.read_bytes() == joined
    assert joined.startswith(b"0123456789\n[ralph: Output left out here]\n")
    assert joined.endswith(b"the end")
    assert [p.name for p in tmp_path.iterdir()] == ["t.log"]
    file.close()


def test_a_second_transcript_of_the_same_name_starts_clean(tmp_path: Path) -> None:
    """Tails of an earlier start do not get into a new one."""
    path = tmp_path / "t.log"
    for stale in ("t.log.tail", "t.log.tail-old"):
        (tmp_path / stale).write_bytes(b"x" * 50)
    again = CappedFile(path, head=100, tail=8)
    again.write(b"new")
    again.close()
    assert path.read_bytes() == b"new"


def test_a_full_disk_does_not_stop_the_agent() -> None:
    """Writing stops; counting goes on and nothing is raised."""
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    file = CappedFile(full, head=100, tail=10)
    file.write(b"hello")
    file.write(b"again")
    file.close()
    assert file.written == 10
