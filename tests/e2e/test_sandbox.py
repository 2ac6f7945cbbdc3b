"""The real Claude Code and Codex in our sandbox: a whole story each, and what an agent cannot do."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import World
from tests.e2e.model_server import ModelServer, read, say, shell, use
from tests.e2e.projects import assert_done, claim, feature, project, story
from tests.tools import is_there

pytestmark = [pytest.mark.e2e, pytest.mark.tool("bwrap", "socat", optional=True)]


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_a_story_in_the_sandbox(server: ModelServer, world: World, agent: str) -> None:
    """Work goes on inside; home, secrets, .git and every port but the model's are out of reach.

    Where there is no sandbox, `strict` refuses to start and says why.
    """
    port = server.url.rpartition(":")[2].strip("/")
    made = project(
        world,
        server,
        stories=[story(1, "One")],
        agent=agent,
        agent_settings='safety = "strict"\n',
        settings=f'[sandbox]\nnetwork = ["127.0.0.1:{port}"]\n',
        agent_env={"IS_SANDBOX": ""},
    )
    if not is_there("bwrap"):
        assert made.ralph("run").returncode == 66
        return
    secret = world.home / ".ssh" / "id_ed25519"
    secret.parent.mkdir()
    secret.write_text("PRIVATE-KEY-OF-A-PERSON\n")
    outside = world.home / "outside.txt"
    server.play(
        use(*feature("one", 1)),
        use(shell(f"echo inside > inside.txt; echo outside > '{outside}'")),
        use(shell("echo x >> .git/config; git commit -qam sneaky; echo tried")),
        use(shell("python3 -c 'import urllib.request as u; u.urlopen(\"http://example.com\")'")),
        use(read(str(secret)) if agent == "claude" else shell(f"cat {secret}")),
        say(claim(exit_signal=True)),
    )
    run = made.ralph("run")
    assert_done(made, run)
    assert (made.root / "inside.txt").read_text() == "inside\n"
    assert not outside.exists()
    assert not any(request.mentions("PRIVATE-KEY-OF-A-PERSON") for request in server.requests)
    assert "x" not in (made.root / ".git/config").read_text().splitlines()
    subjects = made.git("log", "--format=%s") if hasattr(made, "git") else ""
    assert "sneaky" not in subjects
    assert "confined: the agent" in run.stderr
