"""Whatever others write is read to an answer or an error of ours: mutated from a corpus that is kept.

In `make test` a few mutations of each; `make fuzz` goes on for up to ten minutes, and what it finds
stays in `.hypothesis` and, as a file, belongs into `corpus/`.
"""

from __future__ import annotations

import io
import os
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ralphloop.config.load import check_config
from ralphloop.errors import RalphError
from ralphloop.hook.entry import read_input
from ralphloop.journal.journal import Journal
from ralphloop.journal.queries import JournalReader
from ralphloop.readers import NAMES, read
from ralphloop.redaction import redact_bytes
from ralphloop.stories.source import load
from ralphloop.text.status_block import find_block

CORPUS = Path(__file__).parent / "corpus"
SPLICES = st.sampled_from(
    [
        b"",
        b"\x00",
        b"\n",
        b'"',
        b"{" * 50,
        b"[" * 50,
        b"\xff\xfe",
        b"\xe2\x80\xae",
        b"---",
        b"\\u0000",
        b"1e999",
        b"-1",
        b"null",
        b"\x1b]52;c;",
        b"---RALPH_STATUS---",
        b"!!python/name:os.system",
    ]
)
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "25"))


def seeds(kind: str) -> list[bytes]:
    """What is kept of one kind."""
    return [path.read_bytes() for path in sorted(CORPUS.glob(f"{kind}*"))]


@st.composite
def mutated(draw: st.DrawFn, kind: str) -> bytes:
    """A seed, cut, repeated and spliced with what breaks parsers."""
    data = draw(st.sampled_from(seeds(kind)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        until = min(len(data), at + draw(st.integers(0, 60)))
        data = data[:at] + draw(SPLICES | st.binary(max_size=8)) + data[until:]
        if draw(st.booleans()):
            data = data[: 20_000 - at] + data[at : at + 2_000]
    return data


def file_with(data: bytes, name: str, use: Callable[[Path], object]) -> None:
    """Have a file read; an error of ours is an answer."""
    with TemporaryDirectory(prefix="fuzz-") as place:
        path = Path(place, name)
        path.write_bytes(data)
        try:
            use(path)
        except RalphError as error:
            assert error.message  # noqa: PT017 - either is an answer


fuzzed = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@fuzzed
@given(mutated("output"), st.sampled_from(NAMES))
def test_output_of_agents(data: bytes, agent: str) -> None:
    """Every reader has an answer to any output, and redaction to any bytes."""
    assert read(redact_bytes(data), agent=agent, exit_code=0).outcome


@fuzzed
@given(mutated("status"))
def test_status_blocks(data: bytes) -> None:
    """A status block is found or not."""
    find_block(data.decode("utf-8", "replace"))


@fuzzed
@given(mutated("prd"))
def test_story_files(data: bytes) -> None:
    """A story list is loaded or refused with its place."""
    file_with(data, "prd.json", load)


@fuzzed
@given(mutated("tasks"))
def test_task_files(data: bytes) -> None:
    """The same in YAML."""
    file_with(data, "tasks.yaml", load)


@fuzzed
@given(mutated("settings"))
def test_settings(data: bytes) -> None:
    """Settings are read, or every problem has a place."""

    def use(path: Path) -> None:
        for problem in check_config(path.parent, env={})[1]:
            assert problem.place

    file_with(data, "ralph.toml", use)


@fuzzed
@given(mutated("hook"))
def test_hook_input(data: bytes) -> None:
    """A hook's input is an object, or nothing."""
    given_in, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(data))
    try:
        assert isinstance(read_input(), dict)
    finally:
        sys.stdin = given_in


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A journal as ralph makes it."""
    path = tmp_path_factory.mktemp("journal") / "journal.db"
    with Journal.open(path):
        pass
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
    connection.close()
    return path.read_bytes()


@settings(fuzzed, suppress_health_check=list(HealthCheck))
@given(place=st.integers(0, 1 << 20), foreign=SPLICES | st.binary(max_size=64))
def test_journals(journal: bytes, place: int, foreign: bytes) -> None:
    """A journal with foreign bytes in it is read or refused."""
    at = place % len(journal)  # its size differs from run to run

    def use(path: Path) -> None:
        with JournalReader.open(path) as reader:
            reader.latest_run()

    file_with(journal[:at] + foreign + journal[at + len(foreign) :], "journal.db", use)
