"""A disk that fills up while a story lands holds the run; with room again it goes on by itself."""

from __future__ import annotations

import json
import shutil
import threading
import time
from pathlib import Path

import pytest

from tests import sentences
from tests.lanes.yards import starts, stories_of, yard
from tests.loop.projects import Done, Sandbox
from tests.loop.test_bad_surroundings import MEGABYTE, small_disk

__all__ = ["small_disk"]
HONEST = 'write(f"{STORY}.txt", STORY)\ndone()\n'
# To the last byte, once, where its file lies; what comes after it has no room.  It is done by the
# check of a, where it lands or anywhere; red is what is checked while there is too little room.
FILL = """
import os, pathlib, shutil, sys
flag, filler = pathlib.Path(os.environ["TEST_STATE"], "full"), pathlib.Path(sys.argv[1])
here = "anywhere" in sys.argv or os.path.basename(os.getcwd()) == "landing"
if os.path.exists("a.txt") and here and not flag.exists():
    with open(filler, "wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while len(sys.argv) < 3 or filler.stat().st_size < int(sys.argv[2]):
                    file.write(bytes(size))
            except OSError: pass
    flag.write_text("")
sys.exit("red" in sys.argv and shutil.disk_usage(filler.parent).free < 200 << 20)
"""


def project(disk: Path, tmp_path: Path, *more: str, hook: bool = False) -> Sandbox:
    """A repository on the small disk; what counts is counted elsewhere."""
    fill = tmp_path / "fill.py"
    fill.write_text(FILL)
    command = ["python3", "-S", str(fill), str(disk / "filler"), *more]
    checks = [["true"]] if hook else [command]
    box = yard(disk, HONEST, stories=stories_of("a", "b"), checks=checks)
    shutil.move(box.state, tmp_path / "state")
    box.state.symlink_to(tmp_path / "state")
    if hook:
        script = box.root / ".git/hooks/pre-commit"
        script.write_text("#!/bin/sh\nexec " + " ".join(command) + "\n")
        script.chmod(0o755)
    return box


def held_and_let_go(box: Sandbox, disk: Path, *words: str) -> Done:
    """The run, with room made a moment after it was held."""
    lines, until = list[str](), time.monotonic() + 60
    with box.start("--lanes", "2", "--json", *words) as process:
        reading = threading.Thread(target=lambda: lines.extend(process.stdout or ()))
        reading.start()
        while not any('"waiting"' in line and "once there is room" in line for line in lines):
            assert time.monotonic() < until, lines
            assert process.poll() is None, (lines, process.stderr and process.stderr.read())
            time.sleep(0.05)
        (disk / "filler").unlink()
        code = process.wait(60)
        reading.join()
        return Done(code, "".join(lines), process.stderr.read() if process.stderr else "")


@pytest.mark.parametrize(
    ("more", "hook"),
    [
        ((), False),
        ((str(150 * MEGABYTE),), False),
        ((str(150 * MEGABYTE), "red"), False),
        ((), True),
        ((str(1 << 40), "anywhere"), False),
    ],
    ids=["last-byte", "floor", "red-for-it", "commit", "in-a-lane"],
)
def test_a_full_disk_while_landing_holds_the_run(
    small_disk: Path, tmp_path: Path, more: tuple[str, ...], hook: bool
) -> None:
    """Said once with its reason; then everything lands exactly once, without another start."""
    box = project(small_disk, tmp_path, *more, hook=hook)
    done = held_and_let_go(box, small_disk)
    assert done.code == 0, done.text
    assert [starts(box, name) for name in "ab"] == [1, 1]
    assert sorted(box.subjects()) == ["a: Do a", "b: Do b", "start"]
    assert [it["attempts"] for it in done.events("iteration_finished")] == [0, 0]
    progress = (box.root / "progress.txt").read_text()
    assert progress.count("Outcome: passed") == 2, progress
    assert box.git("fsck", "--no-dangling") == ""
    assert box.git("status", "--porcelain") == ""


def test_a_run_that_is_held_can_be_stopped_and_goes_on_later(
    small_disk: Path, tmp_path: Path
) -> None:
    """Its time runs out while it waits for room: 3, and the next one lands what is left."""
    box = project(small_disk, tmp_path, str(150 * MEGABYTE), "red")
    done = box.run("--lanes", "1", "--json", "--max-time", "4s")
    assert done.code == 3, done.text
    assert sentences.DISK_LOW in done.out
    assert sentences.GO_ON in json.dumps(done.events("run_finished"))
    assert box.subjects() == ["start"]
    (small_disk / "filler").unlink()
    done = box.run("--continue", "--max-time", "100s")
    assert done.code == 0, done.text
    assert [starts(box, name) for name in "ab"] == [1, 1]
    assert sorted(box.subjects()) == ["a: Do a", "b: Do b", "start"]
