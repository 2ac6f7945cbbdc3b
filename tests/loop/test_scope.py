"""`[git] scope = "project"`: packages of one repository, each with its own run, at the same time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.guarantees import Measured
from tests.loop.projects import Done, Sandbox, sandbox, story
from tests.loop.test_requests import wait_for_wait

SCOPED = '[git]\nscope = "project"\n'
# Waits at its first start until the test has started them all, then leaves half a file for a while.
TOGETHER = """
while not (STATE.parent / "go").exists(): time.sleep(0.02)
write(f"half-{STORY}.py", "def broken("); time.sleep(0.3)
write(f"half-{STORY}.py", "x = 1\\n"); done()
"""
PATIENT = "while not (STATE.parent / 'go').exists(): time.sleep(0.02)\n"


class Packages:
    """A repository with packages that are projects of their own."""

    def __init__(self, tmp_path: Path) -> None:
        self.place = tmp_path
        self.top = sandbox(tmp_path, "done()")

    def package(self, name: str, agent: str, *, toml: str = SCOPED, **more: object) -> Sandbox:
        """A package, committed, with an agent, stories and settings of its own."""
        made = sandbox(self.place / "made" / name, agent, toml=toml, **more)  # type: ignore[arg-type]
        place = self.top.root / "packages" / name
        place.mkdir(parents=True)
        for file in ("ralph.toml", "prd.json", ".gitignore"):
            shutil.copy(made.root / file, place)
        self.top.git("add", "-A")
        self.top.git("commit", "-qm", f"package {name}")
        state = self.place / f"state-{name.replace('/', '-')}"
        state.mkdir()
        return Sandbox(place, state)

    def go(self) -> None:
        """Let all agents go on."""
        (self.place / "go").touch()

    def at_once(self, *boxes: Sandbox) -> list[Done]:
        """Runs whose first agents all work before one may end; how they ended."""
        running = [box.start() for box in boxes]
        for box in boxes:
            box.wait_for_start()
        self.go()
        told = [process.communicate(timeout=100) for process in running]
        return [Done(it.returncode, *said) for it, said in zip(running, told, strict=True)]

    def files_by_run(self, box: Sandbox) -> set[str]:
        """Everything that the commits of this package's run touch."""
        run = json.loads((box.root / ".ralph-session.json").read_text())["session_id"]
        args = ("log", f"--grep=Ralph-Run: {run}", "--name-only", "--format=")
        return set(filter(None, self.top.git(*args).split("\n")))


@pytest.fixture
def packages(tmp_path: Path) -> Packages:
    """Such a repository, without packages yet."""
    return Packages(tmp_path)


def test_two_packages_are_worked_on_at_once(packages: Packages, measured: Measured) -> None:
    """Both finish; no commit holds a file of the other, and nothing is left over or lost."""
    a, b = (packages.package(name, TOGETHER, stories=3) for name in "ab")
    for box, done in zip((a, b), packages.at_once(a, b), strict=True):
        assert done.code == 0, done.text
        assert "meanwhile; the run goes on" not in done.text
        name = f"packages/{box.root.name}/"
        touched = packages.files_by_run(box)
        measured(sum(not path.startswith(name) for path in touched))
        assert {f"{name}half-US-{n}.py" for n in (1, 2, 3)} < touched
        assert box.starts == 3
    assert packages.top.git("status", "--porcelain") == ""
    assert sum("Do US-" in subject for subject in packages.top.subjects()) == 6


def test_what_is_set_aside_is_never_the_neighbours(packages: Packages, measured: Measured) -> None:
    """One story fails and is cleaned up; what the other agent has written stays where it is."""
    fails = PATIENT + "write(f'half-{START}.py'); done()"
    never = [story("US-1", verify=["test", "-f", "never"])]
    a = packages.package("a", fails, stories=never, limits="max_attempts = 2")
    precious = """
    write("precious.py", "kept")
    while not (STATE.parent / "go").exists(): time.sleep(0.02)
    time.sleep(1.5)
    if pathlib.Path("precious.py").exists(): done()
    else: status("BLOCKED", recommendation="my file is gone")
    """
    b = packages.package("b", precious)
    first, second = packages.at_once(a, b)
    assert second.code == 0, second.text
    assert first.code != 0, first.text
    refs = packages.top.git("for-each-ref", "--format=%(refname)", "refs/ralph/set-aside")
    saved = packages.top.git("show", "--name-only", "--format=", refs.split("\n")[0])
    assert saved.split("\n")[0].startswith("packages/a/half-")
    measured(saved.count("packages/b"))


@pytest.mark.parametrize("toml", ["", SCOPED])
def test_who_wants_more_than_its_part_is_75(packages: Packages, toml: str) -> None:
    """A run over the whole work tree, or a project inside ours, waits for ours; and so do we."""
    a = packages.package("a", TOGETHER)
    other = packages.package("a/inner" if toml else "b", TOGETHER, toml=toml)
    for holds, asks in ((a, other), (other, a)):
        process = holds.start()
        holds.wait_for_start()
        before, done = asks.starts, asks.run("--allow-dirty")
        process.kill()
        process.communicate()
        assert done.code == 75, done.text
        assert f"process {process.pid}" in done.err
        assert f"holds this work tree from {holds.root}" in done.err
        assert 'scope = "project"' in done.err
        assert asks.starts == before
        packages.go()
        assert holds.run("--continue", "--allow-dirty").code == 0
        (packages.place / "go").unlink()


def test_a_neighbour_is_not_taken_off_its_branch(packages: Packages) -> None:
    """Stories that want another branch than the one that is worked on are 75."""
    a, b = (packages.package(name, TOGETHER) for name in "ab")
    prd = json.loads((b.root / "prd.json").read_text())
    (b.root / "prd.json").write_text(json.dumps({"branchName": "other", **prd}))
    process = a.start()
    a.wait_for_start()
    done = b.run("--allow-dirty")
    packages.go()
    process.communicate(timeout=100)
    assert (done.code, process.returncode) == (75, 0), done.text
    assert "works on branch main in this work tree, and the stories here want other" in done.err
    assert packages.top.git("branch", "--show-current") == "main"


def test_commits_survive_others_that_commit_all_the_time(
    packages: Packages, measured: Measured
) -> None:
    """A neighbour's locks and heads are waited for; each story has its commit and only its files."""
    a = packages.package("a", TOGETHER, stories=4)
    outside, end = packages.top.root / "packages" / "busy", threading.Event()
    outside.mkdir()

    def commit(number: int) -> None:
        (outside / "file.txt").write_text(str(number))
        for command in (["add", "."], ["commit", "-qm", f"busy {number}", "--", "."]):
            subprocess.run(["git", *command], cwd=outside, capture_output=True, check=False)

    def hammer() -> None:
        number = 0
        while not end.is_set():
            commit(number := number + 1)

    hammering = threading.Thread(target=hammer)
    hammering.start()
    try:
        (done,) = packages.at_once(a)
    finally:
        end.set()
        hammering.join()
    assert done.code == 0, done.text
    assert "meanwhile; the run goes on" not in done.text
    made = [subject for subject in packages.top.subjects() if subject.startswith("US-")]
    assert made == [f"US-{n}: Do US-{n}" for n in range(1, len(made) + 1)]
    measured(4 - len(made))
    assert all(path.startswith("packages/a/") for path in packages.files_by_run(a))


def test_what_a_neighbour_takes_out_of_the_index_is_staged_once_more(
    packages: Packages, tmp_path: Path
) -> None:
    """A partial commit beside us writes the index as it was read, without what we staged since."""
    wrapper, real = tmp_path / "bin" / "git", shutil.which("git")
    wrapper.parent.mkdir()
    once = f'case " $* " in *" --only "*) mkdir {tmp_path}/once 2>&- && {real} reset -q;; esac'
    wrapper.write_text(f'#!/bin/sh\n{once}\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    a = packages.package("a", 'write("new.py", "x = 1\\n"); done()', stories=1)
    done = a.run(env={"PATH": f"{wrapper.parent}{os.pathsep}{os.environ['PATH']}"})
    assert done.code == 0, done.text
    assert (tmp_path / "once").exists()
    assert "US-1: Do US-1" in packages.top.subjects()


@pytest.mark.parametrize(("where", "said"), [("packages/b", False), ("packages/a", True)])
def test_only_a_commit_in_our_part_is_a_head_that_moved(
    packages: Packages, where: str, said: bool
) -> None:
    """What is committed beside us while no agent works is theirs; in our project it is said."""
    a = packages.package("a", PATIENT + "write(f'{STORY}.txt'); done()", stories=2)
    process = a.start()
    a.wait_for_start()
    assert a.ralph("pause").code == 0
    packages.go()
    wait_for_wait(a, "pause")
    place = packages.top.root / where / "theirs.txt"
    place.parent.mkdir(exist_ok=True)
    place.touch()
    packages.top.git("add", str(place))
    packages.top.git("commit", "-qm", "theirs")
    assert a.ralph("resume").code == 0
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, out + err
    assert ('"theirs" meanwhile; the run goes on from there' in out) is said


@pytest.mark.parametrize(("where", "said"), [("packages/b", False), ("packages/a", True)])
def test_only_history_of_our_part_can_be_lost(packages: Packages, where: str, said: bool) -> None:
    """A neighbour that amends its own commit while our agent works takes nothing away from us."""
    a = packages.package("a", PATIENT + "write(f'{STORY}.txt'); done()")
    place = packages.top.root / where / "theirs.txt"
    place.parent.mkdir(exist_ok=True)
    place.write_text("first")
    packages.top.git("add", str(place))
    packages.top.git("commit", "-qm", "theirs")
    process = a.start()
    a.wait_for_start()
    packages.top.git("commit", "-q", "--amend", "-m", "theirs, said better")
    packages.go()
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, out + err
    assert ("history was rewritten" in out) is said


SLOW_CHECK = """
import os, pathlib, sys, time
log, me = pathlib.Path(sys.argv[1]), f"{os.getppid()}"
with log.open("a") as file: file.write("begin " + me + "\\n")
while pathlib.Path(f"{log}.hold").exists(): time.sleep(0.02)
time.sleep(0.2)
with log.open("a") as file: file.write("end " + me + "\\n")
"""


def slow_check(packages: Packages) -> tuple[Path, list[list[str]]]:
    """A check that logs when it begins and ends, and holds while a file is there; and its log."""
    program, log = packages.place / "check.py", packages.place / "log"
    program.write_text(SLOW_CHECK)
    return log, [[sys.executable, "-S", str(program), str(log)]]


def test_checks_take_turns(packages: Packages) -> None:
    """Never two at once in one work tree; the wait is on the screen."""
    log, checks = slow_check(packages)
    a, b = (packages.package(name, TOGETHER, stories=2, checks=checks) for name in "ab")
    ended = packages.at_once(a, b)
    assert [done.code for done in ended] == [0, 0], ended
    lines = log.read_text().split("\n")[:-1]
    assert len(lines) == 12
    for begin, end in zip(lines[0::2], lines[1::2], strict=True):
        assert begin.replace("begin", "end") == end, lines
    assert "on hold: checks take turns in this work tree" in "".join(done.out for done in ended)


def test_who_is_killed_in_its_turn_holds_up_nobody(packages: Packages) -> None:
    """The turn ends with the process, although its check lives on."""
    log, checks = slow_check(packages)
    a, b = (packages.package(name, TOGETHER, checks=checks) for name in "ab")
    packages.go()
    hold = Path(f"{log}.hold")
    hold.touch()
    first = a.start()
    wait_until(log.exists)
    second = b.start()
    assert second.stdout is not None
    said = next(line for line in second.stdout if "checks take turns" in line)
    first.kill()
    first.communicate()
    wait_until(lambda: log.read_text().count("begin") == 2)
    hold.unlink()
    out, err = second.communicate(timeout=100)
    assert second.returncode == 0, out + err
    assert f"in {a.root}" in said


def wait_until(is_so: Callable[[], bool]) -> None:
    """Until it is so; a test that waits for ever fails."""
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline, "it never was"
        time.sleep(0.05)


def test_a_lock_of_a_neighbour_is_no_reason_not_to_begin(packages: Packages) -> None:
    """It may be in the middle of a commit; a lock that nobody holds is taken away in the end."""
    a = packages.package("a", "write(f'{STORY}.txt'); done()")
    (packages.top.root / ".git/index.lock").touch()
    done = a.run()
    assert done.code == 0, done.text
