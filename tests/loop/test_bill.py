"""The bill of a resumed conversation, through the command: each start is paid once.

Some agents report the running total of a conversation.  Without the subtraction a night of resumed
starts is paid many times over, and the budget ends it far too early.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.guarantees import Measured
from tests.loop.guards import claude_sandbox, told
from tests.loop.projects import Done, Sandbox, sandbox

RUNNING_TOTAL = """
write(f"src/{START}.py", START)
says("Working.")
result(f"Part {START} is there.", cost=0.25 * START)
"""
CODEX = """
write(f"src/{START}.py", START)
event(type="thread.started", thread_id="t-1"); event(type="turn.started")
if (STATE / "cut").exists() and START == 2: sys.exit(1)
text = f"Part {START} is there."
event(type="item.completed", item={"id": "i", "type": "agent_message", "text": text})
usage = {"input_tokens": 200_000 * START, "cached_input_tokens": 0, "output_tokens": 0}
event(type="turn.completed", usage=usage)
"""  # gpt-5 takes $0.25 for 200,000 tokens


def claude(tmp_path: Path, context: str) -> Sandbox:
    """An agent that names the price of the whole conversation, never of the start."""
    toml = f'context = "{context}"\nask_for_status = false\n'
    return claude_sandbox(tmp_path, RUNNING_TOTAL, toml=toml)


def codex(tmp_path: Path, context: str) -> Sandbox:
    """An agent that counts the tokens of the whole conversation and names no price."""
    box = sandbox(tmp_path, CODEX, output="codex")
    box.env.update({"RALPH_AGENT_CONTEXT": context, "RALPH_AGENT_MODEL": "gpt-5"})
    return box


AGENTS = {"claude": claude, "codex": codex}


def costs(done: Done) -> list[float]:
    """What each start cost, as those who watch are told."""
    return [event["cost_usd"] for event in done.events("iteration_finished")]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_running_total_is_paid_once(tmp_path: Path, agent: str, measured: Measured) -> None:
    """Four starts of $0.25 use up a budget of $1, although the last one reports $1 by itself."""
    box = AGENTS[agent](tmp_path, "resume")
    done = box.run("--json", "--max-cost", "1")
    assert done.code == 3, told(done)
    assert costs(done) == pytest.approx([0.25] * 4)
    assert done.events("run_finished")[0]["cost_usd"] == pytest.approx(1.0)
    measured(done.events("run_finished")[0]["cost_usd"])
    assert box.starts == 4


@pytest.mark.parametrize("agent", AGENTS)
def test_a_new_conversation_is_paid_whole(tmp_path: Path, agent: str) -> None:
    """Without resuming, every total is of its own start: $0.25, $0.50 and $0.75 are $1.50."""
    box = AGENTS[agent](tmp_path, "fresh")
    done = box.run("--json", "--max-cost", "1.4")
    assert done.code == 3, told(done)
    assert costs(done) == pytest.approx([0.25, 0.5, 0.75])


def test_a_start_that_reports_nothing_does_not_forget_what_was_paid(tmp_path: Path) -> None:
    """The third start's total holds the first one's tokens; those were paid before the second."""
    box = codex(tmp_path, "resume")
    (box.state / "cut").touch()
    done = box.run("--json", "--max-iterations", "2")
    assert done.code == 3, told(done)
    assert costs(done) == pytest.approx([0.25, 0.0, 0.5])
    tokens = [event["tokens"] for event in done.events("iteration_finished")]
    assert tokens == [200_000, 0, 400_000]
