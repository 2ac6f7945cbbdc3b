"""A disk that fills up where the person sits, while the work is done elsewhere, holds the run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.fleet.machines import ended_everywhere, machine, over_ssh, shared
from tests.lanes.test_no_room import held_and_let_go
from tests.lanes.yards import landed_once, starts, stories_of, yard
from tests.loop.projects import Sandbox
from tests.loop.test_bad_surroundings import small_disk
from tests.tables import some_of

__all__ = ["small_disk"]
# What fills the disk does it as the last thing that the agent over there does.
FILLS = """
write(f"{STORY}.txt", STORY)
with open(FILLER, "wb", buffering=0) as file:
    for size in (1 << 20, 1 << 12, 1):
        try:
            while not (STATE / "floor").exists() or os.path.getsize(FILLER) < 150 << 20:
                file.write(bytes(size))
        except OSError: pass
done()
"""
ROOM = {"the last byte": False, "the floor": True}


def project(disk: Path, tmp_path: Path) -> Sandbox:
    """A repository on the small disk; its remote, its machine and what is counted lie elsewhere."""
    agent = f"FILLER = {str(disk / 'filler')!r}\n{FILLS}"
    box = yard(disk, agent, stories=stories_of("A"))
    shutil.move(box.state, tmp_path / "state")
    box.state.symlink_to(tmp_path / "state")
    shared(box, tmp_path)
    machine(tmp_path, "one")
    box.env |= over_ssh(box, tmp_path)
    return box


@pytest.mark.parametrize("is_floor", some_of(ROOM, ["the last byte"]))
def test_a_full_disk_holds_a_run_whose_agents_work_elsewhere(
    small_disk: Path, tmp_path: Path, is_floor: bool
) -> None:
    """Its files are brought once there is room again: the start is neither lost nor made twice."""
    box = project(small_disk, tmp_path)
    if is_floor:
        (box.state / "floor").touch()
    done = held_and_let_go(box, small_disk, "--fleet", "ssh:one")

    assert done.code == 0, done.text
    assert starts(box, "A") == 1
    assert [it["attempts"] for it in done.events("iteration_finished")] == [0]
    landed_once(box, "main", "A")
    ended_everywhere(box)


@pytest.mark.slow
def test_a_report_that_found_no_room_is_brought_by_the_next_run(
    small_disk: Path, tmp_path: Path
) -> None:
    """The time of the run was over before there was room: 3, and `--continue` takes the start up."""
    box = project(small_disk, tmp_path)
    (box.state / "floor").touch()
    done = box.run("--fleet", "ssh:one", "--max-time", "20s")
    assert done.code == 3, done.text
    assert starts(box, "A") == 1
    (small_disk / "filler").unlink()
    again = box.run("--continue", "--max-time", "100s")

    assert again.code == 0, again.text
    assert "took up iteration 1, which was given away" in again.text
    assert starts(box, "A") == 1
    landed_once(box, "main", "A")
