"""Nights that earlier versions wrote down are decided the same again.

The journals in `golden/nights` are what version 0.1.0 left of four nights: the demo, one with a
stuck story, one in two lanes with a conflict, and a session's loop.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import RunRalph

NIGHTS = sorted((Path(__file__).parent / "golden" / "nights").glob("*.sql"))


@pytest.mark.parametrize("night", NIGHTS, ids=lambda night: night.stem)
def test_a_night_of_an_earlier_version_is_decided_the_same(
    tmp_path: Path, run_ralph: RunRalph, night: Path
) -> None:
    """Every decision, verdict and grade is as the journal has it."""
    (tmp_path / ".ralph").mkdir()
    with closing(sqlite3.connect(tmp_path / ".ralph" / "journal.db")) as journal:
        journal.executescript(night.read_text())
    (tmp_path / "prd.json").write_text('{"userStories": []}')
    replayed = run_ralph("replay", "--json", cwd=tmp_path)
    told = json.loads(replayed.stdout)
    assert replayed.returncode == 0, replayed.stderr
    assert told["identical"], told


def test_the_nights_are_there() -> None:
    """A night that is missing would be decided the same by nobody."""
    assert [night.stem for night in NIGHTS] == ["demo", "hook", "lanes", "stuck"]
