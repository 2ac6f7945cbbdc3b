"""The same in lanes: a git that is killed, and a lock, while several stories are worked on."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.lanes.yards import starts, stories_of, yard
from tests.loop.fake_git import FakeGit
from tests.loop.projects import Done, Sandbox
from tests.tables import every

AGENT = 'write(f"{STORY}.txt"); done()'
PATIENT = '[git]\npatience = "30s"\n'
WRITING = (
    *("add", "checkout", "clean", "commit", "commit-tree", "merge", "read-tree"),
    *("rm", "update-index", "update-ref", "worktree", "write-tree"),
)
READING = ("status", "diff-tree", "diff-index", "log", "ls-files", "rev-parse", "merge-base")


def assert_all_is_landed(box: Sandbox, done: Done) -> None:
    """Each story landed once and was paid once; the checkout has it; nothing is left."""
    assert done.code == 0, done.text
    assert box.passes() == {"A": True, "B": True}
    assert (starts(box, "A"), starts(box, "B")) == (1, 1)
    said = [it for it in box.git("log", "--format=%(trailers:key=Ralph-Grade)").split("\n") if it]
    assert len(said) == 2, said
    assert box.git("ls-files", "A.txt", "B.txt").split() == ["A.txt", "B.txt"]
    assert box.git("status", "--porcelain") == ""
    assert not [*(box.root / ".git").rglob("*.lock")]
    assert box.ralph("replay").code == 0


@pytest.mark.parametrize("works", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("command", every(2, WRITING))
def test_a_git_that_is_killed_once_is_asked_again(
    tmp_path: Path, command: str, works: bool
) -> None:
    """Whether it had done its work or not: both stories land, once."""
    box = yard(tmp_path, AGENT, stories=stories_of("A", "B"), toml=PATIENT)
    git = FakeGit(box, tmp_path / "fake")
    git.dies(command, works=works)
    done = box.run("--lanes", "2")
    assert git.deaths == 1, f"{command} is never asked: {sorted(set(git.asked))}"
    assert_all_is_landed(box, done)


@pytest.mark.parametrize("nth", [2, 4])
@pytest.mark.parametrize("command", ["update-ref", "checkout", "commit", "read-tree"])
def test_also_in_the_middle_of_the_run(tmp_path: Path, command: str, nth: int) -> None:
    """While something lands already."""
    box = yard(tmp_path, AGENT, stories=stories_of("A", "B"), toml=PATIENT)
    git = FakeGit(box, tmp_path / "fake")
    git.dies(command, first=nth, works=nth == 2)
    assert_all_is_landed(box, box.run("--lanes", "2"))


@pytest.mark.parametrize("command", every(2, READING))
def test_a_git_that_only_reads_is_asked_again_at_once(tmp_path: Path, command: str) -> None:
    """Nobody hears of it."""
    box = yard(tmp_path, AGENT, stories=stories_of("A", "B"), toml=PATIENT)
    git = FakeGit(box, tmp_path / "fake")
    git.dies(command, first=3, times=2)
    done = box.run("--lanes", "2")
    assert "was killed" not in done.text
    assert_all_is_landed(box, done)


WAITS = """
write(f"{STORY}.txt"); say(f"ready-{STORY}")
until("go")
done()
"""


def test_a_lock_of_the_runs_branch_is_waited_for(tmp_path: Path) -> None:
    """It is named with its age and the command, and both stories land once it is gone."""
    box = yard(tmp_path, WAITS, stories=stories_of("A", "B"), toml=PATIENT)
    process = box.start("--lanes", "2")
    deadline = time.monotonic() + 60
    while not all((box.state / f"ready-{name}").exists() for name in "AB"):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    (branch,) = box.git("for-each-ref", "--format=%(refname)", "refs/heads/ralph/2*").split()
    lock = box.root / ".git" / f"{branch}.lock"
    lock.touch()
    os.utime(lock, (time.time() - 600,) * 2)
    (box.state / "go").touch()
    time.sleep(8)
    assert process.poll() is None
    lock.unlink()
    out, err = process.communicate(timeout=100)
    assert f"on hold: {lock} is in the way: it is 10m 00s old" in out.replace("10m 01s", "10m 00s")
    assert f"remove it: rm {lock}" in out
    assert_all_is_landed(box, Done(process.returncode, out, err))


def test_a_lock_that_a_killed_git_left_in_a_lane_is_cleared(tmp_path: Path) -> None:
    """Nobody holds it, so nobody has to be asked."""
    agent = 'write(f"{STORY}.txt"); subprocess.run(["touch", index + "/index.lock"]); done()'
    find = 'index = subprocess.run(["git", "rev-parse", "--absolute-git-dir"], text=True,'
    box = yard(
        tmp_path, f"{find} stdout=-1).stdout.strip()\n{agent}",
        stories=stories_of("A", "B"), toml=PATIENT,
    )  # fmt: skip
    assert_all_is_landed(box, box.run("--lanes", "2"))


def test_what_stays_ends_the_run_and_goes_on_later(tmp_path: Path) -> None:
    """66 with the reason; `--continue` lands what was done, without the agents."""
    box = yard(tmp_path, AGENT, stories=stories_of("A", "B"), toml=PATIENT)
    git = FakeGit(box, tmp_path / "fake")
    git.dies("commit", times=1_000)
    done = box.run("--lanes", "2", env={"RALPH_GIT_PATIENCE": "5s"})
    assert done.code == 66, done.text
    assert "git commit was killed (signal 9); waited for" in done.err
    git.dies("nothing")
    done = box.run("--continue")
    assert_all_is_landed(box, done)
    assert subprocess.run(["git", "fsck"], cwd=box.root, check=False).returncode == 0
