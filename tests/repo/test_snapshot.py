"""The tree hash of a work tree: what it sees, what it leaves alone, what it costs."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from ralphloop.errors import RepositoryError
from ralphloop.proc import run
from ralphloop.repo import git, snapshot, sorting
from ralphloop.repo.git import Git, printable
from ralphloop.repo.work_tree import never_progress
from tests.repo.sandbox import Sandbox, statuses

MEGABYTE = 1024 * 1024


def test_the_tree_of_a_clean_repository_is_heads_tree(box: Sandbox) -> None:
    """Without changes the snapshot is exactly what HEAD holds."""
    measured = box.snapshotter().tree()
    assert measured.tree == box.git("rev-parse", "HEAD^{tree}")
    assert measured.head == box.git("rev-parse", "HEAD")
    assert measured.branch == "main"
    assert measured.notes == ()


def test_same_content_gives_the_same_tree_and_other_content_another(box: Sandbox) -> None:
    """D04: untracked, modified and deleted files are changes; changing back is the old tree."""
    measure = box.snapshotter()
    start = measure.tree()
    assert measure.tree() == start
    box.write("src/new.py", "x = 1\n")
    box.write("src/app.py", "print('other')\n")
    changed = measure.tree()
    assert statuses(measure, start, changed) == {"src/app.py": "M", "src/new.py": "A"}
    box.remove("src/new.py")
    box.write("src/app.py", "print('hello')\n")
    assert measure.tree().tree == start.tree
    box.remove("src/app.py")
    assert statuses(measure, start, measure.tree()) == {"src/app.py": "D"}


def test_a_new_snapshotter_agrees_with_one_that_ran_all_night(box: Sandbox) -> None:
    """The tree is a matter of content, not of the private index's history."""
    old = box.snapshotter()
    for number in range(5):
        box.write(f"src/part{number}.py", "x\n" * number)
        old.tree()
    box.remove("src/part0.py")
    assert box.snapshotter().tree().tree == old.tree().tree


@pytest.mark.parametrize("content", ["plain\n", "a\r\nb\n", "$Id: x$\n", "ü\n", "a\0b"])
def test_content_is_converted_as_git_does(box: Sandbox, content: str) -> None:
    """What is hashed without asking git is what git would have made of it."""
    box.write(".gitattributes", "* text=auto ident\n")
    box.commit()
    measure = box.snapshotter()
    measure.tree()
    box.write("src/app.py", content)
    box.write("src/new/er.py", content)
    assert measure.tree().tree == box.snapshotter().tree().tree


def _git_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The git commands that are run from now on."""
    calls: list[str] = []
    command = Git.command

    def counted(git: Git, *args: str) -> list[str]:
        calls.append(args[2] if args[0] == "-c" else args[0])
        return command(git, *args)

    monkeypatch.setattr(Git, "command", counted)
    return calls


def test_a_kept_index_is_gone_on_with(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next process measures what changed since, and sees what a new one would see."""
    box.write("src/new.py", "x = 1\n")
    before = box.snapshotter(kept=True).tree()
    box.write("src/other.py", "y = 1\n")
    box.remove("src/new.py")
    calls = _git_calls(monkeypatch)
    measure = box.snapshotter(kept=True)
    calls.clear()  # opening the repository
    after = measure.tree()
    assert calls == ["status", "update-index", "update-index", "write-tree"]
    assert statuses(measure, before, after) == {"src/new.py": "D", "src/other.py": "A"}
    assert after == box.snapshotter().tree()
    assert box.snapshotter(kept=True).tree() == after


def _remove_index(box: Sandbox) -> None:
    (box.store.parent / "git-index-kept").unlink()


def _break_notes(box: Sandbox) -> None:
    (box.store.parent / "git-index-kept.json").write_text("{")


def _change_index(box: Sandbox) -> None:
    index = box.store.parent / "git-index-kept"
    env = {**os.environ, "GIT_INDEX_FILE": str(index)}
    command = ["git", "update-index", "--force-remove", "src/app.py"]
    subprocess.run(command, cwd=box.root, env=env, check=True)


def _ignore_file(box: Sandbox) -> None:
    (box.root / ".git/info/exclude").write_text("new.py\n")


@pytest.mark.parametrize("change", [_remove_index, _break_notes, _change_index, _ignore_file])
def test_a_kept_index_that_is_not_what_was_left_is_made_anew(
    box: Sandbox, change: Callable[[Sandbox], None]
) -> None:
    """Whatever happened to it between two processes: the tree is the one that is there."""
    box.write("new.py", "x = 1\n")
    box.snapshotter(kept=True).tree()
    change(box)
    assert box.snapshotter(kept=True).tree() == box.snapshotter().tree()


def test_committing_the_same_content_does_not_change_the_tree(box: Sandbox) -> None:
    """D03, D08: a commit moves the head; only content moves the tree."""
    measure = box.snapshotter()
    box.write("src/new.py")
    before = measure.tree()
    box.commit("all of it")
    after = measure.tree()
    assert after.tree == before.tree
    assert after.head != before.head
    assert measure.commits(before.head, after.head) == (1, ("all of it",))


def test_dirt_that_was_there_before_is_no_change(box: Sandbox) -> None:
    """D05, D06: an idle agent in a dirty tree changes nothing."""
    box.write("src/app.py", "print('dirty')\n")
    box.write("notes.txt")
    measure = box.snapshotter()
    before = measure.tree()
    assert measure.change_counts_and_paths(before, measure.tree()).changed.count == 0


def test_switching_branches_to_and_fro_ends_in_a_tree_seen_before(box: Sandbox) -> None:
    """D09, D10: alternation is visible as the same two trees."""
    box.git("switch", "-q", "-c", "other")
    box.write("src/app.py", "print('b')\n")
    box.commit("b")
    measure = box.snapshotter()
    seen = []
    for branch in ("main", "other", "main", "other"):
        box.git("switch", "-q", branch)
        seen.append(measure.tree().tree)
    assert seen[:2] == seen[2:]
    assert seen[0] != seen[1]


def test_a_repository_without_commits_is_measured(unborn: Sandbox) -> None:
    """D12: the very first files and the very first commit are seen."""
    measure = unborn.snapshotter()
    start = measure.tree()
    assert start.head is None
    assert start.branch == "main"
    unborn.write("a.py")
    then = measure.tree()
    assert statuses(measure, start, then) == {"a.py": "A"}
    unborn.commit("root")
    last = measure.tree()
    assert last.tree == then.tree
    assert measure.commits(start.head, last.head).number == 1


def test_our_own_files_are_never_progress(box: Sandbox) -> None:
    """D07: journal, views, story file and learned files do not count, even when tracked."""
    own = never_progress(also=("prd.json", ".claude/skills/*-learned/"))
    box.write("prd.json", '{"passes": false}')
    box.write(".ralph/journal.db", "1")
    box.write("progress.txt", "1")
    box.git("add", "-f", "-A")
    box.git("commit", "-q", "-m", "tracked by mistake")
    measure = box.snapshotter(own)
    before = measure.tree()
    for path in (
        "prd.json",
        ".ralph/journal.db",
        ".ralph/transcripts/1.log",
        "progress.txt",
        ".ralph-session.json",
        ".ralph-circuit-state.json",
        ".claude/skills/python-learned/SKILL.md",
    ):
        box.write(path, "changed\n")
    box.commit("agent adds everything")
    assert measure.tree().tree == before.tree
    box.write(".claude/skills/mine/SKILL.md", "a person's own skill\n")
    assert list(statuses(measure, before, measure.tree())) == [".claude/skills/mine/SKILL.md"]


def test_a_project_below_the_root_has_its_own_files_there(box: Sandbox) -> None:
    """In a monorepo `.ralph/` lies in the project, not in the root."""
    store = box.root / "packages" / "api" / ".ralph" / "objects"
    measure = snapshot.Snapshotter(box.repository(), store)
    before = measure.tree()
    box.write("packages/api/progress.txt")
    box.write("packages/api/.ralph-session.json")
    assert measure.tree().tree == before.tree
    box.write("progress.txt", "not ours: another project's\n")
    assert measure.tree().tree != before.tree


def test_lines_are_not_counted_where_a_file_is_too_large_to_be_read(box: Sandbox) -> None:
    """A placeholder has a line of its own; who measures later, in another process, sees it too."""
    measure = box.snapshotter()
    os.truncate(box.write("data.bin"), 6 << 20)
    large = measure.tree().tree
    box.write("data.bin", "small by now\n")
    small = measure.tree().tree
    assert measure.net_lines(large, small) is None
    assert box.snapshotter().net_lines(large, small) is None
    box.write("data.bin", "small by now\nand longer\n")
    other = box.snapshotter()
    assert other.net_lines(small, other.tree().tree) == 1


def test_ignored_files_are_never_progress(box: Sandbox) -> None:
    """A huge ignored directory neither counts nor costs."""
    box.write(".gitignore", "build/\n*.log\n")
    box.commit("ignore")
    measure = box.snapshotter()
    before = measure.tree()
    box.write("build/out.js")
    box.write("x.log")
    assert measure.tree().tree == before.tree


def test_files_that_become_ignored_stop_counting(box: Sandbox) -> None:
    """A build directory taken in as untracked is dropped once .gitignore names it."""
    measure = box.snapshotter()
    box.write("build/out.js", "1")
    measure.tree()
    box.write(".gitignore", "build/\n")
    ignored = measure.tree()
    box.write("build/out.js", "2")
    assert measure.tree().tree == ignored.tree
    (box.root / ".git" / "info" / "exclude").write_text("secret/\n")
    box.write("secret/x")
    assert measure.tree().tree == ignored.tree


def test_an_ignored_file_that_was_committed_counts(box: Sandbox) -> None:
    """Forced into a commit, a path is tracked whatever .gitignore says."""
    box.write(".gitignore", "*.gen\n")
    box.commit("ignore")
    measure = box.snapshotter()
    before = measure.tree()
    box.write("api.gen", "1\n")
    box.git("add", "-f", "api.gen")
    box.git("commit", "-q", "-m", "forced")
    after = measure.tree()
    assert statuses(measure, before, after) == {"api.gen": "A"}
    box.write("api.gen", "2\n")
    assert statuses(measure, after, measure.tree()) == {"api.gen": "M"}


def test_an_ignored_file_that_is_no_longer_tracked_stops_counting(box: Sandbox) -> None:
    """Taken out of the index and committed so, a build artefact is none of our business."""
    box.write(".gitignore", "*.gen\n")
    box.write("api.gen", "1\n")
    box.git("add", "-f", "-A")
    box.git("commit", "-q", "-m", "with artefact")
    measure = box.snapshotter()
    before = measure.tree()
    box.git("rm", "-q", "--cached", "api.gen")
    box.git("commit", "-q", "-m", "without")
    after = measure.tree()
    assert statuses(measure, before, after) == {"api.gen": "D"}
    box.write("api.gen", "2\n")
    assert measure.tree().tree == after.tree


def test_measuring_never_writes_into_the_users_git(box: Sandbox) -> None:
    """Neither objects nor index, refs, logs or stash change, and hooks stay silent."""
    box.git("stash", "list")
    box.write("src/app.py", "print('stashed')\n")
    box.git("stash")
    box.write("staged.py")
    box.git("add", "staged.py")
    trace = box.root.parent / "hook-ran"
    box.hook("post-index-change", f"touch '{trace}'")
    box.git("config", "core.splitIndex", "true")
    before = box.git_files()
    measure = box.snapshotter()
    start = measure.tree()
    for number in range(3):
        box.write(f"new{number}.py", "x\n" * number)
        measure.change_counts_and_paths(start, measure.tree())
    assert box.git_files() == before
    assert not trace.exists()
    assert box.git("status", "--porcelain", "staged.py") == "A  staged.py"


def test_a_200_mb_untracked_file_costs_nothing(box: Sandbox) -> None:
    """A large file is neither read nor copied, yet its change is seen."""
    measure = box.snapshotter()
    before = measure.tree()
    size_before = sum(size for size, _ in box.git_files().values())
    large = box.write("data.bin", b"")
    os.truncate(large, 200 * MEGABYTE)
    measured = measure.tree()
    assert statuses(measure, before, measured) == {"data.bin": "A"}
    assert measured.notes == ("not read, known by size and time: data.bin",)
    assert measure.tree() == measured
    stored = sum(f.stat().st_size for f in box.store.rglob("*") if f.is_file())
    assert stored < 100_000
    assert sum(size for size, _ in box.git_files().values()) == size_before
    os.truncate(large, 201 * MEGABYTE)
    assert statuses(measure, measured, measure.tree()) == {"data.bin": "M"}


def test_a_tracked_file_that_grows_large_is_known_by_size_and_time(box: Sandbox) -> None:
    """The limit holds for tracked files as well, and going back gives the old tree."""
    measure = box.snapshotter()
    before = measure.tree()
    os.truncate(box.root / "src/app.py", 6 * MEGABYTE)
    assert statuses(measure, before, measure.tree()) == {"src/app.py": "M"}
    box.git("restore", "src/app.py")
    assert measure.tree().tree == before.tree


def test_beyond_the_budget_files_are_known_by_size_and_time(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small files are read first, so source is always seen by content."""
    monkeypatch.setattr(sorting, "MAX_READ", 1000)
    measure = box.snapshotter()
    before = measure.tree()
    box.write("big.txt", "x" * 900)
    box.write("bigger.txt", "x" * 950)
    box.write("small.py", "x = 1\n")
    after = measure.tree()
    assert set(statuses(measure, before, after)) == {"big.txt", "bigger.txt", "small.py"}
    assert after.notes == ("not read, known by size and time: bigger.txt",)


def test_very_many_new_files_are_hashed_but_not_kept(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store stays small; paths are still known and equal content is equal."""
    monkeypatch.setattr(sorting, "MAX_KEPT_FILES", 5)
    measure = box.snapshotter()
    before = measure.tree()
    for number in range(20):
        box.write(f"gen/{number}.txt", f"{number}\n")
    after = measure.tree()
    changes = measure.changes(before.tree, after.tree)
    assert len(changes) == 20
    assert measure.contents(change.after for change in changes if change.after) == {}
    assert measure.tree() == after


@pytest.mark.parametrize(
    "name",
    [
        b"line\nbreak.py",
        b'quo"te.py',
        b"back\\slash.py",
        b"tab\there.py",
        b"-rf",
        b"*.py",
        b":(exclude)x",
        b"[ab]",
        b" lead and trail ",
        b"\xff\xfe not utf8",
        "größe-日本語.py".encode(),
        b"git~1",
        b"deep/er/\x01control",
    ],
)
def test_any_file_name_is_measured(box: Sandbox, name: bytes) -> None:
    """Names are bytes: whatever the file system allows is added, changed and removed."""
    measure = box.snapshotter()
    start = measure.tree()
    target = os.path.join(os.fsencode(box.root), name)  # noqa: PTH118
    os.makedirs(os.path.dirname(target), exist_ok=True)  # noqa: PTH103, PTH120
    with open(target, "wb") as file:  # noqa: PTH123
        file.write(b"x")
    added = measure.tree()
    assert statuses(measure, start, added) == {os.fsdecode(name): "A"}
    assert all(text.encode("utf-8") for text in measure.change_counts_and_paths(start, added).paths)
    os.unlink(target)  # noqa: PTH108
    assert measure.tree().tree == start.tree


def test_symbolic_links_are_measured_by_their_target(box: Sandbox) -> None:
    """A link is its target's name; dangling and circular ones do no harm."""
    (box.root / "link").symlink_to("src/app.py")
    (box.root / "dangling").symlink_to("/nowhere")
    (box.root / "circle").symlink_to("circle")
    measure = box.snapshotter()
    before = measure.tree()
    box.write("src/app.py", "other\n")
    assert list(statuses(measure, before, measure.tree())) == ["src/app.py"]
    box.remove("link")
    (box.root / "link").symlink_to("elsewhere")
    assert "link" in statuses(measure, before, measure.tree())


def test_a_directory_may_become_a_file_or_a_link_and_back(box: Sandbox) -> None:
    """Conflicting kinds replace each other without an error."""
    box.write("lib/a.py")
    box.commit("lib")
    measure = box.snapshotter()
    start = measure.tree()
    box.remove("lib/a.py")
    (box.root / "lib").rmdir()
    box.write("lib", "a file now\n")
    assert statuses(measure, start, measure.tree()) == {"lib": "A", "lib/a.py": "D"}
    box.remove("lib")
    (box.root / "lib").symlink_to("src")
    assert statuses(measure, start, measure.tree()) == {"lib": "A", "lib/a.py": "D"}
    box.remove("lib")
    box.write("lib/a.py")
    assert measure.tree().tree == start.tree


def test_a_tracked_file_replaced_by_a_socket_counts_as_deleted(box: Sandbox) -> None:
    """What git cannot hold is as good as gone."""
    measure = box.snapshotter()
    start = measure.tree()
    box.remove("src/app.py")
    with socket.socket(socket.AF_UNIX) as server:
        previous = Path.cwd()
        os.chdir(box.root / "src")
        try:
            server.bind("app.py")
        finally:
            os.chdir(previous)
        assert statuses(measure, start, measure.tree()) == {"src/app.py": "D"}


def test_an_unreadable_file_is_known_by_size_and_time(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file without read permission neither stops the measuring nor goes unseen."""
    measure = box.snapshotter()
    start = measure.tree()
    box.write("secret.txt").chmod(0)
    if os.geteuid() == 0:  # root reads everything, so the question is answered for it
        monkeypatch.setattr(os, "access", lambda *_: False)
    measured = measure.tree()
    assert statuses(measure, start, measured) == {"secret.txt": "A"}
    assert measured.notes == ("not read, known by size and time: secret.txt",)


def test_a_changed_executable_bit_is_a_change(box: Sandbox) -> None:
    """Mode belongs to content."""
    measure = box.snapshotter()
    before = measure.tree()
    (box.root / "src/app.py").chmod(0o755)
    assert statuses(measure, before, measure.tree()) == {"src/app.py": "M"}


def test_line_ending_conversion_is_no_change(box: Sandbox) -> None:
    """Git's own conversions apply: the same text with CRLF is the same blob."""
    box.write(".gitattributes", "*.txt text\n")
    box.write("a.txt", "one\ntwo\n")
    box.commit("text")
    box.git("config", "core.safecrlf", "true")
    measure = box.snapshotter()
    before = measure.tree()
    box.write("a.txt", "one\r\ntwo\r\n")
    assert measure.tree().tree == before.tree


def test_external_filters_are_not_run_for_measuring(box: Sandbox) -> None:
    """A clean filter such as git-lfs writes into .git, so it stays silent."""
    trace = box.root.parent / "filter-ran"
    box.git("config", "filter.big.clean", f"touch '{trace}'; cat")
    box.git("config", "filter.big.required", "true")
    box.write(".gitattributes", "*.bin filter=big\n")
    measure = box.snapshotter()
    before = measure.tree()
    box.write("a.bin", "content")
    assert statuses(measure, before, measure.tree()) == {"a.bin": "A"}
    assert not trace.exists()


def _with_submodule(box: Sandbox, tmp_path: Path) -> Sandbox:
    inner = Sandbox(tmp_path / "library")
    inner.write("lib.py")
    inner.commit("library")
    box.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.root), "vendor")
    box.commit("with submodule")
    return Sandbox(box.root / "vendor")


def test_a_submodule_counts_by_its_commit_and_its_own_changes(box: Sandbox, tmp_path: Path) -> None:
    """New commits inside a submodule, and uncommitted work there, are both noticed."""
    inner = _with_submodule(box, tmp_path)
    modules = box.git_files()
    measure = box.snapshotter()
    clean = measure.tree()
    assert measure.tree() == clean
    inner.write("lib.py", "dirty\n")
    dirty = measure.tree()
    assert statuses(measure, clean, dirty) == {"vendor": "M"}
    assert dirty.notes == ("inner repositories, known by head and state: vendor",)
    inner.write("lib.py", "dirtier still\n")
    assert measure.tree().tree not in (clean.tree, dirty.tree)
    assert box.git_files() == modules
    inner.commit("inner work")
    committed = measure.tree()
    assert statuses(measure, clean, committed) == {"vendor": "M"}
    assert committed.notes == ()


def test_a_removed_submodule_is_a_deletion(box: Sandbox, tmp_path: Path) -> None:
    """Its path is gone from the tree."""
    _with_submodule(box, tmp_path)
    measure = box.snapshotter()
    before = measure.tree()
    box.git("rm", "-q", "-f", "vendor")
    assert statuses(measure, before, measure.tree()) == {".gitmodules": "M", "vendor": "D"}


def test_an_untracked_repository_inside_is_known_by_head_and_state(box: Sandbox) -> None:
    """Work in a nested repository is noticed although git does not look into it."""
    measure = box.snapshotter()
    start = measure.tree()
    inner = Sandbox(box.root / "nested")
    inner.write("a.py")
    first = measure.tree()
    assert statuses(measure, start, first) == {"nested": "A"}
    inner.commit("inner")
    second = measure.tree()
    inner.write("b.py")
    trees = {start.tree, first.tree, second.tree, measure.tree().tree}
    assert len(trees) == 4


def test_a_linked_work_tree_is_measured_like_any_other(box: Sandbox, tmp_path: Path) -> None:
    """`git worktree add` gives a place to work that has its own index and head."""
    box.git("worktree", "add", "-q", str(tmp_path / "tree"), "-b", "side")
    linked = Sandbox.__new__(Sandbox)
    linked.root = tmp_path / "tree"
    measure = linked.snapshotter()
    before = measure.tree()
    assert before.branch == "side"
    linked.write("new.py")
    assert statuses(measure, before, measure.tree()) == {"new.py": "A"}


def test_a_sparse_checkout_does_not_look_like_mass_deletion(box: Sandbox) -> None:
    """Paths outside the cone are neither deleted nor changed, also when the cone moves."""
    box.write("docs/a.md")
    box.commit("docs")
    box.git("sparse-checkout", "set", "src")
    measure = box.snapshotter()
    before = measure.tree()
    assert before.tree == box.git("rev-parse", "HEAD^{tree}")
    box.git("sparse-checkout", "set", "docs")
    assert measure.tree().tree == before.tree


@pytest.mark.parametrize("feature", ["splitIndex", "untrackedCache"])
def test_index_features_of_the_user_are_understood(box: Sandbox, feature: str) -> None:
    """A split index and an untracked cache are read and left as they are."""
    box.git("config", f"core.{feature}", "true")
    flag = "--split-index" if feature == "splitIndex" else "--untracked-cache"
    box.git("update-index", flag)
    box.git("status")
    before = box.git_files()
    measure = box.snapshotter()
    start = measure.tree()
    box.write("src/new.py")
    assert statuses(measure, start, measure.tree()) == {"src/new.py": "A"}
    assert box.git_files() == before


def test_a_sha256_repository_is_measured(tmp_path: Path) -> None:
    """The hash of the repository is the hash of our objects, placeholders included."""
    box = Sandbox(tmp_path / "project", "--object-format=sha256")
    box.write("a.py")
    measure = box.snapshotter()
    before = measure.tree()
    os.truncate(box.write("large.bin", b""), 6 * MEGABYTE)
    after = measure.tree()
    assert len(after.tree) == 64
    assert statuses(measure, before, after) == {"large.bin": "A"}


def test_a_repository_in_a_path_with_special_characters_is_measured(tmp_path: Path) -> None:
    """Colons and quotes separate object directories in git's eyes, so they are quoted."""
    box = Sandbox(tmp_path / 'a:b "c" \\d')
    box.write("a.py")
    box.commit("first")
    measure = box.snapshotter()
    before = measure.tree()
    box.write("a.py", "other\n")
    assert measure.change_counts_and_paths(before, measure.tree()).changed.insertions == 1


def test_unmerged_paths_are_measured_as_they_lie(box: Sandbox) -> None:
    """An agent that leaves a merge half done has still changed its files."""
    box.git("switch", "-q", "-c", "side")
    box.write("src/app.py", "side\n")
    box.commit("side")
    box.git("switch", "-q", "main")
    box.write("src/app.py", "main\n")
    box.commit("main")
    box.git("merge", "side", check=False)
    measure = box.snapshotter()
    conflicted = measure.tree()
    box.write("src/app.py", "solved\n")
    solved = measure.tree()
    assert statuses(measure, conflicted, solved) == {"src/app.py": "M"}
    box.remove("src/app.py")
    assert statuses(measure, solved, measure.tree()) == {"src/app.py": "D"}


def test_an_intent_to_add_entry_is_taken_with_its_content(box: Sandbox) -> None:
    """`git add -N` does not hide what the file holds."""
    box.write("plan.py", "one\n")
    box.git("add", "-N", "plan.py")
    measure = box.snapshotter()
    before = measure.tree()
    assert "plan.py" in box.git("ls-files", "-o", "-c")
    box.write("plan.py", "two\n")
    assert statuses(measure, before, measure.tree()) == {"plan.py": "M"}


@pytest.mark.parametrize("damage", [b"", b"garbage", b"DIRC\0\0\0\2"])
def test_a_damaged_private_index_is_rebuilt(box: Sandbox, damage: bytes) -> None:
    """What a crash or a full disk left of our index costs one rebuild, not the run."""
    measure = box.snapshotter()
    before = measure.tree()
    (index,) = (box.root / ".ralph").glob("git-index-*")
    index.write_bytes(damage)
    index.with_name(f"{index.name}.lock").write_bytes(b"")
    box.write("new.py")
    assert statuses(measure, before, measure.tree()) == {"new.py": "A"}


def test_indexes_of_dead_processes_are_removed(box: Sandbox) -> None:
    """What killed runs left behind does not pile up; a living neighbour's index stays."""
    dead = subprocess.Popen(["true"])
    dead.wait()
    for name in (f"{dead.pid}-0", f"{dead.pid}-0.lock", "junk", "1-0"):
        box.write(f".ralph/git-index-{name}")
    box.snapshotter().tree()
    left = {file.name for file in (box.root / ".ralph").glob("git-index-*")}
    assert "git-index-1-0" in left
    assert len(left) == 2


@pytest.mark.parametrize("obstacle", [".ralph", ".ralph/objects"])
def test_a_place_that_cannot_be_written_is_an_error_with_words(box: Sandbox, obstacle: str) -> None:
    """A file where our directory should be is reported with what to do."""
    box.write(obstacle, "in the way")
    with pytest.raises(RepositoryError, match="cannot be measured") as caught:
        box.snapshotter().tree()
    assert ".ralph" in caught.value.next_step


def test_a_sparse_index_is_understood(box: Sandbox) -> None:
    """Whole directories folded into one entry are neither lost nor changed."""
    box.write("docs/a/b.md")
    box.commit("docs")
    box.git("sparse-checkout", "set", "--cone", "--sparse-index", "src")
    before = box.git_files()
    measure = box.snapshotter()
    start = measure.tree()
    assert start.tree == box.git("rev-parse", "HEAD^{tree}")
    box.write("src/new.py")
    assert statuses(measure, start, measure.tree()) == {"src/new.py": "A"}
    assert box.git_files() == before


def test_paths_are_shown_as_one_line() -> None:
    """A name with a line break cannot start a line of its own in a report or a prompt."""
    assert printable("a\nb\x1b[0m") == "a\\x0ab\\x1b[0m"


def test_a_removed_store_is_made_again(box: Sandbox) -> None:
    """Someone who deletes .ralph in the middle loses nothing that is still on disk."""
    measure = box.snapshotter()
    box.write("new.py")
    measured = measure.tree()
    subprocess.run(["rm", "-rf", str(box.root / ".ralph")], check=True)
    assert measure.tree().tree == measured.tree


def test_a_corrupt_repository_is_an_error_with_words(box: Sandbox) -> None:
    """What git cannot read is reported, not guessed."""
    (box.root / ".git" / "HEAD").write_text("nonsense\n")
    with pytest.raises(RepositoryError):
        box.snapshotter().tree()


def test_a_change_of_the_same_size_in_the_same_second_is_seen(box: Sandbox) -> None:
    """Racily clean entries are compared by content."""
    measure = box.snapshotter()
    trees = set()
    for number in range(10):
        box.write("src/app.py", f"value = {number}\n")
        trees.add(measure.tree().tree)
    assert len(trees) == 10


def test_lines_and_binary_files_are_counted(box: Sandbox) -> None:
    """Insertions and deletions are counted for text; binary files have none."""
    measure = box.snapshotter()
    before = measure.tree()
    box.write("src/app.py", "a\nb\nc\n")
    box.write("image.png", b"\x89PNG\0\0\0")
    changed, _ = measure.change_counts_and_paths(before, measure.tree())
    assert (changed.insertions, changed.deletions) == (3, 1)


def test_work_files_name_source_before_tests(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cut list of paths never makes mixed work look like test-only work."""
    monkeypatch.setattr(snapshot, "MAX_NAMED", 2)
    measure = box.snapshotter()
    before = measure.tree()
    for name in (*(f"a/test_{number}.py" for number in range(5)), "src/z.py"):
        box.write(name)
    changed, work_files = measure.change_counts_and_paths(before, measure.tree())
    assert changed.count == 6
    assert work_files == ("src/z.py", "a/test_0.py")


def test_commits_between_heads_are_counted(box: Sandbox) -> None:
    """Count is exact, subjects are bounded, and no head or the same head has none."""
    measure = box.snapshotter()
    start = box.git("rev-parse", "HEAD")
    for number in range(25):
        box.git("commit", "-q", "--allow-empty", "-m", f"step {number}")
    end = box.git("rev-parse", "HEAD")
    count, subjects = measure.commits(start, end)
    assert count == 25
    assert len(subjects) == 20
    assert subjects[0] == "step 24"
    assert measure.commits(end, end).number == 0
    assert measure.commits(start, None).number == 0
    assert measure.commits(None, end).number == 26


def test_contents_of_both_sides_can_be_read(box: Sandbox) -> None:
    """What was there before is still readable although nobody committed it."""
    measure = box.snapshotter()
    box.write("draft.py", "one\n")
    before = measure.tree()
    box.write("draft.py", "two\n")
    (change,) = measure.changes(before.tree, measure.tree().tree)
    assert change.before is not None
    assert change.after is not None
    found = measure.contents([change.before, change.after, "0" * 40])
    assert found == {change.before: b"one\n", change.after: b"two\n"}


def test_pruning_keeps_what_named_snapshots_need(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store stays bounded; kept snapshots can still be compared and read."""
    measure = box.snapshotter()
    box.write("draft.py", "kept\n")
    kept = measure.tree()
    for number in range(30):
        box.write("draft.py", f"throw away {number}\n")
        measure.tree()
    last = measure.tree()
    count = len([*box.store.glob("??/*")])
    measure.prune([kept.tree])
    assert len([*box.store.glob("??/*")]) == count
    monkeypatch.setattr(snapshot, "MAX_LOOSE_OBJECTS", 10)
    for _ in range(2):
        measure.prune([kept.tree, "f" * 40])
        assert not [*box.store.glob("??/*")]
        assert len([*box.store.glob("pack/*.pack")]) == 1
        (change,) = measure.changes(kept.tree, last.tree)
        assert change.before is not None
        assert measure.contents([change.before]) == {change.before: b"kept\n"}
    box.write("draft.py", "after pruning\n")
    assert measure.change_counts_and_paths(kept, measure.tree()).changed.count == 1


def test_nothing_changed_costs_at_most_twice_a_git_status(tmp_path: Path) -> None:
    """On 20,000 files a look at an unchanged tree is about one `git status`."""
    box = Sandbox(tmp_path / "project")
    first = box.write("d/0.txt")
    for number in range(1, 20_000):
        os.link(first, f"{box.root}/d/{number}.txt")  # far cheaper to make than new files
    box.commit("many")
    measure = box.snapshotter()
    before = measure.tree()
    box.git("status")
    ratios = []
    for _ in range(5):
        started = time.perf_counter()
        box.git("status", "--porcelain")
        status_s = time.perf_counter() - started
        started = time.perf_counter()
        assert measure.tree() == before
        ratios.append((time.perf_counter() - started) / status_s)
    assert min(ratios) < 2.0


def test_an_answer_of_git_that_is_too_long_is_not_taken_for_the_whole(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was cut off could be just what has to be put back."""
    measure = box.snapshotter()
    start = measure.tree()
    for number in range(40):
        box.write(f"src/{number}.py", "x\n")
    after = measure.tree()
    most = 2_000  # bytes, where the answer has some 4,000
    monkeypatch.setattr(run, "MAX_OUTPUT", most)
    monkeypatch.setattr(git, "run_command", partial(run.run_command, keep=most))
    with pytest.raises(RepositoryError, match="more than can be read"):
        measure.changes(start.tree, after.tree)
