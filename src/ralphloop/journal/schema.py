"""The journal's tables, as an ordered list of migrations recorded by name.

A migration, once released, is never edited: what was written to disk loads for ever.  A journal
that names a migration we do not know was written by a newer version and is left alone.

Totals of a run stand in its row and are raised by the transaction that finishes an iteration, so
that asking for them costs the same after ten thousand iterations as after ten.  The folded state
has a table of its own because rewriting it with every heartbeat would be waste.
"""

import sqlite3
from collections.abc import Callable
from pathlib import Path

APPLICATION_ID = 0x52616C66  # "Ralf" in the file's header marks a journal as ours

Migration = Callable[[sqlite3.Connection], None]


def applied_migrations(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM migrations")}


def unknown_migrations(connection: sqlite3.Connection) -> set[str]:
    """Names in the file that only a newer version can have written."""
    return applied_migrations(connection) - {step.__name__ for step in MIGRATIONS}


def pending_migrations(connection: sqlite3.Connection) -> list[Migration]:
    applied = applied_migrations(connection)
    return [step for step in MIGRATIONS if step.__name__ not in applied]


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the file up to date inside the caller's transaction."""
    for step in pending_migrations(connection):
        step(connection)
        connection.execute("INSERT INTO migrations (name) VALUES (?)", (step.__name__,))


def create(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(
        "CREATE TABLE migrations (name TEXT PRIMARY KEY,"
        " applied_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP)"
    )
    migrate(connection)


def m001_initial(connection: sqlite3.Connection) -> None:
    """Runs, iterations, events, requests, stories, waits, and what outlives a run."""
    tables = Path(__file__).with_name("initial.sql").read_text(encoding="utf-8")
    for statement in tables.split(";\n"):
        connection.execute(statement)


def m002_unpriced(connection: sqlite3.Connection) -> None:
    """How many starts have a cost that nobody knows; of older ones it was not asked."""
    for table in ("runs", "iterations"):
        connection.execute(f"ALTER TABLE {table} ADD COLUMN unpriced INTEGER NOT NULL DEFAULT 0")


def m003_interventions(connection: sqlite3.Connection) -> None:
    """What changed a run between two iterations, in order, for whoever replays it."""
    connection.execute(
        "CREATE TABLE interventions (seq INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL,"
        " after INTEGER NOT NULL, at REAL NOT NULL, change TEXT NOT NULL)"
    )
    connection.execute("CREATE INDEX interventions_run ON interventions (run, seq)")


def m004_seal(connection: sqlite3.Connection) -> None:
    """The signed sum of all rows that are believed."""
    connection.execute(
        "CREATE TABLE seal (id INTEGER PRIMARY KEY CHECK (id = 1), seq INTEGER NOT NULL,"
        " total BLOB NOT NULL, mac BLOB NOT NULL)"
    )


MIGRATIONS: tuple[Migration, ...] = (m001_initial, m002_unpriced, m003_interventions, m004_seal)
