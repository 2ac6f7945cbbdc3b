"""N lanes with agents that only wait, against the ideal; and what the coordinator itself costs.

8·N independent stories, each a sleep of two seconds: N lanes would ideally need eight sleeps.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ralphloop.proc.run import ourselves

SLEEP_S = float(os.environ.get("BENCH_SLEEP", "4"))
EACH = 8
MOST_RATIO = 1.25
MOST_CPU = 0.05
AGENT = """
import os, time
time.sleep({sleep})
name = os.environ["RALPH_STORY_ID"]
open(f"{{name}}.txt", "w").write(name)
print("Done.\\n\\n---RALPH_STATUS---\\nSTATUS: COMPLETE\\n---END_RALPH_STATUS---")
"""


def project(root: Path, lanes: int) -> None:
    """A repository with that many stories."""
    root.mkdir()
    (root / "agent.py").write_text(AGENT.format(sleep=SLEEP_S))
    names = [f"s{number:02}" for number in range(EACH * lanes)]
    stories = [
        {"id": name, "title": name, "acceptanceCriteria": ["x"], "passes": False} for name in names
    ]
    (root / "prd.json").write_text(json.dumps({"userStories": stories}, indent=1))
    agent = json.dumps([sys.executable, "-S", str(root / "agent.py")])
    (root / "ralph.toml").write_text(
        f'[agent]\nname = "command"\ncommand = {agent}\n[limits]\nmax_iterations = 0\n'
        "[learning]\nenabled = false\n[session]\nkeep_awake = false\n"
    )
    (root / ".gitignore").write_text(".ralph*\n")
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "start"]):
        subprocess.run(["git", *words], cwd=root, check=True)


def measured(lanes: int) -> tuple[float, float]:
    """Wall time against the ideal, and the share of a core that ralph and its git took."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "project"
        project(root, lanes)
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        command = [*ourselves(), "run", "--lanes", str(lanes), "--json"]
        ended = subprocess.run(
            command,
            check=False,
            cwd=root,
            env={**os.environ, "RALPH_TRUST": "1"},
            capture_output=True,
            text=True,
        )
        took = time.monotonic() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert ended.returncode == 0, ended.stderr
    events = [json.loads(line) for line in ended.stdout.splitlines()]
    starts = [it["ts"] for it in events if it["type"] == "iteration_started"]
    assert len(starts) == EACH * lanes
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return took / (EACH * SLEEP_S), used / took


def main() -> int:
    """Print a line for each number of lanes; 1 where a limit is missed."""
    worst = 0
    for lanes in (2, 4):
        ratio, cpu = measured(lanes)
        print(
            f"{lanes} lanes: {ratio:.2f} x the ideal (limit {MOST_RATIO}),"
            f" all processes {cpu:.0%} of a core, {cpu / lanes:.1%} a lane"
        )
        worst |= ratio > MOST_RATIO
    return worst


if __name__ == "__main__":
    sys.exit(main())
