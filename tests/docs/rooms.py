"""Where pages are run: a small project, a home, and programs that play what a reader has installed.

`claude` plays a script, so the run goes the way of the real agent; `pipx` and `uv` do nothing, as
`make dist` tries real installations.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import Command, Shell

_GIT = """\
[user]
    name = Ada
    email = ada@example.org
[init]
    defaultBranch = main
"""
_PROJECT = {
    "pyproject.toml": '[project]\nname = "greeter"\ndescription = "Greets people"\n',
    "greet.py": '"""Greets people."""\n',
    "README.md": "# Greeter\n",
    ".gitignore": "__pycache__/\n",
    "tests/test_start.py": """\
import unittest

import greet


class Start(unittest.TestCase):
    def test_it_says_what_it_is(self):
        self.assertIn("Greets", greet.__doc__)
""",
}
_CLAUDE = """\
import os, sys
given = sys.argv[1:]
flags = "settings tools permission-prompts max-budget-usd include-partial-messages setting-sources"
if "--version" in given:
    sys.exit(print("2.1.325 (Claude Code)"))
if "--help" in given:
    sys.exit(print("\\n".join(f"  --{flag}" for flag in flags.split())))
named = [w for f in ("--session-id", "--resume") if f in given for w in (f, given[given.index(f) + 1])]
os.environ["RALPH_SCRIPT_STATE"] = os.path.join(os.environ["HOME"], "starts.json")
player = [sys.executable, "-m", "ralphloop.agents.scripted_main", sys.argv[0] + ".yaml"]
os.execv(sys.executable, player + named)
"""
# How the agent plans: it asks how amounts are written, then proposes two stories.
_PLAN = """\
stories:
  plan:
    - - usage: {cost_usd: 0.04}
      - say: |
          {"questions": [{"question": "How are amounts written?", "proposed": "with a point: 3.20",
                          "why": "3,20 would be read in another way"}]}
    - - usage: {cost_usd: 0.06}
      - say: |
          {"stories": [
            {"id": "US-001", "title": "Add up what was written down",
             "description": "tally.py adds up the amounts of lines such as `tea 3.20`.",
             "criteria": [{"text": "tally.total(['tea 3.20', 'bread 2.10']) returns 5.30",
                           "seen": "test_tally.py::Tally::test_it_adds_up"}],
             "verify": ["python3", "-c",
                        "import tally; assert tally.total(['tea 3.20', 'bread 2.10']) == 5.30"],
             "touches": ["tally.py", "test_tally.py"]},
            {"id": "US-002", "title": "Print the total of a file",
             "description": "The command of tally.py reads a file and prints its total.",
             "criteria": [{"text": "`python3 tally.py day.txt` prints `total 5.30`",
                           "seen": "test_command.py::Command::test_it_prints_the_total"}],
             "verify": ["python3", "-m", "unittest", "-q", "test_command"],
             "dependsOn": ["US-001"], "touches": ["tally.py", "test_command.py"]}]}
"""
# What it does on all pages: the German story needs an answer, all others are done at once, and what
# was sent back is done in another way.
_SCRIPT = """\
starts:
  - - if_prompt:
        contains: Add up what was written down
        then:
          - write:
              tally.py: |
                def total(lines):
                    return round(sum(float(line.split()[-1]) for line in lines), 2)
              test_tally.py: |
                import unittest

                import tally


                class Tally(unittest.TestCase):
                    def test_it_adds_up(self):
                        self.assertEqual(tally.total(["tea 3.20", "bread 2.10"]), 5.30)
          - usage: {cost_usd: 0.12}
          - say: total() adds up, and a test says so.
          - status: {status: COMPLETE, tasks_completed: 1, files_modified: 2, tests_status: PASSING}
    - if_prompt:
        contains: Greet in German
        then:
          - if_prompt:
              contains: du, of course
              then:
                - write:
                    german.py: |
                      def greet(name):
                          return f"Hallo {name}, schön, dass du da bist!"
                    tests/test_german.py: |
                      import unittest

                      import german


                      class German(unittest.TestCase):
                          def test_a_person_is_greeted_informally(self):
                              self.assertIn("du", german.greet("Ada"))
                - if_prompt:
                    contains: Nobody says schön
                    then:
                      - write:
                          german.py: |
                            def greet(name):
                                return f"Hallo {name}, willst du auch einen Kaffee?"
                - usage: {cost_usd: 0.07}
                - say: German, with "du".
                - status: {status: COMPLETE, tasks_completed: 1, tests_status: PASSING}
              else:
                - usage: {cost_usd: 0.05}
                - say: The story does not say how to address people.
                - status: {status: BLOCKED, recommendation: "Shall the German greeting say du or Sie?"}
        else:
          - write:
              greet.py: |
                \"\"\"Greets people.\"\"\"


                def greet(name):
                    return f"Hello, {name}"
              tests/test_greet.py: |
                import unittest

                import greet


                class Greet(unittest.TestCase):
                    def test_a_person_is_greeted_by_name(self):
                        self.assertEqual(greet.greet("Ada"), "Hello, Ada")
          - usage: {input_tokens: 9000, output_tokens: 800, cost_usd: 0.11}
          - say: greet() greets by name, and a test says so.
          - status: {status: COMPLETE, tasks_completed: 1, files_modified: 2, tests_status: PASSING}
"""
_CALM = {
    "RALPH_SANDBOX_MODE": "off",  # the agent of these pages counts outside of the project
    "RALPH_SESSION_KEEP_AWAKE": "false",
}


def shell(place: Path) -> Shell:
    """A home with a project `greeter` in it, and everything on PATH that pages name."""
    home, programs = place / "home", place / "programs"
    for name, content in _PROJECT.items():
        path = home / "greeter" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    (home / ".gitconfig").write_text(_GIT)
    programs.mkdir()
    python, claude = shlex.quote(sys.executable), programs / "claude.py"
    claude.write_text(_CLAUDE)
    (programs / "claude.py.yaml").write_text(_PLAN + _SCRIPT)
    lines = {
        "ralph": f'exec {python} -m ralphloop "$@"',
        "ralphloop": f'exec {python} -m ralphloop "$@"',
        "python3": f'exec {python} "$@"',
        "claude": f'exec {python} {shlex.quote(str(claude))} "$@"',
        "pipx": ":",
        "uv": ":",
    }
    for name, line in lines.items():
        (programs / name).write_text(f"#!/bin/sh\n{line}\n")
        (programs / name).chmod(0o755)
    env = {name: value for name, value in os.environ.items() if not name.startswith("RALPH_")}
    env |= {"HOME": str(home), "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin", **_CALM}
    env |= {"GIT_CONFIG_GLOBAL": str(home / ".gitconfig"), "PAGER": "cat", "TERM": "xterm"}
    room = Shell(home, env)
    git = ["git", "-C", str(home / "greeter")]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "A greeter"]):
        subprocess.run([*git, *words], env=env, check=True)
    return room


def _do(room: Shell, *lines: str) -> None:
    for line in lines:
        command = Command(line)
        code, said = room.run(command)
        assert code == command.code, f"{line}: {code}\n{said}"


def nothing(room: Shell) -> None:
    """As a reader begins who has a project and nothing else."""


def in_project(room: Shell) -> None:
    """The same, and went there."""
    _do(room, "cd greeter")


def set_up(room: Shell) -> None:
    """`ralph init` was run, and agreed to."""
    _do(room, "cd greeter", "ralph init --yes", "git add -A", "git commit -qm 'Set up ralph'")


def one_story(room: Shell) -> None:
    """A story is there, and nothing has run."""
    set_up(room)
    criterion = "greet('Ada') returns 'Hello, Ada'"
    _do(room, f'ralph stories add "Greet by name" -c "{criterion}"', "git commit -qam Story")


def with_stories(room: Shell) -> None:
    """Two stories are there, and nothing has run."""
    one_story(room)
    _do(room, "ralph stories add 'Greet in German' -c 'german.greet(name) greets in German'")
    _do(room, "git commit -qam Stories")


def a_night(room: Shell) -> None:
    """A night is over: one story passed, another one waits for an answer."""
    with_stories(room)
    _do(room, "ralph run  # exit code 2")
