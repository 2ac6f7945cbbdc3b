"""Replayed tasks: a checkpoint that cannot be played is told, and the others are."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from benchmarks.checkpoints import __main__ as command
from benchmarks.checkpoints import problems
from benchmarks.checkpoints.play import Reference, Replay, Stage
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


def test_what_the_same_source_judged_is_not_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that was cut off goes on; rows of another source are played anew."""
    problem = _problem(tmp_path)
    monkeypatch.setattr(command, "interpreter", lambda *_: Path(sys.executable))
    chosen = [str(problem.path.parent), "--all", "--out", str(tmp_path / "out.json")]
    begun = list[str]()
    for code in ("one", "one", "two"):
        monkeypatch.setattr(command, "code_of", lambda _root, code=code: code)
        assert command.main(chosen) == 0
        begun.append(capsys.readouterr().out.partition(",")[0])
    assert begun == ["3 to run", "0 to run", "3 to run"]


def test_the_sample_is_always_the_same() -> None:
    """The old program and the emptied tests are played where there is an old program."""
    options = command._parser().parse_args([])
    problem = Problem(path=Path("code_search"), entry="a.py", checkpoints=5, assets={}, needs=())
    book = command.Book(Path("nowhere.json"), "one")
    asked = command._to_play(problem, options, book)
    first = [it.agent for it in asked if it.checkpoint == 1]
    assert first == ["reference", "table", "half"]
    assert {it.checkpoint for it in asked} == {1, 2}
    assert len(asked) == 3 + 5


def test_a_solution_for_a_newer_python_gets_one_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The usual one is asked first; where nothing reads it, its replay says so."""
    readers = tmp_path / "bin"
    readers.mkdir()
    for name, ends in (("old", 1), ("python3.12", 0)):
        (readers / name).write_text(f"#!/bin/sh\nexit {ends}\n")
        (readers / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(readers))
    problem = _problem(tmp_path)
    assert problems._one_that_reads(problem, "python3.12") == "python3.12"
    assert problems._one_that_reads(problem, "old") == "python3.12"
    (readers / "python3.12").unlink()
    assert problems._one_that_reads(problem, "old") == "old"


class _SlowBook(command.Book):
    """One whose first page takes long to write."""

    is_written = threading.Event()
    is_first = True

    def whole(self) -> dict[str, Any]:
        """What it holds now, said a moment later the first time."""
        told = super().whole()
        if self.is_first:
            self.is_first = False
            self.is_written.wait(0.5)
        return told


def test_no_replay_is_lost_where_two_end_at_once(tmp_path: Path) -> None:
    """What is written last has everything, whoever began to write first."""
    out = tmp_path / "out.json"
    book = _SlowBook(out, "abc")
    first = threading.Thread(
        target=book.add, args=(Replay(problem="a", checkpoint=1, agent="half"),)
    )
    first.start()
    while book.is_first:
        first.join(0.01)
    book.add(Replay(problem="b", checkpoint=1, agent="half"))
    book.is_written.set()
    first.join()
    assert [it["problem"] for it in json.loads(out.read_text())["replays"]] == ["a", "b"]
