"""`ralph demo`: a whole night in half a minute, on a toy repository, by a scripted agent."""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import click

from ralphloop.atomic import write_atomic
from ralphloop.cli import output
from ralphloop.errors import ExitCode, RepositoryError, UsageError
from ralphloop.proc.run import ourselves, run_in_front
from ralphloop.repo.git import Git

_FIRST_TEST = """\
import unittest


class Start(unittest.TestCase):
    def test_python_can_count(self):
        self.assertEqual(1 + 1, 2)
"""
_INTRODUCTION = """\
A toy repository, four stories, a scripted agent (no model is asked, nothing is spent).
Watch for: a false "done" that a check catches, an agent that crashes, a test that passes without
the story's code and so proves nothing, a story that gets stuck and is set aside, a usage limit that
is waited for, and a question that waits for a person.
"""
_MORNING = """
And this is the morning: what the agent claims beside what was found, most doubtful first.
`a` accepts, `r` sends back, `q` quits.
"""
_EPILOGUE = """
That was the whole thing. The toy repository is in {place}
  git -C {place} log --oneline        one commit for each story that passed
  cd {place} && ralph review          decide about what passed

On your own repository:
  ralph init                          finds your stack and your checks, writes ralph.toml
  ralph stories add "…" -c "…"        says what you want, and what will be seen
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
    source = files("ralphloop.demo")
    limits = 'backoff = "200ms"\nmax_cost_usd = 2.0\n'
    made = {name: (source / name).read_text("utf-8") for name in ("prd.json", "night.json")}
    made["ralph.toml"] = settings("night.json", "-m", "unittest", "-q", limits=limits)
    made |= {f"{name}.py": f'"""To {name}."""\n' for name in ("greet", "words", "shout")}
    make_repository(place, {**made, "test_start.py": _FIRST_TEST})
    output.emit_lines(_INTRODUCTION.splitlines())
    sys.stdout.flush()
    code = run_there(place, "run", "--trust")  # it is our own
    if code not in (ExitCode.COMPLETE, ExitCode.BLOCKED):
        return code
    output.emit_lines(_MORNING.splitlines())
    sys.stdout.flush()
    run_there(place, "review")
    output.emit_lines(_EPILOGUE.format(place=place).splitlines())
    return ExitCode.COMPLETE


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
    if place.exists() and any(place.iterdir()):
        raise UsageError(f"{place} is not empty", "Name a new directory.")
    for name, text in {**files, ".gitignore": _IGNORED}.items():
        write_atomic(place / name, text.encode(), parents=True)
    for command in (
        ("init", "--quiet", "--initial-branch=main"),
        ("config", "user.name", "Ralph"),
        ("config", "user.email", "ralph@example.invalid"),
        ("config", "commit.gpgSign", "false"),
        ("add", "--all"),
        ("commit", "--quiet", "--message", "A toy repository"),
    ):
        Git(place).writing().run(*command)


def run_there(place: Path, *words: str) -> int:
    """Run a command of ours there, without settings meant for another project; the exit code."""
    foreign = ("RALPH_", "CB_", "GIT_")
    env = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return run_in_front([*ourselves(), *words], cwd=place, env=env)
