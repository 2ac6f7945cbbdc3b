"""A directory for temporary files that fills up at night holds a run in lanes, and no more."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lanes.test_no_room import FILL, held_and_let_go
from tests.lanes.yards import landed_once, starts, stories_of, yard

HONEST = 'write(f"{STORY}.txt", STORY)\ndone()\n'


@pytest.fixture
def temporary(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with little room, for temporary files."""
    place = tmp_path / "temporary"
    place.mkdir()
    argv = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)]
    if subprocess.run(argv, capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


@pytest.mark.parametrize("when", ["landing", "lane", "agent", "agents"])
def test_a_full_directory_for_temporary_files_holds_the_run(
    tmp_path: Path, temporary: Path, when: str
) -> None:
    """Said once with its reason; with room again everything lands exactly once."""
    fill = tmp_path / "fill.py"
    fill.write_text(FILL)
    command = [sys.executable, "-S", str(fill), str(temporary / "filler")]
    if when == "lane":
        command += [str(1 << 40), "anywhere"]
    agent = HONEST
    if when.startswith("agent"):
        first = 'if STORY == "a": ' if when == "agent" else ""
        agent = f'write("a.txt", "a")\n{first}subprocess.run({[*command, str(1 << 40), "anywhere"]!r})\n'
        agent += 'os.remove("a.txt")\n' + HONEST
    checks = [["true"]] if when.startswith("agent") else [command]
    box = yard(tmp_path, agent, stories=stories_of("a", "b"), checks=checks)
    box.env["TMPDIR"] = str(temporary)
    done = held_and_let_go(box, temporary)
    assert done.code == 0, done.text
    assert [starts(box, name) for name in "ab"] == [1, 1]
    landed_once(box, "main", "a", "b")
    assert [it for it in temporary.iterdir() if it.name != "filler"] == []
