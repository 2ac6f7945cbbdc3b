"""The simulation of twenty stories, played by the real program; its numbers are `ralph stats`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.learning.support import git

SIMULATION = Path(__file__).parents[2] / "benchmarks" / "bench_learning_effect.py"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def simulated(directory: Path, *flags: str) -> tuple[str, dict[str, Any]]:
    """Play it; what it printed, and `ralph stats --json` of the project afterwards."""
    ralph = [sys.executable, "-m", "ralphloop"]
    command = [sys.executable, str(SIMULATION), str(directory), *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stderr
    shown = subprocess.run(
        [*ralph, "stats", "--json"], cwd=directory, capture_output=True, text=True, check=True
    )
    numbers: dict[str, Any] = json.loads(shown.stdout)
    return done.stdout + done.stderr, numbers


def shown_by_skills(root: Path) -> Iterator[tuple[str, str]]:
    """Each skill's area with the subject of a commit that it gives as an example."""
    for skill in root.glob(".claude/skills/*-learned/SKILL.md"):
        area = skill.parent.name.removesuffix("-learned")
        for commit in re.findall(r"`git show (\w+)`", skill.read_text()):
            yield area, git(root, "log", "-1", "--format=%s", commit)


def test_PRD_metrics_on_the_simulation(tmp_path: Path) -> None:
    """At least 80 % captured, 3 skills and 10 % fewer tokens, told within an interval."""
    said, found = simulated(tmp_path / "sim")
    assert found["simulated"] is True
    assert "simulation" in said.lower()
    assert found["stories"] == {"passed": 45}
    assert 0.8 <= found["stories_captured"] / found["stories_ended"] < 1
    assert len(found["skills"]) >= 3
    effect = found["effect"]
    assert effect["n_with"] + effect["n_without"] < 45  # early stories, and pages, take no part
    assert effect["tokens"]["high"] <= -0.10
    assert effect["attempts"]["high"] < 0 < effect["first"]["low"]
    # What is true: one attempt instead of two, but for every seventh story.
    assert effect["attempts"]["low"] <= -6 / 7 <= effect["attempts"]["high"]
    assert "fewer) tokens" in said
    assert found["prompt_tokens_most"] <= found["prompt_budget"]
    assert found["runaways"] == 0
    assert git(tmp_path / "sim", "status", "--short") == ""
    examples = list(shown_by_skills(tmp_path / "sim"))
    assert len(examples) >= 9
    assert all(subject.endswith(f" to the {area}") for area, subject in examples)
    skill = (tmp_path / "sim/.claude/skills/api-learned/SKILL.md").read_text()
    assert "## Examples\n\n`src/api/" in skill
    assert "\n    +feature_" in skill
    assert git(tmp_path / "sim", "log", "-1", "--format=%s") == "Learned from this run"


def test_the_null_simulation_shows_no_effect(tmp_path: Path) -> None:
    """An agent that ignores what it is given gains nothing, and the numbers say so."""
    said, found = simulated(tmp_path / "null", "--null")
    assert found["stories"] == {"passed": 45}
    effect = found["effect"]
    assert effect["n_without"] >= 5
    for what in ("first", "attempts", "tokens", "cost"):
        assert effect[what]["low"] <= 0 <= effect[what]["high"]
    assert "no effect seen" in said
