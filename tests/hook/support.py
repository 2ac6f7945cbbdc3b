"""A small project and a session that talks to `ralph hook` as Claude Code does."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ralphloop.journal.queries import JournalReader
from ralphloop.journal.records import IterationRecord, RunRecord
from ralphloop.proc.run import ourselves
from ralphloop.project import Project
from ralphloop.text.status_block import Status, StatusBlock, TestsStatus, WorkType, render
from tests.starting import run_to_end

Json = dict[str, Any]
RALPH = ourselves()
SESSION = "11111111-2222-4333-8444-555555555555"
OTHER = "99999999-2222-4333-8444-555555555555"


@dataclass
class Reply:
    """How one hook ended."""

    code: int
    stdout: bytes
    stderr: str

    @property
    def answer(self) -> Json:
        """The one object on stdout; empty where there is none."""
        decoded: Json = json.loads(self.stdout) if self.stdout else {}
        return decoded

    @property
    def blocks(self) -> bool:
        """The session is not to stop, or the command not to go on."""
        return self.answer.get("decision") == "block"

    @property
    def reason(self) -> str:
        """The next prompt, or why a command was refused."""
        return str(self.answer.get("reason", ""))

    @property
    def told(self) -> str:
        """What the person is told."""
        return str(self.answer.get("systemMessage", ""))

    @property
    def context(self) -> str:
        """What the agent is given besides its prompt."""
        output = self.answer.get("hookSpecificOutput", {})
        return str(output.get("additionalContext", ""))


@dataclass
class Box:
    """One repository with stories, and a session in it."""

    root: Path
    session: str = SESSION
    prefix: str = "ralph:"  # of our commands' names
    env: dict[str, str] = field(default_factory=dict)

    def hook(self, event: str, given: Json | bytes, **where: Any) -> Reply:
        """Run `ralph hook EVENT` with this on stdin."""
        data = given if isinstance(given, bytes) else json.dumps(given).encode()
        env = {**os.environ, **self.env, **where.get("env", {})}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        done = run_to_end(
            [*RALPH, "hook", event],
            given=data,
            timeout=60,
            cwd=where.get("cwd", self.root),
            env=env,
        )
        return Reply(done.returncode, done.stdout, done.stderr.decode())

    def event(self, **more: Any) -> Json:
        """What every hook is told."""
        return {"session_id": self.session, "cwd": str(self.root), **more}

    def command(self, name: str, arguments: str = "", **more: Any) -> Reply:
        """A person types a command of the plugin."""
        given = self.event(
            hook_event_name="UserPromptExpansion",
            command_name=f"{self.prefix}{name}",
            command_args=arguments,
            command_source="plugin" if self.prefix else "userSettings",
            **more,
        )
        return self.hook("command", given)

    def begin(self, arguments: str = "") -> Reply:
        """`/ralph`, which must begin a loop."""
        reply = self.command("ralph", arguments)
        assert reply.context, reply
        return reply

    def stop(
        self, message: str | None = "Working on it.", *, again: bool = False, **more: Any
    ) -> Reply:
        """The session's turn ends; `again`: it went on because of our last answer."""
        given = self.event(hook_event_name="Stop", stop_hook_active=again, **more)
        if message is not None:
            given["last_assistant_message"] = message
        return self.hook("stop", given)

    def write(self, name: str, text: str) -> None:
        """A change in the work tree."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    @property
    def passes(self) -> dict[str, bool]:
        """Which stories are marked as passed."""
        prd = json.loads((self.root / "prd.json").read_text())
        return {story["id"]: story["passes"] for story in prd["userStories"]}

    @property
    def holder(self) -> Json | None:
        """Who holds the project, as its file says."""
        path = self.root / ".ralph" / "holder.json"
        return json.loads(path.read_text()) if path.exists() else None

    def run(self) -> RunRecord:
        """The newest run."""
        with self._journal() as journal:
            found = journal.latest_run()
        assert found is not None
        return found

    def iterations(self) -> list[IterationRecord]:
        """The iterations of the newest run."""
        with self._journal() as journal:
            run = journal.latest_run()
            return journal.iterations(run.id) if run else []

    def _journal(self) -> JournalReader:
        return JournalReader.open(Project(self.root).journal)

    def git(self, *arguments: str) -> str:
        """What git answers."""
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, capture_output=True, encoding="utf-8", check=True
        )
        return done.stdout


def box(
    root: Path,
    *,
    stories: int | Sequence[Json] = 2,
    settings: str = "",
    files: Mapping[str, str] | None = None,
) -> Box:
    """A committed repository with stories; `settings` is its ralph.toml."""
    root.mkdir(parents=True, exist_ok=True)
    listed = [story(n) for n in range(1, stories + 1)] if isinstance(stories, int) else stories
    made = Box(root)
    made.write("prd.json", json.dumps({"userStories": list(listed)}, indent=2) + "\n")
    made.write("ralph.toml", settings)
    made.write(".gitignore", ".ralph/\n.ralph-*\n__pycache__/\n")
    for name, text in (files or {}).items():
        made.write(name, text)
    made.git("init", "-q", "-b", "main")
    made.git("add", ".")
    made.git("commit", "-q", "-m", "Begin")
    return made


def story(number: int, **more: Any) -> Json:
    """One story of prd.json."""
    return {
        "id": f"US-{number:03}",
        "title": f"Story {number}",
        "acceptanceCriteria": [f"file {number} exists"],
        "priority": number,
        "passes": False,
        **more,
    }


def done(words: str = "It is done.", *, exit_signal: bool = False) -> str:
    """A last message that claims its story."""
    return report(words, Status.COMPLETE, exit_signal=exit_signal)


def report(
    words: str = "", status: Status = Status.IN_PROGRESS, *, exit_signal: bool = False
) -> str:
    """A last message with its status block."""
    block = StatusBlock(
        status=status,
        tasks_completed=int(status is Status.COMPLETE),
        files_modified=1,
        tests_status=TestsStatus.PASSING,
        work_type=WorkType.IMPLEMENTATION,
        exit_signal=exit_signal,
        recommendation="which database?" if status is Status.BLOCKED else "go on",
    )
    return f"{words}\n\n{render(block)}"
