"""A start that its own program ended: whose fault it is, and what the next prompt hears of it."""

from __future__ import annotations

from pathlib import Path

from tests.guarantees import Measured
from tests.loop.projects import sandbox

GEMINI = """
event(type="init", session_id="g-1", model="gemini-2.5-pro")
event(type="tool_use", tool_name="run_shell_command", tool_id="t", parameters={"command": "true"})
event(type="tool_result", tool_id="t", status="success", output="")
stats = {"total_tokens": 15, "input_tokens": 10, "output_tokens": 5}
if START == 1:
    event(type="error", severity="warning", message="Loop detected, stopping execution")
else:
    write(STORY + ".txt")
    event(type="message", role="assistant", delta=True, content="The story is complete.")
event(type="result", status="success", stats=stats)
"""
CODEX = """
event(type="thread.started", thread_id="t-1")
event(type="turn.started")
item = {"id": "item_1", "type": "command_execution", "command": "make", "status": "in_progress"}
event(type="item.started", item=item)
if START == 1:
    sys.exit(1)
write(STORY + ".txt")
event(type="item.completed", item={**item, "status": "completed", "exit_code": 0})
text = "The story is complete."
event(type="item.completed", item={"id": "item_2", "type": "agent_message", "text": text})
event(type="turn.completed", usage={"input_tokens": 10, "output_tokens": 5})
"""


def test_an_agent_that_stopped_itself_is_told_why(tmp_path: Path) -> None:
    """Its sentence is on the console and in the next prompt; no block is missed in it."""
    box = sandbox(tmp_path, GEMINI, checks=[["true"]], output="gemini")
    done = box.run()
    assert done.code == 0, done.text
    assert [line.analysis.outcome for line in box.records()] == ["limit", "completed"]
    assert "Loop detected, stopping execution" in done.text
    assert "Loop detected, stopping execution" in box.prompt(2)
    assert "Loop detected" not in box.prompt(1)


def test_an_agent_that_always_stops_itself_is_bounded(tmp_path: Path, measured: Measured) -> None:
    """It is the agent's own, so it counts as a start without progress."""
    box = sandbox(tmp_path, GEMINI.replace("START == 1", "True"), output="gemini")
    done = box.run()
    assert done.code == 1, done.text
    measured(box.starts)


def test_a_stream_cut_inside_a_command_is_nobodys_attempt(tmp_path: Path) -> None:
    """Somebody ended it: it is started again, and the story has lost nothing by it."""
    box = sandbox(tmp_path, CODEX, checks=[["true"]], output="codex")
    done = box.run()
    assert done.code == 0, done.text
    assert [line.analysis.outcome for line in box.records()] == ["killed", "completed"]
    assert "attempt" not in box.prompt(2)
