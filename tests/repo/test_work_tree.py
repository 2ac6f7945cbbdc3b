"""Where the repository is, in which state, and being on the right branch."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ralphloop.errors import RepositoryError
from ralphloop.repo.work_tree import (
    OwnFiles,
    Repository,
    never_committed,
    never_progress,
    project_prefix,
)
from tests.repo.sandbox import Sandbox


def test_a_repository_is_found_from_any_directory_in_it(box: Sandbox) -> None:
    """Root and git directory are known wherever one starts."""
    repo = Repository.open(box.root / "src")
    assert repo.root == box.root
    assert repo.git_dir == box.root / ".git"
    assert repo.objects == box.root / ".git" / "objects"
    assert repo.head() == box.git("rev-parse", "HEAD")
    assert repo.branch() == "main"


def test_variables_that_point_elsewhere_are_ignored(
    box: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run started from inside a git hook works on its own directory."""
    other = Sandbox(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other.root / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.root))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "nowhere"))
    repo = Repository.open(box.root)
    assert repo.root == box.root
    assert repo.head() is not None


def test_an_unborn_branch_has_a_name_and_no_head(unborn: Sandbox) -> None:
    """Before the first commit there is a branch but nothing on it."""
    repo = unborn.repository()
    assert repo.head() is None
    assert repo.branch() == "main"
    assert not list(repo.problems())


def test_head_is_the_same_however_git_keeps_it(box: Sandbox, tmp_path: Path) -> None:
    """Packed, moved by a commit, in a linked work tree, detached: HEAD is what git says."""
    box.git("pack-refs", "--all")
    repo = box.repository()
    assert repo.head() == box.git("rev-parse", "HEAD")
    box.write("new.txt")
    box.commit("more")
    assert repo.head() == box.git("rev-parse", "HEAD")
    box.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"), "HEAD~1")
    linked = Repository.open(tmp_path / "side")
    assert (linked.branch(), linked.head()) == ("side", box.git("rev-parse", "HEAD~1"))
    box.git("switch", "-q", "--detach", "HEAD~1")
    assert (repo.branch(), repo.head()) == (None, box.git("rev-parse", "HEAD"))


def test_no_repository_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    """Outside of git the message names the way out, with exit code 66."""
    with pytest.raises(RepositoryError, match="not inside a git repository") as caught:
        Repository.open(tmp_path)
    assert "git init" in caught.value.next_step
    assert caught.value.exit_code == 66


def test_a_bare_repository_is_refused(tmp_path: Path) -> None:
    """There is nothing to work on in a bare repository."""
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "bare")], check=True)
    with pytest.raises(RepositoryError, match="bare"):
        Repository.open(tmp_path / "bare")


def test_the_git_directory_itself_is_refused(box: Sandbox) -> None:
    """Started inside .git, the message says where to go."""
    with pytest.raises(RepositoryError, match="inside a git directory"):
        Repository.open(box.root / ".git")


def test_missing_git_and_missing_directory_are_told_apart(
    box: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both look like "file not found" to the system; the message names the right one."""
    with pytest.raises(RepositoryError, match="does not exist"):
        Repository.open(tmp_path / "nowhere")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RepositoryError, match="git was not found"):
        Repository.open(box.root)


def test_dirty_paths_are_named_whatever_they_are_called(box: Sandbox) -> None:
    """Modified, staged, deleted and untracked paths count; ours are left out."""
    box.write("src/app.py", "changed\n")
    box.write("new\nline.txt")
    box.write("progress.txt")
    box.write("staged.py")
    box.git("add", "staged.py")
    found = box.repository().dirty_paths(never_progress())
    assert set(found) == {"src/app.py", "new\nline.txt", "staged.py"}


@pytest.mark.parametrize(
    "marker, word",
    [
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
        ("BISECT_LOG", "bisect"),
    ],
)
def test_an_unfinished_operation_is_a_problem(box: Sandbox, marker: str, word: str) -> None:
    """Git's own marker files say what is in progress."""
    box.write(f".git/{marker}", box.git("rev-parse", "HEAD"))
    (problem,) = box.repository().problems()
    assert problem.code == "unfinished"
    assert word in problem.message
    assert word in problem.fix or problem.fix


def test_a_real_rebase_in_progress_is_one_problem_not_two(box: Sandbox) -> None:
    """A rebase detaches HEAD; only the rebase is worth saying."""
    box.git("switch", "-q", "-c", "side")
    box.write("src/app.py", "side\n")
    box.commit("side")
    box.git("switch", "-q", "main")
    box.write("src/app.py", "main\n")
    box.commit("main")
    box.git("rebase", "side", check=False)
    (problem,) = box.repository().problems()
    assert (problem.code, problem.message) == ("unfinished", "a rebase is in progress")


def test_a_detached_head_and_a_foreign_lock_are_problems(box: Sandbox) -> None:
    """Each problem comes with its fix."""
    box.git("switch", "-q", "--detach")
    box.write(".git/index.lock", "")
    problems = {problem.code: problem for problem in box.repository().problems()}
    assert set(problems) == {"detached", "locked"}
    assert all(problem.fix for problem in problems.values())


def test_a_branch_is_created_switched_to_and_kept(box: Sandbox) -> None:
    """The word tells which of the three happened."""
    repo = box.repository()
    assert repo.switch_or_create_branch("ralph/feature") == "created"
    assert repo.branch() == "ralph/feature"
    assert repo.switch_or_create_branch("ralph/feature") == "already"
    assert repo.switch_or_create_branch("main") == "switched"


def test_a_branch_can_be_created_before_the_first_commit(unborn: Sandbox) -> None:
    """An unborn repository can begin on the branch of the story file."""
    repo = unborn.repository()
    assert repo.switch_or_create_branch("work") == "created"
    assert repo.branch() == "work"


def test_a_branch_known_from_one_remote_is_continued(box: Sandbox, tmp_path: Path) -> None:
    """Work begun elsewhere goes on instead of starting a second branch of that name."""
    box.git("branch", "ralph/feature")
    subprocess.run(["git", "clone", "-q", str(box.root), str(tmp_path / "clone")], check=True)
    repo = Repository.open(tmp_path / "clone")
    assert repo.switch_or_create_branch("ralph/feature") == "switched"
    assert repo.git.line("rev-parse", "--abbrev-ref", "@{u}") == "origin/ralph/feature"


def test_switching_refuses_rather_than_lose_changes(box: Sandbox) -> None:
    """Uncommitted work that the other branch would overwrite stays where it is."""
    box.git("switch", "-q", "-c", "other")
    box.write("src/app.py", "other\n")
    box.commit("other")
    box.git("switch", "-q", "main")
    box.write("src/app.py", "precious\n")
    with pytest.raises(RepositoryError, match="could not switch"):
        box.repository().switch_or_create_branch("other")
    assert box.read("src/app.py") == "precious\n"
    assert box.git("branch", "--show-current") == "main"


def test_a_failing_checkout_hook_does_not_hide_a_done_switch(box: Sandbox) -> None:
    """Git reports the hook's failure although the branch is switched."""
    box.hook("post-checkout", "exit 1")
    assert box.repository().switch_or_create_branch("work") == "created"


@pytest.mark.parametrize(
    "name",
    ["", "-x", "--force", "a b", "a..b", "a\nb", "@{-1}", "HEAD", "@", "a.lock", "/a", "x~1"],
)
def test_names_that_are_no_branches_are_refused(box: Sandbox, name: str) -> None:
    """A branch name from a story file is only ever a name."""
    with pytest.raises(RepositoryError, match="no valid branch name"):
        box.repository().switch_or_create_branch(name)


def test_own_files_are_matched_as_paths_directories_and_wildcards() -> None:
    """A pattern is a path, a directory with everything in it, or one with `*` within a name."""
    own = OwnFiles(["a.json", "dir/", "skills/*-learned/", "we[i]rd"])
    for path in ("a.json", "dir/x", "dir/y/z", "dir", "skills/py-learned/SKILL.md", "we[i]rd"):
        assert path in own
    for path in ("b/a.json", "directory", "skills/py/SKILL.md", "skills/a/b-learned/x", "weird"):
        assert path not in own
    assert "prd.json" in never_progress(also=["prd.json"])
    assert "progress.txt" not in never_committed()


def test_a_project_below_the_root_has_a_prefix(tmp_path: Path) -> None:
    """Paths are told from the repository's root."""
    (tmp_path / "packages" / "api").mkdir(parents=True)
    assert project_prefix(tmp_path, tmp_path) == ""
    assert project_prefix(tmp_path, tmp_path / "packages" / "api") == "packages/api/"
    assert "packages/api/.ralph/x" in never_committed("packages/api/")
