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
INSERT INTO "events" VALUES(1,'20261117-220856-d98365',NULL,1.79495333719127964978e+09,'preflight','{"type":"preflight","said":["check true: passed in 0.0 s"]}');
INSERT INTO "events" VALUES(2,'20261117-220856-d98365',NULL,1.79495333721768426894e+09,'run_started','{"type":"run_started","project":"landing","branch":"ralph/20261117-220856-d98365","agent":"command","stories":3,"cost_usd":0.0,"active_s":0.018582582473754883,"max_iterations":50,"max_cost_usd":0.0,"max_time_s":36000.0,"ends_at":0.0,"reserve":0.0}');
INSERT INTO "events" VALUES(3,'20261117-220856-d98365',1,1.79495333741534852977e+09,'iteration_started','{"type":"iteration_started","story":"a","title":"Do a","lane":1,"total":3,"prompt_tokens":527}');
INSERT INTO "events" VALUES(4,'20261117-220856-d98365',2,1.7949533375549302101e+09,'iteration_started','{"type":"iteration_started","story":"b","title":"Do b","lane":2,"total":3,"prompt_tokens":527}');
INSERT INTO "events" VALUES(5,'20261117-220856-d98365',2,1.79495333772398829455e+09,'agent_event','{"type":"agent_event","kind":"text","summary":"RECOMMENDATION: go on"}');
INSERT INTO "events" VALUES(6,'20261117-220856-d98365',2,1.79495333773032784462e+09,'agent_event','{"type":"agent_event","kind":"text","summary":"---END_RALPH_STATUS---"}');
INSERT INTO "events" VALUES(7,'20261117-220856-d98365',1,1.79495333773193669322e+09,'agent_event','{"type":"agent_event","kind":"text","summary":"---END_RALPH_STATUS---"}');
INSERT INTO "events" VALUES(8,'20261117-220856-d98365',2,1.79495333785512018202e+09,'landing','{"type":"landing","story":"b","lane":2}');
INSERT INTO "events" VALUES(9,'20261117-220856-d98365',1,1.7949533378657660485e+09,'landing','{"type":"landing","story":"a","lane":1,"ahead":1}');
INSERT INTO "events" VALUES(10,'20261117-220856-d98365',2,1.79495333812718224522e+09,'iteration_finished','{"attempts":0,"warnings":[]}');
INSERT INTO "events" VALUES(11,'20261117-220856-d98365',2,1.79495333830909228325e+09,'story_passed','{"type":"story_passed","story":"b","title":"Do b","grade":"checked","reasons":["true green"]}');
INSERT INTO "events" VALUES(12,'20261117-220856-d98365',3,1.79495333841223144531e+09,'iteration_started','{"type":"iteration_started","story":"c","title":"Do c","lane":2,"passed":1,"total":3,"prompt_tokens":579}');
INSERT INTO "events" VALUES(13,'20261117-220856-d98365',3,1.7949533385325062275e+09,'agent_event','{"type":"agent_event","kind":"text","summary":"---END_RALPH_STATUS---"}');
INSERT INTO "events" VALUES(14,'20261117-220856-d98365',1,1.79495333854257750508e+09,'iteration_finished','{"attempts":0,"warnings":[]}');
INSERT INTO "events" VALUES(15,'20261117-220856-d98365',1,1.79495333855796575543e+09,'story_returned','{"type":"story_returned","story":"a","lane":1,"reason":"conflict with b in base.txt","returns":1}');
INSERT INTO "events" VALUES(16,'20261117-220856-d98365',3,1.79495333859246301647e+09,'landing','{"type":"landing","story":"c","lane":2}');
INSERT INTO "events" VALUES(17,'20261117-220856-d98365',4,1.79495333868059468275e+09,'iteration_started','{"type":"iteration_started","story":"a","title":"Do a","lane":1,"passed":1,"total":3,"prompt_tokens":660}');
INSERT INTO "events" VALUES(18,'20261117-220856-d98365',4,1.79495333876926159858e+09,'agent_event','{"type":"agent_event","kind":"text","summary":"---END_RALPH_STATUS---"}');
INSERT INTO "events" VALUES(19,'20261117-220856-d98365',3,1.79495333882053303715e+09,'iteration_finished','{"attempts":0,"warnings":[]}');
INSERT INTO "events" VALUES(20,'20261117-220856-d98365',3,1.79495333893977403638e+09,'story_passed','{"type":"story_passed","story":"c","title":"Do c","grade":"checked","reasons":["true green"]}');
INSERT INTO "events" VALUES(21,'20261117-220856-d98365',4,1.79495333895176196093e+09,'landing','{"type":"landing","story":"a","lane":1}');
INSERT INTO "events" VALUES(22,'20261117-220856-d98365',4,1794953339.07301,'iteration_finished','{"attempts":0,"warnings":[]}');
INSERT INTO "events" VALUES(23,'20261117-220856-d98365',4,1.79495333907742261889e+09,'story_returned','{"type":"story_returned","story":"a","lane":1,"reason":"conflict with c in base.txt","returns":2}');
INSERT INTO "events" VALUES(24,'20261117-220856-d98365',5,1.79495333926875281333e+09,'iteration_started','{"type":"iteration_started","story":"a","title":"Do a","lane":1,"passed":2,"total":3,"prompt_tokens":698}');
INSERT INTO "events" VALUES(25,'20261117-220856-d98365',5,1.79495333936336326592e+09,'agent_event','{"type":"agent_event","kind":"text","summary":"---END_RALPH_STATUS---"}');
INSERT INTO "events" VALUES(26,'20261117-220856-d98365',5,1.79495333941444659229e+09,'landing','{"type":"landing","story":"a","lane":1}');
INSERT INTO "events" VALUES(27,'20261117-220856-d98365',5,1.7949533396440455913e+09,'iteration_finished','{"attempts":0,"warnings":[]}');
INSERT INTO "events" VALUES(28,'20261117-220856-d98365',5,1.79495333980199074748e+09,'story_passed','{"type":"story_passed","story":"a","title":"Do a","grade":"checked","reasons":["true green"]}');
INSERT INTO "events" VALUES(29,'20261117-220856-d98365',NULL,1.79495333989202928543e+09,'run_finished','{"type":"run_finished","decision":"project_complete","reasons":["all 3 stories have passed","the agent wanted to go on: go on"],"passed":3,"total":3,"cost_usd":0.0,"unpriced":5,"iterations":5,"duration_s":2.681173086166382}');
CREATE TABLE interventions (seq INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL, after INTEGER NOT NULL, at REAL NOT NULL, change TEXT NOT NULL);
INSERT INTO "interventions" VALUES(1,'20261117-220856-d98365',2,1794953338.24583,'{"kind":"committed","story":"b"}');
INSERT INTO "interventions" VALUES(2,'20261117-220856-d98365',4,1.79495333889991188049e+09,'{"kind":"committed","story":"c"}');
INSERT INTO "interventions" VALUES(3,'20261117-220856-d98365',5,1.79495333976092982285e+09,'{"kind":"committed","story":"a"}');
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
INSERT INTO "iterations" VALUES('20261117-220856-d98365',1,'a',1,1.79495333735453629496e+09,'4a7d69908a065341c1abe05467d7d84e88d23bab','ac6439a9c4c9fa0ff79b3f20fd99a2b15a04e6d3','f098d080fc4d48efc80df4e8975fd7a78a6b357847df36abee45633d24e8c716','.ralph/transcripts/20261117-220856-d98365/1.prompt.md',7488,1794953337.11,1.79495333854254531858e+09,'completed','continue','COMPLETE','e87fa7ce09e7adcb08f603954bff52b8a5f45db1',1,0.0,0,0,0,0,0,0,2,0,1.79495333855757498737e+09,'{"agent":"command","response":{"reader":"text","reason":"it ended with an answer","status":{"status":"COMPLETE","tasks_completed":0,"files_modified":1,"tests_status":"NOT_RUN","work_type":"IMPLEMENTATION","recommendation":"go on"},"status_is_final":true,"final_text":"Worked on it.\n\n---RALPH_STATUS---\nSTATUS: COMPLETE\nTASKS_COMPLETED_THIS_LOOP: 0\nFILES_MODIFIED: 1\nTESTS_STATUS: NOT_RUN\nWORK_TYPE: IMPLEMENTATION\nEXIT_SIGNAL: false\nRECOMMENDATION: go on\n---END_RALPH_STATUS---\n","text_chars":210,"usage":{},"model_output":true},"end":{"duration_s":0.2817602079999233},"evidence":{"files_changed":2,"commits":0,"tree":"e87fa7ce09e7adcb08f603954bff52b8a5f45db1","checks":[{"name":"true","status":"passed","duration_s":0.011008570999820222}],"stories_passed":0,"work_files":["a.txt","base.txt"],"changed":{},"comparison":{},"doubts":[],"trial":{},"opinions":[],"returned":{"words":"conflict with b in base.txt","told":"While you worked, this landed on the branch:\n- b: Do b (it changed b.txt, base.txt, prd.json, progress.txt)\nYour work was put on top of that. Both sides stand between conflict markers in: base.txt. Solve them so that what landed keeps working and your story is done as well; leave no marker.","others":["b"]},"stories":{"total":3,"current":"a","others":2,"others_if_passed":2},"used":{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,"cache_write_tokens":0,"cost_usd":0.0,"cost_estimated":false,"unpriced":0,"tasks_completed":0,"files_modified":0,"commits":0,"starts":2,"iterations":0,"active_s":0.3121170997619629,"waited_s":0.0},"at":1794953337.8640344},"changed":{"count":2,"insertions":2,"deletions":1},"analysis":{"iteration":2,"status":{"status":"COMPLETE","tasks_completed":0,"files_modified":1,"tests_status":"NOT_RUN","work_type":"IMPLEMENTATION","recommendation":"go on"},"story_claimed":true,"indicators":{"all_tasks_done":false,"tests_passing":true,"no_pending_stories":false,"status_complete":true},"confidence":1.0,"progress":true,"progress_reasons":["2 files changed"]},"verdict":{"reasons":["conflict with b in base.txt"]},"decision":{"word":"continue","reasons":["the agent does not say that all is done, although 2 signs do (tests passing, STATUS is COMPLETE)"]},"prompt":{"characters":2110},"learning":{},"story":{"id":"a","title":"Do a","index":0,"priority":1},"limits":{"max_iterations":50,"max_cost_usd":0.0,"max_time":36000.0,"max_attempts":3,"max_story_share":0.5,"reserve":0.0,"ends_at":0.0}}','[{"kind":"progress","at":1794953337.8640344,"task":"a: Do a","outcome":"failed","summary":"Worked on it. (a.txt, base.txt) next: go on (claimed, but conflict with b in base.txt)"}]',1);
INSERT INTO "iterations" VALUES('20261117-220856-d98365',2,'b',1,1.79495333751047325132e+09,'4a7d69908a065341c1abe05467d7d84e88d23bab','ac6439a9c4c9fa0ff79b3f20fd99a2b15a04e6d3','2b3e77caa089c8326b7e42780291ecfa404f092c6b5005fc1bb3a322997dd769','.ralph/transcripts/20261117-220856-d98365/2.prompt.md',7515,1794953337.22,1.7949533381271262169e+09,'completed','continue','COMPLETE','9ca147bde924fd47fe52c7abeac14e1345fd865e',1,0.0,0,0,0,0,0,1,2,0,1.79495333830829191211e+09,'{"agent":"command","response":{"reader":"text","reason":"it ended with an answer","status":{"status":"COMPLETE","tasks_completed":0,"files_modified":1,"tests_status":"NOT_RUN","work_type":"IMPLEMENTATION","recommendation":"go on"},"status_is_final":true,"final_text":"Worked on it.\n\n---RALPH_STATUS---\nSTATUS: COMPLETE\nTASKS_COMPLETED_THIS_LOOP: 0\nFILES_MODIFIED: 1\nTESTS_STATUS: NOT_RUN\nWORK_TYPE: IMPLEMENTATION\nEXIT_SIGNAL: false\nRECOMMENDATION: go on\n---END_RALPH_STATUS---\n","text_chars":210,"usage":{},"model_output":true},"end":{"duration_s":0.19897491800020362},"evidence":{"files_changed":2,"commits":0,"tree":"9ca147bde924fd47fe52c7abeac14e1345fd865e","checks":[{"name":"true","status":"passed","duration_s":0.004039662000195676}],"stories_passed":1,"work_files":["b.txt","base.txt"],"changed":{},"comparison":{},"doubts":[],"trial":{"untried":["true names no tests"],"took_s":0.00005786500014437479},"checked_tree":"9ca147bde924fd47fe52c7abeac14e1345fd865e","stories":{"total":3,"current":"b","others":2,"others_if_passed":2},"used":{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,"cache_write_tokens":0,"cost_usd":0.0,"cost_estimated":false,"unpriced":0,"tasks_completed":0,"files_modified":0,"commits":0,"starts":2,"iterations":0,"active_s":0.3121170997619629,"waited_s":0.0},"at":1794953338.126383},"changed":{"count":2,"insertions":2,"deletions":1},"analysis":{"iteration":1,"status":{"status":"COMPLETE","tasks_completed":0,"files_modified":1,"tests_status":"NOT_RUN","work_type":"IMPLEMENTATION","recommendation":"go on"},"story_claimed":true,"indicators":{"all_tasks_done":false,"tests_passing":true,"no_pending_stories":false,"status_complete":true},"confidence":1.0,"progress":true,"progress_reasons":["1 story passed","2 files changed"]},"verdict":{"passed":true,"grade":"checked","reasons":["true green"],"remarks":["true names no tests"]},"decision":{"word":"continue","reasons":["the agent does not say that all is done, although 2 signs do (tests passing, STATUS is COMPLETE)"]},"prompt":{"characters":2110},"learning":{},"story":{"id":"b","title":"Do b","index":1,"priority":2},"limits":{"max_iterations":50,"max_cost_usd":0.0,"max_time":36000.0,"max_attempts":3,"max_story_share":0.5,"reserve":0.0,"ends_at":0.0}}','[{"kind":"mark","story":"b"},{"kind":"progress","at":1794953338.126383,"task":"b: Do b","outcome":"passed","summary":"checked: Worked on it. (b.txt, base.txt) next: go on"},{"kind":"commit","story":"b","title":"Do b","grade":"checked","tree":"9ca147bde924fd47fe52c7abeac14e1345fd865e"}]',1);
INSERT INTO "iterations" VALUES('20261117-220856-d98365',3,'c',1,1.79495333840287613872e+09,'a60f46d4ada5d2527f196eff8711ad08aa045798','9ca147bde924fd47fe52c7abeac14e1345fd865e','6c758fe436d6c7ca412be04f9ed990dbc6f5fe89df1aeaecf0d5fff33ac2ec85','.ralph/transcripts/20261117-220856-d98365/3.prompt.md',7774,1794953338.09,1.79495333882050633433e+09,'completed','continue','COMPLETE','27df9ad4c0196355a3eed13d2eb644bdacb911a2',1,0.0,0,0,0,0,0,1,2,0,1.79495333893931984904e+09,'{"agent":"command","response":{"reader":"text","reason":"it ended with an answer","status":{"status":"COMPLETE","tasks_completed":0,"files_modified":1,"tests_status":"NOT_RUN","work_type":"IMPLEMENTATION","recommendation":"go on"},"status_is_final":true,"final_text":"Worked on it.\n\n---RALPH_STATUS---\nSTATUS: COMPLETE\nTASKS_COMPLETED_THIS_LOOP: 0\nFILES_MODIFIED: 1\nTESTS_STATUS: NOT_RUN\nWORK_TYPE: IMPLEMENTATION\nEXIT_SIGNAL: false\nRECOMMENDATION: go on\n---END_RALPH_STATUS---\n","text_chars":210,"usage":{},"model_output":true},"end":{"duration_s":0.12601569200023732},"evidence":{"files_changed":2,"commits":0,"tree":"27df9ad4c0196355a3eed13d2eb644bdacb911a2","checks":[{"name":"true","status":"passed","duration_s":0.0019348949999766774}],"stories_passed":1,"work_files":["base.txt","c.txt"],"changed":{},"comparison":{},"doubts":[],"trial":{"untried":["true names no tests"],"took_s":0.000038007000057405094},"checked_tree":"27df9ad4c0196355a3eed13d2eb644bdacb911a2","stories":{"total":3,"passed":1,"current":"c","others":1,"others_if_passed":1},"used":{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,"cache_write_tokens":0,"cost_usd":0.0,"cost_estimated":false,"unpriced":2,"tasks_completed":1,"files_modified":4,"commits":0,"starts":4,"iterations":2,"active_s":1.4910643100738525,"waited_s":0.0},"at":1794953338.819621},"changed":{"count":2,"insertions":2,"deletions":1},"analysis":{"iteration":3,"status":{"status":"COMPLETE","tasks_completed":0,"files_modified":1,"tests_status":"NOT_RUN","work_type":"IMPLEMENTATION","recommendation":"go on"},"story_claimed":true,"indicators":{"all_tasks_done":false,"tests_passing":true,"no_pending_stories":false,"status_complete":true},"confidence":1.0,"progress":true,"progress_reasons":["1 story passed","2 files changed"]},"verdict":{"passed":true,"grade":"checked","reasons":["true green"],"remarks":["true names no tests"]},"decision":{"word":"continue","reasons":["the agent does not say that all is done, although 2 signs do (tests passing, STATUS is COMPLETE)"]},"prompt":{"characters":2318},"learning":{},"story":{"id":"c","title":"Do c","index":2,"priority":3},"limits":{"max_iterations":50,"max_cost_usd":0.0,"max_time":36000.0,"max_attempts":3,"max_story_share":0.5,"reserve":0.0,"ends_at":0.0}}','[{"kind":"mark","story":"c"},{"kind":"progress","at":1794953338.819621,"task":"c: Do c","outcome":"passed","summary":"checked: Worked on it. (base.txt, c.txt) next: go on"},{"kind":"commit","story":"c","title":"Do c","grade":"checked","tree":"27df9ad4c0196355a3eed13d2eb644bdacb911a2"}]',1);
INSERT INTO "iterations" VALUES('20261117-220856-d98365',4,'a',1,1.79495333867641925808e+09,'a60f46d4ada5d2527f196eff8711ad08aa045798','4fccec83d1d5ddda721fc08064b5f5fe8ae2ad78','243203aec622a8858357950080f4ad34c42f759cd002d989db661c93cc1704e3','.ralph/transcripts/20261117-220856-d98365/4.prompt.md',7851,1794953338.34,1.79495333907298684119e+09,'completed','continue','COMPLETE','441dd2d2c29a4e3ea32324730783706d0ebf9393',1,0.0,0,0,0,0,0,0,1,0,1.79495333907712578775e+09,'{"agent":"command","response":{"reader":"text","reason":"it ended with an answer","status":{"status":"COMPLETE","tasks_completed":0,"files_modified":1,"tests_status":"NOT_RUN","work_type":"IMPLEMENTATION","recommendation":"go on"},"status_is_final":true,"final_text":"Worked on it.\n\n---RALPH_STATUS---\nSTATUS: COMPLETE\nTASKS_COMPLETED_THIS_LOOP: 0\nFILES_MODIFIED: 1\nTESTS_STATUS: NOT_RUN\nWORK_TYPE: IMPLEMENTATION\nEXIT_SIGNAL: false\nRECOMMENDATION: go on\n---END_RALPH_STATUS---\n","text_chars":210,"usage":{},"model_output":true},"end":{"duration_s":0.14649637599995913},"evidence":{"files_changed":1,"commits":0,"tree":"441dd2d2c29a4e3ea32324730783706d0ebf9393","checks":[{"name":"true","status":"passed","duration_s":0.009970585000246501}],"stories_passed":0,"work_files":["base.txt"],"changed":{},"comparison":{},"doubts":[],"trial":{},"opinions":[],"returned":{"words":"conflict with c in base.txt","told":"While you worked, this landed on the branch:\n- c: Do c (it changed base.txt, c.txt, prd.json, progress.txt)\nYour work was put on top of that. Both sides stand between conflict markers in: base.txt. Solve them so that what landed keeps working and your story is done as well; leave no marker.","others":["c"]},"stories":{"total":3,"passed":2,"current":"a"},"used":{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,"cache_write_tokens":0,"cost_usd":0.0,"cost_estimated":false,"unpriced":3,"tasks_completed":2,"files_modified":6,"commits":0,"starts":4,"iterations":3,"active_s":1.622150182723999,"waited_s":0.0},"at":1794953338.9505816},"changed":{"count":1,"insertions":1,"deletions":4},"analysis":{"iteration":4,"status":{"status":"COMPLETE","tasks_completed":0,"files_modified":1,"tests_status":"NOT_RUN","work_type":"IMPLEMENTATION","recommendation":"go on"},"story_claimed":true,"indicators":{"all_tasks_done":false,"tests_passing":true,"no_pending_stories":false,"status_complete":true},"confidence":1.0,"progress":true,"progress_reasons":["1 files changed"]},"verdict":{"reasons":["conflict with c in base.txt"]},"decision":{"word":"continue","reasons":["the agent does not say that all is done, although 2 signs do (tests passing, STATUS is COMPLETE)"]},"prompt":{"characters":2641},"learning":{},"story":{"id":"a","title":"Do a","index":0,"priority":1},"limits":{"max_iterations":50,"max_cost_usd":0.0,"max_time":36000.0,"max_attempts":3,"max_story_share":0.5,"reserve":0.0,"ends_at":0.0}}','[{"kind":"progress","at":1794953338.9505816,"task":"a: Do a","outcome":"failed","summary":"Worked on it. (base.txt) next: go on (claimed, but conflict with c in base.txt)"}]',1);
INSERT INTO "iterations" VALUES('20261117-220856-d98365',5,'a',1,1.79495333923915863032e+09,'300c4cd6bd1f1836c526e034a2daa04a36b73623','b46d68491c2c520b23843bce4b861e8c55e2cf72','f9aec9fcc25d9ded673e65e648cf9caef6b4f7458e96e24c08a019eaa1cd795d','.ralph/transcripts/20261117-220856-d98365/5.prompt.md',8052,1794953338.94,1.79495333964401793482e+09,'completed','continue','COMPLETE','546a6712adce27b94c373f6ed3a606260a20fe32',1,0.0,0,0,0,0,0,1,1,0,1.79495333980150604245e+09,'{"agent":"command","response":{"reader":"text","reason":"it ended with an answer","status":{"status":"COMPLETE","tasks_completed":0,"files_modified":1,"tests_status":"NOT_RUN","work_type":"IMPLEMENTATION","recommendation":"go on"},"status_is_final":true,"final_text":"Worked on it.\n\n---RALPH_STATUS---\nSTATUS: COMPLETE\nTASKS_COMPLETED_THIS_LOOP: 0\nFILES_MODIFIED: 1\nTESTS_STATUS: NOT_RUN\nWORK_TYPE: IMPLEMENTATION\nEXIT_SIGNAL: false\nRECOMMENDATION: go on\n---END_RALPH_STATUS---\n","text_chars":210,"usage":{},"model_output":true},"end":{"duration_s":0.08426538200001232},"evidence":{"files_changed":1,"commits":0,"tree":"546a6712adce27b94c373f6ed3a606260a20fe32","checks":[{"name":"true","status":"passed","duration_s":0.0015948310001476784}],"stories_passed":1,"work_files":["base.txt"],"changed":{},"comparison":{},"doubts":[],"trial":{"untried":["true names no tests"],"took_s":0.00003932799972972134},"checked_tree":"546a6712adce27b94c373f6ed3a606260a20fe32","stories":{"total":3,"passed":2,"current":"a"},"used":{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,"cache_write_tokens":0,"cost_usd":0.0,"cost_estimated":false,"unpriced":4,"tasks_completed":2,"files_modified":7,"commits":0,"starts":5,"iterations":4,"active_s":2.44480037689209,"waited_s":0.0},"at":1794953339.643083},"changed":{"count":1,"insertions":0,"deletions":4},"analysis":{"iteration":5,"status":{"status":"COMPLETE","tasks_completed":0,"files_modified":1,"tests_status":"NOT_RUN","work_type":"IMPLEMENTATION","recommendation":"go on"},"story_claimed":true,"indicators":{"all_tasks_done":true,"tests_passing":true,"no_pending_stories":true,"status_complete":true},"confidence":1.0,"progress":true,"progress_reasons":["1 story passed","1 files changed"]},"verdict":{"passed":true,"grade":"checked","reasons":["true green"],"remarks":["true names no tests"]},"decision":{"word":"continue","reasons":["the agent does not say that all is done, although 4 signs do (all tasks done, tests passing, no pending stories, STATUS is COMPLETE)"]},"prompt":{"characters":2794},"learning":{},"story":{"id":"a","title":"Do a","index":0,"priority":1},"limits":{"max_iterations":50,"max_cost_usd":0.0,"max_time":36000.0,"max_attempts":3,"max_story_share":0.5,"reserve":0.0,"ends_at":0.0}}','[{"kind":"mark","story":"a"},{"kind":"progress","at":1794953339.643083,"task":"a: Do a","outcome":"passed","summary":"checked: Worked on it. (base.txt) next: go on"},{"kind":"commit","story":"a","title":"Do a","grade":"checked","tree":"546a6712adce27b94c373f6ed3a606260a20fe32"}]',1);
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO "meta" VALUES('lanes:20261117-220856-d98365','{"branch":"ralph/20261117-220856-d98365","origin":"main","origin_head":"a88af19daaa1f2f12b0062b97e5ae68539007408","on":"main","own_list":false,"seen":"2d1c258f5b84de71f50eed259c6909bc44894b9e5ac637da79c2561a50945244","count":2,"lanes":{"1":{"base":"300c4cd6bd1f1836c526e034a2daa04a36b73623","work":"7f7af21136e0383a6076b2ab48e8f9aeda90cee3"},"2":{"base":"a60f46d4ada5d2527f196eff8711ad08aa045798","work":"0181dfcc828856c80aeda509cd997c96d63222cc"}},"ended":"main has what landed"}');
INSERT INTO "meta" VALUES('reports:20261117-220856-d98365','{}');
INSERT INTO "meta" VALUES('frozen:20261117-220856-d98365','{"checks":[["true"]],"baseline":[{"name":"true","status":"passed","duration_s":0.007599764000133291}],"start_head":"4a7d69908a065341c1abe05467d7d84e88d23bab","start_tree":"ac6439a9c4c9fa0ff79b3f20fd99a2b15a04e6d3","branch":"ralph/20261117-220856-d98365"}');
INSERT INTO "meta" VALUES('beginning:20261117-220856-d98365','{"breaker":{},"memory":{"trees":["ac6439a9c4c9fa0ff79b3f20fd99a2b15a04e6d3"],"checks":{"true":"passed"}}}');
INSERT INTO "meta" VALUES('notes','[]');
INSERT INTO "meta" VALUES('desk:20261117-220856-d98365','{"extra":{"ends_at":0.0}}');
INSERT INTO "meta" VALUES('outside:20261117-220856-d98365:1','{"n":5,"logs":{"/home/ada/nights/lanes/box/project/.git/logs/HEAD":145,"/home/ada/nights/lanes/box/project/.git/worktrees/1/logs/HEAD":1309,"/home/ada/nights/lanes/box/project/.git/worktrees/2/logs/HEAD":672,"/home/ada/nights/lanes/box/project/.git/worktrees/landing/logs/HEAD":395,"/home/ada/nights/lanes/box/project/.git/logs/refs/heads/main":145,"/home/ada/nights/lanes/box/project/.git/logs/refs/heads/ralph/20261117-220856-d98365":413,"/home/ada/nights/lanes/box/project/.git/logs/refs/heads/ralph/lane-1":541,"/home/ada/nights/lanes/box/project/.git/logs/refs/heads/ralph/lane-2":362},"checkout":{"tree":"ac6439a9c4c9fa0ff79b3f20fd99a2b15a04e6d3","head":"4a7d69908a065341c1abe05467d7d84e88d23bab","branch":"main"}}');
INSERT INTO "meta" VALUES('outside:20261117-220856-d98365:2','{"n":3,"logs":{"/home/ada/nights/lanes/box/project/.git/logs/HEAD":145,"/home/ada/nights/lanes/box/project/.git/worktrees/1/logs/HEAD":321,"/home/ada/nights/lanes/box/project/.git/worktrees/2/logs/HEAD":672,"/home/ada/nights/lanes/box/project/.git/worktrees/landing/logs/HEAD":258,"/home/ada/nights/lanes/box/project/.git/logs/refs/heads/main":145,"/home/ada/nights/lanes/box/project/.git/logs/refs/heads/ralph/20261117-220856-d98365":278,"/home/ada/nights/lanes/box/project/.git/logs/refs/heads/ralph/lane-1":183,"/home/ada/nights/lanes/box/project/.git/logs/refs/heads/ralph/lane-2":362},"checkout":{"tree":"ac6439a9c4c9fa0ff79b3f20fd99a2b15a04e6d3","head":"4a7d69908a065341c1abe05467d7d84e88d23bab","branch":"main"}}');
INSERT INTO "meta" VALUES('agent_end:20261117-220856-d98365:1','{"n":5,"agent":"command","finished":{"response":{"reader":"text","outcome":"completed","reason":"it ended with an answer","status":{"status":"COMPLETE","tasks_completed":0,"files_modified":1,"tests_status":"NOT_RUN","work_type":"IMPLEMENTATION","recommendation":"go on"},"status_is_final":true,"final_text":"Worked on it.\n\n---RALPH_STATUS---\nSTATUS: COMPLETE\nTASKS_COMPLETED_THIS_LOOP: 0\nFILES_MODIFIED: 1\nTESTS_STATUS: NOT_RUN\nWORK_TYPE: IMPLEMENTATION\nEXIT_SIGNAL: false\nRECOMMENDATION: go on\n---END_RALPH_STATUS---\n","text":"Worked on it.\n\n---RALPH_STATUS---\nSTATUS: COMPLETE\nTASKS_COMPLETED_THIS_LOOP: 0\nFILES_MODIFIED: 1\nTESTS_STATUS: NOT_RUN\nWORK_TYPE: IMPLEMENTATION\nEXIT_SIGNAL: false\nRECOMMENDATION: go on\n---END_RALPH_STATUS---\n","text_chars":210,"usage":{},"model_output":true},"end":{"duration_s":0.08426538200001232}},"carried":{}}');
INSERT INTO "meta" VALUES('agent_end:20261117-220856-d98365:2','{"n":3,"agent":"command","finished":{"response":{"reader":"text","outcome":"completed","reason":"it ended with an answer","status":{"status":"COMPLETE","tasks_completed":0,"files_modified":1,"tests_status":"NOT_RUN","work_type":"IMPLEMENTATION","recommendation":"go on"},"status_is_final":true,"final_text":"Worked on it.\n\n---RALPH_STATUS---\nSTATUS: COMPLETE\nTASKS_COMPLETED_THIS_LOOP: 0\nFILES_MODIFIED: 1\nTESTS_STATUS: NOT_RUN\nWORK_TYPE: IMPLEMENTATION\nEXIT_SIGNAL: false\nRECOMMENDATION: go on\n---END_RALPH_STATUS---\n","text":"Worked on it.\n\n---RALPH_STATUS---\nSTATUS: COMPLETE\nTASKS_COMPLETED_THIS_LOOP: 0\nFILES_MODIFIED: 1\nTESTS_STATUS: NOT_RUN\nWORK_TYPE: IMPLEMENTATION\nEXIT_SIGNAL: false\nRECOMMENDATION: go on\n---END_RALPH_STATUS---\n","text_chars":210,"usage":{},"model_output":true},"end":{"duration_s":0.12601569200023732}},"carried":{}}');
INSERT INTO "meta" VALUES('circuit','{}');
INSERT INTO "meta" VALUES('quota:20261117-220856-d98365','{}');
CREATE TABLE migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP);
INSERT INTO "migrations" VALUES('m001_initial','2026-11-17 22:08:56');
INSERT INTO "migrations" VALUES('m002_unpriced','2026-11-17 22:08:56');
INSERT INTO "migrations" VALUES('m003_interventions','2026-11-17 22:08:56');
INSERT INTO "migrations" VALUES('m004_seal','2026-11-17 22:08:56');
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
INSERT INTO "runs" VALUES(1,'20261117-220856-d98365','complete','script','',1.79495333719835615162e+09,1.79495333987952923777e+09,1.79495333987952923777e+09,'project_complete','all 3 stories have passed; the agent wanted to go on: go on','prd.json','ralph/20261117-220856-d98365','4a7d69908a065341c1abe05467d7d84e88d23bab',7260,1794953336.31,NULL,'{"agent":{"name":"command","command":["/usr/bin/python3","-S","/home/ada/nights/lanes/state/agent.py"],"format":"text","model":"","binary":"","args":[],"env":{},"pass_env":[],"context":"fresh","safety":"moderate","allow":[],"ask_for_status":true,"fallback":[],"escalate":[]},"checks":{"commands":[["true"]],"timeout":900.0,"baseline":"strict","doubt":[]},"proof":{"experiments":"auto","changed_tests":"show"},"limits":{"max_iterations":50,"max_cost_usd":0.0,"max_tokens":0,"max_time":36000.0,"calls_per_hour":100,"iteration_timeout":3600.0,"stall_timeout":600.0,"max_attempts":3,"max_story_share":0.5,"reserve":0.0,"until":"","on_usage_limit":"wait","backoff":0.01},"circuit":{"preset":"standard","no_progress_threshold":3,"same_error_threshold":5,"output_decline_percent":70,"cooldown_minutes":0.0,"test_saturation":3,"treading_window":6,"treading_lines":10,"interim_checks":5},"exit":{"gate":"dual"},"git":{"commit":"story","scope":"repository"},"lanes":{"count":2,"setup":[],"copy":[],"where":""},"sandbox":{"mode":"off","network":["open"],"write":[],"hide":[],"git":"read-only"},"stories":{"prd":"prd.json"},"session":{"on_end":[],"keep_awake":false},"learning":{"enabled":false,"budget_tokens":800,"every":5,"memory":"auto","skills":"auto","holdout":5,"ask_agent":false},"notify":{"desktop":false,"command":[],"webhook":"","webhook_private":false,"most":6}}',5,5,0.0,0,0,0,0,0,3,8,0,2.68117308616638183593e+00,0.0,5);
CREATE TABLE seal (id INTEGER PRIMARY KEY CHECK (id = 1), seq INTEGER NOT NULL, total BLOB NOT NULL, mac BLOB NOT NULL);
INSERT INTO "seal" VALUES(1,64,X'165C8174AE5B4BCE1DE1C95D305F77DCDFB7334EA70BAED59A4BDBFDA6F534C0',X'ABEC5099B31E0847F856932BC1A1921D139577C90045022BFAA42571619D046E');
CREATE TABLE states (
    run TEXT PRIMARY KEY,
    after INTEGER NOT NULL,
    state BLOB NOT NULL
);
INSERT INTO "states" VALUES('20261117-220856-d98365',5,X'7B22737461727473223A352C22697465726174696F6E73223A352C22636F73745F757364223A302E302C226163746976655F73223A302E383337353132353736303030333335372C22627265616B6572223A7B7D2C226D656D6F7279223A7B227472656573223A5B2261633634333961396334633966613066663739623366323066643939613262313561303465366433222C2239636131343762646539323466643437666535326337616265616331346531333435666438363565222C2265383766613763653039653761646362303866363033393534626666353262386135663435646231222C2232376466396164346330313936333535613365656431336432656236343462646163623931316132222C2234343164643264326332396134653365613332333234373330373833373036643065626639333933222C2235343661363731326164636532376239346333373366366564336136303632363061323066653332225D2C22636865636B73223A7B2274727565223A22706173736564227D7D2C2277696E646F77223A5B7B227265706C79223A22776F726B6564206F6E206974222C2274726565223A2239636131343762646539323466643437666535326337616265616331346531333435666438363565222C2270726F6772657373223A747275657D2C7B227265706C79223A22776F726B6564206F6E206974222C2274726565223A2265383766613763653039653761646362303866363033393534626666353262386135663435646231222C2270726F6772657373223A747275657D2C7B227265706C79223A22776F726B6564206F6E206974222C2274726565223A2232376466396164346330313936333535613365656431336432656236343462646163623931316132222C2270726F6772657373223A747275657D2C7B227265706C79223A22776F726B6564206F6E206974222C2274726565223A2234343164643264326332396134653365613332333234373330373833373036643065626639333933222C2270726F6772657373223A747275657D2C7B227265706C79223A22776F726B6564206F6E206974222C2274726565223A2235343661363731326164636532376239346333373366366564336136303632363061323066653332222C2270726F6772657373223A747275657D5D2C226C656E67746873223A5B3231302C3231302C3231302C3231302C3231305D2C22636F6D6D697473223A337D');
CREATE TABLE stories (
    run TEXT NOT NULL,
    story TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (run, story)
);
INSERT INTO "stories" VALUES('20261117-220856-d98365','b','{"standing":"passed","grade":"checked","reason":"true green","iterations":1,"share":{"iterations":1,"cost_usd":0.0,"active_s":0.2030145800003993},"start_tree":"ac6439a9c4c9fa0ff79b3f20fd99a2b15a04e6d3","start_head":"4a7d69908a065341c1abe05467d7d84e88d23bab","session_agent":"command","session_usage":{},"cost_usd":0.0,"unpriced":1}');
INSERT INTO "stories" VALUES('20261117-220856-d98365','a','{"standing":"passed","grade":"checked","reason":"true green","iterations":3,"share":{"iterations":3,"cost_usd":0.0,"active_s":0.5350959530001091},"start_tree":"27df9ad4c0196355a3eed13d2eb644bdacb911a2","start_head":"300c4cd6bd1f1836c526e034a2daa04a36b73623","session_agent":"command","session_usage":{},"returns":2,"collided":["b","c"],"cost_usd":0.0,"unpriced":3}');
INSERT INTO "stories" VALUES('20261117-220856-d98365','c','{"standing":"passed","grade":"checked","reason":"true green","iterations":1,"share":{"iterations":1,"cost_usd":0.0,"active_s":0.127950587000214},"start_tree":"9ca147bde924fd47fe52c7abeac14e1345fd865e","start_head":"a60f46d4ada5d2527f196eff8711ad08aa045798","session_agent":"command","session_usage":{},"cost_usd":0.0,"unpriced":1}');
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
INSERT INTO "sqlite_sequence" VALUES('events',29);
INSERT INTO "sqlite_sequence" VALUES('runs',1);
INSERT INTO "sqlite_sequence" VALUES('interventions',3);
COMMIT;
