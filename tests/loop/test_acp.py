"""Agents that speak ACP, through the whole command."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.loop.projects import Sandbox, sandbox

GREEN = [["test", "-d", "."]]
# An agent that speaks ACP and does what its first argument says.
SPEAKER = '''
import json
import os
import pathlib
import sys
import time

HOW = sys.argv[1]
STATE = pathlib.Path(os.environ["TEST_STATE"])
STORY = os.environ["RALPH_STORY_ID"]
BLOCK = """Done.

---RALPH_STATUS---
STATUS: COMPLETE
TASKS_COMPLETED_THIS_LOOP: 1
FILES_MODIFIED: 1
TESTS_STATUS: PASSING
WORK_TYPE: IMPLEMENTATION
EXIT_SIGNAL: false
RECOMMENDATION: go on
---END_RALPH_STATUS---"""


def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def update(what, **fields):
    params = {"sessionId": "s-1", "update": {"sessionUpdate": what, **fields}}
    send(method="session/update", params=params)


def say(text, **more):
    update("agent_message_chunk", content={"type": "text", "text": text}, **more)


def receive():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    message = json.loads(line)
    with (STATE / "heard").open("a") as heard:
        heard.write(line)
    return message


def ask(path, kind="edit"):
    options = [{"optionId": kind, "kind": kind} for kind in ("allow_once", "reject_once")]
    call = {"toolCallId": "c-1", "title": "Write", "kind": kind, "locations": [{"path": path}]}
    update("tool_call", **call, status="pending", rawInput={"path": path})
    params = {"sessionId": "s-1", "toolCall": call, "options": options}
    send(id="ask-1", method="session/request_permission", params=params)
    answer = receive()["result"]["outcome"]
    return answer.get("optionId") == "allow_once"


def work():
    path = f"{STORY}.txt"
    if ask(os.path.abspath(path)):
        pathlib.Path(path).write_text("x")
        update("tool_call_update", toolCallId="c-1", status="completed")
    say(BLOCK[:40])
    say(BLOCK[40:])


def prompted(number):
    reason = "end_turn"
    usage = {"inputTokens": 1000, "outputTokens": 50, "totalTokens": 1050}
    if HOW == "hang":
        time.sleep(300)
    elif HOW == "bad_json":
        print('{"jsonrpc": "2.0", "method": oops', flush=True)
        print("not json at all", flush=True)
        work()
    elif HOW == "huge":
        say("x" * 3_000_000)
        work()
    elif HOW == "outside":
        ask("/etc/passwd")
        say("I could not.")
    elif HOW == "refused_key":
        say("Info: Request failed due to a transient API error. Retrying...")
        say("Error: Authentication failed with provider at http://h/v1 (HTTP 401).")
    elif HOW == "limited":
        say("429 You have reached your weekly usage limit. It will reset in 2s")
        (STATE / "limited").write_text("once")
    elif HOW == "strange":
        send(id=77, method="fs/read_text_file", params={"path": "/etc/passwd"})
        assert receive()["error"]["code"] == -32601
        work()
    elif HOW == "burn":
        for step in range(100):
            update("tool_call", toolCallId=f"c-{step}", title="Shell", kind="execute", rawInput={})
            tokens = {"inputTokens": 20_000, "outputTokens": 100, "totalTokens": 20_100}
            say("", _meta={"usage": tokens})
            pathlib.Path("work.txt").write_text(str(step))
            time.sleep(0.4 if step < 3 else 10)  # the cancel falls into a step, however busy we are
    elif HOW == "error":
        send(
            id=number, error={"code": -32603, "message": "Internal error", "data": "529 overloaded"}
        )
        return
    else:
        work()
    send(id=number, result={"stopReason": reason, "usage": usage})


while True:
    message = receive()
    method = message.get("method")
    number = message.get("id")
    if method == "initialize":
        send(id=number, result={"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
    elif method == "session/new":
        if HOW == "no_login":
            send(id=number, error={"code": -32000, "message": "Authentication required"})
        else:
            send(id=number, result={"sessionId": "s-1"})
    elif method == "session/load":
        say(BLOCK)  # what was said before is told again
        send(id=number, result={})
    elif method == "session/prompt":
        if HOW == "limited" and (STATE / "limited").exists():
            HOW = "ok"
        prompted(number)
    elif method == "session/cancel":
        sys.exit(0)
'''
TOML = """\
name = "speaker"
program = {python}
protocol = "acp"
start = ["-S", {script}, {how}]

[safety]
minimal = []
moderate = []
strict = []
"""


def speaking(tmp_path: Path, how: str, *, limits: str = "", agent: str = "") -> Sandbox:
    """A project whose agent speaks ACP and does what `how` says."""
    box = sandbox(tmp_path, "", checks=GREEN, limits=limits)
    script = tmp_path / "speaker.py"
    script.write_text(SPEAKER)
    words = {"python": sys.executable, "script": str(script), "how": how}
    (box.root / "agents.d").mkdir()
    told = TOML.format(**{name: json.dumps(word) for name, word in words.items()})
    (box.root / "agents.d" / "speaker.toml").write_text(told)
    settings = box.root / "ralph.toml"
    lines = settings.read_text().splitlines()
    kept = [line for line in lines if not line.startswith(("command =", "format"))]
    text = "\n".join(kept).replace('name = "command"', f'name = "speaker"\n{agent}')
    settings.write_text(f"{text}\n")
    box.git("add", "-A")
    box.git("commit", "-qm", "agent")
    return box


def heard(box: Sandbox) -> list[dict[str, object]]:
    """What the agent was told."""
    return [json.loads(line) for line in (box.state / "heard").read_text().splitlines()]


@pytest.mark.parametrize("how", ["ok", "bad_json", "huge", "strange"])
def test_a_story_is_done(tmp_path: Path, how: str) -> None:
    """Words, tools and tokens are read; broken and huge lines and strange wishes do no harm."""
    box = speaking(tmp_path, how)
    done = box.run()
    assert done.code == 0, done.text
    tokens = box.status()["tokens"]
    assert (tokens["input"], tokens["output"]) == (1000, 50)
    first = heard(box)[0]["params"]
    assert isinstance(first, dict)
    offered = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
    assert first["clientCapabilities"] == offered


def test_permissions_are_answered_and_written_down(tmp_path: Path) -> None:
    """Inside of the workspace by `agent.safety`, and the journal has every answer."""
    box = speaking(tmp_path, "ok")
    done = box.run("--json")
    steps = [event for event in done.events("agent_event") if event["kind"] == "permission"]
    assert [step["summary"] for step in steps] == ["Write allowed: inside the workspace"]


@pytest.mark.parametrize("safety, allowed", [("minimal", True), ("moderate", False)])
def test_a_change_outside_of_the_workspace_is_refused(
    tmp_path: Path, safety: str, allowed: bool
) -> None:
    """Unless safety is minimal; a refusal that nothing came of is told as one."""
    box = speaking(tmp_path, "outside", limits="max_iterations = 1", agent=f'safety = "{safety}"')
    box.run()
    answers = [message.get("result") for message in heard(box) if message.get("id") == "ask-1"]
    chosen = "allow_once" if allowed else "reject_once"
    # When it is asked for its missing block afterwards, it may only look.
    assert answers[0] == {"outcome": {"outcome": "selected", "optionId": chosen}}


@pytest.mark.parametrize(
    "how, words",
    [("refused_key", "Authentication failed"), ("no_login", "Authentication required")],
)
def test_a_refused_login_ends_the_run(tmp_path: Path, how: str, words: str) -> None:
    """As an error of the protocol, or as a good end whose text is the error's sentence."""
    box = speaking(tmp_path, how)
    done = box.run()
    assert done.code == 69, done.text
    assert words in done.text
    assert "1 start" in done.text or "did not start" not in done.text


def test_a_usage_limit_as_the_text_of_a_good_end_is_waited_for(tmp_path: Path) -> None:
    """The sentence names when; after that the story is done."""
    box = speaking(tmp_path, "limited")
    done = box.run()
    assert done.code == 0, done.text
    assert "waiting" in done.text.lower()


def test_an_error_of_the_provider_is_an_outage(tmp_path: Path) -> None:
    """An error in place of the prompt's result is read by its words."""
    box = speaking(tmp_path, "error", limits='max_time = "3s"')
    done = box.run()
    assert "outage" in done.text, done.text


def test_silence_is_stalled_and_cancelled(tmp_path: Path) -> None:
    """The stall clock is ours; the turn is cancelled before the process is ended."""
    limits = 'stall_timeout = "2s"\nmax_iterations = 1\nmax_time = "20s"'
    box = speaking(tmp_path, "hang", limits=limits)
    done = box.run()
    assert "for 2 s" in done.text or "outage" in done.text, done.text


def test_a_start_that_never_ends_is_ended_below_its_ceiling(tmp_path: Path) -> None:
    """The usage of each step counts while it works, and the cancel is heard."""
    box = speaking(tmp_path, "burn", limits="max_start_tokens = 100_000\nmax_iterations = 1")
    done = box.run()
    assert "another step would pass it (limits.max_start_tokens)" in done.text, done.text
    tokens = box.status()["tokens"]
    assert 40_000 <= tokens["input"] + tokens["output"] <= 100_000


def test_a_conversation_is_loaded_and_its_past_is_not_said_again(tmp_path: Path) -> None:
    """With `context = "resume"` the second start loads the first one's session."""
    box = speaking(tmp_path, "outside", limits="max_iterations = 2", agent='context = "resume"\n')
    box.run()
    methods = [message.get("method") for message in heard(box)]
    assert "session/load" in methods
    (story,) = json.loads((box.root / "prd.json").read_text())["userStories"]
    assert story["passes"] is False  # the block that was told again is no claim
