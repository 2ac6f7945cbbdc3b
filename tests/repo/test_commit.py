"""Committing a story: what goes in, what stays out, and who is told what went wrong."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from ralphloop.errors import RepositoryError
from ralphloop.repo import git
from ralphloop.repo.commit import (
    CommitResult,
    CommitStatus,
    commit_paths,
    commit_story,
    find_commit,
    story_message,
    with_trailers,
)
from ralphloop.repo.work_tree import never_committed
from tests.repo.sandbox import Sandbox
from tests.timing import FOR_EVER_S


def _commit(
    box: Sandbox, story: str = "US-1", title: str = "Add the thing", number: int = 3, **changes: Any
) -> CommitResult:
    message = story_message(story, title, run="r1", iteration=number, grade="verified")
    return commit_story(box.repository(), message, **{"own": never_committed(), **changes})


def _files_of(box: Sandbox, commit: str = "HEAD") -> set[str]:
    listed = box.git("show", "--format=", "--name-only", "--no-renames", "-z", commit)
    return {path for path in listed.split("\0") if path}


def test_new_files_that_may_hold_secrets_are_named(box: Sandbox) -> None:
    """They are part of the work and are committed; a person is told before anything is pushed."""
    key = "sk-ant-" + "api03-Jk2mQ9xR7tVw3ZpL8nBc5dFg6hYs4aUe"
    box.write("settings.py", f'KEY = "{key}"\n')
    box.write(".env", "PORT=8080\n")
    box.write(".env.example", "PORT=\n")
    box.write("src/token.py", "token = os.environ['TOKEN']\n")
    box.write("src/app.py", f"# {key}: in a file that was there before\n")
    done = _commit(box)
    assert done.status is CommitStatus.COMMITTED
    assert done.notes == (
        ".env may hold a secret: look at it before you push",
        "settings.py may hold a secret: look at it before you push",
    )
    assert ".env" in _files_of(box)


def test_a_story_is_committed_with_subject_and_trailers(box: Sandbox) -> None:
    """Modified, new and deleted files, the mark and the progress entry go into one commit."""
    box.write("old.py")
    box.commit("old")
    box.write("src/app.py", "changed\n")
    box.write("src/new.py")
    box.remove("old.py")
    box.write("prd.json", '{"passes": true}')
    box.write("progress.txt", "## Iteration\n")
    done = _commit(box)
    head = box.git("rev-parse", "HEAD")
    assert done == CommitResult(status=CommitStatus.COMMITTED, head=head, commit=head)
    assert box.git("log", "-1", "--format=%s") == "US-1: Add the thing"
    assert box.git("log", "-1", "--format=%(trailers)").splitlines() == [
        "Ralph-Run: r1",
        "Ralph-Iteration: r1/3",
        "Ralph-Story: US-1",
        "Ralph-Grade: verified",
    ]
    assert _files_of(box) == {"src/app.py", "src/new.py", "old.py", "prd.json", "progress.txt"}
    assert box.git("status", "--porcelain") == ""


def test_private_files_are_never_committed(box: Sandbox) -> None:
    """Journal and JSON views stay out even where nobody ignored them."""
    box.write("src/new.py")
    for path in (".ralph/journal.db", ".ralph-session.json", ".ralph-circuit-state.json"):
        box.write(path)
    _commit(box)
    assert _files_of(box) == {"src/new.py"}


def test_the_first_commit_of_a_repository_can_be_ours(unborn: Sandbox) -> None:
    """A repository without commits gets its root commit."""
    unborn.write("a.py")
    assert _commit(unborn).status is CommitStatus.COMMITTED
    assert unborn.git("rev-list", "--count", "HEAD") == "1"


def test_nothing_to_commit_is_fine(box: Sandbox) -> None:
    """The agent committed everything itself: its commit is kept and none is added."""
    box.write("src/new.py")
    head = box.commit("the agent's own")
    assert _commit(box) == CommitResult(status=CommitStatus.NOTHING, head=head)
    box.write("progress.txt")
    assert _commit(box).status is CommitStatus.COMMITTED
    assert box.git("log", "-1", "--skip=1", "--format=%s") == "the agent's own"
    assert _files_of(box) == {"progress.txt"}


def test_paths_dirty_at_start_stay_as_they_are(box: Sandbox) -> None:
    """What a person left modified, staged or untracked is neither committed nor unstaged."""
    box.write("theirs.py")
    box.write("both.py")
    box.commit("files")
    box.write("theirs.py", "half done\n")
    box.git("add", "theirs.py")
    box.write("theirs.py", "half done, and more\n")
    box.write("scratch.txt", "a person's note\n")
    box.write("both.py", "begun by a person\n")
    dirty = box.repository().dirty_paths()
    box.write("both.py", "finished by the agent\n")
    box.write("agent.py")
    leave = frozenset(dirty) - {"both.py", "agent.py"}
    done = _commit(box, leave=leave)
    assert done.status is CommitStatus.COMMITTED
    assert not done.rewritten
    assert _files_of(box) == {"both.py", "agent.py"}
    assert box.git("status", "--porcelain").splitlines() == ["MM theirs.py", "?? scratch.txt"]
    assert box.git("show", ":theirs.py") == "half done"


@pytest.mark.parametrize("name", [b"*", b":(top)x", b"-rf", b"new\nline", b"\xff\xfe", b" sp ace "])
def test_any_file_name_is_committed_as_itself(box: Sandbox, name: bytes) -> None:
    """Names are literal: `*` does not take its neighbours along."""
    path = os.fsdecode(name)
    (box.root / path).write_bytes(b"x")
    box.write("neighbour.py", "a person's\n")
    leave = frozenset({"neighbour.py"})
    assert _commit(box, leave=leave).status is CommitStatus.COMMITTED
    assert _files_of(box) == {path}


@pytest.mark.parametrize(
    "story_id, title, subject",
    [
        (
            "US-1; rm -rf ~",
            "$(touch owned) `touch owned`",
            "US-1; rm -rf ~: $(touch owned) `touch owned`",
        ),
        ("#12", "Fix it", "#12: Fix it"),
        ("--amend", "-m x", "--amend: -m x"),
        ("a\nb", "two\n\nRalph-Grade: by hand\r\nlines\x00", "a b: two Ralph-Grade: by hand lines"),
        ("日本", "größer 🎉", "日本: größer 🎉"),
        ("../../x", "", "../../x"),
        ("fixup! x", "y", "fixup! x: y"),
    ],
)
def test_story_ids_and_titles_are_only_text(
    box: Sandbox, story_id: str, title: str, subject: str
) -> None:
    """Whatever a story is called, its commit has that subject and our four trailers."""
    box.write("src/new.py")
    _commit(box, story_id, title)
    assert box.git("log", "-1", "--format=%s") == subject
    assert box.git("log", "-1", "--format=%(trailers:key=Ralph-Grade,valueonly)") == "verified"
    assert not (box.root / "owned").exists()


def test_users_cleanup_and_template_do_not_change_the_message(box: Sandbox) -> None:
    """A subject that begins with the comment character survives."""
    box.git("config", "commit.cleanup", "scissors")
    box.git("config", "commit.template", str(box.write("template.txt", "Reviewed-by: nobody\n")))
    box.git("config", "commit.verbose", "true")
    _commit(box, "#7", "x")
    assert box.git("log", "-1", "--format=%B").splitlines()[:3] == ["#7: x", "", "Ralph-Run: r1"]


def test_the_commit_of_an_iteration_is_found_again(box: Sandbox) -> None:
    """After a crash the trailer says whether the commit was made; nothing else is mistaken for it."""
    repo = box.repository()
    assert find_commit(repo, run="r1", iteration=3) is None
    box.write("a.py")
    done = _commit(box)
    box.write("b.py")
    _commit(box, number=31)
    box.commit("talks about Ralph-Iteration: r1/4 in its subject")
    assert find_commit(repo, run="r1", iteration=3) == done.head
    for run, iteration in (("r1", 4), ("r1", 1), ("r", 3), ("xr1", 3)):
        assert find_commit(repo, run=run, iteration=iteration) is None


def test_a_repository_without_commits_has_none_to_find(unborn: Sandbox) -> None:
    """Before the first commit nothing was committed."""
    assert find_commit(unborn.repository(), run="r", iteration=1) is None


def test_a_refusing_hook_is_feedback_for_the_agent(box: Sandbox) -> None:
    """What the hook said goes back to the agent, without secrets, and nothing is committed."""
    head = box.git("rev-parse", "HEAD")
    box.hook(
        "pre-commit",
        "echo 'src/app.py:1: line too long'; echo key=ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6; exit 1",
    )
    box.write("src/app.py", "changed\n")
    done = _commit(box)
    assert done.status is CommitStatus.REFUSED
    assert done.feedback.startswith("the pre-commit hook failed:\n")
    assert "line too long" in done.feedback
    assert "ghp_aB3" not in done.feedback
    assert done.head == head
    assert box.read("src/app.py") == "changed\n"


def test_a_hook_that_runs_git_itself_is_still_recognised(box: Sandbox) -> None:
    """Failures of git commands inside a hook are the hook's, and may be none at all."""
    box.hook("pre-commit", "git rev-parse nonsense >/dev/null 2>&1; git status >/dev/null; exit 0")
    box.write("a.py")
    assert _commit(box).status is CommitStatus.COMMITTED


def test_a_hook_that_rewrites_and_fails_gets_a_second_try(box: Sandbox) -> None:
    """As formatters do: files are rewritten, the hook fails once, the second commit goes through."""
    box.hook(
        "pre-commit", "if grep -q dirty a.py; then echo clean > a.py; echo reformatted; exit 1; fi"
    )
    box.write("a.py", "dirty\n")
    done = _commit(box)
    assert done.status is CommitStatus.COMMITTED
    assert done.rewritten
    assert box.git("show", "HEAD:a.py") == "clean"
    assert box.git("status", "--porcelain") == ""


def test_a_hook_that_rewrites_and_adds_is_reported(box: Sandbox) -> None:
    """As lint-staged does: the commit goes through, but not with the tree that was checked."""
    box.hook("pre-commit", "echo formatted > a.py; git add a.py")
    box.write("a.py", "raw\n")
    done = _commit(box)
    assert done.status is CommitStatus.COMMITTED
    assert done.rewritten


def test_a_hook_that_rewrites_for_ever_is_refused_after_one_retry(box: Sandbox) -> None:
    """There is one second try, not more."""
    box.hook("pre-commit", "echo x >> a.py; echo run >> ../runs; exit 1")
    box.write("a.py")
    assert _commit(box).status is CommitStatus.REFUSED
    assert (box.root.parent / "runs").read_text().splitlines() == ["run", "run"]


def test_a_hook_that_undoes_everything_is_reported(box: Sandbox) -> None:
    """If a formatter takes back the only change, what was checked is not what is committed."""
    box.hook("pre-commit", "git restore --staged --worktree src/app.py")
    box.write("src/app.py", "changed\n")
    done = _commit(box)
    assert done.rewritten
    assert _files_of(box) == set()


def test_hooks_also_see_a_partial_commit(box: Sandbox) -> None:
    """With a person's staged work set apart, a rewriting hook still works on ours."""
    box.hook(
        "pre-commit", "git diff --cached --name-only > ../seen; echo formatted > a.py; git add a.py"
    )
    box.write("theirs.py")
    box.git("add", "theirs.py")
    box.write("a.py", "raw\n")
    done = _commit(box, leave=frozenset({"theirs.py"}))
    assert done.status is CommitStatus.COMMITTED
    assert done.rewritten
    assert (box.root.parent / "seen").read_text() == "a.py\n"
    assert box.git("status", "--porcelain") == "A  theirs.py"


@pytest.mark.parametrize("hook", ["commit-msg", "prepare-commit-msg"])
def test_a_hook_that_refuses_our_message_is_our_problem(box: Sandbox, hook: str) -> None:
    """The agent cannot change the message, so it is not asked to."""
    box.hook(hook, "echo 'subject must follow the convention'; exit 1")
    box.write("a.py")
    with pytest.raises(RepositoryError, match="subject must follow") as caught:
        _commit(box)
    assert hook in caught.value.message
    assert caught.value.next_step


def test_a_failing_post_commit_hook_does_not_undo_the_commit(box: Sandbox) -> None:
    """What comes after a commit cannot make it undone."""
    box.hook("post-commit", "exit 1")
    box.write("a.py")
    assert _commit(box).status is CommitStatus.COMMITTED


def test_a_hanging_hook_is_ended_and_reported(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deadline ends the hook, no lock is left, and the next commit works."""
    hook = box.hook("pre-commit", f"echo waiting for the database; sleep {FOR_EVER_S}")
    box.write("a.py")
    with monkeypatch.context() as hurry:
        hurry.setattr(git, "WRITE_TIMEOUT_S", 1.0)
        done = _commit(box)
    assert done.status is CommitStatus.REFUSED
    assert "did not finish in time" in done.feedback
    assert "waiting for the database" in done.feedback
    assert not (box.root / ".git" / "index.lock").exists()
    hook.unlink()
    assert _commit(box).status is CommitStatus.COMMITTED


def _sign_with(box: Sandbox, script: str) -> None:
    program = box.root.parent / "fake-gpg"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    box.git("config", "commit.gpgSign", "true")
    box.git("config", "gpg.program", str(program))


def test_a_signing_failure_is_our_problem(box: Sandbox) -> None:
    """The agent can do nothing about a locked key: an error with the way out."""
    _sign_with(box, "echo 'gpg: signing failed: No pinentry' >&2; exit 2")
    box.write("a.py")
    with pytest.raises(RepositoryError, match="could not be signed") as caught:
        _commit(box)
    assert "key" in caught.value.next_step


def test_a_signing_prompt_cannot_hang_the_run(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gpg that waits for a passphrase is ended at the deadline, and called by its name."""
    _sign_with(box, f"sleep {FOR_EVER_S}")
    box.write("a.py")
    monkeypatch.setattr(git, "WRITE_TIMEOUT_S", 1.0)
    with pytest.raises(RepositoryError, match="could not be signed"):
        _commit(box)
    assert not (box.root / ".git" / "index.lock").exists()


def test_a_refusing_hook_is_told_from_a_signing_failure(box: Sandbox) -> None:
    """With both configured, the one that said no is named."""
    _sign_with(box, "exit 2")
    box.hook("pre-commit", "exit 1")
    box.write("a.py")
    assert _commit(box).status is CommitStatus.REFUSED


def test_a_missing_identity_is_an_error_in_gits_words(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a name there is no commit, and git's advice reaches the reader."""
    box.git("config", "user.useConfigOnly", "true")
    box.git("config", "--unset", "user.email")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    box.write("a.py")
    with pytest.raises(RepositoryError, match="git commit failed"):
        _commit(box)


def test_an_unfinished_merge_is_feedback(box: Sandbox) -> None:
    """We do not seal a merge the agent left half done."""
    box.git("switch", "-q", "-c", "side")
    box.write("src/app.py", "side\n")
    box.commit("side")
    box.git("switch", "-q", "main")
    box.write("src/app.py", "main\n")
    head = box.commit("main")
    box.git("merge", "side", check=False)
    done = _commit(box)
    assert done.status is CommitStatus.REFUSED
    assert "merge is in progress" in done.feedback
    (box.root / ".git" / "MERGE_HEAD").unlink()
    assert "unresolved conflicts: src/app.py" in _commit(box).feedback
    assert box.git("rev-parse", "HEAD") == head


def test_what_cannot_be_committed_is_left_and_said(box: Sandbox, tmp_path: Path) -> None:
    """A repository inside, a dirty submodule and a huge new file stay out, each with its reason."""
    library = Sandbox(tmp_path / "library")
    library.write("lib.py")
    library.commit("library")
    box.git(
        "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library.root), "vendor"
    )
    box.commit("submodule")
    box.write("vendor/lib.py", "dirty\n")
    nested = Sandbox(box.root / "nested")
    nested.write("x.py")
    nested.commit("inside")
    os.truncate(box.write("dump.bin", b""), 60 * 1024 * 1024)
    box.write("a.py")
    done = _commit(box)
    assert _files_of(box) == {"a.py"}
    assert done.notes == (
        "not committed: vendor (a submodule with uncommitted changes)",
        "not committed: dump.bin (a new file of 60 MB)",
        "not committed: nested/ (a repository of its own)",
    )


def test_what_git_cannot_add_does_not_keep_the_rest_out(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file a container left for root alone, or a pipe, is named; everything else is committed."""
    box.write("was.txt")
    box.commit("a file")
    (box.root / "was.txt").unlink()
    os.mkfifo(box.root / "was.txt")
    locked = box.write("locked.txt")
    box.write("a.py")
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != locked and allowed(path, mode))
    done = _commit(box)
    assert _files_of(box) == {"a.py"}
    assert done.notes == (
        "not committed: was.txt (a pipe or a device)",
        "not committed: locked.txt (it cannot be read)",
    )


def test_a_submodule_on_another_commit_is_committed(box: Sandbox, tmp_path: Path) -> None:
    """A moved submodule pointer is a change like any other."""
    library = Sandbox(tmp_path / "library")
    library.write("lib.py")
    library.commit("library")
    box.git(
        "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library.root), "vendor"
    )
    box.commit("submodule")
    inner = Sandbox(box.root / "vendor")
    inner.write("lib.py", "more\n")
    inner.commit("inner")
    assert _commit(box).status is CommitStatus.COMMITTED
    assert _files_of(box) == {"vendor"}


def test_files_outside_a_sparse_checkout_are_committed(box: Sandbox) -> None:
    """An agent that writes outside the cone has still done its work."""
    box.write("docs/a.md")
    box.commit("docs")
    box.git("sparse-checkout", "set", "src")
    box.write("other/new.md")
    assert _commit(box).status is CommitStatus.COMMITTED
    assert _files_of(box) == {"other/new.md"}


def test_stash_and_other_branches_are_never_touched(box: Sandbox) -> None:
    """F31, F32: a person's stash and branches are as they were."""
    box.write("src/app.py", "stashed\n")
    box.git("stash")
    box.git("branch", "other")
    before = box.git("rev-parse", "stash@{0}", "other")
    box.write("a.py")
    _commit(box)
    assert box.git("rev-parse", "stash@{0}", "other") == before
    assert box.git("stash", "list").count("\n") == 0


def test_learned_files_get_a_commit_of_their_own(box: Sandbox) -> None:
    """Only the given paths that changed are committed; absent and ignored ones do no harm."""
    box.write(".gitignore", "secret/\n")
    box.commit("ignore")
    box.write(".claude/skills/x/SKILL.md")
    box.write("secret/x")
    box.write("unrelated.py")
    paths = [".claude/skills/x/SKILL.md", "secret/x", "gone.md"]
    done = commit_paths(box.repository(), paths, with_trailers("Learned", {"Ralph-Run": "r1"}))
    assert done.status is CommitStatus.COMMITTED
    assert _files_of(box) == {".claude/skills/x/SKILL.md"}
    assert box.git("status", "--porcelain") == "?? unrelated.py"


def test_a_lock_that_a_killed_git_left_is_cleared(box: Sandbox) -> None:
    """The agent was stopped in the middle of a commit: ours goes through all the same."""
    lock = box.write(".git/index.lock", "")
    an_hour_ago = time.time() - 3600
    os.utime(lock, (an_hour_ago, an_hour_ago))
    box.write("a.py")
    assert _commit(box).status is CommitStatus.COMMITTED


def test_a_project_below_the_root_keeps_its_private_files_out(box: Sandbox) -> None:
    """In a monorepo the private files lie below the root."""
    box.write("packages/api/.ralph/journal.db")
    box.write("packages/api/main.py")
    _commit(box, own=never_committed("packages/api/"))
    assert _files_of(box) == {"packages/api/main.py"}
