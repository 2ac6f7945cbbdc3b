"""What a second model may use where several lanes are at work."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.lanes.test_run_branch import SECOND
from tests.lanes.yards import stories_of, yard
from tests.loop.projects import Sandbox

# The first one starts alone. b holds its part of the money until a has landed.
AGENT = """
if STORY == "b":
    until("reads", 60)
    time.sleep(4)
elif STORY == "a":
    until("starts-b")
    time.sleep(1)
write(f"{STORY}.txt", STORY)
block = "---RALPH_STATUS---\\nSTATUS: COMPLETE\\n---END_RALPH_STATUS---"
print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": block,
    "session_id": STORY, "num_turns": 1, "total_cost_usd": 0.01, "permission_denials": [],
    "usage": {"input_tokens": 9, "output_tokens": 9}}), flush=True)
"""
# It reads and reads: each step costs ten cents.
READS = """
import json, os, pathlib, sys, time
told = "Do a" in sys.stdin.read()
steps = 9 if told else 0
pathlib.Path(os.environ["TEST_STATE"], "reads" if told else "again").touch()
for number in range(steps):
    usage = {"input_tokens": 100_000, "output_tokens": 1}
    content = [{"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {}}]
    message = {"id": f"m{number}", "model": "m", "content": content, "usage": usage}
    head = {"session_id": "r", "uuid": "u", "parent_tool_use_id": None}
    print(json.dumps({"type": "assistant", **head, "message": message}), flush=True)
    time.sleep(0.3)
print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": "OK: 1",
    "session_id": "r", "uuid": "u", "num_turns": 1, "total_cost_usd": 0.1 * steps}))
"""


def doubted(tmp_path: Path, agent: str, reviewer: str, *names: str, limits: str = "") -> Sandbox:
    """A project whose green stories a second agent looks at, before they land."""
    script = tmp_path / "reviewer.py"
    script.write_text(reviewer)
    second = SECOND.format(python=json.dumps(sys.executable), script=json.dumps(str(script)))
    box = yard(
        tmp_path,
        agent,
        stories=stories_of(*names),
        files={"agents.d/second.toml": second},
        limits=limits,
        toml="[prices]\nmodels = { m = { input = 1.0, output = 1.0 } }\n",
        output="claude",
    )
    settings = box.root / "ralph.toml"
    settings.write_text(settings.read_text().replace("[checks]", '[checks]\ndoubt = ["@second"]'))
    box.git("commit", "-qam", "doubter")
    return box


@pytest.mark.parametrize(("most", "is_cut"), [("1.0", True), ("4.0", False)])
def test_a_doubter_leaves_what_other_lanes_may_use(tmp_path: Path, most: str, is_cut: bool) -> None:
    """It has the part of its own lane; where that is enough, it reads to its end."""
    limits = f'max_cost_usd = {most}\nmax_story_share = 0\nmax_time = "60s"'
    box = doubted(tmp_path, AGENT, READS, "first", "a", "b", limits=limits)
    done = box.run("--lanes", "2")

    record = next(it for it in box.records() if it.story and it.story.id == "a")
    [asked] = record.evidence.doubters
    assert bool(asked.unheard) == is_cut, done.text
    assert asked.usage.dollars <= (0.5 if is_cut else 0.91)
