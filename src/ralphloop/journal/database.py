"""The SQLite file under the journal: opening it with care, writing to it in one place.

A new journal is built under a temporary name and linked into place, so an empty or foreign file of
that name is damage, never a fresh start.  Where the file system refuses a write-ahead log, there is
a rollback journal, and `note` says so.

A migration (`migrations.sql`), once released, is never edited.  A journal that names one we do not
know was written by a newer version and is left alone.  Totals stand in a run's row, so that asking
costs the same after ten thousand iterations; the folded state has a table of its own because
rewriting it with every heartbeat would be waste.
"""

import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self, TypeVar

from ralphloop.atomic import kill_point, sync_directory, temporary_name
from ralphloop.errors import JournalError
from ralphloop.journal.authenticity import Belief, RowChain
from ralphloop.journal.records import storable

APPLICATION_ID = 0x52616C66  # "Ralf" in the file's header marks a journal as ours
_SQL = Path(__file__).with_name("migrations.sql").read_text(encoding="utf-8")
# The statements of each step, by its name, in order.
MIGRATIONS = dict(step.split("\n", 1) for step in _SQL.split("-- step ")[1:])

_BUSY_TIMEOUT_S = 10.0
_WAL_LIMIT_BYTES = 16 * 1024 * 1024
_QUICK_CHECK_BELOW_BYTES = 32 * 1024 * 1024
_NO_WAL = (
    "This file system does not support SQLite's write-ahead log; "
    "the journal uses a rollback journal instead, which is safe but slower."
)

_D = TypeVar("_D", bound="Database")
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
        self.chain: RowChain | None = None  # None: it is only read
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
                if self.chain:
                    self.chain.begin()
                yield self
                if self.chain:
                    self.chain.finish()
                kill_point(f"journal.{name}.uncommitted")
                self.connection.execute("COMMIT")
            except BaseException:  # Ctrl+C too: half a transaction is none
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise
            kill_point(f"journal.{name}.committed")
            if self.chain and durable:
                self.chain.publish()

    def run(self, sql: str, parameters: Parameters = ()) -> int:
        """Run one statement of a transaction; the number of rows it changed."""
        try:
            return self.connection.execute(sql, parameters).rowcount
        except UnicodeEncodeError:
            return self.connection.execute(sql, storable(parameters)).rowcount

    def put_back_if_deleted(self) -> bool:
        """Write the file anew, all of which is there while it is open; True if that was needed."""
        if self._file is not None and _identity(self.path) == self._file:
            return False
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
            again = open_for_writing(Database, self.path, check=False)
            if self.chain is not None:
                self.chain.close()
            self.connection = again.connection
            self.chain = again.chain
            self._file = _identity(self.path)
        return True

    def adopt(self) -> None:
        if self.chain is not None:
            with self.write("adopt"):
                self.chain.adopt()
            self.belief = Belief.OURS

    def close(self) -> None:
        with self._lock:
            self.connection.close()
            if self.chain is not None:
                self.chain.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_for_writing(kind: type[_D], path: Path, *, check: bool) -> _D:
    """Open the journal, creating it where there is none; `check` looks for damage first."""
    with explained(path):
        is_new = not path.exists()
        if is_new:
            _create(path)
        _refuse_empty(path)
        connection = _connect(f"{path.absolute().as_uri()}?mode=rw")
        with ExitStack() as otherwise:
            otherwise.callback(connection.close)
            _refuse_unknown(connection, path)
            if check and path.stat().st_size < _QUICK_CHECK_BELOW_BYTES:
                verdict = _pragma(connection, "quick_check(1)")
                if verdict != "ok":
                    raise _unusable(path, f"the journal {path} is damaged: {verdict}")
            uses_log = use_write_ahead_log(connection)
            connection.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT_BYTES}")
            database = kind(connection, path, "" if uses_log else _NO_WAL)
            chain = RowChain(connection, path)
            pending = MIGRATIONS.keys() - _applied(connection)
            if (check or pending) and not is_new:
                database.belief = chain.belief()
            if pending:
                with database.write("migrate"):
                    _migrate(connection)
            chain.attach()
            database.chain = chain
            if is_new or (pending and database.belief is Belief.OURS):
                database.adopt()
            otherwise.pop_all()
            return database


def open_for_reading(kind: type[_D], path: Path) -> _D:
    """Open the journal without the power to change it; where there is none, an empty one."""
    if not path.exists():
        connection = _connect(":memory:")
        create(connection)
        return kind(connection, path)
    with explained(path):
        _refuse_empty(path)
        uri = f"{path.absolute().as_uri()}?mode=ro"
        connection = _connect(uri)
        try:
            connection.execute("SELECT 1 FROM sqlite_master").fetchall()
        except sqlite3.OperationalError:
            connection.close()
            if path.with_name(path.name + "-wal").exists():
                raise
            # A read-only directory has no room for the log's index; without a log none is needed.
            connection = _connect(f"{uri}&immutable=1")
        with ExitStack() as otherwise:
            otherwise.callback(connection.close)
            _refuse_unknown(connection, path)
            otherwise.pop_all()
        return kind(connection, path)


def use_write_ahead_log(connection: sqlite3.Connection) -> bool:
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
            create(connection)
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


def _applied(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM migrations")}


def _migrate(connection: sqlite3.Connection) -> None:
    applied = _applied(connection)
    for name, statements in MIGRATIONS.items():
        if name not in applied:
            for statement in statements.split(";\n"):
                connection.execute(statement)
            connection.execute("INSERT INTO migrations (name) VALUES (?)", (name,))


def create(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(
        "CREATE TABLE migrations (name TEXT PRIMARY KEY,"
        " applied_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP)"
    )
    _migrate(connection)


def belief_in(path: Path) -> Belief:
    """Whether the journal is what we wrote there; looks only."""
    if not path.exists():
        return Belief.OURS
    with open_for_reading(Database, path) as database, explained(path):
        return RowChain(database.connection, path).belief()


def _refuse_unknown(connection: sqlite3.Connection, path: Path) -> None:
    sql = "SELECT name FROM sqlite_master WHERE type NOT IN ('table', 'index')"
    sql += " OR sql LIKE 'CREATE VIRTUAL%' LIMIT 1"
    if foreign := connection.execute(sql).fetchone():
        # A view can run for ever where a table is expected, a trigger can write what we did not.
        name = str(foreign[0])[:60]
        raise _unusable(path, f"the journal {path} has something in it that is not ours: {name!r}")
    if _pragma(connection, "application_id") != APPLICATION_ID:
        raise _unusable(path, f"{path} is an SQLite file, but not a journal of ralph")
    if newer := _applied(connection) - MIGRATIONS.keys():
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
