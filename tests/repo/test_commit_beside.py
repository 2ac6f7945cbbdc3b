"""Committing some paths beside what somebody else has staged or commits in the same moment."""

from __future__ import annotations

import pytest

from ralphloop.repo.commit import CommitResult, CommitStatus, commit_story, story_message
from ralphloop.repo.work_tree import never_committed
from tests.repo.sandbox import Sandbox

MESSAGE = story_message("US-1", "Add the thing", run="r1", iteration=3, grade="checked")


def _commit(box: Sandbox, scope: str = "", leave: frozenset[str] = frozenset()) -> CommitResult:
    repo = box.repository().scoped(scope)
    return commit_story(repo, MESSAGE, own=never_committed(), leave=leave)


def _files(box: Sandbox) -> set[str]:
    return set(box.git("ls-tree", "-r", "--name-only", "HEAD").splitlines())


def _start(box: Sandbox) -> None:
    for name in ("pkg/thing", "pkg/local.cfg", "theirs.py"):
        box.write(name, f"{name}\n")
    box.commit("more")


@pytest.mark.parametrize("scope", ["", "pkg/"])
def test_removals_of_what_is_still_there_are_committed_beside_others(
    box: Sandbox, scope: str
) -> None:
    """A file taken out of git and ignored, and one that is a directory now; theirs stays staged."""
    _start(box)
    box.write("theirs.py", "half done\n")
    box.git("add", "theirs.py")
    box.write("pkg/.gitignore", "local.cfg\n*.tmp\n")
    box.git("rm", "-q", "--cached", "pkg/local.cfg")
    box.git("rm", "-q", "pkg/thing")
    box.write("pkg/thing/x.tmp", "ignored\n")
    done = _commit(box, scope, frozenset({"theirs.py"}))
    assert done.status is CommitStatus.COMMITTED
    assert not done.rewritten
    assert {"pkg/.gitignore", "theirs.py"} <= _files(box)
    assert _files(box).isdisjoint({"pkg/local.cfg", "pkg/thing", "pkg/thing/x.tmp"})
    assert box.git("show", "HEAD:theirs.py") == "theirs.py"
    assert box.git("status", "--porcelain") == "M  theirs.py"
    assert box.read("pkg/local.cfg") == "pkg/local.cfg\n"
    assert box.read("pkg/thing/x.tmp") == "ignored\n"


def test_what_is_committed_in_the_same_moment_stays(box: Sandbox) -> None:
    """Another's commit that falls between our look and ours is not taken out by it."""
    _start(box)
    box.hook(
        "pre-commit",
        "[ -e ../once ] && exit 0\n"
        "touch ../once\n"
        "unset GIT_INDEX_FILE\n"
        "blob=$(echo other | git hash-object -w --stdin)\n"
        "export GIT_INDEX_FILE=../their-index\n"
        "git read-tree HEAD\n"
        "git update-index --add --cacheinfo 100644,$blob,other.py\n"
        'git update-ref HEAD $(git commit-tree $(git write-tree) -p HEAD -m "other")\n',
    )
    box.write("pkg/.gitignore", "local.cfg\n")
    box.git("rm", "-q", "--cached", "pkg/local.cfg")
    done = _commit(box, "pkg/")
    assert done.status is CommitStatus.COMMITTED
    assert box.git("show", "HEAD:other.py") == "other"
    assert "pkg/local.cfg" not in _files(box)
    assert box.git("log", "--format=%s", "-2").splitlines() == ["US-1: Add the thing", "other"]


def test_a_commit_is_known_by_what_it_changes_where_others_commit_too(box: Sandbox) -> None:
    """A hook that rewrites the message takes our trailers; beside others it is found all the same."""
    _start(box)
    box.hook("commit-msg", 'echo "another subject" > "$1"\n')
    box.write("pkg/new.py", "new\n")
    done = _commit(box, "pkg/")
    assert done.status is CommitStatus.COMMITTED
    assert done.commit == box.git("rev-parse", "HEAD")
    assert not done.rewritten
