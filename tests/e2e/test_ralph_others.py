"""Whole runs with the other CLIs that come as data: one honest story each, one refused key each."""

from __future__ import annotations

import json

import pytest

from ralphloop.errors import ExitCode
from tests.e2e.conftest import World
from tests.e2e.model_server import ALWAYS, ModelServer, Turn, Usage, fail, say, shell, use
from tests.e2e.projects import Project, assert_done, claim, feature, project, story

pytestmark = [pytest.mark.e2e_all, pytest.mark.timeout(240)]

KEY = "Incorrect API key provided: sk-scripted."
SETTINGS = {
    "qwen": "",
    "copilot": "",
    "droid": 'model = "custom:scripted-model"',
    "cline": "",
    "cn": "",
    "goose": "",
    "aider": 'model = "openai/scripted-model"',
    "openhands": "",
}
LITTERS = {"aider": ".aider"}  # what lies about and is in no commit
WITHOUT_TOOLS = ("aider",)  # it takes whole files out of the answer

each = pytest.mark.parametrize("name", sorted(SETTINGS))


def other_project(world: World, server: ModelServer, name: str, limits: str = "") -> Project:
    """One story for one of these CLIs."""
    stories = [story(1, "One")]
    settings = f"[limits]\n{limits}\n" if limits else ""
    return project(
        world,
        server,
        stories=stories,
        agent=name,
        agent_settings=SETTINGS.get(name, ""),
        settings=settings,
    )


@each
def test_an_honest_story_is_done(server: ModelServer, world: World, name: str) -> None:
    """Two files are written, the check is green, and only they are in the commit."""
    made = other_project(world, server, name)
    server.play(*_work(name), say(claim(), times=ALWAYS))
    run = made.ralph("run", timeout_s=200)
    for left in made.git("status", "--porcelain").splitlines():
        assert name in LITTERS, left
        assert left.startswith(f"?? {LITTERS[name]}"), left
    made.git("clean", "-fdq")
    assert_done(made, run)
    assert made.subjects == ["Begin", "US-001: One"]
    committed = made.git("show", "--name-only", "--format=", "HEAD").split()
    assert {"one.py", "test_one.py"} <= set(committed)
    assert not [path for path in committed if path.startswith(".")]


def _work(name: str) -> list[Turn]:
    """The model's part in an honest story, for a CLI with tools or without."""
    files = feature("one", 1)
    if name not in WITHOUT_TOOLS:
        return [use(*files)]
    whole = [f"{it.arguments['path']}\n```\n{it.arguments['content']}```\n" for it in files]
    return [say("\n".join([*whole, claim()]))]


@each
def test_a_refused_key_ends_the_run(server: ModelServer, world: World, name: str) -> None:
    """It is the person's to mend, and said with what the CLI said."""
    made = other_project(world, server, name)
    server.play(fail(401, KEY, times=ALWAYS))
    run = made.ralph("run", timeout_s=200)
    assert run.returncode == ExitCode.AGENT_UNAVAILABLE, run.stdout + run.stderr


ACP = {
    "qwen": ["--acp"],
    "opencode": ["acp"],
    "gemini": ["--experimental-acp"],
    "goose": ["acp"],
}
DECLARED = """\
name = "{name}"
program = "{name}"
protocol = "acp"
start = {words}
[safety]
moderate = []
"""


def over_acp(made: Project, name: str) -> Project:
    """The same with the CLI spoken with by ACP."""
    (made.root / "agents.d").mkdir()
    words = json.dumps([*ACP[name], "{args}"])
    (made.root / "agents.d" / f"{name}.toml").write_text(DECLARED.format(name=name, words=words))
    made.git("add", "-A")
    made.git("commit", "-qm", "agent")
    return made


@pytest.mark.parametrize("name", sorted(ACP))
def test_an_honest_story_is_done_over_acp(server: ModelServer, world: World, name: str) -> None:
    """One client speaks with all of them: tool calls are seen, and the story is committed."""
    made = over_acp(other_project(world, server, name), name)
    server.play(use(*feature("one", 1)), say(claim(), times=ALWAYS))
    run = made.ralph("run", "--json", timeout_s=200)
    assert_done(made, run)
    steps = made.events(run, "agent_event")
    assert [step for step in steps if step["kind"] == "tool"], run.stdout


@pytest.mark.parametrize("name", sorted(ACP))
def test_a_refused_key_ends_the_run_over_acp(server: ModelServer, world: World, name: str) -> None:
    """Whether it is an error of the protocol or a sentence at the end of a turn."""
    made = over_acp(other_project(world, server, name), name)
    server.play(fail(401, KEY, times=ALWAYS))
    run = made.ralph("run", timeout_s=200)
    assert run.returncode == ExitCode.AGENT_UNAVAILABLE, run.stdout + run.stderr


def test_an_agent_that_speaks_acp_is_ended_below_its_ceiling(
    server: ModelServer, world: World
) -> None:
    """Qwen Code over ACP reports each step: two million tokens are never used."""
    made = other_project(world, server, "qwen", "max_start_tokens = 300_000\nmax_iterations = 1")
    over_acp(made, "qwen")
    step = Usage(input=20_000, output=200)
    steps = [use(shell(f"echo step {number}"), usage=step, delay_s=0.8) for number in range(100)]
    server.play(*steps, use(shell("true"), usage=step, times=ALWAYS))
    run = made.ralph("run", timeout_s=200)
    said = run.stdout + run.stderr
    assert "another step would pass it (limits.max_start_tokens)" in said, said
    billed = server.billed
    assert 100_000 < billed.input + billed.output <= 300_000
