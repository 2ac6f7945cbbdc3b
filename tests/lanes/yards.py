"""Repositories for runs in lanes, with agents that may work at the same time.

An agent is a Python script; `STORY` and `START` (of this story) are known to it.  What it counts it
counts outside of the repository, story by story, so that two at once never share a file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.loop.projects import IGNORED, Sandbox, story

LIBRARY = '''
import json, os, pathlib, subprocess, sys, time
STATE = pathlib.Path(os.environ["TEST_STATE"])
STORY = os.environ["RALPH_STORY_ID"]
PROMPT = sys.stdin.read()
own = STATE / f"starts-{STORY}"
START = int(own.read_text()) + 1 if own.exists() else 1
own.write_text(str(START))
(STATE / f"prompt-{STORY}-{START}").write_text(PROMPT)

def write(name, text="x"):
    path = pathlib.Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)

def status(word="IN_PROGRESS", words="Worked on it.", recommendation="go on"):
    print(f"""{words}

---RALPH_STATUS---
STATUS: {word}
TASKS_COMPLETED_THIS_LOOP: 0
FILES_MODIFIED: 1
TESTS_STATUS: NOT_RUN
WORK_TYPE: IMPLEMENTATION
EXIT_SIGNAL: false
RECOMMENDATION: {recommendation}
---END_RALPH_STATUS---""", flush=True)

def done(words="Worked on it."):
    status("COMPLETE", words)

def until(name, seconds=30.0):
    """Wait for another agent to say something."""
    end = time.monotonic() + seconds
    while not (STATE / name).exists() and time.monotonic() < end:
        time.sleep(0.01)

def say(name):
    (STATE / name).write_text("")
'''


def yard(
    tmp_path: Path,
    agent: str,
    *,
    stories: list[dict[str, Any]],
    checks: list[list[str]] | None = None,
    files: dict[str, str] | None = None,
    toml: str = "",
    limits: str = "",
    output: str = "",
    commit_list: bool = True,
) -> Sandbox:
    """A repository of its own directory, so that its lanes lie beside it in the test's.

    `output` is how the agent's output is read; empty: as plain text.
    """
    root, state = tmp_path / "box" / "project", tmp_path / "state"
    root.mkdir(parents=True)
    state.mkdir()
    script = state / "agent.py"
    script.write_text(LIBRARY + agent)
    (root / "prd.json").write_text(json.dumps({"project": "p", "userStories": stories}, indent=2))
    settings = f"""\
[agent]
name = "command"
command = [{json.dumps(sys.executable)}, "-S", {json.dumps(str(script))}]
{f'format = "{output}"' if output else ""}
[checks]
commands = {json.dumps(checks if checks is not None else [["true"]])}
[limits]
backoff = "10ms"
{limits}
[session]
keep_awake = false
[learning]
enabled = false
{toml}
"""
    (root / "ralph.toml").write_text(settings)
    for name, text in {**IGNORED, "base.txt": "base\n", **(files or {})}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    box = Sandbox(root, state)
    box.git("init", "-q", "-b", "main")
    box.git("add", "-A")
    if not commit_list:
        box.git("rm", "-q", "--cached", "prd.json")
    box.git("commit", "-q", "-m", "start")
    return box


def stories_of(*names: str, **more: Any) -> list[dict[str, Any]]:
    """One story for each name, in this order."""
    return [story(name, priority=number, **more) for number, name in enumerate(names, 1)]


def prompt(box: Sandbox, name: str, start: int) -> str:
    """What the agent of a story was told at its n-th start."""
    return (box.state / f"prompt-{name}-{start}").read_text()


def starts(box: Sandbox, name: str) -> int:
    """How often a story's agent was started."""
    path = box.state / f"starts-{name}"
    return int(path.read_text()) if path.exists() else 0


def run_branch(box: Sandbox, which: int = -1) -> str:
    """A branch of ours that stories landed on: the newest, or by its place among all."""
    args = ("--sort=refname", "--format=%(refname:short)", "refs/heads/ralph*/2*")
    return box.git("for-each-ref", *args).split("\n")[which]


def landed_once(box: Sandbox, branch: str, *names: str, others: int = 0) -> None:
    """One commit for each story with its file in it, in a line, marked; replayed, nothing left."""
    subjects = box.git("log", "--format=%s", branch).split("\n")
    for name in names:
        assert subjects.count(f"{name}: Do {name}") == 1, subjects
        assert box.git("show", f"{branch}:{name}.txt") == name
        made = box.git("log", "--format=%H", f"--grep=^{name}: Do {name}$", branch)
        changed = box.git("show", "--name-only", "--format=", made).split("\n")
        assert set(changed) - {"prd.json", "progress.txt"} == {f"{name}.txt"}, changed
    assert len(subjects) == 1 + len(names) + others, subjects
    assert box.git("log", "--merges", "--format=%s", branch) == ""
    listed = json.loads(box.git("show", f"{branch}:prd.json"))["userStories"]
    assert all(it["passes"] for it in listed if it["id"] in names), listed
    replayed = box.ralph("replay")
    assert replayed.code == 0, replayed.text
    assert box.leftovers() == []
