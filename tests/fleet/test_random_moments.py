"""Every fault of a night with machines, twice, at moments drawn by lot; and the same over ssh.

FLEET_SEED has the same moments drawn again, FLEET_STORIES says how many stories a night has.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.fleet.faults import (
    BUDGET,
    FAULTS,
    NOTHING,
    SSH_FAULTS,
    drawn,
    part_of_the_money,
    served_night,
    ssh_night,
)
from tests.fleet.networks import can_be_made
from tests.fleet.nights import held_to_the_end

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
STORIES = int(os.environ.get("FLEET_STORIES", "20"))


@pytest.mark.parametrize("time", ["once", "again"])
@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_breaks_every_story_lands_once(tmp_path: Path, fault: str, time: str) -> None:
    """One commit for each story in a line, money counted once, no process left, replayed the same."""
    if fault == "a partition" and not can_be_made():
        pytest.skip("no network namespaces here")
    lot = drawn()
    limits = part_of_the_money(lot, STORIES) if fault == BUDGET else {}
    with served_night(tmp_path, lot, STORIES, limits) as night:
        if fault not in (NOTHING, BUDGET):
            night.wait_for_its_moment()
        FAULTS[fault](night)
        code = night.over()

    assert code == 0, night.text
    held_to_the_end(night.box, *night.names)


@pytest.mark.skipif(
    not shutil.which("sshd", path=f"/usr/sbin:{os.environ.get('PATH', '')}"), reason="no sshd"
)
@pytest.mark.parametrize("time", ["once", "again"])
@pytest.mark.parametrize("fault", SSH_FAULTS)
def test_the_same_over_ssh(tmp_path: Path, fault: str, time: str) -> None:
    """A machine behind a real sshd, with half as many stories as three machines have."""
    lot = drawn()
    with ssh_night(tmp_path, lot, max(3, STORIES // 2)) as night:
        if fault != NOTHING:
            night.wait_for_its_moment()
        SSH_FAULTS[fault](night)
        code = night.over()

    assert code == 0, night.text
    held_to_the_end(night.box, *night.names)
