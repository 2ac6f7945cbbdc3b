"""An agent that comes with ralph is one TOML file: every list of names is read from there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import ralphloop
from ralphloop.agents.base import load_agent
from ralphloop.agents.declared import shipped_declarations
from ralphloop.config.known_agents import OF_THE_USER, shipped_agents

ACME = """\
name = "acme"
program = "acme-cli"
reader = "text"
start = ["chat", "{safety}", "{model}", "{args}", "-"]
paid_by_use = true

[safety]
minimal = []
moderate = []
strict = []
"""

Ralph = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def release_with_acme(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as it is, with one more TOML file."""
    place = tmp_path_factory.mktemp("release")
    package = place / "ralphloop"
    shutil.copytree(Path(ralphloop.__file__).parent, package)
    (package / "agents" / "data" / "acme.toml").write_text(ACME)
    return place


@pytest.fixture
def ralph(release_with_acme: Path, tmp_path: Path) -> Ralph:
    """That release's command, where nothing but acme's program is installed."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "acme-cli").write_text("#!/bin/sh\necho 2.0\n")
    (programs / "acme-cli").chmod(0o755)
    (programs / "git").symlink_to(str(shutil.which("git")))
    project = tmp_path / "project"
    project.mkdir()
    (project / "prd.json").write_text('{"userStories": [{"id": "US-1", "title": "One"}]}')

    def run(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "ralphloop", *arguments],
            cwd=project,
            env={
                **os.environ,
                "PYTHONPATH": str(release_with_acme),
                "PATH": str(programs),
                "COLUMNS": "1000",
                **env,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run


def test_one_file_more_is_an_agent_everywhere(ralph: Ralph) -> None:
    """Settings, help, plan, set-up and look-up know it; nothing else had to be written."""
    assert ralph("init", "--agent", "acme", "--yes", "--no-run").returncode == 0
    assert ralph("config", "validate").returncode == 0
    assert "acme" in ralph("run", "--help").stdout
    assert "acme" in ralph("init", "--help").stdout
    planned = ralph("run", "--dry-run")
    assert "agent    acme" in planned.stdout, planned.stderr
    assert "acme 2.0, chosen" in ralph("doctor").stdout


def test_what_is_installed_is_chosen_by_its_program(ralph: Ralph) -> None:
    """`init` looks for the command that the file names, and caps what is paid by use."""
    said = ralph("init", "--yes", "--no-run").stdout
    assert "acme is paid by use" in said


def test_a_shell_completes_the_names_of_agents(ralph: Ralph) -> None:
    """Also the one that was added."""
    done = ralph(_RALPH_COMPLETE="bash_complete", COMP_WORDS="ralph run --agent ac", COMP_CWORD="3")
    assert done.stdout.split() == ["plain,acme"]


def test_every_shipped_agent_can_be_loaded_by_the_name_of_its_file() -> None:
    """A file's name is its agent's name, and what starts is said."""
    declared = shipped_declarations()
    assert {one.name for one in declared} | set(OF_THE_USER) == set(shipped_agents())
    assert [load_agent(name).name for name in shipped_agents()] == list(shipped_agents())
    assert all(one.program for one in declared)
