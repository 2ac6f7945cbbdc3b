"""A small repository made for show: written, committed, and run by a scripted agent."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from ralphloop.errors import UsageError
from ralphloop.ourselves import ourselves
from ralphloop.proc.run import run_in_front
from ralphloop.workspace.git import Git

_IGNORED = ".ralph/\n.ralph-session.json\n.ralph-circuit-state.json\n__pycache__/\n"
_SETTINGS = """\
# A script plays the agent, no model is asked.
[agent]
name = "scripted"
command = [{script}]
[checks]
commands = [{check}]
[session]
keep_awake = false
[limits]
"""


def settings(script: str, *check: str, limits: str) -> str:
    """A `ralph.toml` for a script, with one check that Python runs."""
    command = json.dumps([sys.executable, *check])
    return _SETTINGS.format(script=json.dumps(script), check=command) + limits


def make_repository(place: Path, files: Mapping[str, str]) -> None:
    """A new repository with these files in one commit."""
    if place.exists() and any(place.iterdir()):
        raise UsageError(f"{place} is not empty", "Name a new directory.")
    for name, text in {**files, ".gitignore": _IGNORED}.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for command in (
        ("init", "--quiet", "--initial-branch=main"),
        ("config", "user.name", "Ralph"),
        ("config", "user.email", "ralph@example.invalid"),
        ("config", "commit.gpgSign", "false"),
        ("add", "--all"),
        ("commit", "--quiet", "--message", "A toy repository"),
    ):
        Git(place).writing().run(*command)


def run_there(place: Path, *flags: str) -> int:
    """Run its stories, without settings that are meant for another project; the exit code."""
    foreign = ("RALPH_", "CB_", "GIT_")
    env = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    command = [*ourselves(), "run", *flags]
    return run_in_front(command, cwd=place, env=env)
