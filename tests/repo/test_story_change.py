"""The tree that stands without a story, made of real trees of a real repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ralphloop.repo.story_change import id_of_change, tree_without
from tests.repo.sandbox import Sandbox

TEXT = "".join(f"line {n}\n" for n in range(20))


def files(box: Sandbox, tree: str) -> list[str]:
    """The paths of a tree of ours, with their modes."""
    said = box.snapshotter().git().run("ls-tree", "-r", "--full-tree", tree).decode()
    return [f"{line.split()[0]} {line.partition(chr(9))[2]}" for line in said.splitlines()]


def text(box: Sandbox, tree: str, path: str) -> str:
    """What a tree of ours holds at a path."""
    return box.snapshotter().git().run("cat-file", "blob", f"{tree}:{path}").decode()


@pytest.fixture
def shared(box: Sandbox) -> Sandbox:
    """A repository with a file in which several can work."""
    box.write("shared.txt", TEXT)
    box.commit("begin")
    return box


def test_what_others_did_is_in_it_and_what_the_story_did_is_not(shared: Sandbox) -> None:
    """New, deleted, linked and executable files of others are taken over, none of its own."""
    measure = shared.snapshotter()
    start = measure.tree().tree
    shared.write("own/new.txt")
    left = measure.tree().tree
    shared.write("theirs/new.sh").chmod(0o755)
    (shared.root / "link").symlink_to("shared.txt")
    shared.remove("shared.txt")
    now = measure.tree().tree
    found = files(shared, tree_without(measure, start, left, now))
    assert "100755 theirs/new.sh" in found
    assert "120000 link" in found
    assert not any(path.endswith(("shared.txt", "own/new.txt")) for path in found)


def test_lines_of_both_in_one_file_are_told_apart(shared: Sandbox) -> None:
    """The story's line goes, the other's stays, also where a commit has taken both."""
    measure = shared.snapshotter()
    start = measure.tree().tree
    shared.write("shared.txt", TEXT.replace("line 2\n", "line 2\nmine\n"))
    left = measure.tree().tree
    shared.write("shared.txt", shared.read("shared.txt").replace("line 17", "theirs"))
    shared.commit("both")
    without = tree_without(measure, start, left, measure.tree().tree)
    assert text(shared, without, "shared.txt") == TEXT.replace("line 17", "theirs")


def test_lines_that_cannot_be_told_apart_are_theirs(shared: Sandbox) -> None:
    """A story is never proven by what somebody else wrote."""
    measure = shared.snapshotter()
    start = measure.tree().tree
    shared.write("shared.txt", TEXT.replace("line 2\n", "mine\n"))
    left = measure.tree().tree
    shared.write("shared.txt", TEXT.replace("line 2\n", "theirs\n"))
    now = measure.tree().tree
    assert tree_without(measure, start, left, now) == now


def test_a_file_that_became_a_directory_of_others(shared: Sandbox) -> None:
    """The story deleted the file, others put a directory in its place: that is what stands."""
    measure = shared.snapshotter()
    start = measure.tree().tree
    shared.remove("shared.txt")
    left = measure.tree().tree
    shared.write("shared.txt/inner.txt")
    now = measure.tree().tree
    assert tree_without(measure, start, left, now) == now


def test_without_the_earlier_trees_everything_is_theirs(shared: Sandbox) -> None:
    """Somebody tidied up: nothing can be called the story's own."""
    measure = shared.snapshotter()
    now = measure.tree().tree
    assert tree_without(measure, "0" * 40, now, now) == now


def test_names_that_are_no_text(shared: Sandbox) -> None:
    """Paths are bytes."""
    measure = shared.snapshotter()
    start = measure.tree().tree
    shared.write("own.txt")
    left = measure.tree().tree
    Path(os.fsdecode(os.fsencode(shared.root) + b"/\xff odd,\n")).write_text("x")
    now = measure.tree().tree
    without = tree_without(measure, start, left, now)
    assert [it.path for it in measure.changes(without, now)] == ["own.txt"]


def test_the_same_change_on_another_base_is_known(shared: Sandbox) -> None:
    """Its id is made of its own lines."""
    measure = shared.snapshotter()
    start = measure.tree().tree
    shared.write("shared.txt", TEXT + "mine\n")
    first = id_of_change(measure.git(), start, measure.tree().tree)
    shared.write("shared.txt", "head\n" + TEXT)
    base = measure.tree().tree
    shared.write("shared.txt", "head\n" + TEXT + "mine\n")
    assert first
    assert id_of_change(measure.git(), base, measure.tree().tree) == first
    assert id_of_change(measure.git(), start, measure.tree().tree) != first
    assert id_of_change(measure.git(), start, start) == ""
