"""`ralph status`: one look says how the run stands and what to do next."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ralphloop.core import breaker
from ralphloop.core.breaker import BreakerState
from ralphloop.core.model import Circuit
from ralphloop.core.planning import ended
from ralphloop.core.run_state import OperatorOverrides, Standing
from ralphloop.core.totals import Expense
from ralphloop.journal.lock import hook_turn
from ralphloop.journal.queries import CIRCUIT_KEY
from ralphloop.journal.records import RunStatus
from tests.cli.nights import RUN, Night
from tests.conftest import RunRalph


def words(text: str) -> str:
    """What is shown, whatever the line breaks."""
    return " ".join(text.split())


def shown(run_ralph: RunRalph, root: Path) -> str:
    """`ralph status` as one long line."""
    done = run_ralph("status", cwd=root)
    assert done.returncode == 0, done.stderr
    return words(done.stdout)


def data(run_ralph: RunRalph, root: Path) -> dict[str, Any]:
    """`ralph status --json` as an object."""
    done = run_ralph("status", "--json", cwd=root)
    assert done.returncode == 0, done.stderr
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def test_an_empty_directory_is_sent_to_init(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Where nothing is, that is said, nothing is written, and init is the next step."""
    text = shown(run_ralph, tmp_path)
    assert text.startswith("none no run yet in")
    assert "next To set this directory up: `ralph init`" in text
    assert list(tmp_path.iterdir()) == []


def test_a_question_is_a_next_step_whatever_ended_the_run(
    tmp_path: Path, run_ralph: RunRalph
) -> None:
    """What waits for a person is said with its command before the way on."""
    night = Night(tmp_path).begin().iterate()
    night.story("S-2", standing=Standing.BLOCKED, reason="Which key?")
    night.end("budget_exhausted", "$5.00 of $5.00 is spent")
    asks, on = data(run_ralph, tmp_path)["next"]
    assert asks == 'Answer S-2: Which key? `ralph answer S-2 "…"`'
    assert "--max-cost" in on
    night.end("blocked", "S-2 waits for a person: Which key?")
    asks, on = data(run_ralph, tmp_path)["next"]
    assert (asks[:10], on) == ("Answer S-2", "Once it is answered: `ralph run --continue`")


def test_bare_ralph_is_status_and_the_way_to_help(tmp_path: Path, run_ralph: RunRalph) -> None:
    """`ralph` alone shows how things stand, spends nothing, and names the help."""
    done = run_ralph(cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("none ")
    assert "ralph --help lists all commands." in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_ready_project_is_sent_to_the_dry_run(tmp_path: Path, run_ralph: RunRalph) -> None:
    """With stories and no run yet, the first step is the one that costs nothing."""
    (tmp_path / "prd.json").write_text('{"userStories": [{"id": "A", "title": "B"}]}')
    text = shown(run_ralph, tmp_path)
    assert "stories 0 of 1 passed" in text
    assert "`ralph run --dry-run`" in text


def test_a_running_run_is_shown_with_all_its_numbers(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Process, story, attempt, grades, iterations, cost and tokens against their limits."""
    night = Night(tmp_path, config="[limits]\nmax_cost_usd = 20\nmax_iterations = 9\n").begin()
    night.prd(4, passed=2)
    night.story("S-1", standing=Standing.PASSED, grade="verified")
    night.iterate("S-1", spent=Expense(cost_usd=1.5, input_tokens=1200, output_tokens=34))
    estimated = Expense(cost_usd=1.71, cost_estimated=True, cache_read_tokens=5)
    night.iterate("S-3", outcome="limit", spent=estimated)
    night.iterate("S-3", finished=False, attempt=2)
    with night.held():
        text = shown(run_ralph, tmp_path)
    assert f"running run {RUN}, process {os.getpid()}, on main, for 1h 00m" in text
    assert "working on S-3 “Story 3”, attempt 2: iteration 3" in text
    assert "stories 2 of 4 passed (1 verified, 1 by hand)" in text
    assert "iterations 2 of 9" in text
    assert "cost $3.21 of $20.00 (estimated in part)" in text
    assert "tokens 1,239 (1,200 in, 34 out, 5 cache)" in text
    assert "time 1h 00m of 10h 00m" in text
    assert "circuit" not in text
    assert "`ralph stop` ends it; to follow it: `ralph log -f`" in text


def test_a_waiting_run_counts_down(tmp_path: Path, run_ralph: RunRalph) -> None:
    """A usage limit shows when it is lifted and how long that is."""
    night = Night(tmp_path).begin().iterate()
    now = time.time()
    night.journal.begin_wait(RUN, kind="quota", reason="usage limit", now=now, until=now + 5400)
    with night.held():
        text = shown(run_ralph, tmp_path)
        value = data(run_ralph, tmp_path)
    assert re.match(r"waiting run .* goes on in 1h (29|30)m, at \d\d:\d\d: usage limit", text)
    assert value["state"] == "waiting"
    assert 5300 < value["waiting"]["seconds"] <= 5400


def test_a_wait_of_a_dead_run_is_not_a_waiting_run(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Nobody waits where nobody lives."""
    night = Night(tmp_path).begin().iterate()
    now = time.time()
    night.journal.begin_wait(RUN, kind="quota", reason="usage limit", now=now, until=now + 5400)
    value = data(run_ralph, tmp_path)
    assert (value["state"], value["waiting"]) == ("stopped", None)


def test_a_paused_run_is_sent_to_resume(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Whoever paused it is told how to let it go on."""
    night = Night(tmp_path).begin().iterate()
    overrides = msgspec.to_builtins(OperatorOverrides(paused="paused by a person"))
    night.journal.set_meta(f"desk:{RUN}", overrides)
    with night.held():
        text = shown(run_ralph, tmp_path)
    assert text.startswith("paused ")
    assert "paused by a person" in text
    assert "`ralph resume`" in text
    night.iterate(finished=False)
    with night.held():
        text = shown(run_ralph, tmp_path)
    assert text.startswith("pausing ")
    assert "paused by a person after this iteration" in text


def test_a_raised_budget_is_counted(tmp_path: Path, run_ralph: RunRalph) -> None:
    """What a person added while the run went on belongs to its limits."""
    night = Night(tmp_path, config="[limits]\nmax_cost_usd = 2\n").begin().iterate()
    overrides = {"extra": {"cost_usd": 3.0, "time_s": 3600.0}}
    night.journal.set_meta(f"desk:{RUN}", overrides)
    with night.held():
        text, value = shown(run_ralph, tmp_path), data(run_ralph, tmp_path)
    assert "cost $0.50 of $5.00" in text
    assert value["limits"] == {
        "max_iterations": 50, "max_cost_usd": 5.0, "max_tokens": 0, "max_time_s": 39600.0,
        "reserve": 0.0, "until": None,
    }  # fmt: skip


def test_a_run_whose_process_is_gone_is_said_to_be_so(tmp_path: Path, run_ralph: RunRalph) -> None:
    """A crash is not a running run: the way to recover it is named."""
    Night(tmp_path).begin().iterate(finished=False)
    text = shown(run_ralph, tmp_path)
    assert text.startswith(f"stopped run {RUN}: its process ended")
    assert "working on" not in text
    assert "`ralph run --continue`" in text


def test_a_run_that_gets_ready_is_running(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Between taking the project and the first iteration the newest run is not the old one."""
    night = Night(tmp_path).begin().iterate().end("budget_exhausted")
    with night.held("20260118-220000-def456"):
        text, value = shown(run_ralph, tmp_path), data(run_ralph, tmp_path)
    assert text.startswith("running run 20260118-220000-def456")
    assert "gets ready" in text
    assert value["run"] is None


@pytest.mark.parametrize(
    "decision, reason, step",
    [
        (
            "interrupted",
            "interrupted (Ctrl+C)",
            "To go on where it stopped: `ralph run --continue`",
        ),
        ("max_iterations", "50 iterations", "--max-iterations"),
        ("budget_exhausted", "$20.00 is spent", "--max-cost"),
        ("usage_limit", "resets at 7", "Once the usage limit is lifted"),
        ("blocked", "S-1 waits for a person: which key?", "To go on where it stopped"),
        ("no_runnable_story", "all are set aside", "`ralph stories` says why"),
        ("test_saturation", "only tests", "Look at the story"),
        ("error", "not logged in", "(`ralph doctor`), then: `ralph run --continue`"),
    ],
)
def test_a_stopped_run_says_why_and_how_to_go_on(
    decision: str, reason: str, step: str, tmp_path: Path, run_ralph: RunRalph
) -> None:
    """Every ending has its reason and its own next step."""
    Night(tmp_path).begin().iterate().end(decision, reason)
    text = shown(run_ralph, tmp_path)
    words = re.escape(ended(decision, reason))
    assert re.match(rf"stopped run {RUN}, 1m 0\ds ago: {words} ", text)
    assert "_" not in decision or decision not in text
    assert step in text.split(" next ")[1]


def test_an_open_circuit_comes_first(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Whatever ended the run: while the circuit is open, nothing goes on without a reset."""
    night = Night(tmp_path).begin().iterate().end("circuit_open", "no progress")
    opened = BreakerState(circuit=Circuit.OPEN, reason="no progress in 4 iterations", no_progress=4)
    night.journal.set_meta(CIRCUIT_KEY, opened)
    text, value = shown(run_ralph, tmp_path), data(run_ralph, tmp_path)
    assert "circuit OPEN: no progress in 4 iterations (no progress 4, limit 3" in text
    assert "`ralph run --continue --reset-circuit`" in text.split(" next ")[1]
    assert value["circuit"]["state"] == "OPEN"
    assert value["session"]["circuit_state"] == "OPEN"
    night.journal.set_meta(CIRCUIT_KEY, breaker.reset(opened, iteration=0, at=0.0))
    assert "circuit reset" not in shown(run_ralph, tmp_path)


def test_an_old_session_is_not_offered_for_continuing(tmp_path: Path, run_ralph: RunRalph) -> None:
    """After a day a new session begins, and that is what the next step says."""
    night = Night(tmp_path)
    night.start = time.time() - 30 * 3600
    night.begin().iterate().end("interrupted", ago=29 * 3600)
    text, value = shown(run_ralph, tmp_path), data(run_ralph, tmp_path)
    assert "A new session begins" in text
    assert value["run"]["can_continue"] is False


def test_a_complete_run_points_to_the_work(tmp_path: Path, run_ralph: RunRalph) -> None:
    """When all is done there is nothing to continue."""
    night = Night(tmp_path).begin().iterate()
    night.prd(4, passed=4)
    night.end("project_complete", "all 4 stories have passed", complete=True)
    text = shown(run_ralph, tmp_path)
    assert text.startswith("complete ")
    assert "--continue" not in text


def test_the_last_decision_is_shown_with_reasons_and_warnings(
    tmp_path: Path, run_ralph: RunRalph
) -> None:
    """Why it went on, and what looked wrong, three of them at most."""
    analysis = {
        "warnings": ["files: it says 3, measured 0", "status: no block", "denied: Bash"],
        "stuck": [{"name": "same_error", "detail": "3 times the same error"}],
    }
    record = {
        "analysis": analysis,
        "decision": {"word": "continue", "reasons": ["the agent set EXIT_SIGNAL false"]},
    }
    Night(tmp_path).begin().iterate("S-2", record=record).iterate(finished=False)
    text, value = shown(run_ralph, tmp_path), data(run_ralph, tmp_path)
    assert "last iteration 1, S-2: completed: the agent set EXIT_SIGNAL" in text
    assert text.count("warning ") == 3
    assert "files: it says 3, measured 0" in text
    assert value["last"]["warnings"][3] == "stuck: 3 times the same error"
    assert value["last"]["reasons"] == ["the agent set EXIT_SIGNAL false"]


def test_starts_without_an_answer_are_counted_apart(tmp_path: Path, run_ralph: RunRalph) -> None:
    """An outage is no iteration, but it is not hidden either."""
    night = Night(tmp_path).begin().iterate()
    night.iterate(outcome="transient", spent=Expense(counted=False))
    assert "iterations 1 of 50, and 1 start without an answer" in shown(run_ralph, tmp_path)


def test_a_broken_story_file_hides_nothing_else(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Status works with whatever can be read, and says what cannot."""
    night = Night(tmp_path).begin().iterate()
    (tmp_path / "prd.json").write_text("{")
    text, value = shown(run_ralph, tmp_path), data(run_ralph, tmp_path)
    assert "stories prd.json:" in text
    assert "iterations 1 of 50" in text
    assert value["stories"]["problem"].startswith("prd.json")
    assert night.journal.totals(RUN).iterations == 1


def test_a_broken_ralph_toml_hides_nothing(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Settings with a mistake are another command's business."""
    Night(tmp_path).begin().iterate()
    (tmp_path / "ralph.toml").write_text("[limits]\nmax_iteration = 1\n")
    assert "iterations 1 of 50" in shown(run_ralph, tmp_path)


def test_a_plain_loop_has_no_stories(tmp_path: Path, run_ralph: RunRalph) -> None:
    """A run without a story list is shown without one."""
    Night(tmp_path).begin(prd="").iterate(None)
    text = shown(run_ralph, tmp_path)
    assert "stories" not in text.split(" next ")[0]


def test_a_loop_inside_a_session_is_a_run_too(tmp_path: Path, run_ralph: RunRalph) -> None:
    """A lease without a process of ours counts as alive while it lasts."""
    night = Night(tmp_path).begin(mode="hook").iterate()
    directory, now = tmp_path / ".ralph", time.time()
    with hook_turn(directory, session="s-1", run=RUN, now=now, lease_s=600):
        pass
    value = data(run_ralph, tmp_path)
    assert (value["state"], value["holder"]["mode"]) == ("running", "hook")
    assert night.run == RUN


def test_a_damaged_journal_is_70_with_words(tmp_path: Path, run_ralph: RunRalph) -> None:
    """What cannot be read is said, never shown as nothing."""
    (tmp_path / ".ralph").mkdir()
    (tmp_path / ".ralph" / "journal.db").write_bytes(b"not a database at all, but long enough")
    for arguments in (["status"], ["status", "--json"], []):
        done = run_ralph(*arguments, cwd=tmp_path)
        assert done.returncode == 70
        assert "journal.db" in done.stderr
        assert done.stdout == ""


def test_json_carries_the_session_and_every_iteration(tmp_path: Path, run_ralph: RunRalph) -> None:
    """The session file's shape, the per-iteration list, and totals of money and tokens."""
    night = Night(tmp_path).begin()
    night.prd(4, passed=1)
    night.story("S-2", standing=Standing.SET_ASIDE, reason="3 attempts failed")
    night.story("S-3", standing=Standing.BLOCKED, reason="which key?")
    for _ in range(3):
        night.iterate("S-2", spent=Expense(cost_usd=0.25, input_tokens=7, output_tokens=1))
    night.end("interrupted", "stopped")
    value = data(run_ralph, tmp_path)
    assert [i["number"] for i in value["iterations"]] == [1, 2, 3]
    assert set(value["iterations"][0]) >= {
        "number", "timestamp", "status", "tasks_completed", "files_modified", "exit_decision",
    }  # fmt: skip
    assert value["session_id"] == RUN
    assert value["session"]["iterations"] == 3
    assert value["session"]["stories_completed"] == 1
    assert value["session"]["stories_failed"] == 2
    assert value["session"]["prd_path"] == "prd.json"
    assert value["cost_usd"] == 0.75
    assert value["tokens"] == {
        "input": 21, "output": 3, "cache_read": 0, "cache_write": 0, "total": 24,
    }  # fmt: skip
    assert value["stories"]["grades"] == {"by hand": 1}
    assert (value["stories"]["set_aside"], value["stories"]["blocked"]) == (1, 1)
    assert value["run"]["decision"] == "interrupted"


def test_json_has_the_same_keys_with_and_without_a_run(tmp_path: Path, run_ralph: RunRalph) -> None:
    """A tool that reads it need not know whether something was run."""
    with_none = data(run_ralph, tmp_path)
    Night(tmp_path).begin().iterate()
    with_one = data(run_ralph, tmp_path)
    totals = {"total_tasks_completed", "total_files_modified", "total_commits"}
    assert set(with_none) | totals == set(with_one)


def test_a_long_night_is_listed_whole(tmp_path: Path, run_ralph: RunRalph) -> None:
    """The list is read in pages and complete."""
    night = Night(tmp_path).begin()
    with night.journal.write("test") as db:
        for n in range(1, 2_502):
            sql = (
                "INSERT INTO iterations (run, n, attempt, started_at, head, tree, prompt_digest,"
                " prompt_path, finished_at) VALUES (?, ?, 1, 1.0, '', '', '', '', 2.0)"
            )
            db.run(sql, (RUN, n))
    numbers = [i["number"] for i in data(run_ralph, tmp_path)["iterations"]]
    assert numbers == list(range(1, 2_502))


def test_lines_fit_into_eighty_columns(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Long reasons are wrapped under their label, commands are not torn."""
    long = "a reason that is quite long " * 8
    Night(tmp_path).begin().iterate().end("blocked", long)
    out = run_ralph("status", cwd=tmp_path).stdout
    assert max(map(len, out.splitlines())) <= 80
    assert "`ralph run --continue`" in out


def test_hostile_words_cannot_reach_the_terminal(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Control characters of titles, reasons and ids are taken out."""
    night = Night(tmp_path)
    evil = "\x1b]0;owned\x07S\n-1\x9b2J"
    stories = [{"id": evil, "title": evil, "passes": False}]
    (tmp_path / "prd.json").write_text(json.dumps({"userStories": stories}))
    night.begin().iterate(evil, record={"analysis": {"warnings": [evil]}})
    night.iterate(evil, finished=False)
    with night.held():
        out = run_ralph("status", cwd=tmp_path).stdout
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", out)


@pytest.mark.parametrize("no_color, coloured", [("", True), ("1", False)])
def test_colour_follows_the_terminal(no_color: str, coloured: bool, tmp_path: Path) -> None:
    """A terminal gets a coloured state unless NO_COLOR says otherwise."""
    import pty

    Night(tmp_path).begin().iterate().end()
    master, slave = pty.openpty()
    environment = {**os.environ, "NO_COLOR": no_color, "TERM": "xterm"}
    command = [sys.executable, "-m", "ralphloop", "status"]
    subprocess.run(command, cwd=tmp_path, env=environment, stdout=slave, check=True, timeout=60)
    os.close(slave)
    out = os.read(master, 8192).decode()
    os.close(master)
    assert ("\x1b[" in out) is coloured
    assert "stopped" in out


def test_status_works_beside_a_writing_run(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Looking neither waits for the run nor holds it up."""
    night = Night(tmp_path).begin()
    with night.held():
        for n in range(3):
            night.iterate()
            assert data(run_ralph, tmp_path)["session"]["iterations"] == n + 1
    assert night.journal.find_run(RUN).status is RunStatus.RUNNING  # type: ignore[union-attr]


def test_an_empty_list_needs_a_story(run_ralph: RunRalph, tmp_path: Path) -> None:
    """Nothing is wrong with it: what helps is to add one."""
    (tmp_path / "prd.json").write_text('{"userStories": []}\n')
    told = run_ralph("status", cwd=tmp_path).stdout
    assert "ralph stories add" in told
    assert "ralph doctor" not in told
