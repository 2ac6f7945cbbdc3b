"""A model that never ends, through the real CLIs: each start is ended below its ceiling."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import World
from tests.e2e.model_server import ALWAYS, ModelServer, Usage, shell, use
from tests.e2e.projects import project, story

pytestmark = [pytest.mark.timeout(240)]

_STEP = Usage(input=20_000, output=200)
_MOST = 300_000
AGENTS = [
    pytest.param("claude", "", marks=pytest.mark.e2e),
    pytest.param("codex", 'safety = "minimal"', marks=pytest.mark.e2e),
    pytest.param("gemini", 'model = "gemini-2.5-pro"', marks=pytest.mark.e2e_all),
    pytest.param("opencode", "", marks=pytest.mark.e2e_all),
]


@pytest.mark.parametrize("name, settings", AGENTS)
def test_a_start_that_never_ends_is_ended_below_its_ceiling(
    server: ModelServer, world: World, name: str, settings: str
) -> None:
    """Two million tokens would be used; what was billed is less than one start may use."""
    made = project(
        world,
        server,
        stories=[story(1, "One")],
        agent=name,
        agent_settings=settings,
        settings=f"[limits]\nmax_start_tokens = {_MOST}\nmax_iterations = 1\n",
    )
    steps = [use(shell(f"echo step {number}"), usage=_STEP, delay_s=0.8) for number in range(100)]
    server.play(*steps, use(shell("true"), usage=_STEP, times=ALWAYS))
    run = made.ralph("run", timeout_s=200)
    said = run.stdout + run.stderr
    assert "another step would pass it (limits.max_start_tokens)" in said, said
    billed = server.billed
    assert 100_000 < billed.input + billed.output <= _MOST
