"""Where programs of ours come from, and which commands of the settings take something from the tree."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ralphloop.errors import RepositoryError
from ralphloop.loop.commands import takes_from_tree
from ralphloop.proc import programs


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A work tree, and nothing else that is distrusted."""
    root = tmp_path / "tree"
    root.mkdir()
    monkeypatch.setattr(programs._Ground, "places", {})
    monkeypatch.setattr(programs._Ground, "is_known", True)
    monkeypatch.setattr(programs._Ground, "confines", False)
    programs.distrust([root])
    return root


def tool(path: Path) -> Path:
    """A program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_next_on_path_is_taken(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program of the tree, a relative place and a link into the tree are passed over."""
    tool(tree / "bin/git")
    honest = tool(tmp_path / "usr/git")
    (tmp_path / "linked").symlink_to(tree / "bin")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/git").symlink_to(tree / "bin/git")
    (tree / "usr").symlink_to(tmp_path / "usr")  # which the agent could exchange
    (tmp_path / "through").symlink_to(tree / "usr")
    ways = [tree / "bin", "bin", "", tmp_path / "linked", tmp_path / "mine", tmp_path / "through"]
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, [*ways, honest.parent])))
    assert programs.program("git") == str(honest)
    assert programs.trusted_path() == os.pathsep.join(map(str, [tmp_path / "mine", honest.parent]))


def test_a_program_that_is_only_in_the_tree_is_refused(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said where it lies and what to do; one that is nowhere is simply not there."""
    tool(tree / "bin/git")
    monkeypatch.setenv("PATH", str(tree / "bin"))
    with pytest.raises(RepositoryError, match="where an agent could have put it") as refused:
        programs.program("git")
    assert "Install git outside of the work tree" in refused.value.next_step
    with pytest.raises(FileNotFoundError):
        programs.program("gh")


def test_modules_of_the_tree_are_not_passed_on(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What we start unconfined finds neither programs nor modules there."""
    monkeypatch.setenv("PYTHONPATH", f"{tree}/src{os.pathsep}{tmp_path}/lib")
    assert programs.trusted_environment()["PYTHONPATH"] == f"{tmp_path}/lib"
    monkeypatch.setenv("PYTHONPATH", f"{tree}/src")
    assert "PYTHONPATH" not in programs.own_environment()


INSIDE = [
    ["./tell.sh"], ["sh", "tell.sh"], ["bash", "-c", "./tell.sh"], ["sh", "-c", "$PWD/tell.sh"],
    ["sh", "-c", "cd tools && x"], ["sh", "-c", ". tell.sh"], ["make", "tell"], ["npm", "run", "x"],
    ["python3", "-c", "import json"], ["python3", "-m", "tell"], ["python3", "tell.sh"],
    ["env", "X=1", "make", "tell"], ["nowhere-to-be-found"],
    ["sh", "-c", "$(cat tell)"], ["sh", "-c", "python3 -m json.tool"], ["curl", "--data=tell.sh"],
    ["sh", "-c", "X=$HOME; $X/tell"], ["cat", "tools"],
]  # fmt: skip
OUTSIDE = [
    ["cat"], ["sh", "-c", "cat > /dev/null"], ["curl", "-d", "@-", "https://ntfy.example/x"],
    ["cat", "make it so"], ["env", "X=1", "cat"], ["sh", "-c", "echo done | cat"],
]  # fmt: skip


@pytest.mark.parametrize("argv", INSIDE, ids=" ".join)
def test_what_takes_from_the_tree_runs_inside(
    tree: Path, monkeypatch: pytest.MonkeyPatch, argv: list[str]
) -> None:
    """And so does whatever the words leave open."""
    for name in ("curl", "npm", "make"):
        tool(tree.parent / "usr" / name)
    monkeypatch.setenv("PATH", f"{tree.parent}/usr:/usr/bin:/bin")
    tool(tree / "tell.sh")
    (tree / "tools").mkdir()
    assert takes_from_tree(argv, tree)


@pytest.mark.parametrize("argv", OUTSIDE, ids=" ".join)
def test_what_lies_elsewhere_runs_outside(
    tree: Path, monkeypatch: pytest.MonkeyPatch, argv: list[str]
) -> None:
    """A program of the person's that is given nothing of the tree."""
    tool(tree.parent / "usr/curl")
    monkeypatch.setenv("PATH", f"{tree.parent}/usr:/usr/bin:/bin")
    assert not takes_from_tree(argv, tree)
