"""A small real repository in which `ralph run` works with a real CLI and the scripted model.

The code base is one Python module with a unittest suite; the check is that suite.  ralph.toml
names the cached CLI and passes the address of the model in the agent's environment; HOME and
TMPDIR are those of the test.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ralphloop.errors import ExitCode
from ralphloop.text.status_block import Status, StatusBlock, TestsStatus, WorkType, render
from tests.e2e.clis import CLIS, ENVIRONMENTS, bare_env
from tests.e2e.conftest import World
from tests.e2e.model_server import ModelServer, ToolUse, Usage, write
from tests.e2e.processes import wait_until

Json = dict[str, Any]

RALPH = Path(sys.executable).with_name("ralph")
# -B: a fix of the same length within the same second would be hidden by the old bytecode.
UNITTEST = [sys.executable, "-B", "-m", "unittest", "-q"]

_FIRST_TEST = """\
import unittest


class Arithmetic(unittest.TestCase):
    def test_adding(self) -> None:
        self.assertEqual(1 + 1, 2)
"""


@dataclass(frozen=True, slots=True)
class Project:
    """The repository and the world that `ralph` is started in."""

    root: Path
    env: Mapping[str, str]

    def ralph(self, *arguments: str, timeout_s: float = 100.0) -> subprocess.CompletedProcess[str]:
        """Run the command to its end."""
        return subprocess.run(
            [RALPH, *arguments],
            cwd=self.root,
            env=dict(self.env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=timeout_s,
            check=False,
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start the command and leave it running."""
        return subprocess.Popen(
            [RALPH, *arguments],
            cwd=self.root,
            env=dict(self.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            start_new_session=True,
        )

    def interrupt(self, running: subprocess.Popen[str]) -> None:
        """Press Ctrl+C once: the signal goes to ralph; its agents have sessions of their own."""
        running.send_signal(signal.SIGINT)

    def wait_for_file(self, name: str, running: subprocess.Popen[str]) -> None:
        """Wait until the agent has made a file; what ralph said comes out if it ends before."""
        path = self.root / name
        wait_until(lambda: path.exists() or running.poll() is not None, f"{name} is there")
        assert path.exists(), running.communicate()[0]

    def wait_for_transcript(self, text: str, running: subprocess.Popen[str]) -> None:
        """Wait until what the agent printed, as ralph wrote it down, contains a text."""
        wait_until(
            lambda: self._printed(text) or running.poll() is not None, f"the agent says {text!r}"
        )
        assert self._printed(text), running.communicate()[0]

    def _printed(self, text: str) -> bool:
        logs = (self.root / ".ralph" / "transcripts").glob("*/*.log")
        return any(text.encode() in log.read_bytes() for log in logs)

    def events(self, run: subprocess.CompletedProcess[str], kind: str) -> list[Json]:
        """The events of one type that `ralph run --json` printed."""
        lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
        return [line for line in lines if line["type"] == kind]

    def status(self) -> Json:
        """`ralph status --json`."""
        done = self.ralph("status", "--json")
        assert done.returncode == ExitCode.COMPLETE, done.stderr
        decoded: Json = json.loads(done.stdout)
        return decoded

    @property
    def passes(self) -> dict[str, bool]:
        """Which stories are marked as passed in prd.json."""
        prd = json.loads((self.root / "prd.json").read_text())
        return {story["id"]: story["passes"] for story in prd["userStories"]}

    def git(self, *arguments: str) -> str:
        """What git answers."""
        return _git(self.root, self.env, *arguments)

    @property
    def subjects(self) -> list[str]:
        """Subjects of the commits, oldest first."""
        return self.git("log", "--reverse", "--format=%s").splitlines()


def project(
    world: World,
    server: ModelServer,
    *,
    stories: Sequence[Json],
    agent: str = "claude",
    cli: str = "",
    checks: Sequence[Sequence[str]] = (UNITTEST,),
    settings: str = "",
    agent_settings: str = "",
    agent_env: Mapping[str, str] | None = None,
) -> Project:
    """A repository with stories, ready to run; `settings` are further sections of ralph.toml.

    `cli` is another version of the agent's program.
    """
    env = bare_env(world.home)
    root = world.work
    told = {**ENVIRONMENTS[agent](server.url, world.home), **(agent_env or {})}
    only_told = {name: value for name, value in told.items() if name not in env and value}
    (root / "prd.json").write_text(json.dumps({"userStories": list(stories)}, indent=2) + "\n")
    (root / "test_first.py").write_text(_FIRST_TEST)
    (root / ".gitignore").write_text(
        "__pycache__/\n.ralph/\n.ralph-session.json\n.ralph-circuit-state.json\n"
    )
    (root / "ralph.toml").write_text(
        f"[agent]\nname = {json.dumps(agent)}\n"
        f"binary = {json.dumps(str(CLIS[cli or agent].program))}\n"
        f"env = {_inline_table(only_told)}\n{agent_settings}\n"
        f"[checks]\ncommands = {json.dumps([list(check) for check in checks])}\n"
        f"{settings}"
    )
    _git(root, env, "init", "-q", "-b", "main")
    _git(root, env, "config", "user.name", "Test")
    _git(root, env, "config", "user.email", "test@example.com")
    _git(root, env, "add", ".")
    _git(root, env, "commit", "-q", "-m", "Begin")
    return Project(root=root, env=env)


def story(number: int, title: str, **more: Any) -> Json:
    """One story of prd.json."""
    return {
        "id": f"US-{number:03}",
        "title": title,
        "acceptanceCriteria": [f"{title} works"],
        "priority": number,
        "passes": False,
        **more,
    }


def of_story(number: int) -> str:
    """What a prompt contains that is about this story, and no other prompt does."""
    return f"# Your story: US-{number:03}:"


def claim(
    words: str = "It is done.",
    *,
    status: Status = Status.COMPLETE,
    exit_signal: bool = False,
    recommendation: str = "go on",
) -> str:
    """A last message with its status block."""
    block = StatusBlock(
        status=status,
        tasks_completed=int(status is Status.COMPLETE),
        files_modified=2,
        tests_status=TestsStatus.PASSING,
        work_type=WorkType.IMPLEMENTATION,
        exit_signal=exit_signal,
        recommendation=recommendation,
    )
    return f"{words}\n\n{render(block)}"


def feature(name: str, answer: int, *, tested: int | None = None) -> tuple[ToolUse, ToolUse]:
    """Write a module with a function and its test; the test is red where the two numbers differ."""
    code = f"def {name}() -> int:\n    return {answer}\n"
    expected = answer if tested is None else tested
    test = (
        f"import unittest\n\nfrom {name} import {name}\n\n\n"
        f"class {name.title()}(unittest.TestCase):\n"
        f"    def test_{name}(self) -> None:\n"
        f"        self.assertEqual({name}(), {expected})\n"
    )
    return write(f"{name}.py", code), write(f"test_{name}.py", test)


def assert_done(made: Project, run: subprocess.CompletedProcess[str]) -> None:
    """Everything passed and was committed."""
    assert run.returncode == ExitCode.COMPLETE, run.stdout + run.stderr
    assert all(made.passes.values())
    assert made.git("status", "--porcelain") == ""


def counted(status: Json) -> Usage:
    """The tokens that `ralph status --json` shows."""
    tokens = status["tokens"]
    return Usage(
        input=tokens["input"],
        output=tokens["output"],
        cache_read=tokens["cache_read"],
        cache_write=tokens["cache_write"],
    )


def _git(root: Path, env: Mapping[str, str], *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments],
        cwd=root,
        env=dict(env),
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return done.stdout


def _inline_table(values: Mapping[str, str]) -> str:
    inside = ", ".join(f"{name} = {json.dumps(value)}" for name, value in values.items())
    return f"{{ {inside} }}"
