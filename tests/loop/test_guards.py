"""Every way a loop burns money ends after so many starts, with its code and its words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loop.guards import GUARDS, Guard, told


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_a_misbehaving_agent_is_bounded(tmp_path: Path, guard: Guard) -> None:
    """The agent is started exactly as often as the rules allow, and the command says why."""
    box = guard.sandbox(tmp_path)
    done = guard.run(box)
    assert guard.faults(box, done) == [], told(done)
