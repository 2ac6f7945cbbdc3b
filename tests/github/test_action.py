"""The action in `contrib/action`, with a stand-in for the runner: its variables and its files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.github.hub import REPO, Shop
from tests.loop.projects import Done

ACTION = Path(__file__).parents[2] / "contrib" / "action"


class Runner:
    """What GitHub's runner gives a step, as far as the action reads it."""

    def __init__(self, tmp_path: Path, shop: Shop) -> None:
        self.shop = shop
        self.place = tmp_path / "runner"
        self.place.mkdir()
        for name in ("output", "summary", "event"):
            (self.place / name).write_text("")
        self.env = {
            "GITHUB_REPOSITORY": "owner/shop",
            "GITHUB_OUTPUT": str(self.place / "output"),
            "GITHUB_STEP_SUMMARY": str(self.place / "summary"),
            "GITHUB_EVENT_PATH": str(self.place / "event"),
            "GITHUB_EVENT_NAME": "workflow_dispatch",
            "RUNNER_TEMP": str(self.place),
            "RALPH_COMMENT": "/ralph",
            "RALPH_LABEL": "ralph",
            "RALPH_QUEUE": "",
            "RALPH_MAX_COST": "5",
            "RALPH_MAX_TIME": "10m",
            "RALPH_MAX_ITERATIONS": "5",
            "RALPH_PULL_REQUEST": "open",
        }
        for who, permission in (("bob", "write"), ("eve", "read")):
            path = f"api {REPO}/collaborators/{who}/permission"
            shop.gh.answers[path] = [0, {"permission": permission}, ""]
        shop.gh.save()

    def step(self, name: str, **env: str) -> Done:
        """One step."""
        beside = Path(sys.executable).parent
        path = f"{self.shop.gh.place}:{beside}:{os.environ['PATH']}"
        given = self.shop.box.environment({**self.env, "PATH": path, **env})
        done = subprocess.run(
            [sys.executable, str(ACTION / "ralph_action.py"), name],
            cwd=self.shop.box.root,
            env=given,
            capture_output=True,
            text=True,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def event(self, name: str, **fields: Any) -> dict[str, str]:
        """What happened."""
        (self.place / "event").write_text(json.dumps(fields))
        return {"GITHUB_EVENT_NAME": name}

    @property
    def outputs(self) -> dict[str, str]:
        """What the steps have set."""
        lines = (self.place / "output").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """A repository, and a runner that works in it."""
    return Runner(tmp_path, Shop(tmp_path))


def labelled(by: str, name: str = "ralph") -> dict[str, Any]:
    """An issue gets a label."""
    return {"action": "labeled", "label": {"name": name}, "sender": {"login": by}}


def commented(by: str, body: str) -> dict[str, Any]:
    """Somebody comments; `sender` may be anybody."""
    who = {"login": by}
    return {
        "action": "created",
        "comment": {"body": body, "user": who, "author_association": "OWNER"},
        "sender": who,
    }


@pytest.mark.attack
@pytest.mark.parametrize(
    ("name", "event", "goes"),
    [
        ("schedule", {}, True),
        ("issues", labelled("bob"), True),
        ("issues", labelled("bob", "bug"), False),
        ("issues", labelled("eve"), False),
        ("issues", {**labelled("bob"), "action": "opened"}, False),
        ("issue_comment", commented("bob", "/ralph go"), True),
        ("issue_comment", commented("bob", "please /ralph"), False),
        ("issue_comment", commented("eve", "/ralph go"), False),
        ("issue_comment", commented("../bob", "/ralph"), False),
        ("issue_comment", commented("bob", "/ralph-x $(touch pwned)"), False),
        ("pull_request_target", labelled("bob"), False),
    ],
)
def test_who_and_what_starts_it(
    runner: Runner, name: str, event: dict[str, Any], goes: bool
) -> None:
    """A schedule, a label or a comment of somebody who may write; nothing else."""
    done = runner.step("gate", **runner.event(name, **event))
    assert done.code == 0, done.text
    assert runner.outputs["go"] == ("yes" if goes else "no")
    assert ("::notice::ralph does not start" in done.out) is not goes


def test_a_run_with_budget_pin_and_what_is_left_behind(runner: Runner) -> None:
    """The pin is the hash that was looked at; report, journal, summary and SARIF are there."""
    shown = runner.shop.box.ralph("trust", "--show")
    pin = re.findall(r"[0-9a-f]{16,64}", shown.text)[-1]
    wrong = runner.step("run", RALPH_PIN="0" * len(pin), RALPH_TRUST="")
    assert wrong.code == 77, wrong.text
    done = runner.step("run", RALPH_PIN=pin, RALPH_TRUST="")
    assert done.code == 0, done.text
    assert runner.outputs["exit-code"] == "0"
    assert "work" in runner.shop.heads()
    told = runner.step("tell")
    assert told.code == 0, told.text
    place = Path(runner.outputs["directory"])
    assert {path.name for path in place.iterdir()} == {
        "journal.db", "report.html", "report.json", "report.md", "report.sarif",
    }  # fmt: skip
    assert "US-1" in (runner.place / "summary").read_text()
    sarif = json.loads((place / "report.sarif").read_text())
    assert (sarif["version"], sarif["runs"][0]["tool"]["driver"]["name"]) == ("2.1.0", "ralph")


def test_what_waits_is_an_annotation(tmp_path: Path) -> None:
    """At its story in the list; words of an agent cannot end the line and begin another command."""
    agent = "status('BLOCKED', recommendation='Which one? %0A::set-output name=x::y, ::error::z')"
    runner = Runner(tmp_path, Shop(tmp_path, agent))
    done = runner.step("run", RALPH_PIN="0" * 64, RALPH_PULL_REQUEST="none")
    assert done.code == 77
    runner.shop.night()
    told = runner.step("tell")
    (line,) = [one for one in told.out.splitlines() if one.startswith("::")]
    assert line.startswith("::warning file=prd.json,line=")
    assert "Which one? %250A::set-output" in line


def test_no_pin_no_run(runner: Runner) -> None:
    """Without a hash nothing is started."""
    for pin in ("", "1", "yes; rm -rf /"):
        assert runner.step("run", RALPH_PIN=pin).code == 64
    assert runner.shop.box.starts == 0


def test_inputs_are_variables_and_never_part_of_a_command() -> None:
    """No `${{ … }}` stands in a line that a shell runs; every script of a step is there."""
    text = (ACTION / "action.yml").read_text()
    lines = [line for line in text.splitlines() if line.strip().startswith("run:")]
    assert len(lines) == 4
    assert not any("${{" in line for line in lines)
    for word in re.findall(r"ralph_action.py\" (\w+)", text):
        assert f"def {word}():" in (ACTION / "ralph_action.py").read_text()
