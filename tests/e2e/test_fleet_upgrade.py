"""Machines are upgraded one by one while a night goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ralphloop import __version__
from tests.fleet.machines import Server, end_workers, eventually, start_worker, temporal_server
from tests.fleet.nights import (
    OTHER_VERSION,
    begun,
    ended,
    held_to_the_end,
    other_version,
    paid_yard,
    works_on,
)
from tests.lanes.yards import starts
from tests.loop.projects import Sandbox

pytestmark = pytest.mark.e2e
# A holds the machine that is to be upgraded, and B the other one, till the upgraded one is back.
AGENT = """
step()
if STORY == "A":
    (STATE / "works").write_text(HERE)
    until("go", 90)
if STORY == "B":
    until("upgraded", 110)
write(f"{STORY}.txt", STORY)
done()
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own."""
    with temporal_server(tmp_path) as found:
        yield found


def _where(box: Sandbox, name: str) -> str:
    return (box.state / f"where-{name}-1").read_text().split()[0]


def test_a_machine_of_another_version_takes_nobodys_work(tmp_path: Path, server: Server) -> None:
    """It refuses with words, however many slots it has free; the others do all of it, once."""
    names = ("C", "D", "E", "F")
    box = paid_yard(tmp_path, AGENT, names=names)
    found = [start_worker(box, server, tmp_path, "one")]
    found.append(
        start_worker(box, server, tmp_path, "old", env=other_version(tmp_path), more="--slots 3")
    )
    try:
        done = box.run("--fleet", server.address, "--lanes", "3")
        said = box.ralph("fleet", "status", "--server", server.address)
    finally:
        end_workers(found)

    assert done.code == 0, done.text
    assert f"old has ralph {OTHER_VERSION}, and the order is of {__version__}" in done.text
    assert f"ralph {OTHER_VERSION}" in said.out
    assert {_where(box, name) for name in names} == {"one"}
    assert [starts(box, name) for name in names] == [1, 1, 1, 1]
    held_to_the_end(box, *names)


def test_a_machine_is_upgraded_in_the_middle_of_a_night(tmp_path: Path, server: Server) -> None:
    """Drained, it ends with its story; of another version it is refused; right again it takes work."""
    names = ("A", "B", "C")
    box = paid_yard(tmp_path, AGENT, names=names)
    found = {name: start_worker(box, server, tmp_path, name) for name in ("one", "two")}
    try:
        run = begun(box, server, "--lanes", "2")  # one that is seen later has its lane all the same
        leaving = works_on(box)
        asked = box.ralph("fleet", "drain", leaving, "--server", server.address)
        (box.state / "go").touch()
        found[leaving].process.wait(60)
        found[leaving] = start_worker(box, server, tmp_path, leaving, env=other_version(tmp_path))
        refused = f"{leaving} has ralph {OTHER_VERSION}"
        eventually(lambda: refused in found[leaving].log.read_text())
        found[leaving].process.terminate()
        found[leaving].process.wait(60)
        found[leaving] = start_worker(box, server, tmp_path, leaving)
        eventually((box.state / "begun-3").exists)
        (box.state / "upgraded").touch()
        said = ended(run)
    finally:
        end_workers(found.values())

    assert asked.code == 0, asked.text
    assert run.returncode == 0, said
    assert refused in said
    assert _where(box, "C") == leaving
    assert [starts(box, name) for name in names] == [1, 1, 1]
    held_to_the_end(box, *names)
