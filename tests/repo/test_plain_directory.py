"""Measuring a directory without git."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ralphloop.repo.snapshot import PlainSnapshotter
from ralphloop.repo.work_tree import never_progress
from tests.repo.sandbox import statuses


def _measure(root: Path) -> PlainSnapshotter:
    return PlainSnapshotter(root, root / ".ralph" / "objects", never_progress(also=("prd.json",)))


def _write(root: Path, path: str, content: str = "content\n") -> Path:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content)
    return target


def test_changes_are_seen_without_git(tmp_path: Path) -> None:
    """D11: new, changed and deleted files are progress; the same content is not."""
    _write(tmp_path, "a.py")
    measure = _measure(tmp_path)
    start = measure.tree()
    assert measure.tree() == start
    assert measure.change_counts_and_paths(start, start).changed.count == 0
    _write(tmp_path, "src/deep/b.py")
    _write(tmp_path, "a.py", "other\n")
    changed = measure.tree()
    assert statuses(measure, start, changed) == {"a.py": "M", "src/deep/b.py": "A"}
    (tmp_path / "a.py").unlink()
    assert statuses(measure, changed, measure.tree()) == {"a.py": "D"}


def test_what_cannot_be_verified_is_said(tmp_path: Path) -> None:
    """Without git there are no commits and nothing to bring back."""
    measure = _measure(tmp_path)
    measured = measure.tree()
    assert measured.head is None
    assert measured.branch is None
    assert "no git repository" in measured.notes[0]
    assert measure.commits(measured.head, measure.tree().head).number == 0


def test_our_own_and_generated_files_do_not_count(tmp_path: Path) -> None:
    """Caches and our own files are left out, so that an idle agent makes no progress."""
    _write(tmp_path, "a.py")
    measure = _measure(tmp_path)
    start = measure.tree()
    for path in (
        ".ralph/journal.db",
        "progress.txt",
        ".ralph-session.json",
        "prd.json",
        "node_modules/x/index.js",
        "src/__pycache__/a.pyc",
        ".venv/bin/python",
    ):
        _write(tmp_path, path)
    _write(tmp_path, "target/debug/app")
    assert measure.tree().tree == start.tree


def test_comparing_works_after_a_restart(tmp_path: Path) -> None:
    """What was measured is kept on disk, contents included."""
    _write(tmp_path, "a.py")
    start = _measure(tmp_path).tree()
    _write(tmp_path, "b.py")
    measure = _measure(tmp_path)
    assert measure.change_counts_and_paths(start, measure.tree()).paths == ("b.py",)
    [change] = measure.changes(start.tree, measure.tree().tree)
    assert measure.contents([change.after or ""]) == {change.after: b"content\n"}


def test_what_we_keep_may_be_deleted(tmp_path: Path) -> None:
    """An agent that removes `.ralph` is measured all the same."""
    _write(tmp_path, "a.py")
    measure = _measure(tmp_path)
    start = measure.tree()
    shutil.rmtree(tmp_path / ".ralph")
    assert measure.tree().tree == start.tree


def test_a_change_of_the_same_size_is_seen(tmp_path: Path) -> None:
    """Content counts, not size alone."""
    measure = _measure(tmp_path)
    trees = set()
    for number in range(5):
        _write(tmp_path, "a.py", f"{number}\n")
        trees.add(measure.tree().tree)
    assert len(trees) == 5


def test_links_modes_and_strange_names_are_seen(tmp_path: Path) -> None:
    """A link is its target, a mode is content, a name is any bytes, a pipe is no content."""
    measure = _measure(tmp_path)
    before = measure.tree()
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / os.fsdecode(b"\xff\n")).write_text("x")
    os.mkfifo(tmp_path / "pipe")
    script = _write(tmp_path, "run.sh")
    after = measure.tree()
    assert measure.change_counts_and_paths(before, after).changed.count == 3
    script.chmod(0o755)
    assert measure.change_counts_and_paths(after, measure.tree()).paths == ("run.sh",)


def test_a_large_file_is_known_by_size_and_time(tmp_path: Path) -> None:
    """A file that would take hours to read is not read, yet its change is seen."""
    measure = _measure(tmp_path)
    large = _write(tmp_path, "data.bin")
    os.truncate(large, 1 << 40)
    before = measure.tree()
    os.truncate(large, (1 << 40) + 1)
    assert measure.change_counts_and_paths(before, measure.tree()).paths == ("data.bin",)
