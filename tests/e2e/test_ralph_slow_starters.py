"""Whole runs of `ralph run` with the real Gemini CLI and opencode: done, refused, stopped."""

from __future__ import annotations

import pytest

from ralphloop.errors import ExitCode
from tests import sentences
from tests.e2e.conftest import World
from tests.e2e.model_server import ALWAYS, ModelServer, fail, read, say, shell, use
from tests.e2e.model_server import edit as change
from tests.e2e.projects import Project, assert_done, claim, counted, feature, project, story

pytestmark = [pytest.mark.e2e_all, pytest.mark.timeout(240)]

SETTINGS = {"gemini": 'model = "gemini-2.5-pro"', "opencode": ""}

both = pytest.mark.parametrize("name", sorted(SETTINGS))


def slow_project(world: World, server: ModelServer, name: str) -> Project:
    """One story for a CLI that takes its time."""
    stories = [story(1, "One")]
    return project(world, server, stories=stories, agent=name, agent_settings=SETTINGS[name])


@both
def test_a_story_is_done_after_a_lie(server: ModelServer, world: World, name: str) -> None:
    """Files are written and edited, the false claim is refuted, and the tokens are the model's."""
    made = slow_project(world, server, name)
    server.play(
        use(*feature("one", 1, tested=2)),
        say(claim("Implemented and fully tested.")),
        use(read("one.py")),
        use(change("one.py", "    return 1", "    return 2")),
        use(shell("python3 -m unittest -q")),
        say(claim("Now it is right.", exit_signal=True)),
    )
    assert_done(made, made.ralph("run", timeout_s=200))
    assert made.subjects == ["Begin", "US-001: One"]
    assert counted(made.status()) == server.billed


@both
def test_a_wrong_key_ends_the_run(server: ModelServer, world: World, name: str) -> None:
    """Nothing can be done without a person, who is told what."""
    made = slow_project(world, server, name)
    server.play(fail(401, "bad key", times=ALWAYS))
    run = made.ralph("run", timeout_s=200)
    assert run.returncode == ExitCode.AGENT_UNAVAILABLE
    assert "next:" in run.stdout + run.stderr


@both
def test_ctrl_c_stops_everything(server: ModelServer, world: World, name: str) -> None:
    """The agent is stopped, whatever it makes of signals, and the way to go on is said."""
    made = slow_project(world, server, name)
    server.play(say("A long thought", pause_s=200))
    running = made.start("run")
    server.wait_for_request(1, timeout_s=120)
    made.interrupt(running)
    out, _ = running.communicate(timeout=60)
    assert running.returncode == ExitCode.INTERRUPTED, out
    assert sentences.GO_ON in out
