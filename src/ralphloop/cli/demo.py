"""`ralph demo`: a whole night in half a minute, on a toy repository, without any model."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

import click

from ralphloop.cli import output
from ralphloop.errors import ExitCode, RepositoryError

_CONFIG = """\
[agent]
name = "scripted"
command = ["night.json"]
[checks]
commands = [{check}]
[limits]
backoff = "200ms"
max_cost_usd = 2.0
[session]
keep_awake = false
"""
_FIRST_TEST = """\
import unittest


class Start(unittest.TestCase):
    def test_python_can_count(self):
        self.assertEqual(1 + 1, 2)
"""
_INTRODUCTION = """\
A toy repository, four stories, a scripted agent (no model is asked, nothing is spent).
Watch for: a false "done" that a check catches, an agent that crashes, a story that gets stuck and
is set aside, a usage limit that is waited for, and a question that waits for a person.
"""
_EPILOGUE = """
That was the whole thing. The toy repository is in {place}
  git -C {place} log --oneline        one commit for each story that passed
  cd {place} && ralph stories         what passed, how well it is proven, what waits

On your own repository:
  ralph init                          finds your stack and your checks, writes ralph.toml
  ralph run --dry-run                 shows the plan and the first prompt, spends nothing
  ralph run                           runs until the stories are really done
"""


@click.command()
@click.option("--keep", type=click.Path(path_type=Path), help="Where to make the repository.")
def demo(keep: Path | None) -> int:
    """Show what ralph does, on a toy repository with a scripted agent."""
    if shutil.which("git") is None:
        raise RepositoryError("git is not installed", "Install git and try again.")
    place = keep or Path(tempfile.mkdtemp(prefix="ralph-demo-"))
    _make_repository(place)
    output.emit_lines(_INTRODUCTION.splitlines())
    sys.stdout.flush()
    ended = subprocess.run(
        [sys.executable, "-m", "ralphloop", "run"], cwd=place, env=_environment(), check=False
    )
    if ended.returncode not in (ExitCode.COMPLETE, ExitCode.BLOCKED):
        return ended.returncode
    output.emit_lines(_EPILOGUE.format(place=place).splitlines())
    return ExitCode.COMPLETE


def _make_repository(place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    if any(place.iterdir()):
        raise RepositoryError(f"{place} is not empty", "Name a new directory with --keep.")
    source = files("ralphloop.demo")
    for name in ("prd.json", "night.json"):
        (place / name).write_text(source.joinpath(name).read_text(encoding="utf-8"))
    check = json.dumps([sys.executable, "-m", "unittest", "-q"])
    (place / "ralph.toml").write_text(_CONFIG.format(check=check))
    (place / "test_start.py").write_text(_FIRST_TEST)
    (place / ".gitignore").write_text(
        ".ralph/\n.ralph-session.json\n.ralph-circuit-state.json\n__pycache__/\n"
    )
    for command in (
        ("init", "--quiet", "--initial-branch=main"),
        ("config", "user.name", "Ralph demo"),
        ("config", "user.email", "demo@example.invalid"),
        ("config", "commit.gpgSign", "false"),
        ("add", "--all"),
        ("commit", "--quiet", "--message", "A toy repository"),
    ):
        subprocess.run(["git", *command], cwd=place, check=True, capture_output=True)


def _environment() -> dict[str, str]:
    """Ours, without settings that are meant for another project."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("RALPH_", "CB_", "GIT_"))
    }
