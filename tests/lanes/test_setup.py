"""What `lanes.copy` and `lanes.setup` bring: changed settings count, and nothing stays at work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lanes.test_limits import wait
from tests.lanes.yards import landed_once, starts, stories_of, yard
from tests.loop.projects import Sandbox

HONEST = 'write(f"{STORY}.txt", STORY)\ndone()\n'
# A daemon as they are: a session of its own, nothing of ours held open; it says where it serves.
DAEMON = (
    "echo $PWD >> $TEST_STATE/served; cd /; setsid sleep 300 </dev/null >/dev/null 2>&1 & sleep 0.1"
)
SERVING = f'[lanes]\nsetup = [["sh", "-c", {json.dumps(DAEMON)}]]\n'


def daemons(box: Sandbox) -> list[str]:
    """Those that a setup left."""
    return [line for line in box.leftovers() if "sleep 300" in line]


def set_up(box: Sandbox) -> list[str]:
    """The trees in which the setup ran, in this order."""
    path = box.state / "served"
    return [Path(line).name for line in path.read_text().split()] if path.exists() else []


@pytest.mark.parametrize("check", ["true", "false"])
def test_what_a_setup_left_ends_with_the_run(tmp_path: Path, check: str) -> None:
    """It serves as long as the run goes on, whoever ends before it; also where none begins."""
    agent = (
        """
found = 0
for it in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    try: found += b"sleep\\x00300" in it.read_bytes() and (
        f"TEST_STATE={STATE}".encode() in (it.parent / "environ").read_bytes())
    except OSError: pass
(STATE / f"found-{STORY}").write_text(str(found))
"""
        + HONEST
    )
    box = yard(tmp_path, agent, stories=stories_of("a", "b", "c"), checks=[[check]], toml=SERVING)
    done = box.run("--lanes", "2")
    assert done.code == (0 if check == "true" else 66), done.text
    assert daemons(box) == []
    assert "lanes.setup had left at work" in done.text
    if check == "true":
        landed_once(box, "main", "a", "b", "c")
        assert int((box.state / "found-c").read_text()) >= 2  # where it lands, and in its lane


def test_what_a_setup_of_a_killed_run_left_is_ended_by_the_next(tmp_path: Path) -> None:
    """Nothing of it lives on, and the trees are set up anew, since they were served by it."""
    agent = f'if START == 1 and STORY == "a": say("at work"); until("never", 60)\n{HONEST}'
    box = yard(tmp_path, agent, stories=stories_of("a", "b"), toml=SERVING)
    with box.start("--lanes", "1") as process:
        wait(box, "at work")
        process.kill()
    assert len(daemons(box)) == 2
    assert sorted(set_up(box)) == ["1", "landing"]
    done = box.run("--continue")
    assert done.code == 0, done.text
    assert "had left at work" in done.text
    assert daemons(box) == []
    assert sorted(set_up(box)) == ["1", "1", "landing", "landing"]


def test_a_setup_that_leaves_nothing_runs_once(tmp_path: Path) -> None:
    """Lanes that are ready stay so for the next run, and nobody is named."""
    toml = '[lanes]\nsetup = [["sh", "-c", "echo $PWD >> $TEST_STATE/served"]]\n'
    box = yard(tmp_path, HONEST, stories=stories_of("a", "b"), toml=toml)
    assert box.run("--lanes", "1", "--max-iterations", "1").code == 3
    done = box.run("--continue", "--max-iterations", "5")
    assert done.code == 0, done.text
    assert "left at work" not in done.text
    assert sorted(set_up(box)) == ["1", "landing"]


def settings(box: Sandbox, old: str, new: str) -> None:
    """Change the settings, as a person would after reading what was said."""
    path = box.root / "ralph.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    box.git("commit", "-qam", "settings")


@pytest.mark.parametrize("how", ["copy", "include"])
def test_what_is_to_be_copied_may_change_after_a_first_try(tmp_path: Path, how: str) -> None:
    """The second start brings what the first one lacked, without cleaning anything."""
    files = {".gitignore": ".ralph*\n.env\n"}
    check = ["test", "-e", ".env"]
    toml = "[lanes]\ncopy = []\n"
    box = yard(tmp_path, HONEST, stories=stories_of("a"), checks=[check], files=files, toml=toml)
    (box.root / ".env").write_text("secret\n")
    first = box.run("--lanes", "1")
    assert first.code == 66, first.text
    if how == "copy":
        settings(box, "copy = []", 'copy = [".env"]')
    else:
        (box.root / ".worktreeinclude").write_text(".env\n")
        box.git("add", "-A")
        box.git("commit", "-qm", "include")
    done = box.run("--lanes", "1")
    assert done.code == 0, done.text
    assert starts(box, "a") == 1


def test_what_is_no_longer_to_be_copied_goes(tmp_path: Path) -> None:
    """An environment that was refused is taken out of the settings, and then out of the trees."""
    files = {".gitignore": ".ralph*\n.venv/\n"}
    toml = '[lanes]\ncopy = [".venv"]\n'
    box = yard(tmp_path, HONEST, stories=stories_of("a"), files=files, toml=toml)
    site = box.root / ".venv/lib/python3.11/site-packages"
    site.mkdir(parents=True)
    (box.root / ".venv/pyvenv.cfg").write_text("")
    (site / "p.pth").write_text(f"{box.root}/src\n")
    refused = box.run("--lanes", "1")
    assert refused.code == 66, refused.text
    (site / "p.pth").write_text("/somewhere/else\n")  # made anew: what is copied is that one
    assert box.run("--lanes", "1", "--max-iterations", "1", "--story", "a").code == 0
    lane = box.root.with_name("project.lanes") / "1"
    assert (lane / ".venv").exists()
    settings(box, '[".venv"]', "[]")
    listed = json.loads((box.root / "prd.json").read_text())
    listed["userStories"] += stories_of("b")
    (box.root / "prd.json").write_text(json.dumps(listed, indent=2))
    box.git("commit", "-qam", "more")
    done = box.run("--lanes", "1")
    assert done.code == 0, done.text
    assert not (lane / ".venv").exists()


def tool_of_the_checkout(box: Sandbox) -> None:
    """A program that a check needs and git does not have."""
    tool = box.root / "tools" / "check"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\nexit 0\n")
    tool.chmod(0o755)


def test_a_first_start_says_what_a_lane_lacks_and_goes_on_once_that_is_written(
    tmp_path: Path,
) -> None:
    """`--dry-run`, `doctor` and the run itself name it with what to write; copied, it is there, and
    while a tree is made ready that is said."""
    files = {".gitignore": ".ralph*\ntools/\n"}
    checks = [["tools/check"]]
    toml = "[lanes]\ncopy = []\n"
    box = yard(tmp_path, HONEST, stories=stories_of("a"), checks=checks, files=files, toml=toml)
    tool_of_the_checkout(box)
    lacking = "tools is not in git, and tools/check needs it"
    write = 'write [lanes] copy = ["tools"] in ralph.toml'
    planned = box.ralph("run", "--lanes", "2", "--dry-run").out
    assert f"in a lane: {lacking}: {write}" in planned
    first = box.run("--lanes", "1")
    assert first.code == 66, first.text
    assert lacking in " ".join(first.err.split())
    assert f"next: {write}" in " ".join(first.err.split())
    settings(box, "copy = []", 'copy = ["tools"]\nsetup = [["sh", "-c", "echo made > made.txt"]]')
    assert lacking not in box.ralph("run", "--lanes", "2", "--dry-run").out
    done = box.run("--lanes", "1")
    assert done.code == 0, done.text
    assert "lane 1 is made ready: copy tools; sh -c" in done.text
    assert "lane 1 is ready after" in done.text


def test_a_changed_setup_takes_effect(tmp_path: Path) -> None:
    """The trees that were ready are made ready anew, and that is said."""
    toml = '[lanes]\nsetup = [["sh", "-c", "echo one >> $TEST_STATE/served"]]\n'
    box = yard(tmp_path, HONEST, stories=stories_of("a", "b"), toml=toml)
    assert box.run("--lanes", "1", "--max-iterations", "1").code == 3
    settings(box, "echo one", "echo two")
    done = box.run("--lanes", "1")
    assert done.code == 0, done.text
    assert (box.state / "served").read_text().split() == ["one", "one", "two", "two"]
    assert done.text.count("is made ready: sh -c 'echo two") == 2


def test_a_setup_that_says_much_is_told_with_its_cause(tmp_path: Path) -> None:
    """It stands before pages of help, or behind pages of progress."""
    script = "printf 'no %s\\n' lock; seq 3000; printf '%s now\\n' ended; exit 1"
    toml = f'[lanes]\nsetup = [["sh", "-c", {json.dumps(script)}]]\n'
    box = yard(tmp_path, HONEST, stories=stories_of("a"), toml=toml)
    done = box.run("--lanes", "2")
    assert done.code == 66, done.text
    assert "no lock" in done.text
    assert "ended now" in done.text
    assert "1500" not in done.text


def test_a_setup_whose_program_is_missing_is_told_once(tmp_path: Path) -> None:
    """By the program and what is wrong with it; its command line is not said twice."""
    toml = '[lanes]\nsetup = [["no-such-tool", "install"]]\n'
    box = yard(tmp_path, HONEST, stories=stories_of("a"), toml=toml)
    done = box.run("--lanes", "2")
    assert done.code == 66, done.text
    assert "setup failed: could not run no-such-tool install: command not found" in done.text
