"""The journal seen from beside a run: consistent, cheap, and without the power to disturb it."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from ralphloop.core.events import AgentStep, LoopEvent, StatusAsked
from ralphloop.journal.journal import Journal
from ralphloop.journal.queries import JournalReader
from tests.journal.support import NOON, new_run, run_iterations, start_python

WRITER = """
import sys
from pathlib import Path
from ralphloop.journal.journal import Journal
from tests.journal.support import new_run, run_iterations
with Journal.open(Path(sys.argv[1])) as journal:
    journal.begin_run(new_run())
    print("ready", flush=True)
    run_iterations(journal, 150)
print("done", flush=True)
"""


def test_no_journal_reads_as_an_empty_one(path: Path) -> None:
    """Before the first run there is nothing to read, and looking creates nothing."""
    with JournalReader.open(path) as reader:
        assert (reader.latest_run(), reader.runs(), reader.last_events("r1", 9)) == (None, [], [])
    assert not path.parent.exists()


def test_a_reader_cannot_write(journal: Journal, path: Path) -> None:
    """The connection itself refuses."""
    with (
        JournalReader.open(path) as reader,
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        reader.connection.execute("DELETE FROM runs")


def test_a_change_is_seen_once(journal: Journal, path: Path) -> None:
    """`changed` is true after a write and false until the next one."""
    with JournalReader.open(path) as reader:
        assert reader.changed()
        assert not reader.changed()
        journal.begin_run(new_run())
        assert reader.changed()
        assert not reader.changed()
        journal.append_events([LoopEvent(run="r1", at=NOON, what=StatusAsked())])
        assert reader.changed()


def test_a_reader_beside_a_writer_sees_whole_iterations_only(path: Path) -> None:
    """While another process writes, what is read always adds up and never goes back."""
    writer = start_python("-c", WRITER, str(path))
    assert writer.stdin is not None
    assert writer.stdout is not None
    with writer.stdin, writer.stdout:
        assert writer.stdout.readline() == "ready\n"
        seen: list[int] = []
        with JournalReader.open(path) as reader:
            while not seen or seen[-1] < 150:
                with reader.snapshot():
                    totals = reader.totals("r1")
                    rows = reader.iterations("r1", limit=1000, brief=True)
                assert totals.starts == len(rows)
                assert totals.iterations == sum(row.counted for row in rows)
                seen.append(totals.iterations)
        assert writer.wait(timeout=60) == 0
    assert seen == sorted(seen)


def test_a_reader_does_not_make_the_log_grow(journal: Journal, path: Path) -> None:
    """With a reader asking all the time, the write-ahead log stays small."""
    journal.begin_run(new_run())
    log = path.with_name("journal.db-wal")
    with JournalReader.open(path) as reader:
        for _ in range(6):
            for _ in range(40):
                data = "x" * 30_000
                journal.append_events([LoopEvent(run="r1", at=NOON, what=AgentStep(summary=data))])
                reader.last_events("r1", 1)
            assert log.stat().st_size < 6_000_000
        assert reader.last_events("r1", 1)[0].seq == 240


def test_a_reader_may_be_asked_from_several_threads(journal: Journal, path: Path) -> None:
    """Screens ask from worker threads; answers do not mix."""
    journal.begin_run(new_run())
    run_iterations(journal, 20)
    problems: list[BaseException] = []

    def ask(reader: JournalReader, n: int) -> None:
        try:
            for _ in range(50):
                found = reader.iteration("r1", n)
                assert found is not None
                assert found.n == n
        except BaseException as problem:  # noqa: BLE001 - handed to the main thread
            problems.append(problem)

    with JournalReader.open(path) as reader:
        threads = [threading.Thread(target=ask, args=(reader, n)) for n in range(1, 6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert problems == []


def test_several_processes_may_open_a_new_journal_at_once(path: Path) -> None:
    """Whoever comes first creates it; the others find it whole."""
    script = (
        "import sys; from pathlib import Path; from ralphloop.journal.journal import Journal\n"
        "sys.stdin.readline()\n"
        "with Journal.open(Path(sys.argv[1])) as journal: journal.set_meta(sys.argv[2], 1)\n"
    )
    children = [start_python("-c", script, str(path), f"key{i}") for i in range(4)]
    for child in children:
        child.communicate("go\n", timeout=60)
    assert [child.returncode for child in children] == [0] * 4
    with JournalReader.open(path) as reader:
        assert [reader.meta(f"key{i}") for i in range(4)] == [1] * 4
    assert not list(path.parent.glob("*.tmp"))
