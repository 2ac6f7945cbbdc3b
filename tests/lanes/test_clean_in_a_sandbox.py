"""Cleaning lanes where git runs in a sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lanes.yards import stories_of, yard

pytestmark = pytest.mark.tool("bwrap")


def test_the_last_lane_can_be_cleaned_too(tmp_path: Path) -> None:
    """With it goes the directory in which git keeps its work trees, which the sandbox knew."""
    agent = 'write(f"{STORY}.txt", STORY)\ndone()\n'
    toml = f'[sandbox]\nmode = "on"\nwrite = ["{tmp_path / "state"}"]\n'
    box = yard(tmp_path, agent, stories=stories_of("a"), toml=toml)
    done = box.run("--lanes", "1")
    assert done.code == 0, done.text
    cleaned = box.ralph("lanes", "clean")
    assert cleaned.code == 0, cleaned.text
    assert not (tmp_path / "box" / "project.lanes").exists()
    assert box.git("branch", "--list", "ralph*") == ""
