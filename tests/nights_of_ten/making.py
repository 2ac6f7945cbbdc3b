"""Choosing the stories of a night by its seed, and letting a scripted agent work through them."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ralphloop.proc.run import ourselves
from tests.nights_of_ten.stories import BASE, POOL, Asked, Lie, Work

AGENT = '''\
"""Does what is written down for a story, says so, and stands by it when asked."""

import json
import os
import sys

sys.stdin.read()
work = json.load(open(os.path.join(os.path.dirname(__file__), "work.json")))
mine = work[os.environ["RALPH_STORY_ID"]]
for name, text in mine["files"].items():
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    with open(name, "w") as file:
        file.write(text)
words = f"""{mine["said"]}

---RALPH_STATUS---
STATUS: COMPLETE
TASKS_COMPLETED_THIS_LOOP: 1
FILES_MODIFIED: {len(mine["files"])}
TESTS_STATUS: PASSING
WORK_TYPE: IMPLEMENTATION
EXIT_SIGNAL: false
RECOMMENDATION: go on
---END_RALPH_STATUS---"""
print(json.dumps({
    "type": "result", "subtype": "success", "is_error": False, "result": words,
    "session_id": "night", "num_turns": 1, "total_cost_usd": mine["cost"],
    "permission_denials": [], "usage": {"input_tokens": 9000, "output_tokens": 800},
}))
'''
TOML = """\
[agent]
name = "command"
command = [{python}, "-S", {agent}]
format = "claude"
[checks]
commands = [[{python}, "-m", "pytest", "-q"]]
[limits]
backoff = "10ms"
[session]
keep_awake = false
[learning]
enabled = false
"""
IGNORED = ".ralph/\n.ralph-session.json\n.ralph-circuit-state.json\n__pycache__/\n.pytest_cache/\n"


@dataclass(frozen=True)
class MadeNight:
    """A night that is over, and which of its stories are lies."""

    root: Path
    lies: dict[str, Lie]


def make_night(place: Path, seed: int, *, stories: int = 10, lies: int = 3) -> MadeNight:
    """A night in a new directory; the same seed makes the same one."""
    chance = random.Random(seed)
    told = _lies(chance, lies)
    honest = [one for one in POOL if one not in told]
    asked = [*told, *chance.sample(honest, stories - len(told))]
    chance.shuffle(asked)
    names = {f"US-{number:03}": one for number, one in enumerate(asked, start=1)}
    root = place / "shop"
    _write(root, {name: _story(name, one) for name, one in names.items()})
    work = {}
    for name, one in names.items():
        done = one.lies[told[one]] if one in told else one.honest
        work[name] = _work(done, cost=round(chance.uniform(0.08, 0.4), 2))
    agent = place / "agent"
    agent.mkdir()
    (agent / "agent.py").write_text(AGENT)
    (agent / "work.json").write_text(json.dumps(work))
    toml = TOML.format(
        python=json.dumps(sys.executable), agent=json.dumps(str((agent / "agent.py").resolve()))
    )
    (root / "ralph.toml").write_text(toml)
    _git(root, "init", "-q", "-b", "main")
    _git(root, "config", "user.name", "A person")
    _git(root, "config", "user.email", "person@example.invalid")
    _git(root, "add", "-A")
    _git(root, "commit", "-qm", "A small shop")
    ran = subprocess.run(
        [*ourselves(), "run", "--trust"],
        cwd=root,
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    (place / "run.log").write_text(ran.stdout + ran.stderr)
    found = {name: told[one] for name, one in names.items() if one in told}
    answers = {name: str(lie) for name, lie in found.items()}
    (place / "answers.json").write_text(json.dumps(answers, indent=2) + "\n")
    return MadeNight(root, found)


def _lies(chance: random.Random, number: int) -> dict[Asked, Lie]:
    """So many stories, each with a lie of another kind."""
    found: dict[Asked, Lie] = {}
    for kind in chance.sample(list(Lie), min(number, len(Lie))):
        able = [one for one in POOL if kind in one.lies and one not in found]
        found[chance.choice(able)] = kind
    return found


def _story(name: str, one: Asked) -> dict[str, Any]:
    return {
        "id": name,
        "title": one.title,
        "description": f"{one.title}.",
        "acceptanceCriteria": [*one.criteria],
        "priority": 1,
        "passes": False,
    }


def _work(work: Work, *, cost: float) -> dict[str, Any]:
    return {"files": work.files, "said": work.said, "cost": cost}


def _write(root: Path, stories: dict[str, dict[str, Any]]) -> None:
    for name, text in {**BASE, ".gitignore": IGNORED}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    listed = {"userStories": [*stories.values()]}
    (root / "prd.json").write_text(json.dumps(listed, indent=2) + "\n")


def _git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=root, check=True)
