"""An agent that puts a directory where the story file was: its doing, put right, and said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lanes.yards import starts, stories_of, yard
from tests.loop.guards import told
from tests.loop.projects import sandbox

GREEN = [["true"]]
SPLITS = """
if STORY == "US-1" and START == 1:
    os.remove("prd.json")
    os.mkdir("prd.json")
    write("prd.json/US-1.json", "{}")
write(f"{STORY}.txt", STORY)
done()
"""


def test_a_directory_in_the_place_of_the_story_file_is_put_right(tmp_path: Path) -> None:
    """The file is back, what was in the directory is kept, and the night goes on."""
    box = sandbox(tmp_path, SPLITS, stories=2, checks=GREEN)
    done = box.run("--max-iterations", "6")
    assert done.code == 0, told(done)
    assert box.passes() == {"US-1": True, "US-2": True}
    assert "the story file was made unreadable and was put back" in done.text
    kept = box.git("for-each-ref", "--format=%(refname)", "refs/ralph/lost").split()
    assert [box.git("show", f"{ref}:prd.json/US-1.json") for ref in kept] == ["{}"]
    assert kept[0] in done.text
    assert box.git("status", "--porcelain") == ""
    assert box.run("--continue").code == 64  # it finished


def test_in_a_lane_too(tmp_path: Path) -> None:
    """The lane's own story file is put back, and both stories land."""
    box = yard(tmp_path, SPLITS, stories=stories_of("US-1", "US-2"), checks=GREEN)
    done = box.run("--lanes", "2", "--max-iterations", "6")
    assert done.code == 0, told(done)
    assert box.passes() == {"US-1": True, "US-2": True}
    assert starts(box, "US-2") == 1
    assert box.git("status", "--porcelain") == ""


@pytest.mark.parametrize("lanes", [(), ("--lanes", "2")], ids=["checkout", "lanes"])
def test_an_error_leaves_no_index_of_ours(tmp_path: Path, lanes: tuple[str, ...]) -> None:
    """Where a run ends by an error, what only its process needed is gone, and the error is said."""
    agent = """
import shutil
write(f"{STORY}.txt", STORY)
top = subprocess.run(["git", "rev-parse", "--git-common-dir"], capture_output=True, text=True)
shutil.rmtree(os.path.join(top.stdout.strip(), "objects"))
done()
"""
    box = yard(tmp_path, agent, stories=stories_of("US-1"), checks=GREEN)
    done = box.run(*lanes)
    assert done.code == 66, told(done)
    assert not list((box.root / ".ralph").glob("git-index-*")), told(done)
