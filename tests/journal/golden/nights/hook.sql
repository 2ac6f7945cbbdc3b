PRAGMA application_id = 1382116454;
BEGIN TRANSACTION;
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL,
    iteration INTEGER,
    at REAL NOT NULL,
    type TEXT NOT NULL,
    data TEXT NOT NULL
);
INSERT INTO "events" VALUES(1,'20261117-220902-5fb412',NULL,1.79495334227346158028e+09,'preflight','{"type":"preflight","said":["commits land on branch main"],"warnings":["no checks are configured: stories can only be `claimed` (set checks.commands)"]}');
INSERT INTO "events" VALUES(2,'20261117-220902-5fb412',NULL,1.79495334232140302654e+09,'run_started','{"type":"run_started","project":"hook","branch":"main","agent":"claude","stories":2,"cost_usd":0.0,"active_s":0.0330042839050293,"max_iterations":50,"max_cost_usd":0.0,"max_time_s":36000.0,"ends_at":0.0,"reserve":0.0}');
INSERT INTO "events" VALUES(3,'20261117-220902-5fb412',1,1.79495334233158683771e+09,'iteration_started','{"type":"iteration_started","story":"US-001","title":"Story 1","total":2,"prompt_tokens":513}');
INSERT INTO "events" VALUES(4,'20261117-220902-5fb412',1,1.79495334312830042843e+09,'iteration_finished','{"attempts":1,"warnings":[]}');
INSERT INTO "events" VALUES(5,'20261117-220902-5fb412',2,1.79495334318666052817e+09,'iteration_started','{"type":"iteration_started","story":"US-001","title":"Story 1","attempt":2,"total":2,"prompt_tokens":567}');
INSERT INTO "events" VALUES(6,'20261117-220902-5fb412',2,1.79495334365576815604e+09,'iteration_finished','{"attempts":1,"warnings":[]}');
INSERT INTO "events" VALUES(7,'20261117-220902-5fb412',3,1.79495334369917583462e+09,'iteration_started','{"type":"iteration_started","story":"US-001","title":"Story 1","attempt":2,"total":2,"prompt_tokens":602}');
INSERT INTO "events" VALUES(8,'20261117-220902-5fb412',3,1.79495334442676091196e+09,'iteration_finished','{"attempts":1,"warnings":[]}');
INSERT INTO "events" VALUES(9,'20261117-220902-5fb412',3,1.79495334470284271244e+09,'story_passed','{"type":"story_passed","story":"US-001","title":"Story 1","grade":"claimed","reasons":["no check could prove it"]}');
INSERT INTO "events" VALUES(10,'20261117-220902-5fb412',4,1.79495334471609044074e+09,'iteration_started','{"type":"iteration_started","story":"US-002","title":"Story 2","passed":1,"total":2,"prompt_tokens":631}');
CREATE TABLE interventions (seq INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL, after INTEGER NOT NULL, at REAL NOT NULL, change TEXT NOT NULL);
INSERT INTO "interventions" VALUES(1,'20261117-220902-5fb412',3,1.79495334455825781821e+09,'{"kind":"committed","story":"US-001"}');
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
    effects TEXT NOT NULL DEFAULT '[]', unpriced INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run, n)
);
INSERT INTO "iterations" VALUES('20261117-220902-5fb412',1,'US-001',1,1.79495334232248306277e+09,'af14a9fb1b5d9721624e168a67b6e5e377db3a28','ead8de7f5bd44dce7d8d385dd0beffd124eebf8b','b9048752a80e63e78eab322b759173127540a8711be17d57124ff557bdf8c0c3','.ralph/transcripts/20261117-220902-5fb412/1.prompt.md',NULL,NULL,1.79495334312826132776e+09,'completed','continue','','ead8de7f5bd44dce7d8d385dd0beffd124eebf8b',1,0.0,0,0,0,0,0,0,0,0,1794953343.16818,'{"agent":"claude","response":{"reader":"hook","reason":"the turn ended","final_text":"Working on it.","text_chars":14,"model_output":true},"end":{"duration_s":0.6910755634307861},"evidence":{"files_changed":0,"commits":0,"tree":"ead8de7f5bd44dce7d8d385dd0beffd124eebf8b","stories_passed":0,"work_files":[],"changed":{},"stories":{"total":2,"current":"US-001","others":1,"others_if_passed":1},"used":{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,"cache_write_tokens":0,"cost_usd":0.0,"cost_estimated":false,"unpriced":0,"tasks_completed":0,"files_modified":0,"commits":0,"starts":1,"iterations":0,"active_s":0.8218755722045898,"waited_s":0.0},"at":1794953343.1096332},"changed":{"insertions":0,"deletions":0},"analysis":{"iteration":1,"indicators":{"all_tasks_done":false,"no_pending_stories":false},"confidence":0.5,"warnings":["no status block (RALPH_STATUS) in the answer; its words were used instead"]},"verdict":{"reasons":["the agent does not call it done"]},"decision":{"word":"continue","reasons":["the agent does not say that all is done"]},"prompt":{},"learning":{},"story":{"id":"US-001","title":"Story 1","index":0,"priority":1},"limits":{"max_iterations":50,"max_cost_usd":0.0,"max_time":36000.0,"max_attempts":3,"max_story_share":0.5,"reserve":0.0,"ends_at":0.0}}','[{"kind":"progress","at":1794953343.1096332,"task":"US-001: Story 1","outcome":"no_progress","summary":"Working on it."}]',1);
INSERT INTO "iterations" VALUES('20261117-220902-5fb412',2,'US-001',2,1.79495334318610072141e+09,'af14a9fb1b5d9721624e168a67b6e5e377db3a28','ead8de7f5bd44dce7d8d385dd0beffd124eebf8b','6eeea24ecdd5d435c650e670c90054d9339bc5c27f51e751afb89f7198e6c834','.ralph/transcripts/20261117-220902-5fb412/2.prompt.md',NULL,NULL,1.79495334365573549267e+09,'completed','continue','','c4527b7d91af89ad9637a87b62910e531cac9e63',1,0.0,0,0,0,0,0,0,1,0,1.7949533436865637302e+09,'{"agent":"claude","response":{"reader":"hook","reason":"the turn ended","final_text":"Half of it works.","text_chars":17,"model_output":true},"end":{"duration_s":0.3905603885650635},"evidence":{"files_changed":1,"commits":0,"tree":"c4527b7d91af89ad9637a87b62910e531cac9e63","stories_passed":0,"work_files":["one.txt"],"changed":{},"stories":{"total":2,"current":"US-001","others":1,"others_if_passed":1},"used":{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,"cache_write_tokens":0,"cost_usd":0.0,"cost_estimated":false,"unpriced":1,"tasks_completed":0,"files_modified":0,"commits":0,"starts":2,"iterations":1,"active_s":1.360687494277954,"waited_s":0.0},"at":1794953343.6484478},"changed":{"count":1,"insertions":1,"deletions":0},"analysis":{"iteration":2,"indicators":{"all_tasks_done":false,"no_pending_stories":false},"confidence":0.5,"progress":true,"progress_reasons":["1 files changed"],"warnings":["no status block (RALPH_STATUS) in the answer; its words were used instead"]},"verdict":{"reasons":["the agent does not call it done"]},"decision":{"word":"continue","reasons":["the agent does not say that all is done"]},"prompt":{},"learning":{},"story":{"id":"US-001","title":"Story 1","index":0,"priority":1},"limits":{"max_iterations":50,"max_cost_usd":0.0,"max_time":36000.0,"max_attempts":3,"max_story_share":0.5,"reserve":0.0,"ends_at":0.0}}','[{"kind":"progress","at":1794953343.6484478,"task":"US-001: Story 1","outcome":"in_progress","summary":"Half of it works. (one.txt)"}]',1);
INSERT INTO "iterations" VALUES('20261117-220902-5fb412',3,'US-001',2,1.7949533436985535622e+09,'af14a9fb1b5d9721624e168a67b6e5e377db3a28','c4527b7d91af89ad9637a87b62910e531cac9e63','0f88ae7e6b80a521bb7812f9aa7dd952d5c61479634aa1674f5cf9e115721b6b','.ralph/transcripts/20261117-220902-5fb412/3.prompt.md',NULL,NULL,1.79495334442671442033e+09,'completed','continue','COMPLETE','51c2e251044697af418c8197e03d0f563059c8e6',1,0.0,0,0,0,0,0,1,1,0,1.7949533445836093426e+09,'{"agent":"claude","response":{"reader":"hook","reason":"the turn ended","status":{"status":"COMPLETE","tasks_completed":1,"files_modified":1,"tests_status":"PASSING","work_type":"IMPLEMENTATION","recommendation":"go on"},"status_is_final":true,"final_text":"It is done.\n\n---RALPH_STATUS---\nSTATUS: COMPLETE\nTASKS_COMPLETED_THIS_LOOP: 1\nFILES_MODIFIED: 1\nTESTS_STATUS: PASSING\nWORK_TYPE: IMPLEMENTATION\nEXIT_SIGNAL: false\nRECOMMENDATION: go on\n---END_RALPH_STATUS---","text_chars":207,"model_output":true},"end":{"duration_s":0.3851001262664795},"evidence":{"files_changed":1,"commits":0,"tree":"51c2e251044697af418c8197e03d0f563059c8e6","checks":[],"stories_passed":1,"work_files":["two.txt"],"changed":{},"comparison":{},"doubts":[],"stories":{"total":2,"current":"US-001","others":1,"others_if_passed":1},"used":{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,"cache_write_tokens":0,"cost_usd":0.0,"cost_estimated":false,"unpriced":2,"tasks_completed":0,"files_modified":1,"commits":0,"starts":3,"iterations":2,"active_s":2.1137900352478027,"waited_s":0.0},"at":1794953344.4015188},"changed":{"count":1,"insertions":1,"deletions":0},"analysis":{"iteration":3,"status":{"status":"COMPLETE","tasks_completed":1,"files_modified":1,"tests_status":"PASSING","work_type":"IMPLEMENTATION","recommendation":"go on"},"story_claimed":true,"indicators":{"all_tasks_done":false,"tests_passing":true,"no_pending_stories":false,"status_complete":true},"confidence":0.8,"progress":true,"progress_reasons":["1 story passed","1 files changed"]},"verdict":{"passed":true,"grade":"claimed","reasons":["no check could prove it"]},"decision":{"word":"continue","reasons":["the agent does not say that all is done, although 2 signs do (tests passing, STATUS is COMPLETE)"]},"prompt":{},"learning":{},"story":{"id":"US-001","title":"Story 1","index":0,"priority":1},"limits":{"max_iterations":50,"max_cost_usd":0.0,"max_time":36000.0,"max_attempts":3,"max_story_share":0.5,"reserve":0.0,"ends_at":0.0}}','[{"kind":"mark","story":"US-001"},{"kind":"progress","at":1794953344.4015188,"task":"US-001: Story 1","outcome":"passed","summary":"claimed: It is done. (two.txt) next: go on"},{"kind":"commit","story":"US-001","title":"Story 1","grade":"claimed"}]',1);
INSERT INTO "iterations" VALUES('20261117-220902-5fb412',4,'US-002',1,1.79495334471546578404e+09,'3a4ed56e3d5ef154f4d36b3a7b6437942e001531','51c2e251044697af418c8197e03d0f563059c8e6','49e2a61ac5e0dbde41588c796a2aeaa54d90bab282b91d931464e3765a9de3b5','.ralph/transcripts/20261117-220902-5fb412/4.prompt.md',NULL,NULL,NULL,'','','','',0,0.0,0,0,0,0,0,0,0,0,NULL,'{}','[]',0);
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO "meta" VALUES('reports:20261117-220902-5fb412','{}');
INSERT INTO "meta" VALUES('frozen:20261117-220902-5fb412','{"start_head":"af14a9fb1b5d9721624e168a67b6e5e377db3a28","start_tree":"ead8de7f5bd44dce7d8d385dd0beffd124eebf8b","branch":"main"}');
INSERT INTO "meta" VALUES('beginning:20261117-220902-5fb412','{"breaker":{},"memory":{"trees":["ead8de7f5bd44dce7d8d385dd0beffd124eebf8b"]}}');
INSERT INTO "meta" VALUES('notes','[]');
INSERT INTO "meta" VALUES('desk:20261117-220902-5fb412','{"extra":{"ends_at":0.0}}');
INSERT INTO "meta" VALUES('hook:20261117-220902-5fb412','{"prefix":"ralph:","listed":"ewogICJ1c2VyU3RvcmllcyI6IFsKICAgIHsKICAgICAgImlkIjogIlVTLTAwMSIsCiAgICAgICJ0aXRsZSI6ICJTdG9yeSAxIiwKICAgICAgImFjY2VwdGFuY2VDcml0ZXJpYSI6IFsKICAgICAgICAiZmlsZSAxIGV4aXN0cyIKICAgICAgXSwKICAgICAgInByaW9yaXR5IjogMSwKICAgICAgInBhc3NlcyI6IHRydWUKICAgIH0sCiAgICB7CiAgICAgICJpZCI6ICJVUy0wMDIiLAogICAgICAidGl0bGUiOiAiU3RvcnkgMiIsCiAgICAgICJhY2NlcHRhbmNlQ3JpdGVyaWEiOiBbCiAgICAgICAgImZpbGUgMiBleGlzdHMiCiAgICAgIF0sCiAgICAgICJwcmlvcml0eSI6IDIsCiAgICAgICJwYXNzZXMiOiBmYWxzZQogICAgfQogIF0KfQo=","settings":{"ralph.toml":""},"stashes":[],"repository":["/home/ada/nights/hook","/home/ada/nights/hook/.git","/home/ada/nights/hook/.git","/home/ada/nights/hook/.git/objects","sha1"]}');
INSERT INTO "meta" VALUES('circuit','{}');
INSERT INTO "meta" VALUES('quota:20261117-220902-5fb412','{}');
CREATE TABLE migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP);
INSERT INTO "migrations" VALUES('m001_initial','2026-11-17 22:09:02');
INSERT INTO "migrations" VALUES('m002_unpriced','2026-11-17 22:09:02');
INSERT INTO "migrations" VALUES('m003_interventions','2026-11-17 22:09:02');
INSERT INTO "migrations" VALUES('m004_seal','2026-11-17 22:09:02');
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
, unpriced INTEGER NOT NULL DEFAULT 0);
INSERT INTO "runs" VALUES(1,'20261117-220902-5fb412','running','hook','11111111-2222-4333-8444-555555555555',1.79495334228780627251e+09,1.79495334471546578404e+09,NULL,'','','prd.json','main','af14a9fb1b5d9721624e168a67b6e5e377db3a28',8330,1794953340.37,NULL,'{"agent":{"name":"claude","command":[],"format":"text","model":"","binary":"","args":[],"env":{},"pass_env":[],"context":"fresh","safety":"moderate","allow":[],"ask_for_status":true,"fallback":[],"escalate":[]},"checks":{"commands":[],"timeout":900.0,"baseline":"strict","doubt":[]},"proof":{"experiments":"auto","changed_tests":"show"},"limits":{"max_iterations":50,"max_cost_usd":0.0,"max_tokens":0,"max_time":36000.0,"calls_per_hour":100,"iteration_timeout":3600.0,"stall_timeout":600.0,"max_attempts":3,"max_story_share":0.5,"reserve":0.0,"until":"","on_usage_limit":"wait","backoff":5.0},"circuit":{"preset":"standard","no_progress_threshold":3,"same_error_threshold":5,"output_decline_percent":70,"cooldown_minutes":0.0,"test_saturation":3,"treading_window":6,"treading_lines":10,"interim_checks":5},"exit":{"gate":"dual"},"git":{"commit":"story","scope":"repository"},"lanes":{"count":0,"setup":[],"copy":[],"where":""},"sandbox":{"mode":"off","network":["open"],"write":[],"hide":[],"git":"read-only"},"stories":{"prd":"prd.json"},"session":{"on_end":[],"keep_awake":true},"learning":{"enabled":true,"budget_tokens":800,"every":5,"memory":"auto","skills":"auto","holdout":5,"ask_agent":false},"notify":{"desktop":false,"command":[],"webhook":"","webhook_private":false,"most":6}}',4,3,0.0,0,0,0,0,0,1,2,0,2.42765951156616210937e+00,0.0,3);
CREATE TABLE seal (id INTEGER PRIMARY KEY CHECK (id = 1), seq INTEGER NOT NULL, total BLOB NOT NULL, mac BLOB NOT NULL);
INSERT INTO "seal" VALUES(1,30,X'35366BF9087145E8C5626F3A9F385EBCDC4CFA94701995921A88A72490AFD445',X'D1C72FACDA6A3C8648412D6A1C6BB3748A15B7DB258AE04192A232FB1F59DF32');
CREATE TABLE states (
    run TEXT PRIMARY KEY,
    after INTEGER NOT NULL,
    state BLOB NOT NULL
);
INSERT INTO "states" VALUES('20261117-220902-5fb412',3,X'7B22737461727473223A332C22697465726174696F6E73223A332C22636F73745F757364223A302E302C226163746976655F73223A312E3436363733363037383236323332392C22627265616B6572223A7B7D2C226D656D6F7279223A7B227472656573223A5B2265616438646537663562643434646365376438643338356464306265666664313234656562663862222C2263343532376237643931616638396164393633376138376236323931306535333163616339653633222C2235316332653235313034343639376166343138633831393765303364306635363330353963386536225D7D2C2277696E646F77223A5B7B227265706C79223A22776F726B696E67206F6E206974222C2274726565223A2265616438646537663562643434646365376438643338356464306265666664313234656562663862227D2C7B227265706C79223A2268616C66206F6620697420776F726B73222C2274726565223A2263343532376237643931616638396164393633376138376236323931306535333163616339653633222C2270726F6772657373223A747275657D2C7B227265706C79223A22697420697320646F6E65222C2274726565223A2235316332653235313034343639376166343138633831393765303364306635363330353963386536222C2270726F6772657373223A747275657D5D2C226C656E67746873223A5B31342C31372C3230375D2C22636F6D6D697473223A317D');
CREATE TABLE stories (
    run TEXT NOT NULL,
    story TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (run, story)
);
INSERT INTO "stories" VALUES('20261117-220902-5fb412','US-001','{"standing":"passed","grade":"claimed","reason":"no check could prove it","attempts":1,"failed":1,"iterations":3,"share":{"iterations":3,"cost_usd":0.0,"active_s":1.466736078262329},"start_tree":"ead8de7f5bd44dce7d8d385dd0beffd124eebf8b","start_head":"af14a9fb1b5d9721624e168a67b6e5e377db3a28","session_agent":"claude","session_usage":{},"cost_usd":0.0,"unpriced":3}');
CREATE TABLE waits (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL,
    kind TEXT NOT NULL,
    reason TEXT NOT NULL,
    started_at REAL NOT NULL,
    until REAL NOT NULL,
    ended_at REAL
);
CREATE INDEX runs_unfinished ON runs (seq) WHERE status IN ('running', 'stopped');
CREATE INDEX iterations_open ON iterations (run, n) WHERE finished_at IS NULL;
CREATE INDEX iterations_owed ON iterations (run, n)
    WHERE finished_at IS NOT NULL AND applied_at IS NULL;
CREATE INDEX iterations_started ON iterations (started_at);
CREATE INDEX iterations_story ON iterations (run, story, n);
CREATE INDEX iterations_tree ON iterations (run, end_tree);
CREATE INDEX events_run ON events (run, seq);
CREATE INDEX requests_pending ON requests (run, id) WHERE status = 'pending';
CREATE INDEX waits_open ON waits (run, id) WHERE ended_at IS NULL;
CREATE INDEX interventions_run ON interventions (run, seq);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('events',10);
INSERT INTO "sqlite_sequence" VALUES('runs',1);
INSERT INTO "sqlite_sequence" VALUES('interventions',1);
COMMIT;
