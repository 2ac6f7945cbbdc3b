"""Turns of a loop inside a session: what counts, what ends it, what it leaves to script mode."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ralphloop.core.model import CheckResult, CheckStatus
from ralphloop.journal.records import RunStatus
from ralphloop.loop.patience import Patience
from ralphloop.prompts import DEFAULT_INSTRUCTIONS
from ralphloop.repo import checks as repo_checks
from ralphloop.repo.checks import check_of
from ralphloop.text.status_block import Status
from tests.hook.support import RALPH, Box, Json, box, done, report
from tests.starting import run_to_end

CHECKED = '[checks]\ncommands = [["test", "-e", "one.txt"]]\nbaseline = "tolerate"\n'


def spend(made: Box, path: Path, dollars: float) -> Json:
    """Let the session's transcript grow by an answer of this price; what a hook is told of it."""
    usage = {"input_tokens": 0, "output_tokens": int(dollars / 25e-6)}
    message = {"id": os.urandom(4).hex(), "model": "claude-opus-4-5", "usage": usage}
    with path.open("a") as transcript:
        transcript.write(json.dumps({"type": "assistant", "message": message}) + "\n")
    return {"transcript_path": str(path)}


def test_settings_that_change_in_a_turn_are_put_back(tmp_path: Path) -> None:
    """Which checks count is not for the session to say; the agent is asked about it once."""
    made = box(tmp_path, settings=CHECKED)
    before = (made.root / "ralph.toml").read_text()
    made.begin("--allow-red")
    made.write("one.txt", "done")
    made.write("ralph.toml", "[checks]\n")
    reply = made.stop(done())
    assert reply.blocks
    assert "ralph.toml was changed" in reply.reason
    assert (made.root / "ralph.toml").read_text() == before


def test_a_claim_is_checked_and_committed(tmp_path: Path) -> None:
    """A green story is marked and committed by us; a red one comes back with what failed."""
    made = box(tmp_path, settings=CHECKED)
    made.begin("--allow-red")
    made.write("two.txt", "not what was asked for")
    reply = made.stop(done())
    assert reply.blocks
    assert "US-001" in reply.reason
    assert "test -e one.txt" in reply.reason
    made.write("one.txt", "1")
    made.write("test_one.py", "def test_one(): assert True\n")
    reply = made.stop(done(), again=True)
    assert "US-001 passed" in reply.told
    assert "US-002" in reply.reason
    assert made.passes == {"US-001": True, "US-002": False}
    assert "US-001: Story 1" in made.git("log", "--format=%s")


def test_money_is_counted_and_ends_the_loop(tmp_path: Path) -> None:
    """The price comes from the transcript; what was spent before the loop is not the loop's."""
    made = box(tmp_path / "repo")
    transcript = tmp_path / "session.jsonl"
    spend(made, transcript, 90)
    made.command("ralph", "--max-cost 2", transcript_path=str(transcript))
    made.write("one.txt", "1")
    assert made.stop(**spend(made, transcript, 1)).blocks
    made.write("one.txt", "2")
    reply = made.stop(**spend(made, transcript, 1.5))
    assert not reply.blocks
    assert "$2.50 of $2.00 is spent" in reply.told
    assert made.run().decision == "budget_exhausted"


def test_the_breaker_counts_as_in_script_mode(tmp_path: Path) -> None:
    """Three turns without progress open the circuit after a warning; a reset closes it."""
    made = box(tmp_path, stories=1)
    made.begin()
    replies = [made.stop(f"Thought {n}.") for n in range(1, 5)]
    assert [reply.blocks for reply in replies] == [True, True, True, False]
    assert "--continue --reset-circuit" in replies[-1].told
    assert made.run().decision == "circuit_open"
    refused = made.command("ralph", "--continue")
    assert "--reset-circuit" in refused.reason
    made.begin("--continue --reset-circuit")
    made.write("one.txt", "1")
    assert made.stop().blocks


def test_a_blocked_story_waits_and_the_others_go_on(tmp_path: Path) -> None:
    """A question is for the person; only when nothing else can run does the loop let go."""
    made = box(tmp_path)
    made.begin()
    assert "US-002" in made.stop(report("Which one?", Status.BLOCKED)).reason
    made.write("two.txt", "2")
    reply = made.stop(done())
    assert not reply.blocks
    assert "US-001 waits for a person" in reply.told
    assert "/ralph:ralph --continue" in reply.told


@pytest.mark.parametrize(
    "error, details, outcome, goes_on",
    [
        ("overloaded", "Overloaded", "transient", True),
        ("server_error", "Internal server error", "transient", True),
        ("unknown", "", "transient", True),
        ("rate_limit", "Request rejected (429)", "transient", True),
        ("rate_limit", "You've hit your session limit · resets 3am (UTC)", "usage_limit", True),
        ("max_output_tokens", "", "limit", True),
        ("authentication_failed", "Not logged in", "fatal", False),
        ("billing_error", "Credit balance is too low", "fatal", False),
        ("model_not_found", "no such model", "fatal", False),
    ],
)
def test_an_api_error_has_its_owner(
    tmp_path: Path, error: str, details: str, outcome: str, goes_on: bool
) -> None:
    """What passes leaves the loop ready; what never works by itself ends it."""
    made = box(tmp_path)
    made.begin()
    reply = made.hook("stop-failure", made.event(error=error, error_details=details))
    assert reply.code == 0
    assert made.iterations()[0].outcome == outcome
    assert (made.holder is not None) is goes_on
    if goes_on:
        made.write("one.txt", "1")
        assert made.stop(done()).blocks


def test_a_session_that_ends_gives_the_project_back(tmp_path: Path) -> None:
    """The run is stopped, not lost; another session, or script mode, goes on with it."""
    made = box(tmp_path)
    made.begin()
    made.write("one.txt", "1")
    assert made.hook("session-end", made.event(reason="logout")).stdout == b""
    assert made.holder is None
    assert made.run().status == "stopped"
    assert "logout" in made.run().reason
    other = Box(tmp_path, session="another")
    other.begin("--continue")
    assert other.run().id == made.run().id


def test_further_stories_are_given_without_the_rules(tmp_path: Path) -> None:
    """The session has read them, and has a memory; after a summary they are given again."""
    made = box(tmp_path, files={"PROMPT.md": DEFAULT_INSTRUCTIONS})
    first = made.begin().context
    assert "Never delete, skip or weaken" in first
    assert "RALPH_STATUS (mandatory)" in first
    assert "no memory" not in first
    made.write("one.txt", "1")
    next_one = made.stop(done()).reason
    assert "# Your story: US-002" in next_one
    assert "RALPH_STATUS block" in next_one
    assert "Never delete" not in next_one
    assert "(mandatory)" not in next_one
    assert len(next_one) < len(first) / 2
    again = made.hook("session-start", made.event(source="compact")).context
    assert "# Your story: US-002" in again
    assert "RALPH_STATUS (mandatory)" in again


def test_the_status_names_commands_as_they_are_typed(tmp_path: Path) -> None:
    """A session knows them by other names than a terminal."""
    made = box(tmp_path)
    made.begin()
    assert "`/ralph:cancel-ralph` ends it" in made.command("ralph-status").reason
    made.command("cancel-ralph")
    status = made.command("ralph-status").reason
    assert "To go on where it stopped: `/ralph:ralph --continue`" in " ".join(status.split())
    assert "ralph run" not in status


@pytest.mark.parametrize("ending", ["cancel", "session-end"])
def test_an_interrupted_turn_is_paid_for(tmp_path: Path, ending: str) -> None:
    """No hook tells of the Esc key; what the turn used is counted when the loop ends."""
    made = box(tmp_path / "repo")
    transcript = tmp_path / "session.jsonl"
    spend(made, transcript, 90)
    made.command("ralph", transcript_path=str(transcript))
    made.write("one.txt", "1")
    assert made.stop(**spend(made, transcript, 1)).blocks
    spend(made, transcript, 0.5)
    if ending == "cancel":
        assert "is cancelled" in made.command("cancel-ralph").reason
    else:
        made.hook("session-end", made.event(reason="logout"))
    assert made.run().status == "stopped"
    assert [row.record.analysis.outcome for row in made.iterations()] == [
        "completed",
        "interrupted",
    ]
    assert sum(row.cost_usd for row in made.iterations()) == pytest.approx(1.5)
    other = Box(made.root, session="another")
    other.begin("--continue")
    assert other.run().id == made.run().id


def test_a_compacted_session_is_reminded(tmp_path: Path) -> None:
    """The prompt of the story that goes on is given again: a summary may have lost it."""
    made = box(tmp_path)
    made.begin()
    reply = made.hook("session-start", made.event(source="compact"))
    assert "# Your story: US-001" in reply.context
    assert "/ralph:cancel-ralph ends it" in reply.told


def test_script_mode_respects_a_session_and_goes_on_after_it(tmp_path: Path) -> None:
    """`ralph run` beside a live loop is 75; once it is cancelled, --continue takes the run over."""
    agent = '[agent]\nname = "command"\ncommand = ["sh", "-c", "echo x >> two.txt"]\n'
    made = box(tmp_path, settings=agent)
    made.begin()
    ralph = [sys.executable, "-m", "ralphloop", "run", "-q", "--continue", "--max-iterations", "1"]
    locked = subprocess.run(ralph, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert locked.returncode == 75, locked.stderr
    assert "session" in locked.stderr
    made.command("cancel-ralph")
    goes_on = subprocess.run(ralph, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert goes_on.returncode == 3, goes_on.stderr
    assert made.run().mode == "hook"  # the same run


def test_a_server_in_the_background_is_waited_for_once(tmp_path: Path) -> None:
    """A task may wake the session, so the turn is not judged; one that never ends holds nothing."""
    made = box(tmp_path)
    made.begin()
    server: Json = {
        "background_tasks": [{"id": "t1", "type": "shell", "description": "dev server"}]
    }
    waiting = made.stop("It is starting.", **server)
    assert not waiting.blocks
    assert "dev server" in waiting.told
    assert made.holder is not None
    made.write("one.txt", "1")
    assert made.stop("It runs.", **server).blocks


def test_nothing_is_asked_twice_of_a_paused_loop(tmp_path: Path) -> None:
    """`ralph pause` holds a session's loop too, and says how it goes on."""
    made = box(tmp_path)
    made.begin()
    pause = [sys.executable, "-m", "ralphloop", "pause"]
    subprocess.run(pause, cwd=tmp_path, capture_output=True, check=True)
    made.write("one.txt", "1")
    reply = made.stop()
    assert not reply.blocks
    assert "ralph resume" in reply.told


def test_short_names_are_ours_only_where_we_wrote_them(tmp_path: Path) -> None:
    """A /ralph of the person's own is none of our business; one that we wrote is."""
    made = box(tmp_path / "repo")
    made.prefix, made.env["CLAUDE_CONFIG_DIR"] = "", str(tmp_path / "claude")
    command = tmp_path / "claude" / "commands" / "ralph.md"
    command.parent.mkdir(parents=True)
    command.write_text("Sing the ralph song.\n")
    assert made.command("ralph").stdout == b""
    command.write_text("...\n<!-- written by `ralph plugin install` -->\n")
    made.begin()
    assert "/ralph --continue" in [made.stop("Hm."), made.stop("Hm.", again=True)][1].told


class Slow:
    """Checks that take longer than a session may be kept waiting."""

    def __init__(self) -> None:
        self.clock = 0.0

    def run(self, checks: list[Any], _: Path, *, stop: Any) -> tuple[CheckResult, ...]:
        """Each takes five minutes."""
        results: list[CheckResult] = []
        for check in checks:
            if stop():
                break
            self.clock += 300
            results.append(CheckResult(name=check.name, status=CheckStatus.PASSED))
        return tuple(results)


def test_checks_longer_than_eight_minutes_are_not_run_in_a_hook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a proof is none: the story is only claimed, and the next turn does not even try."""
    slow = Slow()
    monkeypatch.setattr(repo_checks, "run_checks", slow.run)
    monkeypatch.setattr(time, "monotonic", lambda: slow.clock)
    checks = [check_of([name], 900) for name in ("unit", "browser", "load")]

    def ran(patience: Patience) -> tuple[CheckResult, ...]:
        return patience.run(checks, tmp_path, stop=lambda: False)

    patience = Patience()
    assert ran(patience) == ()
    assert patience.slow
    assert slow.clock == 600
    assert ran(patience) == ()
    assert slow.clock == 600
    long = CheckResult(name="unit", status=CheckStatus.PASSED, duration_s=481)
    assert ran(Patience([long])) == ()
    assert slow.clock == 600
    assert len(Patience().run(checks[:1], tmp_path, stop=lambda: False)) == 1


def test_a_loop_that_is_over_holds_nothing_where_its_own_note_of_that_is_gone(
    tmp_path: Path,
) -> None:
    """Nobody could end the lease that would be left in git's directory."""
    cleans = ["sh", "-c", "test ! -e one.txt || rm -f .ralph/holder.json"]
    made = box(tmp_path / "r", stories=1, settings=f"[checks]\ncommands = {[cleans]}\n")
    made.begin()
    made.write("one.txt", "one\n")
    made.stop(done(exit_signal=True))
    assert made.run().status is RunStatus.COMPLETE
    env = {**os.environ, **made.env, "PATH": "/usr/bin:/bin"}  # no agent is there to be started
    started = run_to_end([*RALPH, "run"], given=b"", timeout=60, cwd=made.root, env=env)
    assert b"holds this project" not in started.stderr
    assert started.returncode != 75, started
