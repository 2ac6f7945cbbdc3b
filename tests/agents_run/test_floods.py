"""Memory stays flat whatever an agent prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TypedDict, cast

import pytest

MEASURE = """
import asyncio, json, os, sys
from pathlib import Path
from ralphloop.agents.base import Launch
from ralphloop.agents.process import Rules, run_agent
from ralphloop.proc.threads import StopSignal
from ralphloop.agents.transcript import Transcript

async def run(code, where, reader):
    launch = Launch(argv=(sys.executable, "-S", "-c", code), env=os.environ, stdin=b"",
                    cwd=Path(where), reader=reader, mark="flood/1")
    with Transcript(Path(where) / "t.log", head=8 << 20, tail=4 << 20) as sink:
        return await run_agent(launch, sink=sink, rules=Rules(), stop=StopSignal())

def peak():
    # Unlike ru_maxrss this does not begin with the size of whoever started us.
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024

code, where, reader = sys.argv[1:]
asyncio.run(run("print('x' * 200000)", where, reader))
before = peak()
finished = asyncio.run(run(code, where, reader))
print(json.dumps({"before": before, "after": peak(), "chars": finished.response.text_chars,
                  "code": finished.end.exit_code, "outcome": finished.response.outcome,
                  "disk": (Path(where) / "t.log").stat().st_size}))
"""


class Measured(TypedDict):
    """What the measuring process reports; sizes of memory in MiB."""

    before: int
    after: int
    chars: int
    code: int
    outcome: str
    disk: int


def _measure(code: str, where: Path, reader: str = "text") -> Measured:
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, code, str(where), reader],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return cast("Measured", json.loads(done.stdout))


@pytest.mark.parametrize("line, megabytes", [("'x' * 79 + '\\n'", 40), ("'x' * 65536", 40)])
def test_a_flood_costs_no_memory(tmp_path: Path, line: str, megabytes: int) -> None:
    """Many times what may be kept, in lines or without any, leave memory and disk as they were."""
    code = f"""
import sys
piece = ({line}).encode() * 1000
piece = (piece * (1 + 1_000_000 // len(piece)))[:1_000_000]
for _ in range({megabytes}): sys.stdout.buffer.write(piece)
"""
    measured = _measure(code, tmp_path)
    assert measured["chars"] == megabytes * 1_000_000
    assert measured["code"] == 0
    assert measured["after"] <= 80
    assert measured["after"] - measured["before"] <= 25
    assert measured["disk"] <= 13 << 20


def test_one_huge_line_costs_its_size_and_no_more(tmp_path: Path) -> None:
    """A fifty-megabyte line of JSON is read whole and given back."""
    code = """
import json
print(json.dumps({"type": "system", "subtype": "init", "session_id": "s", "model": "m"}))
print(json.dumps({"type": "user", "message": {"content": [
    {"type": "tool_result", "tool_use_id": "t", "content": "x" * 50_000_000}]}}))
print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": "fine",
                  "num_turns": 1, "session_id": "s", "permission_denials": []}))
"""
    measured = _measure(code, tmp_path, reader="claude")
    assert measured["outcome"] == "completed"
    # The line itself, and once more while it is decoded.
    assert measured["after"] - measured["before"] <= 180


def test_a_flood_of_errors_costs_no_memory(tmp_path: Path) -> None:
    """Error output is bounded too."""
    code = "import sys\nfor _ in range(300): sys.stderr.write('e' * 99_999 + '\\n')"
    measured = _measure(code, tmp_path)
    assert measured["after"] - measured["before"] <= 25
    assert (tmp_path / "t.log.stderr").stat().st_size <= 5 << 20
