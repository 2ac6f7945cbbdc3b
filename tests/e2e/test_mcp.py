"""Tools of MCP servers at the default safety, with the real CLIs: what `agent.allow` is for."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import World
from tests.e2e.model_server import ModelServer, say, use
from tests.e2e.model_server.script import ToolUse
from tests.e2e.projects import assert_done, claim, feature, project, story

pytestmark = pytest.mark.e2e

SERVER = {"command": sys.executable, "args": [str(Path(__file__).with_name("mcp_ping.py"))]}
TOOL = "mcp__good__ping"


@pytest.mark.parametrize("agent", ["claude", "codex"])
@pytest.mark.parametrize("allowed", [False, True])
def test_a_tool_is_used_only_where_it_is_allowed(
    server: ModelServer, world: World, agent: str, allowed: bool
) -> None:
    """A tool of a server is refused and said, unless `agent.allow` names it."""
    settings = f"allow = [{json.dumps(TOOL)}]\n" if allowed else ""
    made = project(world, server, stories=[story(1, "One")], agent=agent, agent_settings=settings)
    if agent == "claude":
        file = world.home / ".claude.json"
        known = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps(known | {"mcpServers": {"good": SERVER}}))
    else:
        named = "".join(f"{key} = {json.dumps(value)}\n" for key, value in SERVER.items())
        file = world.home / ".codex" / "config.toml"
        file.write_text(f"{file.read_text()}\n[mcp_servers.good]\n{named}")
    server.play(use(ToolUse(TOOL, {})), use(*feature("one", 1)), say(claim(exit_signal=True)))
    run = made.ralph("run")
    assert_done(made, run)
    assert (made.root / "pinged").exists() is allowed
    assert (TOOL in run.stdout) is not allowed
