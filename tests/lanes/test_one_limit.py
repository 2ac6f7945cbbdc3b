"""A usage limit that several lanes meet at once is one: one fallback is named, one wait is begun."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.lanes.yards import LIBRARY, starts, stories_of, yard
from tests.loop.projects import Sandbox

# All of them are at work before the first meets the limit.
TOGETHER = """
say(f"begun-{STORY}")
for name in NAMES:
    until(f"begun-{name}")
"""
LIMIT = """
print(json.dumps({"type": "rate_limit_event", "rate_limit_info": {"status": "rejected",
      "resetsAt": int(time.time()) + 3600, "rateLimitType": "five_hour"}}), flush=True)
"""
REFUSED = """
print(json.dumps({"type": "result", "subtype": "success", "is_error": True, "result": "WORDS",
      "session_id": "s", "num_turns": 1, "total_cost_usd": 0, "permission_denials": [],
      "usage": {}, "api_error": "usage_limit_reached", "api_error_status": 429,
      "terminal_reason": "api_error"}), flush=True)
sys.exit(1)
"""
OTHER = """
write(f"by-other-{STORY}.txt")
done()
"""


def limited(tmp_path: Path, names: str, agent: str, *, fallback: bool, limits: str = "") -> Sandbox:
    """A project whose agent meets a usage limit in every lane at once."""
    script = f"NAMES = {list(names)!r}\n{TOGETHER}{agent}"
    other = tmp_path / "other.py"
    other.write_text(LIBRARY + OTHER)
    declared = f"""
name = "other"
program = {json.dumps(sys.executable)}
reader = "text"
start = [{json.dumps(str(other))}, "{{safety}}", "{{model}}", "{{args}}"]
install = "it is here"
[safety]
minimal = []
moderate = []
strict = []
"""
    files = {"agents.d/other.toml": declared}
    box = yard(tmp_path, script, stories=stories_of(*names), files=files, limits=limits)
    config = box.root / "ralph.toml"
    more = 'format = "claude"\n' + ('fallback = ["other"]\n' if fallback else "")
    config.write_text(config.read_text().replace("[checks]", f"{more}[checks]", 1))
    box.git("commit", "-qam", "agent")
    return box


def test_one_fallback_is_announced_once_in_three_lanes(tmp_path: Path) -> None:
    """Three lanes that go on with another agent are one change of agent, said once."""
    agent = LIMIT + REFUSED.replace("WORDS", "You've hit your 5-hour limit")
    box = limited(tmp_path, "abc", agent, fallback=True)

    done = box.run("--lanes", "3")

    assert done.code == 0, done.text
    assert sorted(it.agent for it in box.records()) == ["command"] * 3 + ["other"] * 3
    (said,) = (line for line in done.out.splitlines() if "takes over" in line)
    assert "other takes over: command is away until" in said
    assert box.passes() == {"a": True, "b": True, "c": True}


def test_one_limit_that_two_lanes_meet_is_waited_for_once(tmp_path: Path) -> None:
    """Nobody knows when it resets: the wait is the first one, not the longer second."""
    agent = REFUSED.replace("WORDS", "Usage limit reached")
    box = limited(tmp_path, "ab", agent, fallback=False, limits='max_time = "10m"')

    done = box.run("--lanes", "2", "--json")

    (ended,) = done.events("run_finished")
    assert (starts(box, "a"), starts(box, "b")) == (1, 1)
    assert any("waiting 15m" in reason for reason in ended["reasons"]), ended
