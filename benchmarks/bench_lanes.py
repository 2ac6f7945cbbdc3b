"""N lanes with agents that only wait, against the ideal; and what the coordinator itself costs.

8·N independent stories, each a sleep: N lanes would ideally need eight sleeps.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil

from ralphloop.proc.run import ourselves

SLEEP_S = float(os.environ.get("BENCH_SLEEP", "10"))
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
    """Wall time against the ideal, and the share of a core that ralph itself took."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "project"
        project(root, lanes)
        began, own = time.monotonic(), 0.0
        command = [*ourselves(), "run", "--lanes", str(lanes), "--json"]
        env = {**os.environ, "RALPH_TRUST": "1"}
        with (
            (root / "out.log").open("w") as out,
            subprocess.Popen(command, cwd=root, env=env, stdout=out, stderr=out) as process,
        ):
            known = psutil.Process(process.pid)
            while process.poll() is None:
                with suppress(psutil.Error):
                    own = sum(known.cpu_times()[:2])  # without its children
                time.sleep(0.2)
        took, text = time.monotonic() - began, (root / "out.log").read_text()
        if process.returncode:
            raise SystemExit(text)
    starts = text.count('"type": "iteration_started"')
    if starts != EACH * lanes:
        raise SystemExit(f"{starts} starts")
    return took / (EACH * SLEEP_S), own / took


def main() -> int:
    """Print a line for each number of lanes; 1 where a limit is missed."""
    worst = 0
    for lanes in (2, 4):
        ratio, cpu = measured(lanes)
        print(
            f"{lanes} lanes: {ratio:.2f} x the ideal (limit {MOST_RATIO}),"
            f" the coordinator took {cpu:.1%} of a core (limit {MOST_CPU:.0%})"
        )
        worst |= ratio > MOST_RATIO or cpu > MOST_CPU
    return worst


if __name__ == "__main__":
    sys.exit(main())
