"""`safety = "strict"` with the real Claude Code in a real sandbox: what an agent then cannot do."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.e2e.conftest import World
from tests.e2e.model_server import ModelServer, read, say, shell, use
from tests.e2e.projects import assert_done, claim, feature, project, story

pytestmark = pytest.mark.e2e


def _sandbox_works() -> bool:
    bwrap = shutil.which("bwrap")
    if bwrap is None or shutil.which("socat") is None:
        return False
    tried = [bwrap, "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "true"]
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not _sandbox_works(), reason="needs bubblewrap, socat and user namespaces")
def test_strict(server: ModelServer, world: World) -> None:
    """Work inside the project goes on; files outside, secrets and the network are out of reach.

    Its name is short because its directory is: the sandbox has sockets there, whose paths may not
    be longer than a hundred characters.
    """
    made = project(
        world,
        server,
        stories=[story(1, "One")],
        agent_settings='safety = "strict"\n',
        agent_env={"IS_SANDBOX": ""},
    )
    secret = world.home / ".ssh" / "id_ed25519"
    secret.parent.mkdir()
    secret.write_text("PRIVATE-KEY-OF-A-PERSON\n")
    outside = world.home / "outside.txt"
    server.play(
        use(*feature("one", 1)),
        use(shell(f"echo inside > inside.txt; echo outside > '{outside}'")),
        use(shell("git push origin main")),
        use(shell("python3 -c 'import urllib.request as u; u.urlopen(\"http://example.com\")'")),
        use(read(str(secret))),
        say(claim(exit_signal=True)),
    )
    run = made.ralph("run")
    assert_done(made, run)
    assert (made.root / "inside.txt").read_text() == "inside\n"
    assert not outside.exists()
    assert not any(request.mentions("PRIVATE-KEY-OF-A-PERSON") for request in server.requests)
    assert server.requests[3].mentions("ermission")  # the push was refused, and it was told so
    assert "3 tool calls were refused" in run.stdout  # and so is the person
