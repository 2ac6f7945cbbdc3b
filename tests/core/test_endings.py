"""Every way a run can end has its words and its way on."""

from __future__ import annotations

from msgspec.structs import astuple

from ralphloop.core.model import ExitDecision
from ralphloop.core.planning import ENDINGS


def test_no_ending_is_forgotten() -> None:
    """A decision that ends a run is in the table, with something to say and a command."""
    assert set(ENDINGS) == set(ExitDecision) - {ExitDecision.CONTINUE}
    assert all(all(astuple(ending)) for ending in ENDINGS.values())
