"""Questions to a person, and starts that are refused: neither may cost the others their night."""

from __future__ import annotations

import json
from pathlib import Path

from tests.loop.guards import told
from tests.loop.projects import Sandbox, sandbox

GREEN = [["true"]]
ASKS = """
if int(STORY[3:]) <= 5: status("BLOCKED", files=0, recommendation=f"Which key is for {STORY}?")
else: write(f"{STORY}.txt"); done()
"""
TALKS = "status(files=0, words=f'I looked at part {START} of it.')"
PAID = """
event(type="system", subtype="init", session_id="s-1", model="m", tools=[])
says(f"I looked at part {START} of it.")
result(f"I looked at part {START} of it.", cost=1.0)
"""


def notes(box: Sandbox) -> list[str]:
    """What the breaker's history holds without the circuit having changed."""
    view = json.loads((box.root / ".ralph-circuit-state.json").read_text())
    return [entry["reason"] for entry in view["history"] if entry["from"] == entry["to"]]


def moves(box: Sandbox, *arguments: str) -> list[tuple[str, str]]:
    """How the circuit changed during a run, as whoever watches was told."""
    told_ = box.run("--json", *arguments).events("circuit_changed")
    return [(event["before"], event["after"]) for event in told_]


def test_five_questions_do_not_end_the_night_of_the_others(tmp_path: Path) -> None:
    """Five stories ask, two pass, exit 2, each question is said at once and at the end."""
    box = sandbox(tmp_path, ASKS, stories=7, checks=GREEN)
    done = box.run()
    assert done.code == 2, told(done)
    assert box.passes() == {f"US-{n}": n > 5 for n in range(1, 8)}
    assert len(box.worked_on()) == 7
    at_once, _, after = done.out.partition("US-6 passed")
    for n in range(1, 6):
        assert f"? US-{n} waits for you: Which key is for US-{n}?" in at_once
        assert f"Which key is for US-{n}?" in after
    assert notes(box) == [f"US-{n} is BLOCKED" for n in range(1, 6)]
    shown = box.ralph("circuit", "status").out
    assert "US-5 is BLOCKED" in shown
    assert "CLOSED → CLOSED" not in shown
    assert "no progress  0 of 3" in shown


def test_a_question_in_half_open_leaves_it_and_talk_still_opens_it(tmp_path: Path) -> None:
    """Every change of the circuit is told, also in a run with questions in between."""
    agent = """
    if START == 4: status("BLOCKED", files=0, recommendation="Which key?")
    else: status(files=0, words=f"I looked at part {START} of it.")
    """
    box = sandbox(tmp_path, agent, stories=2, checks=GREEN, limits="max_attempts = 9")
    assert moves(box) == [("CLOSED", "HALF_OPEN"), ("HALF_OPEN", "OPEN")]
    assert box.worked_on() == ["US-1"] * 4 + ["US-2"]


def test_a_question_after_the_same_error_still_opens_and_that_is_told(tmp_path: Path) -> None:
    """The count of the same error goes on through questions; the change is no secret."""
    agent = """
    status("BLOCKED", files=0, recommendation="What now?",
           words="Error: cannot connect to database shop at port 5432")
    """
    box = sandbox(tmp_path, agent, stories=7, checks=GREEN)
    done = box.run("--json")
    assert done.code == 1, told(done)
    assert box.starts == 5
    changes = done.events("circuit_changed")
    assert [(event["before"], event["after"]) for event in changes] == [("CLOSED", "OPEN")]
    assert "same error" in changes[0]["reason"]


def test_questions_are_repeated_when_a_limit_ends_the_run(tmp_path: Path) -> None:
    """What waits for a person is said last, whatever ended the run."""
    box = sandbox(tmp_path, ASKS, stories=7, checks=GREEN)
    done = box.run("-q", "--max-iterations", "2")
    assert done.code == 3, told(done)
    assert done.out.count("? US-2 waits for you: Which key is for US-2?") == 2


def test_a_refused_run_begins_no_session(tmp_path: Path) -> None:
    """After the circuit opened, the advised command goes on with what was really spent."""
    box = sandbox(tmp_path, PAID, output="claude", limits="max_cost_usd = 6.0")
    opened = box.run()
    assert opened.code == 1, told(opened)
    run = box.status()["session_id"]
    refused = box.run()
    assert refused.code == 1
    assert "the circuit is OPEN" in refused.err
    assert "ralph run --continue --reset-circuit" in refused.err
    assert "A new session begins" not in refused.err
    assert box.status()["session_id"] == run
    done = box.run("--continue", "--reset-circuit")
    assert done.code == 3, told(done)
    assert f"Continuing run {run}" in done.err
    assert box.starts == 6


def test_a_red_baseline_begins_no_session(tmp_path: Path) -> None:
    """A run that is refused for its checks leaves the unfinished one to be continued."""
    box = sandbox(tmp_path, "write(f'{START}.txt'); status()", checks=[["test", "!", "-f", "red"]])
    assert box.run("--max-iterations", "2").code == 3
    run = box.status()["session_id"]
    (box.root / ".git/info/exclude").write_text("red\n")
    (box.root / "red").write_text("")
    assert box.run().code == 66
    assert box.status()["session_id"] == run


def test_resets_and_cool_downs_are_told_too(tmp_path: Path) -> None:
    """A reset on the command line and a cool-down that is over change the circuit like the rest."""
    box = sandbox(tmp_path, TALKS)
    assert box.run().code == 1
    assert moves(box, "--continue", "--reset-circuit")[0] == ("OPEN", "CLOSED")
    (box.root / "ralph.toml").write_text(
        (box.root / "ralph.toml").read_text() + "[circuit]\ncooldown_minutes = 0.0001\n"
    )
    box.git("commit", "-qam", "settings")
    assert moves(box) == [("OPEN", "HALF_OPEN"), ("HALF_OPEN", "OPEN")]
