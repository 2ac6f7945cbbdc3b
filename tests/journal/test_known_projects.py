"""Which projects had a run: kept for the user alone, few, and forgotten when they are gone."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest

from ralphloop.journal import known_projects as registry
from ralphloop.journal.known_projects import known_projects, remember_project
from tests.loop.projects import sandbox

DONE = 'write(f"{STORY}.txt"); done()'


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A state directory of its own."""
    return {"XDG_STATE_HOME": str(tmp_path / "state")}


def project(tmp_path: Path, name: str) -> Path:
    """A directory with a journal."""
    root = tmp_path / name
    (root / ".ralph").mkdir(parents=True)
    (root / ".ralph" / "journal.db").touch()
    return root


def roots(env: dict[str, str]) -> list[str]:
    """The names of the directories that are known."""
    return [Path(known.root).name for known in known_projects(env)]


def test_the_newest_start_comes_first_and_each_project_once(
    tmp_path: Path, env: dict[str, str]
) -> None:
    """A second start of a project is the same project."""
    first, second = project(tmp_path, "first"), project(tmp_path, "second")
    remember_project(first, env, 1.0)
    remember_project(second, env, 2.0)
    assert roots(env) == ["second", "first"]
    remember_project(first, env, 3.0)
    assert roots(env) == ["first", "second"]


def test_nobody_else_reads_it_and_it_says_little(tmp_path: Path, env: dict[str, str]) -> None:
    """A path and a time, for the owner alone."""
    root = project(tmp_path, "shop")
    remember_project(root, env, 1.0)
    (file,) = (tmp_path / "state" / "ralph" / "projects").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text() == f'{{"root":"{root}","at":1.0}}'


def test_what_is_gone_is_not_told_and_forgotten_at_the_next_start(
    tmp_path: Path, env: dict[str, str]
) -> None:
    """A directory that was removed, and a file that says nothing."""
    gone, there = project(tmp_path, "gone"), project(tmp_path, "there")
    remember_project(gone, env, 1.0)
    folder = tmp_path / "state" / "ralph" / "projects"
    for name, text in {"a": "{", "b": '{"root":"relative","at":1}', "c": '["x"]'}.items():
        (folder / f"{name}.json").write_text(text)
    shutil.rmtree(gone)
    assert roots(env) == []
    remember_project(there, env, 2.0)
    assert roots(env) == ["there"]
    assert len(list(folder.iterdir())) == 1


def test_there_are_only_so_many(
    tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest are forgotten first."""
    monkeypatch.setattr(registry, "MOST_PROJECTS", 3)
    for number in range(5):
        remember_project(project(tmp_path, f"p{number}"), env, float(number))
    assert roots(env) == ["p4", "p3", "p2"]
    assert len(list((tmp_path / "state" / "ralph" / "projects").iterdir())) == 3


def test_without_a_place_for_it_nothing_is_kept(tmp_path: Path) -> None:
    """No home, or one that is a file: a run does not notice."""
    root = project(tmp_path, "shop")
    (tmp_path / "file").touch()
    for env in ({}, {"HOME": "relative"}, {"XDG_STATE_HOME": str(tmp_path / "file")}):
        remember_project(root, env, 1.0)
        assert known_projects(env) == []


def test_a_run_makes_its_project_known(tmp_path: Path) -> None:
    """From the state directory that the run was started with."""
    box = sandbox(tmp_path, DONE, stories=1)
    env = {"XDG_STATE_HOME": str(tmp_path / "of-the-run")}
    assert known_projects(env) == []
    assert box.ralph("run", env=env).code == 0
    assert [Path(known.root) for known in known_projects(env)] == [box.root.resolve()]
