"""The supervisors: a config and a start line each, set as a careful person would set them.

Everybody gets twelve iterations, a minute for one start where such a setting exists, and the
night's money where such a limit exists.  Nobody's program is changed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from benchmarks.nights.nights import Night
from benchmarks.nights.shop import CHECK, TASKS, checklist, plan, prd
from tests.e2e.clis import CLIS

ITERATIONS = 12
RALPH = Path(sys.executable).with_name("ralph")

# What a person passes on to the agent, here with the address of the scripted model.
_PASSED = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "CLAUDE_CODE_MAX_RETRIES",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "DISABLE_AUTOUPDATER",
    "IS_SANDBOX",
]
_NOWHERE = ("--owner", "nobody", "--repo", "nothing")  # it asks for them, and needs none here

GOAL = (
    "Work on the first story of prd.json whose passes is false. Run the tests. When it is done, set"
    " its passes to true in prd.json. When every story passes, say: ALL STORIES ARE DONE"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """The stories a supervisor calls done, and which of them proven, if it knows that."""

    done: frozenset[str]
    proven: frozenset[str] | None = None


class Supervisor(ABC):
    """One program that runs an agent again and again."""

    name: ClassVar[str]
    settings: ClassVar[str]  # what was set, in one sentence
    home: ClassVar[str] = ""  # the directory of its clone below --peers; empty: it needs none
    source: ClassVar[str] = ""
    commit: ClassVar[str] = ""  # of its clone, that was measured
    made: ClassVar[str] = ""  # the program that a build leaves in its clone
    build: ClassVar[tuple[str, ...]] = ()
    stand_ins: ClassVar[Mapping[str, str]] = {}  # programs it asks for, as shell scripts

    def __init__(self, peers: Path) -> None:
        self.place = (peers / self.home).absolute()  # a night runs elsewhere

    @property
    def is_there(self) -> bool:
        """Whether it can be run here."""
        return not self.home or (self.place / self.made).exists()

    @property
    def version(self) -> str:
        """What was run: the commit of a clone."""
        return _said("git", "-C", str(self.place), "log", "-1", "--format=%h of %cs")

    @abstractmethod
    def prepare(self, root: Path, night: Night) -> None:
        """Write its own files into the project, before the first commit."""

    @abstractmethod
    def start(self, root: Path, night: Night) -> list[str]:
        """The command line that begins the night."""

    def go_on(self, root: Path, night: Night) -> list[str]:
        """The command line after it was killed."""
        return self.start(root, night)

    def claims(self, root: Path) -> Claims:
        """What it calls done when the night is over."""
        return Claims(done=_marked_in(root / "prd.json"))


class Ralph(Supervisor):
    """Ours."""

    name = "ralph"
    settings = (
        "checks = the test suite; max_iterations = 12, iteration_timeout = 60s, pass_env = the key"
    )

    @property
    def version(self) -> str:
        return _said(str(RALPH), "--version")

    def prepare(self, root: Path, night: Night) -> None:
        (root / "prd.json").write_text(prd())
        check = json.dumps([CHECK.split()])
        ignored = ".ralph/\n.ralph-session.json\n.ralph-circuit-state.json\n"
        (root / ".gitignore").write_text((root / ".gitignore").read_text() + ignored)
        (root / "ralph.toml").write_text(
            f'[agent]\nname = "claude"\npass_env = {json.dumps(_PASSED)}\n\n'
            '[limits]\niteration_timeout = "60s"\n\n'
            f"[checks]\ncommands = {check}\n"
        )

    def start(self, root: Path, night: Night) -> list[str]:
        money = ["--max-cost", str(night.max_cost_usd)] if night.max_cost_usd else []
        return [str(RALPH), "run", "--max-iterations", str(ITERATIONS), *money]

    def go_on(self, root: Path, night: Night) -> list[str]:
        return [*self.start(root, night), "--continue"]

    def claims(self, root: Path) -> Claims:
        done = _marked_in(root / "prd.json")
        told = json.loads(_said(str(RALPH), "stories", "--json", cwd=root) or "{}")
        proven = frozenset(
            str(story["id"])
            for story in told.get("stories", [])
            if story.get("grade") == "verified"
        )
        return Claims(done=done, proven=proven & done)


class BareLoop(Supervisor):
    """What people write first: `while` around `claude -p`."""

    name = "bare loop"
    settings = "at most 12 times `claude -p`, until its last message says that all is done"

    @property
    def version(self) -> str:
        return "shell"

    def prepare(self, root: Path, night: Night) -> None:
        (root / "prd.json").write_text(prd())
        (root / "PROMPT.md").write_text(GOAL + ". Commit all changes.\n")
        (root / "loop.sh").write_text(
            f"for i in $(seq {ITERATIONS}); do\n"
            "  said=$(claude -p --dangerously-skip-permissions < PROMPT.md 2>&1)\n"
            '  echo "$said" | tail -c 2000\n'
            '  case "$said" in *"ALL STORIES ARE DONE"*) exit 0 ;; esac\n'
            "done\nexit 1\n"
        )

    def start(self, root: Path, night: Night) -> list[str]:
        return ["bash", "loop.sh"]


class Snarktank(Supervisor):
    """snarktank/ralph: the loop of a prd.json and a promise."""

    name = "snarktank/ralph"
    home = "ralph"
    source = "https://github.com/snarktank/ralph"
    commit = "6c53cb0"
    settings = "--tool claude, 12 iterations; prd.json and CLAUDE.md as its README says"

    def prepare(self, root: Path, night: Night) -> None:
        (root / "prd.json").write_text(prd())
        for name in ("ralph.sh", "CLAUDE.md"):
            (root / name).write_bytes((self.place / name).read_bytes())
        subprocess.run(["git", "checkout", "-qb", "ralph/shop"], cwd=root, check=True)

    def start(self, root: Path, night: Night) -> list[str]:
        return ["bash", "ralph.sh", "--tool", "claude", str(ITERATIONS)]


class Frankbria(Supervisor):
    """frankbria/ralph-claude-code: the loop with a circuit breaker and a rate limit."""

    name = "frankbria/ralph-claude-code"
    home = "ralph-claude-code"
    source = "https://github.com/frankbria/ralph-claude-code"
    commit = "e8533cc"
    settings = "--timeout 1 (its least), every tool allowed; its template prompt and fix_plan.md"

    def prepare(self, root: Path, night: Night) -> None:
        place = root / ".ralph"
        for name in ("specs", "logs", "docs/generated"):
            (place / name).mkdir(parents=True, exist_ok=True)
        prompt = (self.place / "templates/PROMPT.md").read_text()
        (place / "PROMPT.md").write_text(prompt.replace("[YOUR PROJECT NAME]", "shop"))
        (place / "AGENT.md").write_text((self.place / "templates/AGENT.md").read_text())
        (place / "fix_plan.md").write_text(checklist())
        (root / ".ralphrc").write_text(
            'PROJECT_NAME="shop"\nPROJECT_TYPE="python"\nCLAUDE_TIMEOUT_MINUTES=1\n'
            'ALLOWED_TOOLS="Write,Read,Edit,Bash"\nCLAUDE_AUTO_UPDATE=false\n'
        )
        with (root / ".gitignore").open("a") as ignored:
            ignored.write(
                ".ralph/logs/\n.ralph/.*\n.ralph/status.json\n.ralph/progress.json\n"
                ".ralph/live.log\n"
            )

    def start(self, root: Path, night: Night) -> list[str]:
        return ["bash", str(self.place / "ralph_loop.sh"), "--timeout", "1"]

    def claims(self, root: Path) -> Claims:
        plan = root / ".ralph/fix_plan.md"
        text = plan.read_text() if plan.exists() else ""
        ticked = re.findall(r"^- \[x\] (US-\d+)", text, re.MULTILINE | re.IGNORECASE)
        return Claims(done=frozenset(ticked))


class ContinuousClaude(Supervisor):
    """AnandChowdhary/continuous-claude: iterations with a commit each."""

    name = "continuous-claude"
    home = "continuous-claude"
    source = "https://github.com/AnandChowdhary/continuous-claude"
    commit = "41cf787"
    settings = "-m 12 --disable-branches --disable-updates; without GitHub, so without its CI"
    stand_ins: ClassVar[Mapping[str, str]] = {"gh": "#!/bin/sh\nexit 0\n"}  # "logged in"

    def prepare(self, root: Path, night: Night) -> None:
        (root / "prd.json").write_text(prd())

    def start(self, root: Path, night: Night) -> list[str]:
        money = ["--max-cost", str(night.max_cost_usd)] if night.max_cost_usd else []
        told = ["-p", GOAL, "-m", str(ITERATIONS), *money, "--completion-threshold", "1"]
        script = str(self.place / "continuous_claude.sh")
        return ["bash", script, *told, "--disable-branches", "--disable-updates", *_NOWHERE]


class Ralphex(Supervisor):
    """umputun/ralphex: a plan in sections, one start for each."""

    name = "ralphex"
    home = "ralphex"
    source = "https://github.com/umputun/ralphex"
    commit = "c36bfdc"
    made = "ralphex-bin"
    build = ("go", "build", "-o", made, "./cmd/ralphex")
    settings = (
        "--tasks-only (its reviews need a model), -m 12, --session-timeout 1m, --wait 30s,"
        f" --preserve-anthropic-api-key; built in its clone by {' '.join(build)}"
    )
    plans = "docs/plans"

    def prepare(self, root: Path, night: Night) -> None:
        (root / self.plans).mkdir(parents=True)
        (root / self.plans / "shop.md").write_text(plan())
        with (root / ".gitignore").open("a") as ignored:
            ignored.write(".ralphex/\n")

    def start(self, root: Path, night: Night) -> list[str]:
        told = [
            "--tasks-only",
            "-m",
            str(ITERATIONS),
            "--session-timeout",
            "1m",
            "--no-color",
            "--wait",
            "30s",
        ]
        program = str(self.place / self.made)
        return [program, *told, "--preserve-anthropic-api-key", f"{self.plans}/shop.md"]

    def claims(self, root: Path) -> Claims:
        # A plan that is done is moved away.
        found = [
            *root.glob(f"{self.plans}/shop.md"),
            *root.glob(f"{self.plans}/completed/*shop.md"),
        ]
        text = "".join(path.read_text() for path in found)
        ticked = re.findall(r"^- \[x\] (US-\d+)", text, re.MULTILINE | re.IGNORECASE)
        return Claims(done=frozenset(ticked))


class Goal(Supervisor):
    """Claude Code's own `/goal`: one conversation, and a model that reads it as the judge."""

    name = "claude /goal"
    settings = (
        "claude -p '/goal …', --max-budget-usd where a night has money; --continue after a kill"
    )

    @property
    def version(self) -> str:
        return CLIS["claude"].version

    def prepare(self, root: Path, night: Night) -> None:
        (root / "prd.json").write_text(prd())

    def start(self, root: Path, night: Night) -> list[str]:
        return self._claude(night, f"/goal {GOAL}. Commit all changes.")

    def go_on(self, root: Path, night: Night) -> list[str]:
        return [*self._claude(night, f"Go on: {GOAL}"), "--continue"]

    def _claude(self, night: Night, prompt: str) -> list[str]:
        money = ["--max-budget-usd", str(night.max_cost_usd)] if night.max_cost_usd else []
        return ["claude", "-p", prompt, "--dangerously-skip-permissions", *money]


SUPERVISORS: tuple[type[Supervisor], ...] = (
    Ralph,
    BareLoop,
    Snarktank,
    Frankbria,
    ContinuousClaude,
    Ralphex,
    Goal,
)


def _marked_in(path: Path) -> frozenset[str]:
    try:
        stories = json.loads(path.read_text())["userStories"]
    except (OSError, ValueError, KeyError):
        return frozenset()
    known = {task.id for task in TASKS}
    return frozenset(it["id"] for it in stories if it.get("passes") is True and it["id"] in known)


def _said(*command: str, cwd: Path | None = None) -> str:
    ended = subprocess.run(
        command,
        cwd=cwd,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=60,
        check=False,
    )
    return ended.stdout.strip()
