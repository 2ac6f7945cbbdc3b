"""Landing with and without trains: agents and checks that sleep, so that waiting is measured.

Twelve stories in six lanes; an agent takes two seconds, the checks take five where stories are
judged and none in the lanes.  In the second night two stories are red together with others, go back
once, and send those behind them to be judged again.

Run: .venv/bin/python benchmarks/bench_train.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ralphloop.proc.run import ourselves

LANES = 6
STORIES = 12
AGENT_S = 2.0
CHECK_S = 5.0
RED = ("s04", "s09")  # with any other story, until their agent was told
NIGHTS = {(): (1, 2, 4), RED: (1, 4)}  # trains to be tried, the longest last
MOST_SHARE = 0.7  # of the time that landing one by one takes, with a train of four
AGENT = """
import os, pathlib, time
time.sleep({seconds})
name = os.environ["RALPH_STORY_ID"]
told = pathlib.Path({tools!r}, f"told-{{name}}")
pathlib.Path(f"{{name}}.txt").write_text("peaceful" if told.exists() else "proud")
told.write_text("")
print("Done.\\n\\n---RALPH_STATUS---\\nSTATUS: COMPLETE\\n---END_RALPH_STATUS---")
"""
CHECK = """
import os, pathlib, sys, time
if 0 < int(os.environ["RALPH_LANE"]) < 1000:
    sys.exit()
time.sleep({seconds})
there = {{path.stem: path.read_text() for path in pathlib.Path().glob("s*.txt")}}
sys.exit(len(there) > 1 and any(there.get(name) == "proud" for name in {red}))
"""


def project(root: Path, train: int, red: tuple[str, ...]) -> None:
    """A repository with its stories; agent and check lie beside it."""
    root.mkdir()
    tools = root.parent
    (tools / "agent.py").write_text(AGENT.format(seconds=AGENT_S, tools=str(tools)))
    (tools / "check.py").write_text(CHECK.format(seconds=CHECK_S, red=red))
    names = [f"s{number:02}" for number in range(STORIES)]
    stories = [
        {"id": name, "title": name, "acceptanceCriteria": ["x"], "passes": False} for name in names
    ]
    (root / "prd.json").write_text(json.dumps({"userStories": stories}, indent=1))
    agent = json.dumps([sys.executable, "-S", str(tools / "agent.py")])
    check = json.dumps([sys.executable, "-S", str(tools / "check.py")])
    (root / "ralph.toml").write_text(
        f'[agent]\nname = "command"\ncommand = {agent}\n[checks]\ncommands = [{check}]\n'
        f"[lanes]\ntrain = {train}\n[limits]\nmax_iterations = 0\n"
        "[learning]\nenabled = false\n[session]\nkeep_awake = false\n"
    )
    (root / ".gitignore").write_text(".ralph*\n")
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "start"]):
        subprocess.run(["git", *words], cwd=root, check=True)


def seconds_of(train: int, red: tuple[str, ...]) -> float:
    """The wall time of a night, from the first start of an agent to the end of the run."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "project"
        project(root, train, red)
        command = [*ourselves(), "run", "--lanes", str(LANES), "--json"]
        env = {**os.environ, "RALPH_TRUST": "1"}
        began = 0.0
        kept = list[str]()
        with subprocess.Popen(
            command, cwd=root, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            for line in process.stdout or ():
                kept.append(line)
                if not began and '"type": "iteration_started"' in line:
                    began = time.monotonic()
            took = time.monotonic() - began
            said = process.stderr.read() if process.stderr else ""
        text = "".join(kept)
        if process.returncode or text.count('"type": "story_passed"') != STORIES:
            raise SystemExit(f"{text}\n{said}")
        landed = subprocess.run(
            ["git", "rev-list", "--count", "main"], cwd=root, check=True, capture_output=True
        )
        if int(landed.stdout) != 1 + STORIES:
            raise SystemExit(f"{landed.stdout!r} commits")
    return took


def main() -> int:
    """Print a line for each train; 1 where one of four gains too little."""
    missed = 0
    for red, trains in NIGHTS.items():
        print(f"{STORIES} stories, {LANES} lanes, {len(red)} of them red on landing:")
        alone = 0.0
        for train in trains:
            took = seconds_of(train, red)
            alone = alone or took
            each = took / STORIES
            print(f"  train {train}: {took:5.1f} s, {each:.1f} s a story, {took / alone:.2f} x")
            missed |= train == trains[-1] and not red and took > MOST_SHARE * alone
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
