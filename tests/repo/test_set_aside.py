"""Setting a story aside: saved whole, cleaned exactly, brought back by one command."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import pytest

from ralphloop.repo import set_aside as module
from ralphloop.repo.set_aside import SetAside, ref_name, set_aside
from ralphloop.repo.snapshot import Snapshot, Snapshotter
from tests.repo.sandbox import Sandbox


def _aside(box: Sandbox, measure: Snapshotter, start: Snapshot, **changes: Any) -> SetAside:
    values: dict[str, Any] = {"run": "r1", "number": 4, "story_id": "US-2", "start": start}
    return set_aside(box.repository(), measure, **{**values, **changes})


def _messy_work(box: Sandbox) -> None:
    """Every kind of change an agent can leave behind."""
    box.write("src/app.py", "half done\n")
    box.write("src/deep/er/new.py", "new\n")
    box.remove("old.py")
    box.write("staged.py", "staged\n")
    box.git("add", "staged.py")
    (box.root / "link").symlink_to("src/app.py")
    (box.root / "run.sh").chmod(0o755)


@pytest.fixture
def begun(box: Sandbox) -> tuple[Sandbox, Snapshotter, Snapshot]:
    """A repository at the moment a story starts."""
    box.write("old.py", "old\n")
    box.write("run.sh", "#!/bin/sh\n")
    box.write(".gitignore", "ignored/\n")
    box.commit("second")
    measure = box.snapshotter()
    return box, measure, measure.tree()


def _content(box: Sandbox) -> dict[str, bytes | str]:
    """Everything in the work tree but git's and our own."""
    found: dict[str, bytes | str] = {}
    for path in sorted(box.root.rglob("*")):
        name = str(path.relative_to(box.root))
        if name.startswith((".git/", ".ralph")) or name == ".git" or path.is_dir():
            continue
        found[name] = str(path.readlink()) if path.is_symlink() else path.read_bytes()
    return found


def test_leftovers_are_saved_cleaned_and_brought_back(
    begun: tuple[Sandbox, Snapshotter, Snapshot],
) -> None:
    """The round trip: the tree is as at the start, and one command brings all of it back."""
    box, measure, start = begun
    clean = _content(box)
    _messy_work(box)
    box.write("ignored/cache.bin", "stays\n")
    messy = _content(box)
    done = _aside(box, measure, start)
    assert not done.problem
    assert done.ref == "refs/ralph/set-aside/r1/4"
    assert done.left == ()
    assert _content(box) == {**clean, "ignored/cache.bin": b"stays\n"}
    assert not (box.root / "src" / "deep").exists()
    assert box.git("status", "--porcelain") == ""
    assert box.git("rev-parse", "HEAD") == start.head
    assert measure.tree().tree == start.tree
    subprocess.run(
        ["git", "cherry-pick", "--no-commit", done.ref],
        cwd=box.root,
        check=True,
        capture_output=True,
    )
    assert _content(box) == messy


def test_saving_does_not_touch_work_tree_index_branch_or_stash(
    begun: tuple[Sandbox, Snapshotter, Snapshot],
) -> None:
    """With a tree that was dirty when the run began, saving is all that happens."""
    box, measure, start = begun
    box.write("src/app.py", "stashed\n")
    box.git("stash")
    _messy_work(box)
    before = (
        _content(box),
        box.git("status", "--porcelain"),
        box.git("rev-parse", "HEAD", "stash@{0}"),
    )
    done = _aside(box, measure, start, dirty_at_start=True)
    assert done.problem
    assert done.problem == "the work tree was dirty when the run began"
    after = (
        _content(box),
        box.git("status", "--porcelain"),
        box.git("rev-parse", "HEAD", "stash@{0}"),
    )
    assert after == before
    assert box.git("show", f"{done.ref}:src/deep/er/new.py") == "new"


def test_a_persons_own_dirt_is_not_saved_with_the_story(
    begun: tuple[Sandbox, Snapshotter, Snapshot],
) -> None:
    """What was dirty before the story began is not part of its leftovers."""
    box, measure, _ = begun
    box.write("notes.txt", "a person's\n")
    start = measure.tree()
    box.write("agent.py")
    done = _aside(box, measure, start, dirty_at_start=True)
    assert box.git("diff-tree", "-r", "--name-only", "--no-commit-id", done.ref) == "agent.py"


def test_what_the_agent_committed_is_undone_by_an_ordinary_commit(
    begun: tuple[Sandbox, Snapshotter, Snapshot],
) -> None:
    """History is kept: the agent's commits stay, one more commit takes the content back."""
    box, measure, start = begun
    clean = _content(box)
    box.write("src/app.py", "committed\n")
    box.write("added.py")
    box.remove("old.py")
    theirs = box.commit("the agent's own")
    box.write("src/app.py", "and then dirty\n")
    messy = _content(box)
    done = _aside(box, measure, start)
    assert not done.problem
    assert _content(box) == clean
    assert box.git("status", "--porcelain") == ""
    assert box.git("rev-parse", "HEAD^") == theirs
    assert box.git("rev-parse", "HEAD^{tree}") == start.tree
    assert box.git("log", "-1", "--format=%s") == "US-2: set aside, back to its start"
    trailer = box.git("log", "-1", "--format=%(trailers:key=Ralph-Set-Aside,valueonly)")
    assert trailer.strip() == done.ref
    subprocess.run(
        ["git", "cherry-pick", "--no-commit", done.ref],
        cwd=box.root,
        check=True,
        capture_output=True,
    )
    assert _content(box) == messy


def test_nothing_left_behind_needs_no_ref(begun: tuple[Sandbox, Snapshotter, Snapshot]) -> None:
    """A story that changed nothing is set aside without a trace."""
    box, measure, start = begun
    assert _aside(box, measure, start) == SetAside()
    assert box.git("for-each-ref", "refs/ralph") == ""


def test_later_work_of_other_stories_survives_bringing_it_back(
    begun: tuple[Sandbox, Snapshotter, Snapshot],
) -> None:
    """The saved commit is the story's own change, not a copy of the whole tree."""
    box, measure, start = begun
    box.write("mine.py")
    done = _aside(box, measure, start)
    box.write("src/app.py", "another story\n")
    box.commit("another story")
    subprocess.run(
        ["git", "cherry-pick", "--no-commit", done.ref],
        cwd=box.root,
        check=True,
        capture_output=True,
    )
    assert box.read("src/app.py") == "another story\n"
    assert box.read("mine.py") == "content\n"


def test_doing_it_again_after_a_crash_ends_the_same(
    begun: tuple[Sandbox, Snapshotter, Snapshot], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between saving and restoring: the saved commit is kept, the rest is done."""
    box, measure, start = begun
    clean = _content(box)
    _messy_work(box)
    with monkeypatch.context() as patch:
        patch.setattr(module.Aside, "restore", _crash)
        with pytest.raises(KeyboardInterrupt):
            _aside(box, measure, start)
    saved = box.git("rev-parse", ref_name("r1", 4))
    box.remove("link")  # half of the restoring was done
    box.write("unsaved.py", "somebody's new work\n")
    done = _aside(box, box.snapshotter(), start)
    assert box.git("rev-parse", done.ref) == saved
    assert not done.problem
    assert _content(box) == {**clean, "unsaved.py": b"somebody's new work\n"}


def _crash(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_repository_without_commits_can_be_cleaned(unborn: Sandbox) -> None:
    """Before the first commit the saved commit is a root of its own."""
    measure = unborn.snapshotter()
    start = measure.tree()
    unborn.write("a.py", "x\n")
    unborn.git("add", "a.py")
    done = _aside(unborn, measure, start)
    assert not done.problem
    assert not (unborn.root / "a.py").exists()
    assert unborn.git("status", "--porcelain") == ""
    assert unborn.git("show", f"{done.ref}:a.py") == "x"


def test_our_own_files_are_neither_saved_nor_restored(
    begun: tuple[Sandbox, Snapshotter, Snapshot],
) -> None:
    """Progress entries written while the story ran stay."""
    box, measure, start = begun
    box.write("progress.txt", "entry\n")
    box.write("agent.py")
    _aside(box, measure, start)
    assert box.read("progress.txt") == "entry\n"
    assert not (box.root / "agent.py").exists()


@pytest.mark.parametrize("name", [b"*", b"-rf", b"new\nline", b"\xff\xfe", b":(top)x", b'q"uote'])
def test_any_file_name_is_saved_and_removed(
    begun: tuple[Sandbox, Snapshotter, Snapshot], name: bytes
) -> None:
    """Only the very file is touched, whatever it is called."""
    box, measure, start = begun
    clean = _content(box)
    (box.root / os.fsdecode(name)).write_bytes(b"x")
    done = _aside(box, measure, start)
    assert _content(box) == clean
    assert os.fsdecode(name) in box.git("ls-tree", "-z", "--name-only", done.ref).split("\0")


def test_a_directory_that_became_a_link_is_not_followed(
    begun: tuple[Sandbox, Snapshotter, Snapshot],
) -> None:
    """Nothing outside of the repository is deleted or overwritten through a symbolic link."""
    box, measure, start = begun
    clean = _content(box)
    outside = box.root.parent / "outside"
    outside.mkdir()
    (outside / "app.py").write_text("precious\n")
    box.remove("src/app.py")
    (box.root / "src").rmdir()
    (box.root / "src").symlink_to(outside)
    done = _aside(box, measure, start)
    assert not done.problem
    assert _content(box) == clean
    assert (outside / "app.py").read_text() == "precious\n"


def test_what_cannot_be_saved_is_left_and_said(
    begun: tuple[Sandbox, Snapshotter, Snapshot], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file too large to save and a repository inside stay where they are, with the reason."""
    box, measure, start = begun
    monkeypatch.setattr(module, "LARGEST_SAVED_FILE", 6_000_000)
    os.truncate(box.write("huge.bin", b""), 7_000_000)
    os.truncate(box.write("large.bin", b""), 5_500_000)
    nested = Sandbox(box.root / "nested")
    nested.write("x.py")
    nested.commit("inside")
    box.write("agent.py")
    done = _aside(box, measure, start)
    assert not done.problem
    assert done.left == ("huge.bin (too large to save)", "nested (a repository of its own)")
    assert (box.root / "huge.bin").exists()
    assert (nested.root / "x.py").exists()
    assert not (box.root / "large.bin").exists()
    assert box.git("cat-file", "-s", f"{done.ref}:large.bin") == "5500000"


def test_content_that_was_never_kept_is_not_overwritten(box: Sandbox) -> None:
    """A large file known only by size and time at the start cannot be put back, so it stays."""
    large = box.write("data.bin", b"")
    os.truncate(large, 6_000_000)
    measure = box.snapshotter()
    start = measure.tree()
    os.truncate(large, 6_500_000)
    done = _aside(box, measure, start)
    assert done.left == ("data.bin (its earlier content was not kept)",)
    assert large.stat().st_size == 6_500_000


def test_another_branch_or_an_unfinished_merge_is_not_cleaned(
    begun: tuple[Sandbox, Snapshotter, Snapshot],
) -> None:
    """Where the repository stands somewhere else by now, saving is all that is safe."""
    box, measure, start = begun
    box.git("switch", "-q", "-c", "elsewhere")
    box.write("agent.py")
    done = _aside(box, measure, start)
    assert done.problem
    assert done.problem == "the branch is elsewhere now, it was main"
    assert (box.root / "agent.py").exists()
    box.git("switch", "-q", "main")
    box.write(".git/MERGE_HEAD", box.git("rev-parse", "HEAD"))
    assert _aside(box, measure, start, number=5).problem == "a merge is in progress"


def test_a_refusing_hook_leaves_the_restored_files_and_says_so(
    begun: tuple[Sandbox, Snapshotter, Snapshot],
) -> None:
    """If the ordinary commit cannot be made, the content is restored and the reason told."""
    box, measure, start = begun
    box.write("agent.py")
    box.commit("the agent's own")
    box.hook("pre-commit", "echo no; exit 1")
    done = _aside(box, measure, start)
    assert done.problem
    assert "pre-commit hook failed" in done.problem
    assert not (box.root / "agent.py").exists()


def test_signing_is_not_asked_for_when_saving(
    begun: tuple[Sandbox, Snapshotter, Snapshot],
) -> None:
    """The saved commit is bookkeeping: a locked key does not stop it."""
    box, measure, start = begun
    box.git("config", "commit.gpgSign", "true")
    box.git("config", "gpg.program", "/bin/false")
    box.write("agent.py")
    assert not _aside(box, measure, start).problem


@pytest.mark.parametrize("run", ["2026-11-15T22:00:00Z", "../x", "a b", "", "x.lock", "@{1}", "-"])
def test_any_run_id_gives_a_usable_ref(box: Sandbox, run: str) -> None:
    """Refs have rules; run ids need not know them."""
    box.git("check-ref-format", ref_name(run, 1))


def test_a_work_tree_with_line_ending_conversion_round_trips(box: Sandbox) -> None:
    """What was checked out with CRLF is restored with CRLF."""
    box.write(".gitattributes", "*.txt text eol=crlf\n")
    box.write("a.txt", "one\r\ntwo\r\n")
    box.commit("crlf")
    measure = box.snapshotter()
    start = measure.tree()
    box.write("a.txt", "three\r\n")
    _aside(box, measure, start)
    assert (box.root / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
    assert box.git("status", "--porcelain") == ""
