"""The journal's tables, as an ordered list of migrations recorded by name.

A migration, once released, is never edited: what was written to disk loads for ever.  A journal
that names a migration we do not know was written by a newer version and is left alone.

Totals of a run stand in its row and are raised by the transaction that finishes an iteration, so
that asking for them costs the same after ten thousand iterations as after ten.  The folded state
has a table of its own because rewriting it with every heartbeat would be waste.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

APPLICATION_ID = 0x52616C66  # "Ralf" in the file's header marks a journal as ours

Migration = Callable[[sqlite3.Connection], None]


def applied_migrations(connection: sqlite3.Connection) -> set[str]:
    """Names of the migrations this file has seen."""
    return {name for (name,) in connection.execute("SELECT name FROM migrations")}


def unknown_migrations(connection: sqlite3.Connection) -> set[str]:
    """Names in the file that only a newer version can have written."""
    return applied_migrations(connection) - {step.__name__ for step in MIGRATIONS}


def pending_migrations(connection: sqlite3.Connection) -> list[Migration]:
    """Migrations still to be run, in order."""
    applied = applied_migrations(connection)
    return [step for step in MIGRATIONS if step.__name__ not in applied]


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the file up to date inside the caller's transaction."""
    for step in pending_migrations(connection):
        step(connection)
        connection.execute("INSERT INTO migrations (name) VALUES (?)", (step.__name__,))


def create(connection: sqlite3.Connection) -> None:
    """Make an empty database a journal."""
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(
        "CREATE TABLE migrations (name TEXT PRIMARY KEY,"
        " applied_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP)"
    )
    migrate(connection)


def m001_initial(connection: sqlite3.Connection) -> None:
    """Runs, iterations, events, requests, stories, waits, and what outlives a run."""
    for statement in _INITIAL:
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

_AMOUNTS = """    cost_usd REAL NOT NULL DEFAULT 0,
    cost_estimated INTEGER NOT NULL DEFAULT 0,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    tasks_completed INTEGER NOT NULL DEFAULT 0,
    files_modified INTEGER NOT NULL DEFAULT 0,
    commits INTEGER NOT NULL DEFAULT 0,
"""
_INITIAL = (
    f"""
CREATE TABLE runs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL,
    mode TEXT NOT NULL,
    session TEXT NOT NULL,
    started_at REAL NOT NULL,
    last_activity REAL NOT NULL,
    ended_at REAL,
    decision TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL DEFAULT '',
    prd_path TEXT NOT NULL,
    branch TEXT NOT NULL,
    head TEXT NOT NULL,
    pid INTEGER NOT NULL,
    pid_started REAL NOT NULL,
    continues TEXT,
    config TEXT NOT NULL,
    starts INTEGER NOT NULL DEFAULT 0,
    iterations INTEGER NOT NULL DEFAULT 0,
{_AMOUNTS}    active_s REAL NOT NULL DEFAULT 0,
    waited_s REAL NOT NULL DEFAULT 0
)""",
    "CREATE INDEX runs_unfinished ON runs (seq) WHERE status IN ('running', 'stopped')",
    """
CREATE TABLE states (
    run TEXT PRIMARY KEY,
    after INTEGER NOT NULL,
    state BLOB NOT NULL
)""",
    f"""
CREATE TABLE iterations (
    run TEXT NOT NULL,
    n INTEGER NOT NULL,
    story TEXT,
    attempt INTEGER NOT NULL,
    started_at REAL NOT NULL,
    head TEXT NOT NULL,
    tree TEXT NOT NULL,
    prompt_digest TEXT NOT NULL,
    prompt_path TEXT NOT NULL,
    pid INTEGER,
    pid_started REAL,
    finished_at REAL,
    outcome TEXT NOT NULL DEFAULT '',
    decision TEXT NOT NULL DEFAULT '',
    status TEXT NOT NULL DEFAULT '',
    end_tree TEXT NOT NULL DEFAULT '',
    counted INTEGER NOT NULL DEFAULT 0,
{_AMOUNTS}    applied_at REAL,
    record TEXT NOT NULL DEFAULT '{{}}',
    effects TEXT NOT NULL DEFAULT '[]',
    PRIMARY KEY (run, n)
)""",
    "CREATE INDEX iterations_open ON iterations (run, n) WHERE finished_at IS NULL",
    """
CREATE INDEX iterations_owed ON iterations (run, n)
    WHERE finished_at IS NOT NULL AND applied_at IS NULL""",
    "CREATE INDEX iterations_started ON iterations (started_at)",
    "CREATE INDEX iterations_story ON iterations (run, story, n)",
    "CREATE INDEX iterations_tree ON iterations (run, end_tree)",
    """
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL,
    iteration INTEGER,
    at REAL NOT NULL,
    type TEXT NOT NULL,
    data TEXT NOT NULL
)""",
    "CREATE INDEX events_run ON events (run, seq)",
    """
CREATE TABLE requests (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL,
    at REAL NOT NULL,
    kind TEXT NOT NULL,
    payload TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'pending',
    answered_at REAL,
    answer TEXT NOT NULL DEFAULT ''
)""",
    "CREATE INDEX requests_pending ON requests (run, id) WHERE status = 'pending'",
    """
CREATE TABLE stories (
    run TEXT NOT NULL,
    story TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (run, story)
)""",
    """
CREATE TABLE waits (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL,
    kind TEXT NOT NULL,
    reason TEXT NOT NULL,
    started_at REAL NOT NULL,
    until REAL NOT NULL,
    ended_at REAL
)""",
    "CREATE INDEX waits_open ON waits (run, id) WHERE ended_at IS NULL",
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
)
