"""Looking at a repository starts nothing of it: nobody has said yet that it is trusted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import sentences
from tests.cli.test_doctor import CLAUDE, SETTINGS, Place, Sign
from tests.conftest import RunRalph

LOOKING = [
    "",
    "doctor",
    "status",
    "stories",
    "log",
    "report",
    "stats",
    "monitor --once",
    "config show",
    "config validate",
    "circuit status",
    "learnings list",
    "clean --dry-run",
    "run --dry-run",
    "plugin path",
]
DECLARED = """\
name = "{0}"
program = "{1}"
reader = "text"
start = []
safety = {{ moderate = [] }}
[login]
ask = ["-c", "{1}"]
fix = ""
"""


class Trapped(Place):
    """A repository in which everything that can name a program names one that leaves a mark."""

    def __init__(self, base: Path) -> None:
        super().__init__(base)
        self.marks = base / "marks"
        self.trap = self.script("trap")
        self.git("config", "filter.evil.clean", self.trap)
        self.git("config", "gpg.program", self.trap)
        self.git("config", "commit.gpgSign", "true")
        self.git("config", "core.fsmonitor", self.trap)
        self.write(".gitattributes", "*.txt filter=evil diff=evil\n")
        self.git("config", "diff.evil.textconv", self.trap)
        self.write("some.txt", "x")
        for place in ("agents.d", ".ralph/agents"):
            (self.root / place).mkdir(parents=True)
            name = place.strip(".").replace("/", "-").replace(".", "-")
            self.write(f"{place}/{name}.toml", DECLARED.format(name, self.trap))

    def script(self, name: str) -> str:
        """A program in the repository that leaves a mark when it is started."""
        path = self.root / "tools" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\necho {name} >> {self.marks}\necho 2.1.0\n")
        path.chmod(0o755)
        return str(path)

    def settings(self, agent: str) -> None:
        """A ralph.toml that starts traps wherever a run starts something."""
        trap = json.dumps([self.trap])
        notify = f"[notify]\ncommand = {trap}\n[session]\nkeep_awake = false\n"
        self.write("ralph.toml", f"[checks]\ncommands = [{trap}]\n{notify}[agent]\n{agent}")


@pytest.fixture
def trapped(tmp_path: Path) -> Trapped:
    """A hostile repository, and a PATH that holds a harmless claude."""
    return Trapped(tmp_path)


@pytest.mark.parametrize("command", LOOKING)
def test_looking_starts_nothing_of_the_repository(
    command: str, trapped: Trapped, run_ralph: RunRalph
) -> None:
    """No looking command runs a program that the repository names."""
    trapped.settings('binary = "./tools/trap"\nfallback = ["agents-d"]\n')
    done = run_ralph(*command.split(), cwd=trapped.root, env=trapped.env)
    assert sentences.INTERNAL not in done.stderr
    assert not trapped.marks.exists(), trapped.marks.read_text()


@pytest.mark.parametrize(
    "agent, words",
    [
        ('binary = "./tools/trap"', "the project names it"),
        ('binary = "{root}/tools/trap"', "the project names it"),
        ('binary = "/usr/bin/env"', "the project names it"),
        ('env = {{ PATH = "{root}/tools" }}', "the project names it"),
        ('env = {{ NODE_OPTIONS = "--require ./x.js" }}', "the project names it"),
        ('name = "agents-d"', "the project names it"),
        ('name = "ralph-agents"', "the project names it"),
        ('binary = "linked"', "it lies in the project"),
    ],
)
def test_doctor_says_what_it_did_not_start(
    agent: str, words: str, trapped: Trapped, run_ralph: RunRalph
) -> None:
    """The chosen agent's program is found, and named as not started."""
    trapped.script("claude")
    (trapped.bin / "linked").symlink_to(trapped.trap)
    trapped.settings(agent.format(root=trapped.root))
    found = Sign(run_ralph, trapped)
    assert not trapped.marks.exists(), trapped.marks.read_text()
    chosen = found.of("agent")[0]
    assert (chosen["level"], f"not started: {words}" in chosen["message"]) == ("ok", True), chosen
    assert str(trapped.root / "tools" / "claude") not in json.dumps(found.data)


def test_doctor_signs_nothing_and_runs_no_filter(trapped: Trapped, run_ralph: RunRalph) -> None:
    """It says that it did neither."""
    found = Sign(run_ralph, trapped)
    said = [finding["message"] for finding in found.of("repository", "info")]
    assert "commits are to be signed; not tried here" in said
    assert any("filter.evil.clean" in words for words in said)
    assert not trapped.marks.exists()


def test_a_directory_of_the_project_on_path_is_the_projects(
    trapped: Trapped, run_ralph: RunRalph
) -> None:
    """`.` and node_modules/.bin on PATH do not make a clone's programs the user's."""
    trapped.script("claude")
    for place in ("tools", str(trapped.root / "tools")):
        found = Sign(run_ralph, trapped, PATH=f"{place}:{trapped.bin}")
        assert found.of("agent")
        assert not trapped.marks.exists()


def test_programs_of_the_user_are_asked(place: Place, run_ralph: RunRalph) -> None:
    """By their usual name or one the project prefers, found on PATH; not in the project's directory."""
    place.program(
        "my-claude",
        f"#!/bin/sh\npwd >> {place.bin}/asked\n"
        + CLAUDE[10:].format(version="2.1.9", logged_in="true"),
    )
    place.commit("ralph.toml", SETTINGS + '[agent]\nbinary = "my-claude"\n')
    found = Sign(run_ralph, place)
    assert found.of("agent", "ok")[0]["message"].startswith("claude 2.1.9")
    assert set((place.bin / "asked").read_text().split()) == {"/"}
    mine = {"RALPH_AGENT_ENV": '{"A": "b"}', "RALPH_AGENT_BINARY": str(place.bin / "claude")}
    assert Sign(run_ralph, place, **mine).of("agent", "ok")[0]["message"].startswith("claude 2.1.7")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A repository that is ready for a run."""
    return Place(tmp_path)
