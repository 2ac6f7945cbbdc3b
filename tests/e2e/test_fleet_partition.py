"""A machine whose cable is pulled: neither the server nor the shared remote can be reached."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.fleet.machines import (
    Server,
    end_workers,
    eventually,
    machine,
    of_machine,
    start_worker,
    temporal_server,
)
from tests.fleet.networks import Network, can_be_made, git_served, networks
from tests.fleet.nights import LEASE, begun, ended, held_to_the_end, paid_yard, works_on
from tests.lanes.yards import starts
from tests.loop.projects import Sandbox, story

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not can_be_made(), reason="no network namespaces here"),
]
NAMES = ("A", "B", "C")
# The first start of A says all the time that it is there; C needs A, and ends after the cable is back.
AGENT = """
step()
(STATE / f"since-{STORY}-{START}").write_text(str(time.time()))
if STORY == "A" and START == 1:
    (STATE / "works").write_text(HERE)
    while not (STATE / "go").exists():
        (STATE / "still").write_text(str(time.time()))
        time.sleep(0.05)
    write("A.txt", "of the first start")
if STORY == "C":
    until("joined", 120)
step()
write(f"{STORY}.txt", STORY)
done()
"""


class _Site(NamedTuple):
    box: Sandbox
    server: Server
    cables: dict[str, Network]


@contextmanager
def _machines(tmp_path: Path, *names: str) -> Iterator[_Site]:
    """Workers that reach server and remote by a cable each."""
    stories = [story("A"), story("B", priority=2), story("C", priority=3, dependsOn=["A"])]
    box = paid_yard(tmp_path, AGENT, stories=stories)
    with ExitStack() as stack:
        server = stack.enter_context(temporal_server(tmp_path, "0.0.0.0"))
        port = stack.enter_context(git_served(tmp_path))
        cables = dict(zip(names, stack.enter_context(networks(len(names))), strict=True))
        found = []
        for name, cable in cables.items():
            machine(tmp_path, name, repos={"app": f"git://{cable.here}:{port}/app.git"})
            there = f"{cable.here}:{server.port}"
            worker = start_worker(
                box, server, tmp_path, name, more=f"--server {there}", inside=cable.inside
            )
            found.append(worker)
        try:
            yield _Site(box, server, cables)
        finally:
            end_workers(found)


def test_a_short_cut_heals(tmp_path: Path) -> None:
    """Within the lease nothing is lost and nothing is started twice."""
    with _machines(tmp_path, "one", "two") as (box, server, cables):
        run = begun(box, server, env={"RALPH_FLEET_LEASE": "15s"})
        cable = cables[works_on(box)]
        cable.cut()
        time.sleep(4)
        cable.join()
        (box.state / "joined").touch()
        (box.state / "go").touch()
        said = ended(run)

    assert run.returncode == 0, said
    assert [starts(box, name) for name in NAMES] == [1, 1, 1]
    held_to_the_end(box, *NAMES)


def test_a_long_cut_costs_one_start(tmp_path: Path) -> None:
    """Beyond the lease the leash ends the agent, then A starts elsewhere; its old report lands nothing."""
    with _machines(tmp_path, "one", "two") as (box, server, cables):
        run = begun(box, server, env=LEASE)
        lost = works_on(box)
        cables[lost].cut()
        eventually(lambda: starts(box, "A") == 2, 120)
        cables[lost].join()
        (box.state / "joined").touch()
        said = ended(run)
        eventually(lambda: len(of_machine(box, lost)) == 1, 90)  # the worker, and nobody else

    assert run.returncode == 0, said
    last = float((box.state / "still").read_text())
    assert last < float((box.state / "since-A-2").read_text())
    assert f"{lost} was not heard of any more" in said
    assert starts(box, "A") == 2
    held_to_the_end(box, *NAMES)
