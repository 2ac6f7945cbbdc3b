"""Random things an agent may do to a work tree."""

from __future__ import annotations

import shutil
from pathlib import Path

from hypothesis import strategies as st

from tests.repo.sandbox import Sandbox

PATHS = ("a", "a/b", "a/b/c", "d.log", "d/e.log", "link", "ü\n")
EDITS = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(PATHS), st.sampled_from(["1\n", "2\r\n", ""])),
    st.tuples(st.just("remove"), st.sampled_from(PATHS), st.just("")),
    st.tuples(st.just("link"), st.sampled_from(PATHS), st.sampled_from(["a", "nowhere"])),
    st.tuples(st.just("git"), st.sampled_from(["commit", "add", "reset"]), st.just("")),
)
IGNORING = st.one_of(
    st.tuples(st.just("ignore"), st.just(".gitignore"), st.sampled_from(["*.log\n", "", "a\n"])),
    st.tuples(st.just("git"), st.just("force"), st.just("")),
)


def do(box: Sandbox, action: str, name: str, value: str) -> None:
    """Do one step; what git refuses is not done."""
    if action == "write":
        _clear_the_way(box.root / name)
        box.write(name, value)
    elif action == "link":
        _clear_the_way(box.root / name)
        (box.root / name).parent.mkdir(parents=True, exist_ok=True)
        (box.root / name).symlink_to(value)
    elif action == "remove":
        _remove(box.root / name)
    elif action == "ignore":
        box.write(name, value)
    elif action == "git":
        commands = {
            "commit": ("commit", "-q", "--allow-empty", "-m", "x"),
            "add": ("add", "-A"),
            "reset": ("reset", "-q"),
            "force": ("add", "-f", "--", "*.log"),
        }
        box.git(*commands[name], check=False)


def _clear_the_way(target: Path) -> None:
    """Whatever stands where a file or its directory should be goes."""
    for parent in (*reversed(target.parents), target):
        if parent.is_symlink() or parent.is_file() or (parent == target and parent.exists()):
            _remove(parent)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.parent.is_dir() and not any(parent.is_symlink() for parent in path.parents):
        path.unlink(missing_ok=True)
