"""`ralph plan` with the real Claude Code and Codex: a plan repaired, a question answered, a split."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ralphloop.errors import ExitCode
from tests import sentences
from tests.e2e.conftest import World
from tests.e2e.model_server import ModelServer, Usage, read, say, shell, use, write
from tests.e2e.projects import Project, project, story

pytestmark = pytest.mark.e2e

AGENTS = ["claude", "codex"]
BILL = Usage(input=2000, output=500)
ASKS = {"questions": [{"question": "Which separator?", "why": "Excel", "proposed": "a comma"}]}
BROKEN = '{"stories": [{"id": "N-1", "title": "Export",}]}'


def proposed(name: str, title: str, **more: Any) -> dict[str, Any]:
    """One story as an agent proposes it."""
    seen = [{"text": f"`{title.lower()}` prints 1", "seen": "test_first.py passes"}]
    return {"id": name, "title": title, "criteria": seen, **more}


def stories(*listed: dict[str, Any]) -> str:
    """A whole answer, as models write it."""
    return f"Here is the plan.\n\n```json\n{json.dumps({'stories': listed}, indent=2)}\n```"


PLAN = stories(
    proposed("N-2", "Import notes", dependsOn=["N-1"]),
    proposed("N-1", "Export notes", verify=["python3", "-m", "unittest", "test_export"]),
)


def listed(made: Project) -> dict[str, dict[str, Any]]:
    """The stories as they were written."""
    written = json.loads((made.root / "prd.json").read_text())["userStories"]
    return {one["id"]: one for one in written}


@pytest.mark.parametrize("agent", AGENTS)
def test_a_broken_plan_is_repaired_and_a_question_answered(
    server: ModelServer, world: World, agent: str
) -> None:
    """One conversation: it reads, asks, answers with a mistake, hears it, and mends it."""
    made = project(world, server, stories=[story(1, "One")], agent=agent)
    server.play(
        use(read("test_first.py")),
        say(json.dumps(ASKS), usage=BILL),
        say(BROKEN, usage=BILL),
        say(PLAN, usage=BILL),
    )
    done = made.ralph("plan", "Let people export notes", "--yes")
    assert done.returncode == ExitCode.COMPLETE, done.stdout + done.stderr
    assert sentences.TRAILING_COMMA in done.stderr
    assert f"asked {agent} 3 times" in done.stderr
    assert "a comma" in server.requests[2].prompt
    assert sentences.TRAILING_COMMA in server.requests[3].prompt
    written = listed(made)
    assert list(written) == ["US-001", "US-002", "US-003"]
    assert written["US-002"]["title"] == "Export notes"
    assert written["US-002"]["verifyTried"] == "not tried"
    assert written["US-003"]["dependsOn"] == ["US-002"]
    assert "A: a comma" in (made.root / written["US-002"]["parent_spec"]).read_text()
    assert not any(one["passes"] for one in written.values())


@pytest.mark.parametrize("agent", AGENTS)
def test_a_stuck_story_is_split(server: ModelServer, world: World, agent: str) -> None:
    """Two parts stand in its place, and what waited for it waits for the second."""
    made = project(
        world, server, agent=agent, stories=[story(1, "One"), story(2, "Two", dependsOn=["US-001"])]
    )
    parts = stories(proposed("a", "Half of one"), proposed("b", "All of one", dependsOn=["a"]))
    server.play(say(parts))
    done = made.ralph("plan", "--split", "US-001", "--yes")
    assert done.returncode == ExitCode.COMPLETE, done.stdout + done.stderr
    assert "two to four smaller stories" in server.requests[0].prompt
    written = listed(made)
    assert list(written) == ["US-003", "US-004", "US-002"]
    assert written["US-004"]["dependsOn"] == ["US-003"]
    assert written["US-002"]["dependsOn"] == ["US-004"]


@pytest.mark.parametrize("agent", [*AGENTS, pytest.param("opencode", marks=pytest.mark.e2e_all)])
def test_an_agent_that_only_reads_can_write_nothing(
    server: ModelServer, world: World, agent: str
) -> None:
    """What the model tries is refused by the agent itself, and its plan is used all the same."""
    made = project(world, server, stories=[story(1, "One")], agent=agent)
    tries = shell("touch sneaky.py") if agent == "codex" else write("sneaky.py", "x = 1\n")
    server.play(use(tries), say(stories(proposed("a", "Export notes"))))
    done = made.ralph("plan", "Export", "--yes")
    assert done.returncode == ExitCode.COMPLETE, done.stdout + done.stderr
    assert not (made.root / "sneaky.py").exists()
    assert made.git("status", "--porcelain") == " M prd.json\n"
