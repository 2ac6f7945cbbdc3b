"""One run per work tree: two would commit and clear away each other's half-written files."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.hook.support import Box
from tests.loop.projects import Sandbox, sandbox

# It works until it is told to end; in `b` and elsewhere it is done at once.
AGENT = """
while pathlib.Path.cwd().name == "a" and not (STATE / "go").exists(): time.sleep(0.05)
write(f"{STORY}.txt"); done()
"""


class Monorepo:
    """A repository that is a project, with two projects in it."""

    def __init__(self, tmp_path: Path) -> None:
        self.top = sandbox(tmp_path, AGENT)
        self.a, self.b = (self._package(name) for name in ("a", "b"))
        self.top.git("add", "-A")
        self.top.git("commit", "-qm", "packages")

    def _package(self, name: str) -> Sandbox:
        place = self.top.root / "packages" / name
        place.mkdir(parents=True)
        for file in ("ralph.toml", "prd.json"):
            shutil.copy(self.top.root / file, place)
        return Sandbox(place, self.top.state)

    @contextmanager
    def running(self, box: Sandbox) -> Iterator[subprocess.Popen[str]]:
        """A run whose agent works until the end of the block."""
        before = box.starts
        process = box.start()
        box.wait_for_start(before + 1)
        try:
            yield process
        finally:
            (self.top.state / "go").touch()
            process.communicate(timeout=100)


@pytest.fixture
def mono(tmp_path: Path) -> Monorepo:
    """Such a repository."""
    return Monorepo(tmp_path)


def test_a_second_run_in_the_work_tree_is_75(mono: Monorepo) -> None:
    """From a sibling and from above; process, time and directory of the other are named."""
    with mono.running(mono.a) as process:
        holder = json.loads((mono.a.root / ".ralph/holder.json").read_text())
        for box in (mono.b, mono.top):
            done = box.run("--allow-dirty")
            assert done.code == 75, done.text
            assert f"process {process.pid}, since 2" in done.err
            assert f"holds this work tree from {mono.a.root}" in done.err
        assert holder["pid"] == process.pid
        assert mono.top.starts == 1
    assert mono.b.run().code == 0


def test_reading_is_never_blocked(mono: Monorepo) -> None:
    """Status, stories and a plan are there at once; doctor names who holds the work tree."""
    with mono.running(mono.a):
        for command in (["status"], ["stories"], ["run", "--dry-run"], ["config", "show"]):
            assert mono.b.ralph(*command).code == 0, command
        findings = json.loads(mono.b.ralph("doctor", "--json").out)["findings"]
        (lock,) = (each for each in findings if each["area"] == "lock")
        assert f"in {mono.a.root} holds this work tree" in lock["message"]


def test_a_run_that_died_blocks_nobody(mono: Monorepo) -> None:
    """What it left in git's directory names a process that is gone."""
    with mono.running(mono.a) as process:
        process.kill()
        process.wait()
        done = mono.b.run("--allow-dirty")
        assert done.code == 0, done.text


def test_a_linked_work_tree_is_another_one(mono: Monorepo, tmp_path: Path) -> None:
    """That is the way to two runs at once."""
    mono.top.git("worktree", "add", "-q", str(tmp_path / "linked"))
    with mono.running(mono.a):
        linked = Sandbox(tmp_path / "linked" / "packages" / "b", mono.top.state)
        done = linked.run()
        assert done.code == 0, done.text


def test_outside_git_neighbours_do_not_meet(mono: Monorepo) -> None:
    """Without a work tree nothing is shared."""
    shutil.rmtree(mono.top.root / ".git")
    with mono.running(mono.a):
        done = mono.b.run()
        assert done.code == 0, done.text


def test_a_loop_in_a_session_takes_part(mono: Monorepo) -> None:
    """Its lease keeps runs out between two turns, and a run keeps it out."""
    session = Box(mono.a.root)
    session.begin()
    done = mono.b.run("--allow-dirty")
    assert (done.code, f"holds this work tree from {mono.a.root}" in done.err) == (75, True), (
        done.err
    )
    assert "holds this work tree" in Box(mono.b.root).command("ralph", "--allow-dirty").reason
    session.command("cancel-ralph")
    assert mono.b.run("--allow-dirty").code == 0
    with mono.running(mono.a):
        assert "holds this work tree" in Box(mono.b.root).command("ralph", "--allow-dirty").reason


def test_a_session_takes_its_own_loop_up_again(mono: Monorepo) -> None:
    """The lease in git's directory is its own: turn after turn, to the end."""
    session = Box(mono.a.root)
    session.begin()
    for _ in range(2):
        assert session.stop("Working on it.").blocks
    session.command("cancel-ralph")
    assert not (mono.top.root / ".git/ralph/holder.json").exists()


def test_a_holder_that_was_killed_leaves_nothing_in_gits_directory(tmp_path: Path) -> None:
    """Half a file beside the lock there is swept up by the next run, a foreign one stays."""
    box = sandbox(tmp_path, AGENT)
    room = box.root / ".git" / "ralph"
    room.mkdir()
    (room / ".ralph-999999999-0a1b2c3d.tmp").write_text("half a na")
    (room / "foreign.tmp").touch()
    assert box.run().code == 0
    assert [path.name for path in room.glob("*.tmp")] == ["foreign.tmp"]
