"""Events as the journal gives them back."""

from __future__ import annotations

import pytest

from ralphloop.core import readable
from ralphloop.core.events import (
    CircuitChanged,
    Event,
    RequestAnswered,
    RunFinished,
    RunStarted,
    Unknown,
    Waiting,
    as_of_now,
    event_of,
)
from ralphloop.core.iteration import Iteration
from ralphloop.core.model import Circuit, Evidence, ExitDecision


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


def test_an_event_says_nothing_of_what_was_not_written() -> None:
    """Zeros are left out of the journal, so what is missing there is zero."""
    ended = event_of("run_finished", {"decision": "project_complete"})
    assert isinstance(ended, RunFinished)
    assert (ended.decision, ended.exit_code) == (ExitDecision.PROJECT_COMPLETE, 0)
    assert (ended.passed, ended.cost_usd, ended.unpriced) == (0, 0.0, 0)


def test_limits_that_a_person_moved_are_those_of_the_run_now() -> None:
    """Those it has none of are none; an answer about something else leaves them."""
    run = RunStarted(max_iterations=5, max_tokens=100, max_cost_usd=1.0)
    moved = as_of_now(run, RequestAnswered(max_iterations=9, max_cost_usd=2.0))
    assert (moved.max_iterations, moved.max_cost_usd) == (9, 2.0)
    assert (moved.max_tokens, moved.max_time_s) == (0, 0.0)
    assert as_of_now(run, RequestAnswered(answer="yes")) == run
    assert as_of_now(run, CircuitChanged(after=Circuit.OPEN)).circuit is Circuit.OPEN


def test_a_value_of_another_version_is_read_part_by_part() -> None:
    """A field that cannot be read costs itself, also inside of another; the rest is kept."""
    written = {
        "agent": "claude",
        "evidence": {"files_changed": 3, "tree": 7, "lost": "?"},
        "findings": ["seen"],
        "leftovers": 1,
        "response": {"reason": "why", "windows": "none"},
        "story": {"id": 1},
    }
    read = readable(written, Iteration)
    assert (read.agent, read.findings, read.leftovers, read.story) == (
        "claude",
        ("seen",),
        (),
        None,
    )
    assert read.evidence == Evidence(files_changed=3)
    assert read.response.reason == "why"
