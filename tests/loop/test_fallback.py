"""Another agent takes over while the first cannot work, and gives the work back."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

from tests.loop.projects import LIBRARY, Sandbox, sandbox

LIMIT = """
event(type="rate_limit_event", rate_limit_info={"status": "rejected",
      "resetsAt": int(time.time()) + SECONDS, "rateLimitType": "five_hour"})
result("You've hit your 5-hour limit", is_error=True, cost=0, api_error="usage_limit_reached",
       api_error_status=429, terminal_reason="api_error")
sys.exit(1)
"""
FATAL = """
event(type="assistant", is_api_error_message=True, error="authentication_failed",
      message={"model": "<synthetic>", "content": [{"type": "text", "text": "Not logged in"}]})
result("Not logged in", is_error=True, cost=0, terminal_reason="api_error")
sys.exit(1)
"""
OTHER = """
write(f"by-other-{STORY}.txt", START)
done(words="Done by the other one.")
"""
CHECK = [["test", "-d", "."]]


def with_fallback(tmp_path: Path, first: str, *, stories: int = 1, toml: str = "") -> Sandbox:
    """A project whose fallback is an agent of its own, declared in a TOML file."""
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
    box = sandbox(
        tmp_path,
        first,
        stories=stories,
        checks=CHECK,
        output="claude",
        files={"agents.d/other.toml": declared},
    )
    config = box.root / "ralph.toml"
    config.write_text(config.read_text().replace("[checks]", 'fallback = ["other"]\n[checks]', 1))
    box.git("commit", "-qam", "fallback")
    return box


def agents(box: Sandbox) -> list[str]:
    """Who worked on each start, from the journal."""
    return [line.agent for line in box.records()]


def test_a_usage_limit_hands_the_story_to_the_next_agent(tmp_path: Path) -> None:
    """No hour is waited while somebody else can work."""
    box = with_fallback(tmp_path, LIMIT.replace("SECONDS", "3600"))
    done = box.run()
    assert done.code == 0, done.text
    assert agents(box) == ["command", "other"]
    assert "waiting" not in done.out
    (switched,) = (line for line in done.out.splitlines() if "takes over" in line)
    assert re.search(r"^\d\d:\d\d   other takes over: command is away until \d\d:\d\d$", switched)


def test_the_first_agent_returns_when_its_limit_has_reset(tmp_path: Path) -> None:
    """Each agent has its own quota clock; the order of preference stays."""
    first = f"""
if START == 1:
    {LIMIT.replace("SECONDS", "3").strip().replace(chr(10), chr(10) + "    ")}
time.sleep(0.1)
write(f"by-first-{{STORY}}.txt", START)
says("Done by the first one. The story is complete.")
result("Done by the first one. The story is complete.")
"""
    slow = (
        "import time; time.sleep(4)\n"  # longer than the limit, which is not over when it is read
    )
    box = with_fallback(tmp_path, first, stories=2)
    (tmp_path / "other.py").write_text(LIBRARY + slow + OTHER)
    done = box.run()
    assert done.code == 0, done.text
    assert agents(box) == ["command", "other", "command"]
    changes = [line.strip() for line in done.out.splitlines() if " takes over" in line]
    assert len(changes) == 1
    assert "  command works again" in done.out


PAYS = """
import json, time
print(json.dumps({"type": "step_start", "sessionID": "o-1", "part": {}}), flush=True)
print(json.dumps({"type": "step_finish", "sessionID": "o-1", "part": {"reason": "tool-calls",
      "cost": 0.5, "tokens": {"input": 100, "output": 20}}}), flush=True)
(STATE / "paid").write_text("")
time.sleep(60 if START == 2 else 0)
write(f"by-other-{STORY}.txt", START)
print(json.dumps({"type": "text", "sessionID": "o-1", "part": {"text":
      "---RALPH_STATUS---\\nSTATUS: COMPLETE\\nEXIT_SIGNAL: false\\n---END_RALPH_STATUS---"}}))
print(json.dumps({"type": "step_finish", "sessionID": "o-1", "part": {"reason": "stop",
      "cost": 0.25, "tokens": {"input": 100, "output": 20}}}), flush=True)
"""


def test_what_a_fallback_had_cost_is_counted_when_ralph_was_killed(tmp_path: Path) -> None:
    """Its transcript is read as what it is, and not as one of the agent that is away."""
    box = with_fallback(tmp_path, LIMIT.replace("SECONDS", "3600"))
    declared = box.root / "agents.d/other.toml"
    declared.write_text(declared.read_text().replace('"text"', '"opencode"'))
    box.git("commit", "-qam", "reader")
    (tmp_path / "other.py").write_text(LIBRARY + PAYS)
    run = box.start()
    deadline = time.monotonic() + 60
    while not (box.state / "paid").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    run.kill()
    run.communicate()
    done = box.run("--continue")
    assert done.code == 0, done.text
    assert agents(box) == ["command", "other", "other"]
    assert box.status()["cost_usd"] == 0.5 + 0.5 + 0.25


def test_a_limit_that_still_holds_is_named_when_a_run_goes_on(tmp_path: Path) -> None:
    """Nothing was started, and the reason is not left to the reader."""
    box = sandbox(tmp_path, LIMIT.replace("SECONDS", "3600"), checks=CHECK, output="claude")
    assert box.run("--no-wait").code == 3
    done = box.run("--continue", "--no-wait", "--json")
    assert done.code == 3
    assert box.starts == 1
    (ended,) = done.events("run_finished")
    assert ended["reasons"] == [
        "the usage limit of command is not lifted yet",
        "--no-wait was given",
    ]


def test_a_wait_that_was_killed_does_not_keep_another_agent_from_working(tmp_path: Path) -> None:
    """A fallback that was named since takes over: nobody sits out the limit of the first."""
    box = with_fallback(tmp_path, LIMIT.replace("SECONDS", "3600"))
    config = box.root / "ralph.toml"
    both = config.read_text()
    config.write_text(both.replace('fallback = ["other"]\n', ""))
    box.git("commit", "-qam", "no fallback")
    run = box.start()
    deadline = time.monotonic() + 60
    while not (box.starts and box.status()["state"] == "waiting"):
        assert time.monotonic() < deadline
    run.kill()
    run.communicate()
    config.write_text(both)
    box.git("commit", "-qam", "fallback")
    done = box.run("--continue", "--no-wait")
    assert done.code == 0, done.text
    assert agents(box) == ["command", "other"]


def test_a_fatal_answer_is_no_end_while_there_is_a_fallback(tmp_path: Path) -> None:
    """The agent that cannot log in is gone for the session; the other one finishes."""
    box = with_fallback(tmp_path, FATAL, stories=2)
    done = box.run("--json")
    assert done.code == 0, done.text
    assert agents(box) == ["command", "other", "other"]
    (changed,) = done.events("agent_changed")
    assert (changed["agent"], changed["away"], changed["until"]) == ("other", "command", None)


def test_a_fatal_answer_without_a_fallback_ends_the_run(tmp_path: Path) -> None:
    """69 with the reason, after one start."""
    box = sandbox(tmp_path, FATAL, output="claude")
    done = box.run()
    assert done.code == 69, done.text
    assert box.starts == 1
    assert "Not logged in" in done.text
