"""Limits of money and tokens hold inside a start that another machine makes.

The agents of A and B use one cent (10,000 tokens) with each step and would never end, as the
first one of D.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.machines import Server, temporal_server, workers
from tests.fleet.nights import billed, held_to_the_end, iterations, paid_yard
from tests.lanes.yards import starts
from tests.loop.projects import Done, Sandbox

pytestmark = pytest.mark.e2e
BURNS = """
while STORY in "AB" or (STORY == "D" and START == 1):
    step()
    write(f"{STORY}.txt", str(used))
    time.sleep(0.3 if used < 40_000 else 2)
step()
write(f"{STORY}.txt", STORY)
status("COMPLETE")
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own."""
    with temporal_server(tmp_path) as found:
        yield found


def _night(
    tmp_path: Path, server: Server, limits: str, names: str, slots: int = 1
) -> tuple[Sandbox, Done]:
    """A night with stories of these names, and slots on two machines or on one."""
    box = paid_yard(tmp_path, BURNS, names=tuple(names), limits=limits)
    with workers(box, server, tmp_path, *("one", "two")[:slots]):
        done = box.run("--fleet", server.address, timeout=200)
    return box, done


def _failed_attempts(box: Sandbox, name: str) -> int:
    listed = json.loads(box.ralph("stories", "--json").out)["stories"]
    return int(next(it["attempts"] for it in listed if it["id"] == name))


@pytest.mark.parametrize("limit", ["max_cost_usd = 0.12", "max_tokens = 120_000"])
def test_what_the_run_has_left_ends_a_start_elsewhere(
    tmp_path: Path, server: Server, limit: str
) -> None:
    """On its machine it is ended below its part, counted once, no failed attempt; the run ends 3."""
    box, done = _night(tmp_path, server, limit, "AB", 2)

    assert done.code == 3, done.text
    assert f"another step would pass it (limits.{limit.split(maxsplit=1)[0]})" in done.text
    assert 0.02 <= billed(box, 1) <= 0.06
    assert box.status()["cost_usd"] <= 0.131  # the last start may have met it with its first step
    assert _failed_attempts(box, "A") == _failed_attempts(box, "B") == 0
    held_to_the_end(box)


def test_one_start_may_use_so_much_on_any_machine(tmp_path: Path, server: Server) -> None:
    """`max_start_cost_usd` ends each start of A on its machine; C is none the worse."""
    limits = "max_start_cost_usd = 0.06\nmax_iterations = 3"
    box, done = _night(tmp_path, server, limits, "AC", 2)

    assert done.code == 3, done.text
    assert "another step would pass it (limits.max_start_cost_usd)" in done.text
    own = [one for one in iterations(box) if one.story == "A"]
    assert len(own) == starts(box, "A") == 2
    assert all(0.02 <= billed(box, one.n) <= 0.06 for one in own)
    assert _failed_attempts(box, "A") == 0
    held_to_the_end(box, "C")


def test_one_story_does_not_take_the_night_of_the_others(tmp_path: Path, server: Server) -> None:
    """On the only machine D ends at its share of the money, which is not the end of the run."""
    box, done = _night(tmp_path, server, "max_cost_usd = 0.12", "DC")

    assert done.code == 0, done.text
    assert "another step would pass it (limits.max_story_share)" in done.text
    assert starts(box, "D") == 2
    assert box.status()["cost_usd"] <= 0.08
    held_to_the_end(box, "D", "C")
