"""What `ralph fleet status` says of a machine."""

from __future__ import annotations

import pytest

from ralphloop.cli.fleet import _in_words
from ralphloop.fleet.carrier import Seat


@pytest.mark.parametrize(
    ("seat", "words"),
    [
        (Seat(name="one", heard=20.0), "1 slot; heard of 20 s ago; is free"),
        (
            Seat(name="one", heard=90.0),
            "1 slot; heard of 90 s ago; asks for no orders: it is drained, gone, or at work for others",
        ),
        (
            Seat(name="one", heard=90.0, works_on=("r/1 (agent)",)),
            "1 slot; heard of 90 s ago; works on r/1 (agent)",
        ),
        (Seat(name="one", heard=9.0, apart="no key"), "1 slot; heard of 9 s ago; no key"),
    ],
)
def test_who_is_not_heard_of_is_not_called_free(seat: Seat, words: str) -> None:
    """The server names a machine for minutes after it has gone."""
    assert _in_words(seat) == words
