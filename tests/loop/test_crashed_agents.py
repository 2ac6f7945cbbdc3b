"""An agent that gives up by itself has crashed: nobody killed it, and its last words are shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralphloop.core.model import Outcome
from ralphloop.readers import read
from tests.loop.projects import sandbox

IN_A_COMMAND = """
    event(type="system", subtype="init", session_id="s-1", model="m")
    event(type="assistant", session_id="s-1", parent_tool_use_id=None,
          message={"id": f"m{START}", "role": "assistant", "model": "m", "content": [
              {"type": "tool_use", "id": f"t{START}", "name": "Bash", "input": {"command": "make"}}],
              "usage": {"input_tokens": 100, "output_tokens": 20}})
"""
CRASHES = IN_A_COMMAND + "    assert False, 'the cart is empty'\n"
STARTED = (
    b'{"type":"system","subtype":"init","session_id":"s"}\n'
    b'{"type":"assistant","session_id":"s","message":{"id":"m","model":"m","content":['
    b'{"type":"tool_use","id":"t","name":"Bash","input":{"command":"make"}}]}}\n'
)
TRACEBACK = """\
Traceback (most recent call last):
  File "agent.py", line 13, in <module>
    assert False, "the cart is empty"
AssertionError: the cart is empty
"""


def test_a_crash_is_called_so_with_its_last_line_and_the_way_to_the_rest(tmp_path: Path) -> None:
    """Exit code 1 with a traceback inside a command: `crashed`, no kill and no outage."""
    box = sandbox(tmp_path, CRASHES, output="claude", limits="max_iterations = 2")
    done = box.run()
    assert "crashed after" in done.out, done.text
    assert "exit code 1; AssertionError: the cart is empty. All of it: ralph log" in done.out
    for word in ("killed", "outage", "start failed"):
        assert word not in done.out
    assert {kept.analysis.outcome for kept in box.records()} == {Outcome.ERROR}
    command = done.out.partition("All of it: ralph ")[2].splitlines()[0]
    shown = box.ralph(*command.split())
    assert "Traceback (most recent call last)" in shown.out, shown.text
    assert "AssertionError: the cart is empty" in shown.out
    report = next((box.root / ".ralph/reports").glob("*.html")).read_text()
    assert "outage" not in report.partition("<body>")[2]


def test_a_crashing_agent_is_the_agents_own_failure_and_opens_the_circuit(tmp_path: Path) -> None:
    """What crashes again and again is no weather that is waited for."""
    box = sandbox(tmp_path, CRASHES, output="claude")
    done = box.run()
    assert done.code == 1, done.text
    assert "circuit" in done.out
    assert box.starts <= 4


def test_an_agent_that_crashes_before_the_model_answers_did_not_start(tmp_path: Path) -> None:
    """It ends with 69 after two such starts, and the last line of its traceback is the reason."""
    box = sandbox(tmp_path, "    raise ImportError('no module named x')", output="claude")
    done = box.run()
    assert done.code == 69, done.text
    assert "ImportError: no module named x" in done.out
    assert "Traceback (most recent call last)" not in done.text


def test_an_agent_that_is_really_killed_is_called_so(tmp_path: Path) -> None:
    """A signal of somebody else stays infrastructure, and is waited for."""
    kills = IN_A_COMMAND + "    if START == 1:\n        os.kill(os.getpid(), 9)\n"
    box = sandbox(tmp_path, kills + "    write('a.txt'); result('x'); ", output="claude",
                  limits="max_iterations = 2")  # fmt: skip
    done = box.run()
    assert "killed after" in done.out, done.text
    assert box.records()[0].analysis.outcome is Outcome.KILLED


@pytest.mark.parametrize(
    "code, stderr, outcome, words",
    [
        (1, TRACEBACK, Outcome.ERROR, "crashed: exit code 1; AssertionError: the cart is empty"),
        (3, "", Outcome.ERROR, "crashed: exit code 3"),
        (1, "a.js:3\n  throw x\nTypeError: x is bad\n    at a.js:3\n\nNode.js v20.1\n",
         Outcome.ERROR, "crashed: exit code 1; TypeError: x is bad"),
        (1, "You've hit your limit · resets 5pm (UTC)\n", Outcome.USAGE_LIMIT, "hit your limit"),
        (-9, TRACEBACK, Outcome.KILLED, "killed by signal 9"),
        (143, "", Outcome.KILLED, "killed by signal 15"),
        (None, "", Outcome.KILLED, "breaks off inside a tool call"),
        (0, "", Outcome.KILLED, "breaks off inside a tool call"),
    ],
)  # fmt: skip
def test_a_stream_without_a_result_by_how_its_process_ended(
    code: int | None, stderr: str, outcome: Outcome, words: str
) -> None:
    """Only what a signal, or nobody knows what, ended was killed."""
    came = read(STARTED, agent="claude", exit_code=code, stderr=stderr)
    assert came.outcome is outcome
    assert words in came.reason


def test_the_same_crash_again_and_again_ends_the_night_also_where_files_change(
    tmp_path: Path,
) -> None:
    """Half a file more each time is no way out of an error that is the same each time."""
    writes = "    write(f'part{START}.txt', str(START))\n"
    box = sandbox(tmp_path, writes + CRASHES, output="claude", limits="max_iterations = 12")
    done = box.run()
    assert "AssertionError: the cart is empty" in done.out, done.text
    assert box.starts <= 5, done.text
    assert done.out.count("no price is known") == 1  # of the model, which each start has
    assert "its words were used" not in done.out  # it said none
