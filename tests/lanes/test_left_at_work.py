"""What a killed supervisor leaves at work in a tree is ended before anybody touches that tree."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.lanes.test_limits import wait
from tests.lanes.yards import starts, stories_of, yard
from tests.loop.projects import Sandbox

HONEST = 'write(f"{STORY}.txt", STORY)\ndone()\n'
# Where TEST_STATE/slow names this tree it says so and takes long; its second half would do harm.
SLOW = (
    "case $PWD in *$(cat $TEST_STATE/slow)) : > $TEST_STATE/begun; sleep 60;"
    " : > late.txt;; esac; exit 0"
)


def killed_while_busy(box: Sandbox, where: str, *words: str) -> None:
    """SIGKILL for ralph while a command of its own runs in this tree."""
    (box.state / "slow").write_text(where)
    with box.start(*words) as process:
        wait(box, "begun")
        process.kill()
    assert any("sleep" in line for line in box.leftovers())
    (box.state / "slow").write_text("nowhere")


@pytest.mark.parametrize(
    ("where", "words"),
    [("/clean/project-*", ()), ("/1", ("--lanes", "1")), ("landing", ("--lanes", "1"))],
)
def test_a_check_of_a_killed_run_is_ended(tmp_path: Path, where: str, words: list[str]) -> None:
    """In the checkout, in a lane and where it lands: the successor says so and goes on."""
    agent = f'(STATE / "slow").write_text("{where}")\n{HONEST}'
    box = yard(tmp_path, agent, stories=stories_of("a"), checks=[["sh", "-c", SLOW]])
    (box.state / "slow").write_text("nowhere")
    with box.start(*words) as process:
        wait(box, "begun")
        process.kill()
    assert any("sleep" in line for line in box.leftovers())
    (box.state / "slow").write_text("nowhere")
    done = box.run("--continue")
    assert done.code == 0, done.text
    assert "had left at work: " in done.text
    assert starts(box, "a") == 1
    assert box.leftovers() == []
    assert not list(box.root.parent.rglob("late.txt"))


def test_a_setup_and_a_hook_of_a_killed_run_are_ended(tmp_path: Path) -> None:
    """Also those that run before there is a run, and those of a commit."""
    toml = f'[lanes]\nsetup = [["sh", "-c", "{SLOW}"]]\n'
    box = yard(tmp_path, HONEST, stories=stories_of("a"), toml=toml)
    killed_while_busy(box, "landing", "--lanes", "1")
    hook = box.root / ".git/hooks/pre-commit"
    hook.write_text(f"#!/bin/sh\n{SLOW}\n")
    hook.chmod(0o755)
    (box.state / "begun").unlink()
    killed_while_busy(box, "landing", "--lanes", "1")
    done = box.run()  # killed before there was a run: there is none to continue
    assert done.code == 0, done.text
    assert box.leftovers() == []
    assert box.subjects() == ["start", "a: Do a"]
    assert not list(box.root.parent.rglob("late.txt"))


def test_cleaning_ends_what_still_works_in_a_lane(tmp_path: Path) -> None:
    """Agents and checks go before their tree does, and what they made is saved."""
    agent = f"""
if STORY == "a": write("half.txt"); say("half"); until("never", 60)
(STATE / "slow").write_text("/2")
{HONEST}"""
    box = yard(tmp_path, agent, stories=stories_of("a", "b"), checks=[["sh", "-c", SLOW]])
    (box.state / "slow").write_text("nowhere")
    with box.start("--lanes", "2") as process:
        wait(box, "begun", "half")
        process.kill()
    cleaned = box.ralph("lanes", "clean")
    assert cleaned.code == 0, cleaned.text
    assert cleaned.out.count("left by a run that was killed") >= 2
    assert box.leftovers() == []
    assert not box.root.with_name("project.lanes").exists()
    (box.state / "slow").write_text("nowhere")
    (box.state / "never").write_text("")
    done = box.run("--continue")
    assert done.code == 0, done.text
    assert sorted(box.subjects()) == ["a: Do a", "b: Do b", "start"]
    assert (box.root / "half.txt").exists()


def test_a_service_that_a_check_left_on_purpose_lives(tmp_path: Path) -> None:
    """A run that ended by itself has nothing to be ended: whoever left its session stays."""
    serve = "test -e $TEST_STATE/pid || { setsid sleep 300 & echo $! > $TEST_STATE/pid; }"
    box = yard(tmp_path, HONEST, stories=stories_of("a", "b"), checks=[["sh", "-c", serve]])
    assert box.run("--lanes", "1", "--max-iterations", "1").code == 3
    done = box.run("--continue", "--max-iterations", "5")
    assert done.code == 0, done.text
    assert "left at work" not in done.text
    deadline = time.monotonic() + 5
    while not (found := [it for it in box.leftovers() if "sleep 300" in it]):
        assert time.monotonic() < deadline
    for line in found:
        os.kill(int(line.split()[0]), signal.SIGKILL)
