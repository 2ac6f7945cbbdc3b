"""An answer without a status block is asked for, once, instead of guessed at: through the command.

The agent passes for Claude Code: it is asked in the conversation it had and names that one's
running total, so a start of $0.25 and an answer of $0.05 report $0.25 and $0.30.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.loop.guards import claude_sandbox, told
from tests.loop.projects import Sandbox

BLOCK = "---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: false\n---END_RALPH_STATUS---"
SILENT = "I have nothing to add."
FORGETS = """
ASKED = "--resume" in sys.argv
with (STATE / "turns").open("a") as log: log.write("asked\\n" if ASKED else "worked\\n")
if ASKED:
    (STATE / "argv").write_text(json.dumps(sys.argv))
    says(ANSWER)
    if (STATE / "hang").exists(): time.sleep(60)
    result(ANSWER, cost=0.30); sys.exit()
write(f"src/{START}.py", START)
words = "The story is complete." if START == DONE_AT else f"I looked at part {START}."
says(words); result(words, cost=0.25)
"""
SLOW_ONCE = """
[ -e "$TEST_STATE/turns" ] && [ ! -e "$TEST_STATE/checking" ] || exit 0
touch "$TEST_STATE/checking"; exec sleep 15
"""


def forgetful(tmp_path: Path, answer: str, *, done_at: int = 0, toml: str = "") -> Sandbox:
    """An agent whose answers never end with a block, and what it says when it is asked."""
    given = f"ANSWER, DONE_AT = {answer!r}, {done_at}\n"
    return claude_sandbox(tmp_path, given + FORGETS, toml=toml)


def turns(box: Sandbox) -> list[str]:
    """What each process of the agent was started for."""
    return (box.state / "turns").read_text().split()


def killed_when(box: Sandbox, is_so: Callable[[], bool]) -> None:
    """A run that is killed at that moment."""
    process, deadline = box.start(), time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)


def test_S03_AC7_a_block_that_comes_when_asked_ends_the_answer(tmp_path: Path) -> None:
    """One iteration, one pass, both answers paid, and the warning stays."""
    box = forgetful(tmp_path, BLOCK)
    done = box.run("--json")
    assert done.code == 0, told(done)
    assert turns(box) == ["worked", "asked"]
    (ended,) = done.events("iteration_finished")
    assert ended["passed"]
    assert any("status" in words and "when asked" in words for words in ended["warnings"])
    assert ended["cost_usd"] == pytest.approx(0.30)
    assert done.events("run_finished")[0]["iterations"] == 1
    assert [event["iteration"] for event in done.events("status_asked")] == [1]
    argv = json.loads((box.state / "argv").read_text())
    assert argv[argv.index("--resume") + 1] == "s-1"
    assert argv[argv.index("--tools") + 1] == ""
    assert "identical" in box.ralph("replay").out


def test_a_question_is_part_of_an_exported_night(tmp_path: Path) -> None:
    """The case carries the block that came, and comes to the same decision by it."""
    box = forgetful(tmp_path, BLOCK)
    box.run()
    case = tmp_path / "night.jsonl"
    assert box.ralph("replay", "--export", str(case)).code == 0
    (iteration,) = json.loads(case.read_text())["iterations"]
    assert "STATUS: COMPLETE" in iteration["asked"]
    assert "RALPH_STATUS" not in iteration["output"]
    assert "decision" in iteration["expect"]
    assert box.ralph("eval", str(case)).code == 0


def test_after_two_questions_in_vain_nobody_asks_again(tmp_path: Path) -> None:
    """Its words decide then, as they do for each of the answers."""
    box = forgetful(tmp_path, SILENT, done_at=6)
    done = box.run("--json")
    assert done.code == 0, told(done)
    assert turns(box) == ["worked", "asked", "worked", "asked", "worked", "worked"]
    ended = done.events("iteration_finished")
    assert [one["passed"] for one in ended] == [False, False, False, True]
    assert all(any("words were used" in words for words in one["warnings"]) for one in ended)
    assert [one["cost_usd"] for one in ended] == pytest.approx([0.30, 0.30, 0.25, 0.25])
    assert "identical" in box.ralph("replay").out


def test_nobody_asks_where_that_is_switched_off(tmp_path: Path) -> None:
    """With `ask_for_status = false` words are read at once."""
    box = forgetful(tmp_path, BLOCK, done_at=2, toml="ask_for_status = false\n")
    done = box.run("--json")
    assert done.code == 0, told(done)
    assert turns(box) == ["worked", "worked"]


@pytest.mark.parametrize("limit", ["MAX_COST_USD=0.25", "CALLS_PER_HOUR=1"])
def test_nobody_asks_beyond_a_limit(tmp_path: Path, limit: str) -> None:
    """What the start used up is not there for a question either."""
    box = forgetful(tmp_path, BLOCK)
    name, _, most = limit.partition("=")
    box.env[f"RALPH_LIMITS_{name}"] = most
    done = box.run("--json", "--no-wait", "--max-iterations", "1")
    assert done.code == 3, told(done)
    assert turns(box) == ["worked"]


def test_a_question_is_a_start_for_the_hour(tmp_path: Path) -> None:
    """Two starts an hour are one iteration and its question."""
    box = forgetful(tmp_path, SILENT)
    box.env["RALPH_LIMITS_CALLS_PER_HOUR"] = "2"
    done = box.run("--json", "--no-wait")
    assert done.code == 3, told(done)
    assert turns(box) == ["worked", "asked"]


def test_killed_after_the_question_nobody_asks_again(tmp_path: Path) -> None:
    """The answer was written ahead: it is judged, and paid once."""
    box = forgetful(tmp_path, BLOCK)
    config = box.root / "ralph.toml"
    check = json.dumps([["sh", "-c", SLOW_ONCE]])
    config.write_text(config.read_text().replace("commands = []", f"commands = {check}"))
    box.git("commit", "-qam", "a slow check")
    killed_when(box, (box.state / "checking").exists)
    done = box.run("--continue", "--json")
    assert done.code == 0, told(done)
    assert turns(box) == ["worked", "asked"]
    assert done.events("run_finished")[0]["cost_usd"] == pytest.approx(0.30)


def test_killed_during_the_question_nobody_asks_again(tmp_path: Path) -> None:
    """What it had said by then counts, and nothing of it is left running."""
    box = forgetful(tmp_path, BLOCK)
    (box.state / "hang").touch()
    logs = box.root / ".ralph/transcripts"
    killed_when(
        box, lambda: any(b"END_RALPH" in p.read_bytes() for p in logs.rglob("*.status.log"))
    )
    done = box.run("--continue", "--json")
    assert done.code == 0, told(done)
    assert turns(box) == ["worked", "asked"]
    assert box.passes() == {"US-1": True}
    assert box.leftovers() == []
