"""Git is not left in peace: a git of ours is killed, or a lock is held; the night goes on."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.loop.fake_git import FakeGit
from tests.loop.projects import Done, Sandbox, sandbox, story
from tests.tables import every

# One story is set aside, the other passes, then the first has its second chance.
STORIES = [story("US-1"), story("US-2")]
AGENT = """
if STORY == "US-1" and START == 1: write("bad.txt"); write("US-1.txt"); done()
elif STORY == "US-1": os.path.exists("bad.txt") and os.unlink("bad.txt"); write("US-1.txt"); done()
else: write("US-2.txt"); done()
"""
CHECKS = [["test", "!", "-e", "bad.txt"]]
LIMITS = "max_attempts = 1"
WRITING = (
    "add",
    "commit",
    "read-tree",
    "write-tree",
    "commit-tree",
    "update-ref",
    "reset",
    "apply",
)
READING = ("status", "diff-index", "diff-tree", "log", "rev-parse", "ls-files", "update-index")


def night(tmp_path: Path, toml: str = "") -> Sandbox:
    """Both of them, in a repository of their own."""
    return sandbox(
        tmp_path, AGENT, stories=STORIES, checks=CHECKS, limits=LIMITS,
        toml=f'[git]\npatience = "20s"\n{toml}',
    )  # fmt: skip


def assert_all_is_done(box: Sandbox, done: Done, starts: int = 3) -> None:
    """Each story landed once, nothing is paid twice, nothing is left."""
    assert done.code == 0, done.text
    assert box.passes() == {"US-1": True, "US-2": True}
    assert box.starts == starts
    said = [it for it in box.git("log", "--format=%(trailers:key=Ralph-Grade)").split("\n") if it]
    assert len(said) == 2, said
    assert box.git("status", "--porcelain") == ""
    assert sorted(box.git("ls-files", "US-*").split()) == ["US-1.txt", "US-2.txt"]
    assert not [*(box.root / ".git").rglob("*.lock")]
    assert not [*(box.root / ".ralph").glob("git-index-*")]
    assert box.ralph("replay").code == 0


@pytest.mark.parametrize("works", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("command", every(2, WRITING, first=1))
def test_a_git_that_is_killed_once_is_asked_again(
    tmp_path: Path, command: str, works: bool
) -> None:
    """Whether it had done its work or not: the night goes on, and nothing happens twice."""
    box = night(tmp_path)
    git = FakeGit(box, tmp_path / "fake")
    git.dies(command, works=works)
    done = box.run()
    assert git.deaths == 1, f"{command} is never asked: {sorted(set(git.asked))}"
    assert_all_is_done(box, done)


@pytest.mark.parametrize("first", [1, 2, 4])
@pytest.mark.parametrize("command", every(2, READING, first=1))
def test_a_git_that_only_reads_is_asked_again_at_once(
    tmp_path: Path, command: str, first: int
) -> None:
    """Nobody hears of it."""
    box = night(tmp_path)
    git = FakeGit(box, tmp_path / "fake")
    git.dies(command, first=first, times=2)
    done = box.run()
    assert git.deaths or first > 1, f"{command} is never asked: {sorted(set(git.asked))}"
    assert "was killed" not in done.text
    assert_all_is_done(box, done)


def test_what_is_killed_again_and_again_is_on_hold_and_goes_on_by_itself(tmp_path: Path) -> None:
    """The reason is said once, while it lasts."""
    box = night(tmp_path)
    git = FakeGit(box, tmp_path / "fake")
    git.dies("commit", times=6)
    done = box.run()
    assert git.deaths == 6
    assert_all_is_done(box, done)
    assert done.out.count("on hold: git commit was killed (signal 9)") == 1


def test_what_stays_is_an_end_with_its_reason_and_goes_on_later(tmp_path: Path) -> None:
    """66 after the patience is over; `--continue` does what is owed, without the agent."""
    box = night(tmp_path, 'scope = "repository"\n')
    git = FakeGit(box, tmp_path / "fake")
    git.dies("commit", times=1_000)
    began = time.monotonic()
    done = box.run(env={"RALPH_GIT_PATIENCE": "5s"})
    assert done.code == 66, done.text
    assert 5 <= time.monotonic() - began < 60
    assert "git commit was killed (signal 9); waited for" in done.err
    assert "next: Is there enough memory? Then: ralph run --continue" in done.err
    starts = box.starts
    git.dies("nothing")
    done = box.run("--continue")
    assert "finished what iteration" in done.text
    assert_all_is_done(box, done)
    assert starts == 2


def living_lock(box: Sandbox, tmp_path: Path, seconds: float) -> subprocess.Popen[bytes]:
    """A person's `git commit` whose editor is open for so long; it has the index by then."""
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\nsleep {seconds}\nexit 1\n")
    editor.chmod(0o755)
    env = {**os.environ, "GIT_EDITOR": str(editor)}
    process = subprocess.Popen(
        ["git", "commit", "-a", "--allow-empty"], cwd=box.root, env=env, stderr=subprocess.DEVNULL
    )
    until = time.monotonic() + 20
    while not (box.root / ".git/index.lock").exists():
        assert time.monotonic() < until, "it never took the lock"
        time.sleep(0.02)
    return process


WAITS = """
write("US-1.txt"); (STATE / "ready").touch()
while not (STATE / "go").exists(): time.sleep(0.02)
done()
"""


def until_ready(box: Sandbox) -> None:
    """Until the agent has worked and waits for a word."""
    until = time.monotonic() + 60
    while not (box.state / "ready").exists():
        assert time.monotonic() < until, "the agent never started"
        time.sleep(0.02)


def test_a_person_whose_editor_holds_the_index_is_waited_for(tmp_path: Path) -> None:
    """The run says who holds it, and goes on once their commit is made or given up."""
    box = sandbox(tmp_path, WAITS)
    run = box.start()
    until_ready(box)
    with living_lock(box, tmp_path, 25.0) as person:
        (box.state / "go").touch()
        out, err = run.communicate(timeout=100)
    assert run.returncode == 0, out + err
    assert f"on hold: `git commit` (process {person.pid}) holds" in out
    assert "index.lock" in out
    assert box.subjects() == ["start", "US-1: Do US-1"]
    assert not (box.root / ".git/index.lock").exists()


def test_a_lock_that_stays_is_named_with_its_age_and_the_command_that_removes_it(
    tmp_path: Path,
) -> None:
    """A dead lock of a branch: on hold, then 66 with the same words; the command helps."""
    box = sandbox(tmp_path, WAITS)
    run = box.start(env={"RALPH_GIT_PATIENCE": "6s"})
    until_ready(box)
    lock = box.root / ".git/refs/heads/main.lock"
    lock.touch()
    os.utime(lock, (time.time() - 7_200,) * 2)
    (box.state / "go").touch()
    out, err = run.communicate(timeout=100)
    assert run.returncode == 66, out + err
    named = f"{lock} is in the way: it is 2h 00m old, and no git that could have made it is running"
    assert f"on hold: {named}" in out
    assert named in err
    command = f"rm {lock}"
    assert f"Remove it: {command}; then: ralph run --continue" in err
    again = box.start("--continue", env={"RALPH_GIT_PATIENCE": "60s"})
    time.sleep(8)
    assert again.poll() is None  # it holds, and does not end at once
    subprocess.run(command.split(), check=True)
    out, err = again.communicate(timeout=100)
    assert again.returncode == 0, out + err
    assert box.starts == 1
    assert box.subjects() == ["start", "US-1: Do US-1"]


def test_a_stop_is_heard_while_git_is_waited_for(tmp_path: Path) -> None:
    """It ends as any interruption does, and what is owed is done by --continue."""
    box = sandbox(tmp_path, WAITS)
    run = box.start()
    until_ready(box)
    lock = box.root / ".git/refs/heads/main.lock"
    lock.touch()
    (box.state / "go").touch()
    time.sleep(6)
    assert box.ralph("stop").code == 0
    out, err = run.communicate(timeout=60)
    assert run.returncode == 130, out + err
    lock.unlink()
    done = box.run("--continue")
    assert done.code == 0, done.text
    assert box.starts == 1


def test_a_lock_at_the_start_is_named_with_its_age(tmp_path: Path) -> None:
    """Nothing is started, and the command that removes it is said."""
    box = sandbox(tmp_path, "write('a.txt'); done()")
    lock = box.root / ".git/index.lock"
    lock.touch()
    done = box.run()
    assert done.code == 66
    assert "s old, and no git that could have made it is running" in done.err
    assert f"rm {lock}" in done.err
    assert box.starts == 0
