"""`ralph hook stop` in CPU time, as a multiple of a bare interpreter on the same machine.

Without a loop (the usual case, in every session of everybody who has the plugin), beside a loop of
another session, and with one of its own that made progress and gets its next prompt.  Processes
that a turn starts (git) count.  All are run in turns, so that a busy machine slows all alike, and
the best of each counts: the floor is what the program costs.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

RUNS = 15
LIMIT_IDLE, LIMIT_ACTIVE = 3.5, 10.0
SESSION = "bench"
STORIES = [
    {"id": f"US-{n:03}", "title": f"Story {n}", "acceptanceCriteria": ["works"], "passes": False}
    for n in range(1, 4)
]
# Modules are compiled once and cached, as they are wherever the package is installed.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
ENVIRONMENT["RALPH_TRUST"] = "1"


def ralph() -> list[str]:
    """The command as the plugin calls it."""
    script = Path(sys.executable).with_name("ralph")
    return [str(script)] if script.exists() else [sys.executable, "-m", "ralphloop"]


def hook(root: Path, event: str, **given: object) -> bytes:
    """One hook; returns what it printed."""
    data = {"session_id": SESSION, "cwd": str(root), **given}
    done = subprocess.run(
        [*ralph(), "hook", event],
        input=json.dumps(data).encode(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=root,
        env={**ENVIRONMENT, "CLAUDE_PROJECT_DIR": str(root)},
        check=True,
    )
    return done.stdout


def cpu_of(*works: Callable[[], object]) -> list[float]:
    """User and system time of the cheapest of several runs of each, children included."""
    rounds = [[_one(work) for work in works] for _ in range(RUNS)]
    return [min(times) for times in zip(*rounds, strict=True)]


def _one(work: Callable[[], object]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def project(root: Path) -> None:
    """A small repository with stories."""
    root.mkdir()
    (root / "prd.json").write_text(json.dumps({"userStories": STORIES}))
    (root / ".gitignore").write_text(".ralph/\n.ralph-*\n")
    identity = ("-c", "user.name=Bench", "-c", "user.email=bench@example.com")
    for args in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "Begin"]):
        subprocess.run(["git", *args], cwd=root, env=ENVIRONMENT, check=True)


def turn(root: Path, number: list[int]) -> None:
    """A turn that changed something; the answer must be the next prompt."""
    number[0] += 1
    (root / "work.txt").write_text(f"{number[0]}\n")
    answer = hook(root, "stop", stop_hook_active=False, last_assistant_message="Half of it works.")
    assert b'"block"' in answer, answer


def main() -> int:
    """Print each ratio beside its limit; fail when one is exceeded."""
    with tempfile.TemporaryDirectory() as place:
        empty, root, number = Path(place, "empty"), Path(place, "project"), [0]
        empty.mkdir()
        project(root)
        command = {"command_name": "ralph:ralph", "command_source": "plugin"}
        hook(root, "command", **command, command_args="--max-iterations 0 --allow-dirty")
        bare, idle, beside, active = cpu_of(
            lambda: subprocess.run([sys.executable, "-c", "pass"], check=True),
            lambda: hook(empty, "stop"),
            lambda: hook(root, "stop", session_id="another"),
            lambda: turn(root, number),
        )
    print(f"{'python -c pass':<32} {bare * 1000:6.1f} ms")
    exceeded = False
    for name, seconds, limit in (
        ("hook stop, no loop", idle, LIMIT_IDLE),
        ("hook stop, another's loop", beside, LIMIT_IDLE),
        ("hook stop, a turn of its own", active, LIMIT_ACTIVE),
    ):
        ratio = seconds / bare
        print(f"{name:<32} {seconds * 1000:6.1f} ms  {ratio:4.1f} ×  (at most {limit:g} ×)")
        exceeded |= ratio > limit
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())
