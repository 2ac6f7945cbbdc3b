"""A journal that cannot be read or written: named, explained, and never replaced."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ralphloop.core.iteration import MarkStory
from ralphloop.errors import ExitCode, JournalError
from ralphloop.journal import database
from ralphloop.journal.database import use_write_ahead_log
from ralphloop.journal.journal import Journal
from ralphloop.journal.queries import JournalReader
from tests.journal.support import (
    NOON,
    finished,
    new_iteration,
    new_run,
    python,
    run_iterations,
)

FULL, NORMAL = 2, 1  # SQLite's numbers
OPENERS: list[Callable[[Path], object]] = [Journal.open, JournalReader.open]


def filled(path: Path) -> bytes:
    """A closed journal with something in it; its bytes."""
    with Journal.open(path) as journal:
        journal.begin_run(new_run())
        run_iterations(journal, 30)
    return path.read_bytes()


def half(content: bytes) -> bytes:
    """The first half, in whole pages."""
    return content[: len(content) // 2 // 4096 * 4096]


def foreign(path: Path) -> None:
    """An SQLite file of somebody else."""
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE bookmarks (url)")
    connection.close()


def without_our_tables(path: Path) -> None:
    """A file that carries our mark and nothing else."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA application_id = 0x52616C66")
    connection.execute("CREATE TABLE other (a)")
    connection.close()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("not a journal\n" * 400),
    "null": lambda path: path.write_text("null"),
    "short": lambda path: path.write_bytes(filled(path)[:100]),
    "first page only": lambda path: path.write_bytes(filled(path)[:4096]),
    "half": lambda path: path.write_bytes(half(filled(path))),
    "scribbled": lambda path: path.write_bytes(filled(path)[:100] + b"\xff" * 40_000),
    "foreign": foreign,
    "without our tables": without_our_tables,
}


@pytest.mark.parametrize("opener", OPENERS, ids=["writer", "reader"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_journal_stops_with_its_name_and_is_left_alone(
    path: Path, damage: str, opener: Callable[[Path], object]
) -> None:
    """Whatever is in its place, opening names the file and the way out and changes nothing."""
    path.parent.mkdir()
    DAMAGES[damage](path)
    before = path.read_bytes()
    with pytest.raises(JournalError) as caught:
        opener(path)
    assert str(path) in caught.value.message
    assert caught.value.exit_code is ExitCode.INTERNAL
    assert caught.value.next_step
    assert path.read_bytes() == before


def test_damage_inside_is_found_by_the_writer_at_once_and_by_the_reader_in_time(
    path: Path,
) -> None:
    """A scribbled page stops a run before it begins, and a reader when met."""
    filled(path)
    connection = sqlite3.connect(path)
    sql = "SELECT rootpage FROM sqlite_master WHERE name = 'iterations'"
    (page,) = connection.execute(sql).fetchone()
    connection.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)
    with pytest.raises(JournalError, match="damaged"):
        Journal.open(path)
    with JournalReader.open(path) as reader, pytest.raises(JournalError, match="damaged"):
        reader.iterations("r1")


def test_a_log_without_its_journal_is_not_played_into_a_new_one(path: Path) -> None:
    """A deleted journal whose write-ahead log is still there is not silently begun anew."""
    with Journal.open(path) as journal:
        journal.begin_run(new_run())
        shutil.copy(path.with_name("journal.db-wal"), path.parent / "kept")
    path.unlink()
    (path.parent / "kept").rename(path.with_name("journal.db-wal"))
    with pytest.raises(JournalError, match="write-ahead log"):
        Journal.open(path)
    assert not path.exists()


def test_a_journal_that_appears_while_another_is_built_is_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two creators in the same moment the later one takes what it finds."""

    def another_was_faster(connection: sqlite3.Connection) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(database, "create", create)
            filled(path)
        create(connection)

    create = database.create
    monkeypatch.setattr(database, "create", another_was_faster)
    with Journal.open(path) as journal:
        assert journal.totals("r1").iterations == 30
    assert not list(path.parent.glob("*.tmp"))


def test_a_file_system_without_hard_links_gets_a_journal(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where linking is refused, the new file is moved into place."""

    def refuse(self: Path, target: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    with Journal.open(path) as journal:
        journal.begin_run(new_run())
    assert {file.name for file in path.parent.iterdir()} == {"journal.db"}


def test_a_directory_in_its_place_is_named(path: Path) -> None:
    """A directory called like the journal is an error in words."""
    path.mkdir(parents=True)
    with pytest.raises(JournalError, match="journal"):
        Journal.open(path)


def test_a_path_with_characters_of_an_address_is_no_problem(tmp_path: Path) -> None:
    """Spaces, percent and question marks in the project's path are just characters."""
    path = tmp_path / "my project? 100% #1" / ".ralph" / "journal.db"
    with Journal.open(path) as journal:
        journal.begin_run(new_run())
    with JournalReader.open(path) as reader:
        assert reader.latest_run() is not None
    assert path.exists()


def test_a_full_disk_is_said_and_loses_nothing_written_before(path: Path) -> None:
    """When no page can be added, the write fails as a whole, in words, and the rest stays."""
    with Journal.open(path) as journal:
        journal.begin_run(new_run())
        pages = journal.connection.execute("PRAGMA page_count").fetchone()[0]
        journal.connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(JournalError, match="no space left") as caught:
            journal.set_meta("big", "x" * 100_000)
        assert "--continue" in caught.value.next_step
        journal.connection.execute("PRAGMA max_page_count = 1000000")
        journal.set_meta("small", 1)
        assert journal.meta("big") is None
        assert journal.latest_run() is not None


def test_a_write_the_system_refuses_is_said(path: Path) -> None:
    """A file size limit, as a full disk, ends in a journal error and not in a traceback."""
    Journal.open(path).close()
    script = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from ralphloop.journal.journal import Journal; from ralphloop.errors import JournalError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "journal = Journal.open(Path(sys.argv[1]))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))\n"
        "try: journal.set_meta('big', 'x' * 1_000_000)\n"
        "except JournalError as error: print(error.message, '|', error.next_step)\n"
    )
    done = python("-B", "-c", script, str(path))
    assert "journal.db" in done.stdout
    assert "space" in done.stdout
    with Journal.open(path) as journal:
        assert journal.meta("big") is None


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become somebody without rights")
def test_a_read_only_directory_can_be_read_but_not_written() -> None:
    """Somebody without write permission may look at the journal and is told why not more."""
    script = (
        "import os, sys; from pathlib import Path\n"
        "from ralphloop.journal.journal import Journal; from ralphloop.errors import JournalError\n"
        "from ralphloop.journal.queries import JournalReader\n"
        "os.setuid(65534)\n"
        "path = Path(sys.argv[1])\n"
        "print(len(JournalReader.open(path).iterations('r1')))\n"
        "try: Journal.open(path)\n"
        "except JournalError as error: print(error.message, '|', error.next_step)\n"
    )
    with tempfile.TemporaryDirectory() as directory:  # outside of pytest's private one
        path = Path(directory) / "journal.db"
        filled(path)
        path.chmod(0o444)
        path.parent.chmod(0o555)
        done = python("-B", "-c", script, str(path))
    assert done.stdout.startswith("30\n"), done.stderr
    assert "permission" in done.stdout or "access" in done.stdout


def test_a_journal_locked_by_somebody_else_is_waited_for_then_named(
    journal: Journal, path: Path
) -> None:
    """A foreign lock is waited for a while; then the error says that somebody holds it."""
    journal.connection.execute("PRAGMA busy_timeout = 50")
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(JournalError, match="locked"):
            journal.set_meta("a", 1)
    finally:
        blocker.close()
    journal.set_meta("a", 2)
    assert journal.meta("a") == 2


def test_where_the_log_is_refused_the_rollback_journal_serves(tmp_path: Path) -> None:
    """A file system without shared memory gets SQLite's older mode."""
    # SQLite's dot-file locking has no shared memory, like network file systems that lack it.
    uri = f"{(tmp_path / 'a.db').as_uri()}?vfs=unix-dotfile"
    connection = sqlite3.connect(uri, uri=True)
    try:
        assert use_write_ahead_log(connection) is False
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "delete"
    finally:
        connection.close()


def test_a_refused_log_is_said(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The journal works without its log, and its note tells so."""
    monkeypatch.setattr(
        "ralphloop.journal.database._connect",
        lambda uri: sqlite3.connect(f"{uri}&vfs=unix-dotfile", uri=True, isolation_level=None),
    )
    with Journal.open(path) as journal:
        assert "rollback journal" in journal.note
        journal.begin_run(new_run())
        run_iterations(journal, 2)
    with Journal.open(path) as again:
        assert again.totals("r1").iterations == 2


def test_a_normal_journal_has_nothing_to_say(journal: Journal) -> None:
    """On an ordinary file system the log is used and there is no note."""
    assert journal.note == ""
    mode = journal.connection.execute("PRAGMA journal_mode").fetchone()[0]
    assert mode == "wal"


def test_the_start_and_the_end_of_an_iteration_wait_for_the_disk(journal: Journal) -> None:
    """What was spent and decided is synced; a heartbeat and a mark that can be set again are not."""
    journal.begin_run(new_run())
    level = [synchronous(journal)]
    writes: list[Callable[[], None]] = [
        lambda: journal.start_iteration(new_iteration(1)),
        lambda: journal.set_agent_pid("r1", 1, pid=1, pid_started=0),
        lambda: journal.finish_iteration(finished(1, effects=(MarkStory(),))),
        lambda: journal.mark_applied("r1", 1, now=NOON),
        lambda: journal.begin_wait("r1", kind="a", reason="b", now=NOON, until=NOON),
        lambda: journal.heartbeat("r1", now=NOON),
        lambda: journal.set_meta("circuit", {}),
    ]
    for write in writes:
        write()
        level.append(synchronous(journal))
    assert level == [FULL, FULL, NORMAL, FULL, NORMAL, FULL, NORMAL, FULL]


def synchronous(journal: Journal) -> object:
    """How the last write was synced."""
    return journal.connection.execute("PRAGMA synchronous").fetchone()[0]
