"""The acceptance criteria of script mode, through the real command on a real repository."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from ralphloop.journal.journal import Journal
from tests import sentences
from tests.agents_run.helpers import wait_until
from tests.guarantees import Measured
from tests.loop.projects import sandbox, story

WORKS = """
write(f"src/{STORY}.txt", START)
done(words=f"Implemented {STORY}.")
"""
CHECK = [["test", "-d", "."]]


def test_S04_AC1_mode_script_runs_the_loop(tmp_path: Path) -> None:
    """`ralph --mode script` is `ralph run`."""
    box = sandbox(tmp_path, WORKS, checks=CHECK)
    done = box.ralph("--mode", "script")
    assert done.code == 0, done.text
    assert box.passes() == {"US-1": True}


def test_S04_AC1_detached_survives_its_starter(tmp_path: Path) -> None:
    """`--detach` returns at once; the run goes on in a process and session of its own."""
    box = sandbox(tmp_path, "time.sleep(1)\n" + WORKS, checks=CHECK)
    done = box.run("--detach")
    assert done.code == 0, done.text
    assert "ralph status" in done.out
    deadline = time.monotonic() + 30
    while not box.passes()["US-1"]:
        assert time.monotonic() < deadline, (box.root / ".ralph/ralph.log").read_text()
        time.sleep(0.1)
    while box.leftovers():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert sentences.ALL_DONE in (box.root / ".ralph/ralph.log").read_text()


def test_S04_AC2_every_iteration_is_a_new_process_with_fresh_context(tmp_path: Path) -> None:
    """Two stories, two starts, two different processes, each with the prompt of its story."""
    box = sandbox(tmp_path, '(STATE / f"pid-{START}").write_text(str(os.getpid()))\n' + WORKS,
                  stories=2, checks=CHECK)  # fmt: skip
    assert box.run().code == 0
    assert (box.state / "pid-1").read_text() != (box.state / "pid-2").read_text()
    assert "Your story: US-1" in box.prompt(1)
    assert "Your story: US-2" in box.prompt(2)
    assert "Your story: US-1" not in box.prompt(2)


def test_S04_AC3_a_crashed_agent_is_survived(tmp_path: Path) -> None:
    """An agent that kills itself is started again and the story is finished."""
    box = sandbox(
        tmp_path, "if START == 1: os.kill(os.getpid(), signal.SIGKILL)\n" + WORKS, checks=CHECK
    )
    done = box.run("--json")
    assert done.code == 0, done.text
    assert [e["outcome"] for e in done.events("iteration_finished")] == ["killed", "completed"]


def test_S04_AC3_a_killed_supervisor_is_continued(tmp_path: Path, measured: Measured) -> None:
    """A kill -9 of ralph in the middle of a start; `--continue` finishes, nothing is left running."""
    box = sandbox(
        tmp_path, "if START == 1: write('half.txt'); time.sleep(60)\n" + WORKS, checks=CHECK
    )
    process = box.start()
    box.wait_for_start()
    time.sleep(0.5)
    process.kill()
    process.communicate()
    done = box.run("--continue")
    assert done.code == 0, done.text
    assert "recorded iteration 1 as interrupted" in done.err
    assert "Continuing run" in done.err
    assert box.passes() == {"US-1": True}
    assert box.leftovers() == []
    measured(len(box.leftovers()))
    assert box.subjects() == ["start", "US-1: Do US-1"]


def test_S04_AC4_breaker_and_analyzer_are_used(tmp_path: Path) -> None:
    """An agent that only talks opens the circuit: exit 1, the view says so."""
    box = sandbox(tmp_path, "status(files=0, words=f'I looked at part {START} of it.')")
    done = box.run()
    assert done.code == 1, done.text
    assert box.starts == 4
    view = json.loads((box.root / ".ralph-circuit-state.json").read_text())
    assert view["state"] == "OPEN"
    assert [(h["from"], h["to"]) for h in view["history"]] == [
        ("CLOSED", "HALF_OPEN"),
        ("HALF_OPEN", "OPEN"),
    ]
    assert "Another way is needed" in box.prompt(4)


def test_S02_AC3_open_stops_execution_and_outlives_the_session(tmp_path: Path) -> None:
    """After OPEN no run starts an agent; the command says how to go on."""
    box = sandbox(tmp_path, "status(files=0)")
    box.run()
    starts = box.starts
    for arguments in ([], ["--continue"]):
        done = box.run(*arguments)
        assert done.code == 1
        assert "--reset-circuit" in done.text
    assert box.starts == starts


def test_S02_AC4_reset_circuit_runs_again(tmp_path: Path) -> None:
    """`--reset-circuit` closes the circuit, then runs."""
    box = sandbox(tmp_path, "status(files=0)")
    box.run()
    starts = box.starts
    done = box.run("--continue", "--reset-circuit")
    assert done.code == 1
    assert box.starts == starts + 4


def test_S04_AC5_stories_run_in_order(tmp_path: Path) -> None:
    """Dependencies first, then priority, then file order; each commit names its story."""
    stories = [
        story("late", priority=9),
        story("second", priority=2, dependsOn=["first"]),
        story("also", priority=2),
        story("first", priority=5),
        story("urgent", priority=1, dependsOn=["second"]),
    ]
    box = sandbox(tmp_path, WORKS, stories=stories, checks=CHECK)
    assert box.run().code == 0
    order = ["also", "first", "second", "urgent", "late"]
    assert box.worked_on() == order
    assert box.subjects() == ["start", *(f"{name}: Do {name}" for name in order)]


def test_S04_AC6_ctrl_c_saves_a_checkpoint_and_exits_clean(tmp_path: Path) -> None:
    """SIGINT ends the agent gently, records the iteration, exits 130 and says how to go on."""
    box = sandbox(tmp_path, "write('half.txt'); print('thinking', flush=True); time.sleep(60)")
    process = box.start()
    box.wait_for_start()
    time.sleep(0.7)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, out + err
    assert sentences.GO_ON in err
    assert box.leftovers() == []
    session = json.loads((box.root / ".ralph-session.json").read_text())
    assert session["session_id"]
    with Journal.open(box.root / ".ralph/journal.db") as journal:
        newest = journal.latest_run()
        assert newest is not None
        assert newest.status == "stopped"
        assert journal.unfinished_iterations() == []


def test_S04_AC6_sigterm_exits_143(tmp_path: Path) -> None:
    """SIGTERM is the same with its own exit code."""
    box = sandbox(tmp_path, "time.sleep(60)")
    process = box.start()
    box.wait_for_start()
    time.sleep(0.5)
    process.terminate()
    process.communicate(timeout=30)
    assert process.returncode == 143
    assert box.leftovers() == []


def test_S04_AC6_a_second_ctrl_c_is_immediate(tmp_path: Path) -> None:
    """An agent that ignores SIGINT and SIGTERM is ended at once by the second Ctrl+C."""
    agent = """
    def heard(number, frame):
        (STATE / signal.Signals(number).name).touch()
        time.sleep(3)  # less than the grace it is given otherwise
        (STATE / "used its grace").touch()
    signal.signal(signal.SIGINT, heard); signal.signal(signal.SIGTERM, heard)
    (STATE / "deaf").touch()
    while True: time.sleep(60)
    """
    box = sandbox(tmp_path, agent)
    process = box.start()
    wait_until((box.state / "deaf").exists)
    process.send_signal(signal.SIGINT)
    wait_until((box.state / "SIGINT").exists)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert not (box.state / "used its grace").exists()
    assert box.leftovers() == []


def test_S04_AC7_a_session_older_than_a_day_starts_anew(tmp_path: Path) -> None:
    """`--continue` after more than 24 hours begins a new session and says so."""
    box = sandbox(tmp_path, "write(str(START)); status()", limits="max_iterations = 1")
    assert box.run().code == 3
    with Journal.open(box.root / ".ralph/journal.db") as journal:
        first = journal.latest_run()
        assert first is not None
    age_sessions(box.root / ".ralph/journal.db", 25 * 3600)
    done = box.run("--continue")
    assert "A new session begins: it is older than 24 hours" in done.err
    with Journal.open(box.root / ".ralph/journal.db") as journal:
        second = journal.latest_run()
        assert second is not None
        assert second.id != first.id


def age_sessions(journal: Path, seconds: float) -> None:
    """Make every session look that much older."""
    with closing(sqlite3.connect(journal)) as db, db:
        moment = time.time() - seconds
        db.execute("UPDATE runs SET last_activity = ?, started_at = ?, ended_at = ?", (moment,) * 3)
    with Journal.open(journal) as ours:
        ours.adopt()


def test_S03_AC7_a_missing_block_warns_in_the_run(tmp_path: Path) -> None:
    """Without RALPH_STATUS the words are used, with the warning, and checks still decide."""
    box = sandbox(tmp_path, "write('a.txt'); print('The story is complete.')", checks=CHECK)
    done = box.run("--json")
    assert done.code == 0, done.text
    warnings = done.events("iteration_finished")[0]["warnings"]
    assert any("status" in warning for warning in warnings)


def test_S03_AC8_blocked_waits_for_a_person(tmp_path: Path) -> None:
    """BLOCKED: the breaker's history notes it, other stories run, exit 2 with the RECOMMENDATION."""
    agent = """
    if STORY == "US-1":
        status("BLOCKED", files=0, recommendation="Provide STRIPE_KEY")
    else:
        write(STORY); done()
    """
    box = sandbox(tmp_path, agent, stories=2, checks=CHECK)
    done = box.run()
    assert done.code == 2, done.text
    assert "Provide STRIPE_KEY" in done.out
    assert box.passes() == {"US-1": False, "US-2": True}
    view = json.loads((box.root / ".ralph-circuit-state.json").read_text())
    assert any("US-1 is BLOCKED" in entry["reason"] for entry in view["history"])


def test_hangup_goes_on_into_the_log(tmp_path: Path) -> None:
    """SIGHUP (the terminal is gone) does not end the run."""
    box = sandbox(tmp_path, "time.sleep(1.5)\n" + WORKS, checks=CHECK)
    process = box.start()
    box.wait_for_start()
    os.kill(process.pid, signal.SIGHUP)
    process.communicate(timeout=30)
    assert process.returncode == 0
    assert sentences.ALL_DONE in (box.root / ".ralph/ralph.log").read_text()


def test_only_one_run_at_a_time(tmp_path: Path) -> None:
    """A second run is told who holds the project: 75."""
    box = sandbox(tmp_path, "time.sleep(60)")
    process = box.start()
    box.wait_for_start()
    done = box.run()
    process.terminate()
    process.communicate(timeout=30)
    assert done.code == 75
    assert str(process.pid) in done.err


def test_secrets_of_the_settings_are_not_stored(tmp_path: Path) -> None:
    """Neither the agent's own variables nor the webhook's address reach the journal."""
    box = sandbox(
        tmp_path,
        WORKS,
        checks=CHECK,
        toml="""
        [notify]
        webhook = "https://hooks.example.invalid/T0PSECRETPATH"
        """,
    )
    config = box.root / "ralph.toml"
    config.write_text(
        config.read_text().replace(
            "[checks]", 'env = {MY_SETTING = "hush-hush-value"}\n[checks]', 1
        )
    )
    box.git("commit", "-qam", "settings")
    box.run()
    stored = b"".join(path.read_bytes() for path in (box.root / ".ralph").glob("journal.db*"))
    assert b"hush-hush-value" not in stored
    assert b"T0PSECRETPATH" not in stored
    assert b"MY_SETTING" in stored
