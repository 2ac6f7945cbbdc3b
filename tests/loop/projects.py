"""Small real repositories with agents that do what a test wants, run by the real command.

An agent is a Python script; what it needs is in `LIBRARY`: which story and which start this is,
`status(...)` to print a block, `write(...)` to change files.  It counts its starts outside of the
repository, so that counting is never work.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ralphloop.core.iteration import Iteration
from ralphloop.journal.journal import Journal
from ralphloop.proc.run import ourselves
from tests.starting import Started, run_to_end

LIBRARY = '''
import os, sys, time

class _Later:
    # Importing costs more than what most agents do, and there are thousands of them.
    def __init__(self, make): self._make = make
    def __getattr__(self, name): return getattr(self._make(), name)
    def __truediv__(self, name): return self._make() / name
    def __fspath__(self): return str(self._make())

json, pathlib, signal = (
    _Later(lambda name=name: __import__(name)) for name in ("json", "pathlib", "signal")
)
STATE = _Later(lambda: pathlib.Path(os.environ["TEST_STATE"]))
STORY = os.environ["RALPH_STORY_ID"]
PROMPT = sys.stdin.read()

def _kept(name, mode, text=""):
    with open(os.environ["TEST_STATE"] + "/" + name, mode) as file:
        return file.read() if mode == "r" else file.write(text)

START = int(_kept("starts", "r")) + 1 if os.path.exists(os.environ["TEST_STATE"] + "/starts") else 1
_kept("starts", "w", str(START))
_kept(f"prompt-{START}", "w", PROMPT)
_kept("stories", "a", STORY + "\\n")

def write(name, text="x"):
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    with open(name, "w") as file:
        file.write(str(text))

def status(status="IN_PROGRESS", *, words="Worked on it.", files=1, tests="NOT_RUN",
           work="IMPLEMENTATION", signal="false", recommendation="go on", tasks=0):
    print(f"""{words}

---RALPH_STATUS---
STATUS: {status}
TASKS_COMPLETED_THIS_LOOP: {tasks}
FILES_MODIFIED: {files}
TESTS_STATUS: {tests}
WORK_TYPE: {work}
EXIT_SIGNAL: {signal}
RECOMMENDATION: {recommendation}
---END_RALPH_STATUS---""", flush=True)

def done(**more):
    status("COMPLETE", tests="PASSING", **more)

def event(**fields):
    print(json.dumps(fields), flush=True)

def result(text="", *, is_error=False, cost=0.1, **more):
    event(type="result", subtype="success", is_error=is_error, result=text, session_id="s-1",
          num_turns=1, total_cost_usd=cost, permission_denials=[],
          usage={"input_tokens": 100, "output_tokens": 20}, **more)

def says(text):
    event(type="assistant", session_id="s-1", parent_tool_use_id=None,
          message={"id": f"m{START}", "role": "assistant", "model": "m", "content": [
              {"type": "text", "text": text}], "usage": {"input_tokens": 100, "output_tokens": 20}})
'''

TOML = """\
[agent]
name = "command"
command = [{python}, "-S", {agent}]
format = "{format}"
[checks]
commands = {checks}
[limits]
backoff = "10ms"
{limits}
[session]
keep_awake = false
[learning]
enabled = false
"""


# A small project whose check names its tests, quickly.
CALC = "def double(x):\n    return 2 * x\n\n\n"
TESTS = """\
import unittest

import calc


class Calc(unittest.TestCase):
    def test_doubles(self):
        self.assertEqual(calc.double(2), 4)

"""
IN_PLACE = {"RALPH_PROOF_CLEAN_TREE": "off"}
IGNORED = {".gitignore": ".ralph/\n.ralph-session.json\n.ralph-circuit-state.json\n__pycache__/\n"}
UNITTEST = [["python3", "-m", "unittest", "discover", "-s", "tests", "-t", "."]]


def library_for(agent: str) -> str:
    """The library with what this agent needs besides: imports cost more than what agents do."""
    return ("import subprocess\n" if "subprocess" in agent else "") + LIBRARY


@dataclass
class Done:
    """One run of the command."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """Everything it said."""
        return self.out + self.err

    def events(self, kind: str | None = None) -> list[dict[str, Any]]:
        """The events of `--json`, of one type or all."""
        lines = [json.loads(line) for line in self.out.splitlines() if line.startswith("{")]
        return [line for line in lines if kind in (None, line["type"])]


@dataclass
class Sandbox:
    """A repository with stories and an agent."""

    root: Path
    state: Path
    env: dict[str, str] = field(default_factory=dict)

    def run(self, *arguments: str, timeout: float = 100, env: dict[str, str] | None = None) -> Done:
        """`ralph run` to its end."""
        return self.ralph("run", *arguments, timeout=timeout, env=env)

    def ralph(
        self, *arguments: str, timeout: float = 100, env: dict[str, str] | None = None
    ) -> Done:
        """Any command, to its end."""
        done = run_to_end(
            self.argv(*arguments),
            timeout=timeout,
            cwd=self.root,
            env=self.environment(env),
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(self, *arguments: str, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
        """`ralph run` in the background of the test."""
        return Started(
            self.argv("run", *arguments),
            cwd=self.root,
            env=self.environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def argv(self, *arguments: str) -> list[str]:
        """The real command."""
        return [*ourselves(), *arguments]

    def environment(self, more: dict[str, str] | None = None) -> dict[str, str]:
        """What the command is started with."""
        return {**os.environ, "TEST_STATE": str(self.state), **self.env, **(more or {})}

    @property
    def starts(self) -> int:
        """How often the agent was started."""
        path = self.state / "starts"
        return int(path.read_text() or 0) if path.exists() else 0  # empty: just being written

    def prompt(self, start: int) -> str:
        """What the agent was told at its n-th start."""
        return (self.state / f"prompt-{start}").read_text()

    def worked_on(self) -> list[str]:
        """The stories in the order of the starts."""
        path = self.state / "stories"
        return path.read_text().split("\n")[:-1] if path.exists() else []

    def passes(self) -> dict[str, bool]:
        """The marks in the story file."""
        data = json.loads((self.root / "prd.json").read_text())
        return {story["id"]: story["passes"] for story in data["userStories"]}

    def git(self, *arguments: str) -> str:
        """Output of a git command in the repository."""
        return subprocess.run(
            ["git", *arguments], cwd=self.root, capture_output=True, text=True, check=True
        ).stdout.strip()

    def subjects(self) -> list[str]:
        """Commit subjects, oldest first."""
        return self.git("log", "--reverse", "--format=%s").split("\n")

    def status(self) -> dict[str, Any]:
        """`ralph status --json`."""
        found: dict[str, Any] = json.loads(self.ralph("status", "--json").out)
        return found

    def records(self) -> list[Iteration]:
        """What the journal keeps of each start, oldest first."""
        with Journal.open(self.root / ".ralph/journal.db", check=False) as journal:
            latest = journal.latest_run()
            assert latest is not None
            return [iteration.record for iteration in journal.iterations(latest.id)]

    def wait_for_start(self, number: int = 1, timeout: float = 30) -> None:
        """Until the agent was started so often."""
        deadline = time.monotonic() + timeout
        while self.starts < number:
            assert time.monotonic() < deadline, "the agent never started"
            time.sleep(0.02)

    def leftovers(self) -> list[str]:
        """Processes of ours that are still there."""
        found = []
        for proc in Path("/proc").glob("[0-9]*"):
            try:
                environ = (proc / "environ").read_bytes()
                cmdline = (proc / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if f"TEST_STATE={self.state}".encode() in environ.split(b"\0"):
                found.append(f"{proc.name} {cmdline}")
        return found


def contents(root: Path) -> dict[str, str]:
    """Every path below a directory with its mode and a digest of what is in it."""
    return {
        str(path.relative_to(root)): f"{path.lstat().st_mode:o} "
        + hashlib.sha256(path.read_bytes() if path.is_file() else b"").hexdigest()
        for path in sorted(root.rglob("*"))
    }


def story(name: str, title: str = "", **more: Any) -> dict[str, Any]:
    """One user story."""
    return {
        "id": name,
        "title": title or f"Do {name}",
        "description": f"Please do {name}.",
        "acceptanceCriteria": [f"{name} works"],
        "priority": 1,
        "passes": False,
        **more,
    }


def sandbox(
    tmp_path: Path,
    agent: str,
    *,
    stories: list[dict[str, Any]] | int = 1,
    checks: list[list[str]] | None = None,
    limits: str = "",
    toml: str = "",
    output: str = "text",
    files: dict[str, str] | None = None,
    clean_tree: bool = False,
) -> Sandbox:
    """A repository with this agent; `output` is how its output is read.

    Stories are judged in place, as in a session or where no clean tree can be made ready; what is
    judged in one, as in an ordinary run, says so.
    """
    root, state = tmp_path / "repo", tmp_path / "state"
    root.mkdir(parents=True)
    state.mkdir()
    if isinstance(stories, int):
        stories = [story(f"US-{n}") for n in range(1, stories + 1)]
    script = tmp_path / "agent.py"
    script.write_text(library_for(agent) + textwrap.dedent(agent))
    (root / "prd.json").write_text(json.dumps({"userStories": stories}, indent=2) + "\n")
    config = TOML.format(
        python=json.dumps(sys.executable),
        agent=json.dumps(str(script)),
        format=output,
        checks=json.dumps(checks or []),
        limits=limits,
    )
    (root / "ralph.toml").write_text(config + textwrap.dedent(toml))
    (root / ".gitignore").write_text(".ralph/\n.ralph-session.json\n.ralph-circuit-state.json\n")
    for name, content in (files or {}).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "start"]):
        subprocess.run(["git", *command], cwd=root, check=True)
    return Sandbox(root, state, {} if clean_tree else dict(IN_PLACE))
