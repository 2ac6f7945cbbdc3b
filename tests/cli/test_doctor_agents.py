"""`ralph doctor --agents`: what is installed, logged in, and which limits hold."""

from __future__ import annotations

import json
from pathlib import Path

from tests.loop.projects import sandbox


def test_every_agent_is_listed_with_what_holds(tmp_path: Path) -> None:
    """Those on PATH with their version, the others with how to install them; limits by reader."""
    box = sandbox(tmp_path, "done()", checks=[["true"]])
    programs = tmp_path / "bin"
    programs.mkdir()
    aider = programs / "aider"
    aider.write_text("#!/bin/sh\necho aider 0.86.2\n")
    aider.chmod(0o755)
    box.env["PATH"] = f"{programs}:/usr/bin:/bin"
    shown = box.ralph("doctor", "--agents")
    assert shown.code == 0, shown.text
    told = {
        one["name"]: one
        for one in json.loads(box.ralph("doctor", "--agents", "--json").out)["agents"]
    }
    assert {
        "claude",
        "codex",
        "gemini",
        "opencode",
        "qwen",
        "copilot",
        "droid",
        "goose",
    } <= told.keys()
    assert told["aider"]["installed"] == "aider 0.86.2"
    assert told["aider"]["limits"].startswith("time and starts only")
    assert told["codex"]["limits"] == "money and tokens, also inside a start"
    assert "estimate" in told["copilot"]["limits"]
    assert told["cn"]["installed"] == ""
    assert "limits that hold" in shown.text
    assert "npm install -g" in shown.text


def test_a_limit_of_money_is_doubted_for_an_agent_that_reports_nothing(tmp_path: Path) -> None:
    """A shipped agent in plain text cannot be held to `max_cost_usd`, and doctor says so."""
    box = sandbox(tmp_path, "done()", checks=[["true"]], limits="max_cost_usd = 5.0")
    settings = box.root / "ralph.toml"
    settings.write_text(settings.read_text().replace('"command"', '"aider"', 1))
    said = " ".join(box.ralph("doctor").text.split())
    assert "max_cost_usd cannot be kept: plain text names no price" in said


def test_what_the_project_declares_is_not_started_by_looking(tmp_path: Path) -> None:
    """Nobody has said yes to it yet: it is listed, and that it was not started."""
    box = sandbox(tmp_path, "done()", checks=[["true"]])
    spy = tmp_path / "spy"
    program = box.root / "tool"
    program.write_text(f"#!/bin/sh\ntouch {spy}\necho 1.0\n")
    program.chmod(0o755)
    (box.root / "agents.d").mkdir()
    declared = 'name = "mine"\nprogram = "./tool"\nstart = []\n[safety]\nmoderate = []\n'
    (box.root / "agents.d" / "mine.toml").write_text(declared)
    told = json.loads(box.ralph("doctor", "--agents", "--json").out)["agents"]
    [mine] = [one for one in told if one["name"] == "mine"]
    assert "not started: the project names it" in mine["installed"]
    assert not spy.exists()


def test_a_login_that_is_missing_is_said_with_its_fix(tmp_path: Path) -> None:
    """Beside the version, not in its place; what cannot be asked for nothing is said to be so."""
    box = sandbox(tmp_path, "done()", checks=[["true"]])
    programs = tmp_path / "bin"
    programs.mkdir()
    made = {
        "codex": '[ "$1" = --version ] && echo 0.166.0',
        "copilot": "echo 1.0",
        "droid": "echo 0.215.0",
    }
    for name, does in made.items():
        (programs / name).write_text(f"#!/bin/sh\n{does}\n")
        (programs / name).chmod(0o755)
    box.env |= {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(tmp_path / "home")}
    shown = " ".join(box.ralph("doctor", "--agents").out.split())
    assert "codex codex 0.166.0 codex is not logged in: run `codex login`" in shown
    words = "whether it is logged in is not known before a start: `ralph run --probe`"
    assert f"copilot copilot 1.0 {words}" in shown
    life = "how long its login lasts is not known"
    assert life not in shown
    login = tmp_path / "home" / ".factory" / "auth.encrypted"
    login.parent.mkdir(parents=True)
    login.write_text("x")
    assert life in " ".join(box.ralph("doctor", "--agents").out.split())
