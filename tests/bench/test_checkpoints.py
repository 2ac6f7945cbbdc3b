"""Replayed tasks: a checkpoint that cannot be played is told, and the others are."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks.checkpoints import __main__ as command
from benchmarks.checkpoints.play import Reference, Stage
from benchmarks.checkpoints.problems import Problem


def _problem(root: Path, solution: str = "print(1)\n") -> Problem:
    path = root / "problems" / "shop"
    (path / "tests").mkdir(parents=True)
    (path / "solutions" / "checkpoint_1").mkdir(parents=True)
    (path / "solutions" / "checkpoint_1" / "shop.py").write_text(solution)
    (path / "config.yaml").write_text("entry_file: shop\n")
    return Problem(path=path, entry="shop.py", checkpoints=1, assets={}, needs=())


def test_a_checkpoint_without_its_tests_is_told_and_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clone may lack files; every agent has a row that says so."""
    problem = _problem(tmp_path)
    monkeypatch.setattr(command, "interpreter", lambda *_: Path(sys.executable))
    out = tmp_path / "out.json"
    chosen = [str(problem.path.parent), "--all", "--out", str(out)]
    assert command.main(chosen) == 0
    notes = {it["note"] for it in json.loads(out.read_text())["replays"]}
    assert notes == {"its tests are missing in this clone"}


def test_a_solution_that_this_python_cannot_read_is_not_halved(tmp_path: Path) -> None:
    """Some need a newer Python than the one that plays."""
    problem = _problem(tmp_path, "def broken(:\n")
    (problem.path / "tests" / "test_checkpoint_1.py").write_text(
        "def test_it():\n    assert True\n"
    )
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (problem.path / "checkpoint_1.md").write_text("# A shop\n")
    stage = Stage(problem, 1, Path(sys.executable), scratch)
    replay = stage.play("half", Reference(truth=frozenset({"t"}), left_out=frozenset()))
    assert replay.note.startswith("its Python cannot read it: SyntaxError")
