"""Two lanes with the real Claude Code at the same time, against the scripted model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.e2e.conftest import World
from tests.e2e.model_server import ModelServer, ToolUse, say, use
from tests.e2e.projects import assert_done, claim, counted, feature, of_story, project, story

pytestmark = pytest.mark.e2e


def in_lane(lane: Path, name: str, answer: int) -> list[ToolUse]:
    """A module with its test, written where the lane is."""
    calls = feature(name, answer)
    return [replace(it, arguments={**it.arguments, "path": str(lane / str(it.arguments["path"]))})
            for it in calls]  # fmt: skip


def test_two_real_agents_land_one_after_the_other(server: ModelServer, world: World) -> None:
    """Each works in its lane; both land on one line, and what they cost is counted once."""
    made = project(world, server, stories=[story(1, "One"), story(2, "Two")])
    lanes = made.root.with_name(f"{made.root.name}.lanes")
    for number, name in enumerate(("one", "two"), 1):
        calls = in_lane(lanes / str(number), name, number)
        server.play(use(*calls), say(claim()), when=of_story(number))
    run = made.ralph("run", "--lanes", "2", "--json")
    assert_done(made, run)
    assert sorted(made.subjects) == ["Begin", "US-001: One", "US-002: Two"]
    assert {it["lane"] for it in made.events(run, "iteration_started")} == {1, 2}
    assert made.events(run, "lane_left") == []
    assert counted(made.status()) == server.billed


def test_a_real_agent_that_writes_into_the_checkout_does_not_land(
    server: ModelServer, world: World
) -> None:
    """Its files are named, its story does not pass; once it stays in its lane, it lands."""
    made = project(world, server, stories=[story(1, "One")])
    lane = made.root.with_name(f"{made.root.name}.lanes") / "1"
    server.play(use(*feature("one", 1)), say(claim())).play(
        use(*in_lane(lane, "one", 1)), say(claim())
    )
    run = made.ralph("run", "--lanes", "1", "--json")
    (left,) = made.events(run, "lane_left")
    assert "one.py" in left["reason"]
    assert [it["passed"] for it in made.events(run, "iteration_finished")] == [False, True]
    assert made.subjects == ["Begin"]  # the checkout is not clean: its branch stays
    assert "git merge ralph/" in run.stderr
