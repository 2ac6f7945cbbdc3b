"""The journal's tables, as an ordered list of migrations recorded by name (`migrations.sql`).

A migration, once released, is never edited: what was written to disk loads for ever.  A journal
that names a migration we do not know was written by a newer version and is left alone.

Totals of a run stand in its row and are raised by the transaction that finishes an iteration, so
that asking for them costs the same after ten thousand iterations as after ten.  The folded state
has a table of its own because rewriting it with every heartbeat would be waste.
"""

import sqlite3
from pathlib import Path

APPLICATION_ID = 0x52616C66  # "Ralf" in the file's header marks a journal as ours

_SQL = Path(__file__).with_name("migrations.sql").read_text(encoding="utf-8")
# The statements of each step, by its name, in order.
MIGRATIONS = dict(step.split("\n", 1) for step in _SQL.split("-- step ")[1:])


def applied_migrations(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM migrations")}


def pending_migrations(connection: sqlite3.Connection) -> list[str]:
    applied = applied_migrations(connection)
    return [name for name in MIGRATIONS if name not in applied]


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the file up to date inside the caller's transaction."""
    for name in pending_migrations(connection):
        for statement in MIGRATIONS[name].split(";\n"):
            connection.execute(statement)
        connection.execute("INSERT INTO migrations (name) VALUES (?)", (name,))


def create(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(
        "CREATE TABLE migrations (name TEXT PRIMARY KEY,"
        " applied_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP)"
    )
    migrate(connection)
