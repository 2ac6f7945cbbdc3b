-- step m001_initial
-- Runs, iterations, events, requests, stories, waits, and what outlives a run.
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
    cost_usd REAL NOT NULL DEFAULT 0,
    cost_estimated INTEGER NOT NULL DEFAULT 0,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    tasks_completed INTEGER NOT NULL DEFAULT 0,
    files_modified INTEGER NOT NULL DEFAULT 0,
    commits INTEGER NOT NULL DEFAULT 0,
    active_s REAL NOT NULL DEFAULT 0,
    waited_s REAL NOT NULL DEFAULT 0
);
CREATE INDEX runs_unfinished ON runs (seq) WHERE status IN ('running', 'stopped');
CREATE TABLE states (
    run TEXT PRIMARY KEY,
    after INTEGER NOT NULL,
    state BLOB NOT NULL
);
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
    cost_usd REAL NOT NULL DEFAULT 0,
    cost_estimated INTEGER NOT NULL DEFAULT 0,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    tasks_completed INTEGER NOT NULL DEFAULT 0,
    files_modified INTEGER NOT NULL DEFAULT 0,
    commits INTEGER NOT NULL DEFAULT 0,
    applied_at REAL,
    record TEXT NOT NULL DEFAULT '{}',
    effects TEXT NOT NULL DEFAULT '[]',
    PRIMARY KEY (run, n)
);
CREATE INDEX iterations_open ON iterations (run, n) WHERE finished_at IS NULL;
CREATE INDEX iterations_owed ON iterations (run, n)
    WHERE finished_at IS NOT NULL AND applied_at IS NULL;
CREATE INDEX iterations_started ON iterations (started_at);
CREATE INDEX iterations_story ON iterations (run, story, n);
CREATE INDEX iterations_tree ON iterations (run, end_tree);
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL,
    iteration INTEGER,
    at REAL NOT NULL,
    type TEXT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX events_run ON events (run, seq);
CREATE TABLE requests (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL,
    at REAL NOT NULL,
    kind TEXT NOT NULL,
    payload TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'pending',
    answered_at REAL,
    answer TEXT NOT NULL DEFAULT ''
);
CREATE INDEX requests_pending ON requests (run, id) WHERE status = 'pending';
CREATE TABLE stories (
    run TEXT NOT NULL,
    story TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (run, story)
);
CREATE TABLE waits (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL,
    kind TEXT NOT NULL,
    reason TEXT NOT NULL,
    started_at REAL NOT NULL,
    until REAL NOT NULL,
    ended_at REAL
);
CREATE INDEX waits_open ON waits (run, id) WHERE ended_at IS NULL;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
-- step m002_unpriced
-- How many starts have a cost that nobody knows; of older ones it was not asked.
ALTER TABLE runs ADD COLUMN unpriced INTEGER NOT NULL DEFAULT 0;
ALTER TABLE iterations ADD COLUMN unpriced INTEGER NOT NULL DEFAULT 0;
-- step m003_interventions
-- What changed a run between two iterations, in order, for whoever replays it.
CREATE TABLE interventions (seq INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL, after INTEGER NOT NULL, at REAL NOT NULL, change TEXT NOT NULL);
CREATE INDEX interventions_run ON interventions (run, seq);
-- step m004_seal
-- The signed sum of all rows that are believed.
CREATE TABLE seal (id INTEGER PRIMARY KEY CHECK (id = 1), seq INTEGER NOT NULL, total BLOB NOT NULL, mac BLOB NOT NULL);
-- step m005_limit
-- Which limit ended a run; older ones say it in their reason alone.
ALTER TABLE runs ADD COLUMN used_up TEXT;
