"""Events as the journal gives them back."""

from __future__ import annotations

import pytest

from ralphloop.core.events import Event, Unknown, Waiting, event_of


@pytest.mark.parametrize(
    "type_, data, event",
    [
        ("waiting", {"kind": "pause", "seconds": 3.0}, Waiting(kind="pause", seconds=3.0)),
        ("waiting", {"kind": "pause", "seconds": "long"}, Waiting(kind="pause")),
        ("waiting", {"kind": "pause", "newer": 1}, Waiting(kind="pause")),
        ("waiting", {"left_out": 90_000}, Unknown(name="waiting")),
        ("of_tomorrow", {"kind": "pause"}, Unknown(name="of_tomorrow")),
    ],
    ids=["as written", "one field broken", "of a newer version", "too long", "unknown"],
)
def test_an_event_is_read_as_far_as_it_can_be(
    type_: str, data: dict[str, object], event: Event
) -> None:
    """What cannot be read costs its own field and nothing else; a kind nobody knows keeps its name."""
    assert event_of(type_, data) == event
    assert event.type == type_
