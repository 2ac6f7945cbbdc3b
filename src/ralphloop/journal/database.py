"""The SQLite file under the journal: opening it with care, writing to it in one place.

A new journal is built under a temporary name and linked into place, so a file of that name is
always a whole one and an empty or foreign file is damage, never a fresh start.  The file works
with a write-ahead log; where the file system refuses that, with a rollback journal, and
`Database.note` says so.  Every failure of SQLite becomes a `JournalError` with a next step; the
file itself is never replaced.

All writes pass `Database.write`: one immediate transaction, synced to disk when `durable`, with a
kill point before and after its commit.
"""

import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from ralphloop.atomic import kill_point, sync_directory, temporary_name
from ralphloop.errors import JournalError
from ralphloop.journal import schema
from ralphloop.journal.records import storable
from ralphloop.journal.seal import Belief, Seal

_BUSY_TIMEOUT_S = 10.0
_WAL_LIMIT_BYTES = 16 * 1024 * 1024
_QUICK_CHECK_BELOW_BYTES = 32 * 1024 * 1024
_NO_WAL = (
    "This file system does not support SQLite's write-ahead log; "
    "the journal uses a rollback journal instead, which is safe but slower."
)

Parameters = Sequence[object] | dict[str, object]


class Database:
    """One connection to a journal, safe to share between threads."""

    def __init__(self, connection: sqlite3.Connection, path: Path, note: str = "") -> None:
        connection.row_factory = sqlite3.Row
        self.connection = connection
        self.path = path
        self.note = note  # what is unusual about it, in words
        self._lock = threading.RLock()
        self._file = _identity(path)
        self._level = ""  # how writes are synced now
        self.seal: Seal | None = None  # None: it is only read
        self.belief = Belief.OURS  # as far as was looked

    def rows(self, sql: str, parameters: Parameters = ()) -> list[sqlite3.Row]:
        """All rows of a query; fetched at once, so that no read stays open."""
        with self._lock, explained(self.path):
            return self.connection.execute(sql, parameters).fetchall()

    def row(self, sql: str, parameters: Parameters = ()) -> sqlite3.Row | None:
        found = self.rows(sql, parameters)
        return found[0] if found else None

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Several queries over the same state; keep it short, it holds the log back."""
        with self._lock, explained(self.path):
            self.connection.execute("BEGIN")
            try:
                yield
            finally:
                self.connection.execute("COMMIT")

    @contextmanager
    def write(self, name: str, *, durable: bool = True) -> Iterator[Self]:
        """One transaction: all of it or nothing."""
        with self._lock, explained(self.path):
            level = "FULL" if durable else "NORMAL"
            if level != self._level:
                self.connection.execute(f"PRAGMA synchronous = {level}")
                self._level = level
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                if self.seal:
                    self.seal.begin()
                yield self
                if self.seal:
                    self.seal.finish()
                kill_point(f"journal.{name}.uncommitted")
                self.connection.execute("COMMIT")
            except BaseException:  # Ctrl+C too: half a transaction is none
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise
            kill_point(f"journal.{name}.committed")
            if self.seal and durable:
                self.seal.publish()

    def run(self, sql: str, parameters: Parameters = ()) -> int:
        """Run one statement of a transaction; the number of rows it changed."""
        try:
            return self.connection.execute(sql, parameters).rowcount
        except UnicodeEncodeError:
            return self.connection.execute(sql, storable(parameters)).rowcount

    @property
    def is_in_place(self) -> bool:
        """True while the path still names the file we have open."""
        return self._file is not None and _identity(self.path) == self._file

    def put_back(self) -> None:
        """Write the file anew after somebody deleted it: while it is open, all of it is there."""
        with self._lock, explained(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            temporary = self.path.parent / temporary_name()
            try:
                with _new_file(temporary) as copy:
                    self.connection.backup(copy)
                # Closing removes the log by its name, so it comes before the name is used again.
                self.connection.close()
                for side in ("-wal", "-shm"):
                    self.path.with_name(self.path.name + side).unlink(missing_ok=True)
                temporary.replace(self.path)
                sync_directory(self.path.parent)
            finally:
                temporary.unlink(missing_ok=True)
            again = open_for_writing(self.path, check=False)
            if self.seal is not None:
                self.seal.close()
            self.connection, self.seal = again.connection, again.seal
            self._file = _identity(self.path)

    def adopt(self) -> None:
        """Believe everything that is in it now."""
        if self.seal is not None:
            with self.write("adopt"):
                self.seal.adopt()
            self.belief = Belief.OURS

    def close(self) -> None:
        with self._lock:
            self.connection.close()
            if self.seal is not None:
                self.seal.close()


def open_for_writing(path: Path, *, check: bool) -> Database:
    """Open the journal, creating it where there is none; `check` looks for damage first."""
    with explained(path):
        is_new = not path.exists()
        if is_new:
            _create(path)
        _refuse_empty(path)
        connection = _connect(f"{path.absolute().as_uri()}?mode=rw")
        with _closed_on_failure(connection):
            return _prepared(connection, path, check=check, is_new=is_new)


def open_for_reading(path: Path) -> Database:
    """Open the journal without the power to change it."""
    with explained(path):
        _refuse_empty(path)
        connection = _connect_for_reading(path)
        with _closed_on_failure(connection):
            _refuse_unknown(connection, path)
        return Database(connection, path)


@contextmanager
def _closed_on_failure(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:  # whatever it was goes on; the connection must not
        connection.close()
        raise


def empty(path: Path) -> Database:
    """A journal with nothing in it, in memory, for a path where none is yet."""
    connection = _connect(":memory:")
    schema.create(connection)
    return Database(connection, path)


def use_write_ahead_log(connection: sqlite3.Connection) -> bool:
    """Switch to the write-ahead log; False where the file system refuses it."""
    deadline = time.monotonic() + _BUSY_TIMEOUT_S
    while True:
        try:
            return _pragma(connection, "journal_mode = WAL") == "wal"
        except sqlite3.OperationalError as error:
            # SQLite does not wait by itself for this lock; any other failure is a refusal.
            if _primary_code(error) != sqlite3.SQLITE_BUSY:
                _pragma(connection, "journal_mode = DELETE")
                return False
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn failures of SQLite and of the file system into words."""
    try:
        yield
    except sqlite3.Error as error:
        code = _primary_code(error)
        if code is None:
            raise  # a misuse of the module is our own bug, not the journal's state
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise _unusable(path, f"the journal {path} is damaged: {error}") from error
        other = ("the journal {path} failed", "Look at its directory.")
        message, step = _FAILURES.get(code, other)
        raise JournalError(f"{message.format(path=path)}: {error}", step) from error
    except UnicodeDecodeError as error:  # SQLite quotes what it cannot read
        raise _unusable(path, f"the journal {path} is damaged: it holds no text") from error
    except OSError as error:
        reason = error.strerror or str(error)
        step = "Give yourself access to that directory, then try again."
        raise JournalError(f"cannot open the journal {path}: {reason}", step) from error


def _create(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size > 0:
        # SQLite would play the old log into the new file.
        raise JournalError(
            f"the journal {path} is gone, but its write-ahead log {log.name} is still there",
            f"Restore {path.name}, or move {log.name} away to begin a new journal.",
        )
    temporary = path.parent / temporary_name()
    try:
        with _new_file(temporary) as connection:
            connection.execute("BEGIN")
            schema.create(connection)
            connection.execute("COMMIT")
        kill_point("journal.create.uncommitted")
        try:
            path.hardlink_to(temporary)
        except FileExistsError:
            pass  # somebody else created it in the same moment: theirs is as good
        except OSError:
            temporary.rename(path)  # file systems without hard links
        sync_directory(path.parent)
    finally:
        temporary.unlink(missing_ok=True)
    kill_point("journal.create.committed")


@contextmanager
def _new_file(path: Path) -> Iterator[sqlite3.Connection]:
    """A file that nobody sees before it is whole: it needs no side file that could be left."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        _pragma(connection, "journal_mode = MEMORY")
        connection.execute("PRAGMA synchronous = FULL")
        yield connection
    finally:
        connection.close()


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _refuse_empty(path: Path) -> None:
    """SQLite takes an empty file for a new database; ours are never empty.

    The file itself is not opened: closing it would drop the locks that other connections of this
    process hold on it.
    """
    if path.stat().st_size == 0:
        raise _unusable(path, f"the journal {path} is empty")


def _connect(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        uri, uri=True, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA trusted_schema = OFF")  # no function runs because the file says so
    return connection


def _connect_for_reading(path: Path) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode=ro"
    connection = _connect(uri)
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchall()
    except sqlite3.OperationalError:
        connection.close()
        if path.with_name(path.name + "-wal").exists():
            raise
        # A read-only directory has no room for the log's index; without a log none is needed.
        return _connect(f"{uri}&immutable=1")
    return connection


def belief_in(path: Path) -> Belief:
    """Whether the journal is what we wrote there; looks only."""
    if not path.exists():
        return Belief.OURS
    database = open_for_reading(path)
    try:
        with explained(path):
            return Seal(database.connection, path).belief()
    finally:
        database.close()


def _prepared(connection: sqlite3.Connection, path: Path, *, check: bool, is_new: bool) -> Database:
    _refuse_unknown(connection, path)
    if check and path.stat().st_size < _QUICK_CHECK_BELOW_BYTES:
        verdict = _pragma(connection, "quick_check(1)")
        if verdict != "ok":
            raise _unusable(path, f"the journal {path} is damaged: {verdict}")
    uses_log = use_write_ahead_log(connection)
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT_BYTES}")
    database = Database(connection, path, "" if uses_log else _NO_WAL)
    seal, pending = Seal(connection, path), schema.pending_migrations(connection)
    if (check or pending) and not is_new:
        database.belief = seal.belief()
    if pending:
        with database.write("migrate"):
            schema.migrate(connection)
    seal.attach()
    database.seal = seal
    if is_new or (pending and database.belief is Belief.OURS):
        database.adopt()
    return database


def _refuse_unknown(connection: sqlite3.Connection, path: Path) -> None:
    sql = "SELECT name FROM sqlite_master WHERE type NOT IN ('table', 'index')"
    sql += " OR sql LIKE 'CREATE VIRTUAL%' LIMIT 1"
    if foreign := connection.execute(sql).fetchone():
        # A view can run for ever where a table is expected, a trigger can write what we did not.
        name = str(foreign[0])[:60]
        raise _unusable(path, f"the journal {path} has something in it that is not ours: {name!r}")
    if _pragma(connection, "application_id") != schema.APPLICATION_ID:
        raise _unusable(path, f"{path} is an SQLite file, but not a journal of ralph")
    if newer := schema.applied_migrations(connection) - schema.MIGRATIONS.keys():
        named = ", ".join(sorted(map(str, newer)))
        raise JournalError(
            f"the journal {path} was written by a newer ralph (it has {named})",
            "Use that version of ralph, or upgrade this one.",
        )


def _pragma(connection: sqlite3.Connection, text: str) -> object:
    row = connection.execute(f"PRAGMA {text}").fetchone()
    return row[0] if row else None


def _primary_code(error: sqlite3.Error) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else None


def _unusable(path: Path, message: str) -> JournalError:
    return JournalError(
        message,
        "Nothing was changed. Restore it from a backup, or move it away to begin a new one "
        f"(attempts, budgets and the circuit's state are then forgotten): "
        f"mv {path} {path}.damaged",
    )


_FAILURES = {
    sqlite3.SQLITE_FULL: (
        "no space left for the journal {path}",
        "Free some disk space, then go on with `ralph run --continue`.",
    ),
    sqlite3.SQLITE_READONLY: (
        "the journal {path} cannot be written",
        "Give yourself write permission to it and its directory.",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "the journal {path} cannot be opened",
        "Give yourself access to it and its directory.",
    ),
    sqlite3.SQLITE_BUSY: (
        "another process keeps the journal {path} locked",
        "End that process (`ralph status` names a live run), then try again.",
    ),
    sqlite3.SQLITE_IOERR: (
        "the disk failed under the journal {path}",
        "Check the disk and its free space, then go on with `ralph run --continue`.",
    ),
}
