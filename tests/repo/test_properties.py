"""Whatever is done to a work tree: what is measured, and what setting aside gives back."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ralphloop.repo.set_aside import set_aside
from tests.repo.sandbox import Sandbox
from tests.repo.steps import EDITS, IGNORING, do

Step = tuple[str, str, str]
MEASURE = st.just(("measure", "", ""))


@settings(max_examples=150)
@given(st.lists(EDITS | IGNORING | MEASURE, min_size=1, max_size=12))
@example([("write", "a", "1\n"), ("measure", "", ""), ("link", "d.log", "a")])
def test_a_snapshot_is_what_git_would_add(steps: list[Step]) -> None:
    """Files, directories and links in each other's place, ignore rules that come and go."""
    with tempfile.TemporaryDirectory() as place:
        box = Sandbox(Path(place) / "project")
        measure = box.snapshotter()
        for step in steps:
            do(box, *step)
            if step[0] == "measure":
                measure.tree()
        assert measure.tree().tree == _added_by_git(box)


@settings(max_examples=15)
@given(st.lists(EDITS, max_size=5), st.lists(EDITS, min_size=1, max_size=8))
@example([], [("write", "a", "1\n"), ("git", "add", ""), ("remove", "a", "")])
@example(
    [],
    [("write", "a", "1\n"), ("git", "add", ""), ("remove", "a", ""), ("git", "commit", "")],
)
def test_setting_aside_and_bringing_back_is_a_round_trip(
    before: list[Step], story: list[Step]
) -> None:
    """Whatever a story did, the tree is as at its start, and one command brings all of it back."""
    with tempfile.TemporaryDirectory() as place:
        box = Sandbox(Path(place) / "project")
        box.write("base")
        for step in before:
            do(box, *step)
        box.commit("start")
        measure = box.snapshotter()
        start = measure.tree()
        for step in story:
            do(box, *step)
        messy = measure.tree()
        done = set_aside(box.repository(), measure, run="r", number=1, story_id="s", start=start)
        assert (done.problem, done.left) == ("", ())
        assert measure.tree().tree == start.tree
        assert box.git("status", "--porcelain") == ""
        if done.ref:
            subprocess.run(
                ["git", "cherry-pick", "--no-commit", done.ref],
                cwd=box.root,
                check=True,
                capture_output=True,
            )
        assert measure.tree().tree == messy.tree


def _added_by_git(box: Sandbox) -> str:
    """The tree of everything, made by git with an index of its own that knows HEAD."""
    index = box.root.parent / "index"
    env = {**os.environ, "GIT_INDEX_FILE": str(index)}

    def git(*args: str) -> str:
        done = subprocess.run(
            ["git", *args], cwd=box.root, env=env, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    if box.git("rev-parse", "-q", "--verify", "HEAD", check=False):
        git("read-tree", "HEAD")
    git("add", "-A")
    return git("write-tree")
