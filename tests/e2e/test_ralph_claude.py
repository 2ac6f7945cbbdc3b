"""Whole runs of `ralph run` with the real Claude Code: good nights, bad nights, and the bill."""

from __future__ import annotations

import signal
import time

import pytest

from ralphloop.errors import ExitCode
from ralphloop.text.status_block import Status
from tests import sentences
from tests.e2e.bills import assert_dollars_billed
from tests.e2e.clis import CLIS, YEAR_OLD
from tests.e2e.conftest import World
from tests.e2e.model_server import (
    ALWAYS,
    ModelServer,
    Turn,
    Usage,
    edit,
    fail,
    read,
    say,
    shell,
    use,
    write,
)
from tests.e2e.processes import agent_process, named, processes_of
from tests.e2e.projects import (
    UNITTEST,
    assert_done,
    claim,
    counted,
    feature,
    of_story,
    project,
    story,
)
from tests.e2e.trouble import claude_usage_limit

pytestmark = pytest.mark.e2e

ONE = (use(*feature("one", 1)), say(claim(exit_signal=True)))
BILL = Usage(input=2000, output=500, cache_read=300, cache_write=200)


def test_two_stories_of_which_the_first_done_was_a_lie(server: ModelServer, world: World) -> None:
    """A claim that the checks refute is not believed; the next start is told what failed."""
    made = project(world, server, stories=[story(1, "One"), story(2, "Two", dependsOn=["US-001"])])
    server.play(
        use(*feature("one", 1, tested=2)),
        say(claim("Implemented and fully tested."), usage=BILL),
        use(read("one.py")),
        use(edit("one.py", "    return 1", "    return 2")),
        say(claim("Now it is right.")),
        when=of_story(1),
    ).play(
        use(*feature("two", 2)),
        use(shell("python3 -m unittest -q")),
        say(claim("All stories are done.", exit_signal=True)),
        when=of_story(2),
    )
    run = made.ralph("run", "--json")
    assert_done(made, run)
    assert made.subjects == ["Begin", "US-001: One", "US-002: Two"]
    assert [it["story"] for it in made.events(run, "iteration_started")] == [
        "US-001",
        "US-001",
        "US-002",
    ]
    assert "AssertionError: 1 != 2" in server.requests[2].prompt
    assert_dollars_billed(made, server)


def test_a_year_old_claude_does_two_stories(server: ModelServer, world: World) -> None:
    """Flags it does not know are left out, which is said; its work is judged like any other."""
    stories = [story(1, "One"), story(2, "Two")]
    made = project(world, server, stories=stories, cli=YEAR_OLD)
    server.play(
        *(use(*feature("one", 1, tested=2)), say(claim("Implemented."), usage=BILL)),
        *(use(read("one.py")), use(edit("one.py", "    return 1", "    return 2"))),
        say(claim("Now it is right.")),
        when=of_story(1),
    ).play(
        use(*feature("two", 2)),
        use(shell("python3 -m unittest -q")),
        say(claim("All stories are done.", exit_signal=True)),
        when=of_story(2),
    )
    run = made.ralph("run")
    assert_done(made, run)
    assert "does not know --permission-prompts" in run.stdout + run.stderr
    assert made.subjects == ["Begin", "US-001: One", "US-002: Two"]
    assert counted(made.status()) == server.billed


def test_a_forgotten_block_is_asked_for(server: ModelServer, world: World) -> None:
    """The same conversation gives it, without tools at hand: one iteration, and both are paid."""
    made = project(world, server, stories=[story(1, "One")])
    server.play(use(*feature("one", 1)), say("I did a part.", usage=BILL), say(claim(), usage=BILL))
    run = made.ralph("run", "--json")
    assert_done(made, run)
    assert len(server.requests) == 3
    asked = server.requests[-1]
    assert "RALPH_STATUS block" in asked.prompt
    assert asked.question.tools == ()
    (ended,) = made.events(run, "iteration_finished")
    assert any("status" in words for words in ended["warnings"])
    assert_dollars_billed(made, server)


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(fail(429, headers={"retry-after": "600"}), id="429"),
        pytest.param(fail(529, times=3), id="529"),
        pytest.param(fail(500, times=2), id="500"),
    ],
)
def test_an_outage_is_sat_out(server: ModelServer, world: World, trouble: Turn) -> None:
    """A start that the API refused is no iteration; the story is done when it answers again."""
    made = project(
        world,
        server,
        stories=[story(1, "One")],
        agent_env={"CLAUDE_CODE_MAX_RETRIES": "1"},
        settings='[limits]\nbackoff = "200ms"\n',
    )
    server.play(trouble, *ONE)
    assert_done(made, made.ralph("run"))
    assert made.status()["session"]["iterations"] == 1
    assert_dollars_billed(made, server)


def test_a_wrong_key_ends_the_run_at_once(server: ModelServer, world: World) -> None:
    """Claude Code would retry for three minutes; ralph stops it at the first word and says why."""
    made = project(world, server, stories=[story(1, "One")])
    server.play(fail(401, "invalid x-api-key", times=ALWAYS))
    began = time.monotonic()
    run = made.ralph("run")
    assert run.returncode == ExitCode.AGENT_UNAVAILABLE
    assert time.monotonic() - began < 30
    assert made.passes == {"US-001": False}
    assert "next:" in run.stdout + run.stderr


def test_a_usage_limit_is_waited_for(server: ModelServer, world: World) -> None:
    """The next start comes when the limit has been lifted, and the wait is no iteration."""
    made = project(
        world,
        server,
        stories=[story(1, "One")],
        agent_env={"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-scripted", "ANTHROPIC_API_KEY": ""},
    )
    server.play(claude_usage_limit(resets_in_s=3), *ONE)
    run = made.ralph("run", "--json")
    assert_done(made, run)
    limited, again = server.requests[:2]
    assert again.at - limited.at >= 2.5
    assert made.status()["session"]["iterations"] == 1
    waited = [it for it in made.events(run, "waiting") if it["seconds"]]
    assert [it["kind"] for it in waited] == ["quota"]


def test_a_usage_limit_ends_the_run_where_waiting_is_not_wanted(
    server: ModelServer, world: World
) -> None:
    """With --no-wait the run ends as limited and says how to go on."""
    made = project(
        world,
        server,
        stories=[story(1, "One")],
        agent_env={"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-scripted", "ANTHROPIC_API_KEY": ""},
    )
    server.play(claude_usage_limit(resets_in_s=3600))
    run = made.ralph("run", "--no-wait")
    assert run.returncode == ExitCode.LIMIT
    assert sentences.GO_ON in run.stdout + run.stderr


def test_out_of_turns_is_not_the_end(server: ModelServer, world: World) -> None:
    """What was done stays, and the next start goes on."""
    made = project(
        world, server, stories=[story(1, "One")], agent_settings='args = ["--max-turns", "1"]'
    )
    server.play(use(*feature("one", 1)), say(claim("It was all there.", exit_signal=True)))
    run = made.ralph("run", "--json")
    assert_done(made, run)
    assert [it["outcome"] for it in made.events(run, "iteration_finished")] == [
        "limit",
        "completed",
    ]
    assert_dollars_billed(made, server)


def test_the_budget_holds(server: ModelServer, world: World) -> None:
    """When the money is spent the run ends, with work left and every cent accounted for."""
    made = project(world, server, stories=[story(1, "One"), story(2, "Two")])
    for number, name in ((1, "one"), (2, "two")):  # each meets its share of the money
        work = use(*feature(name, number), usage=BILL)
        server.play(work, say(claim(), usage=BILL), when=of_story(number))
    run = made.ralph("run", "--max-cost", "0.03")
    assert run.returncode == ExitCode.LIMIT
    assert "--max-cost" in run.stdout + run.stderr
    assert_dollars_billed(made, server)


def test_silence_in_the_middle_of_an_answer_is_ended(server: ModelServer, world: World) -> None:
    """Our stall clock stops a stream that hangs, and the next start does the work."""
    made = project(
        world, server, stories=[story(1, "One")], settings='[limits]\nstall_timeout = "5s"\n'
    )
    server.play(say("I think, and think", pause_s=100), *ONE)
    began = time.monotonic()
    run = made.ralph("run", "--json")
    assert_done(made, run)
    assert time.monotonic() - began < 40
    assert server.requests[0].abandoned
    assert made.events(run, "iteration_finished")[0]["outcome"] == "stalled"
    assert counted(made.status()) == server.billed


def test_an_agent_killed_by_someone_else_is_started_again(
    server: ModelServer, world: World
) -> None:
    """A SIGTERM from outside says nothing about the work, and what it cost is counted."""
    made = project(
        world, server, stories=[story(1, "One")], settings='[limits]\nbackoff = "200ms"\n'
    )
    thought = "A long thought, and then " * 80  # the newest pieces are held back for a while
    server.play(say(thought, pause_s=100, usage=BILL), *ONE)
    running = made.start("run", "--json")
    made.wait_for_transcript("text_delta", running)
    agent_process(world.work, CLIS["claude"].program).send_signal(signal.SIGTERM)
    out, _ = running.communicate(timeout=60)
    assert running.returncode == ExitCode.COMPLETE, out
    assert '"killed"' in out
    assert_dollars_billed(made, server)


def test_ctrl_c_in_the_middle_of_a_tool_leaves_nothing_running(
    server: ModelServer, world: World
) -> None:
    """The agent and its command are stopped, and `--continue` takes the story up again."""
    made = project(world, server, stories=[story(1, "One")])
    endless = "touch begun; while true; do sleep 0.2; done"
    server.play(use(shell(endless)), *ONE)
    running = made.start("run")
    made.wait_for_file("begun", running)
    made.interrupt(running)
    out, _ = running.communicate(timeout=60)
    assert running.returncode == ExitCode.INTERRUPTED, out
    assert sentences.GO_ON in out
    assert [named(it) for it in processes_of(world.work)] == []
    assert_done(made, made.ralph("run", "--continue"))


def test_killed_in_the_middle_of_a_tool_it_goes_on(server: ModelServer, world: World) -> None:
    """After kill -9 `--continue` ends what still ran, forgets no token and finishes the work."""
    made = project(world, server, stories=[story(1, "One")])
    endless = "touch begun; while true; do sleep 0.2; done"
    server.play(use(write("notes.txt", "half\n"), usage=BILL), use(shell(endless)), *ONE)
    running = made.start("run")
    made.wait_for_file("begun", running)
    made.wait_for_transcript("touch begun", running)
    running.kill()
    running.communicate()
    run = made.ralph("run", "--continue", "--json")
    assert_done(made, run)
    assert [it["story"] for it in made.events(run, "iteration_started")] == ["US-001"]
    assert made.events(run, "run_started")[0]["continued"] is True
    assert_dollars_billed(made, server)


def test_a_retry_resumes_the_conversation_where_wanted(server: ModelServer, world: World) -> None:
    """The second attempt sees the first, and no token is counted twice."""
    made = project(world, server, stories=[story(1, "One")], agent_settings='context = "resume"')
    server.play(
        use(*feature("one", 1, tested=2), usage=BILL),
        say(claim("My first and wrong answer."), usage=BILL),
        use(read("one.py")),
        use(edit("one.py", "    return 1", "    return 2")),
        say(claim("Now it is right.", exit_signal=True)),
    )
    assert_done(made, made.ralph("run"))
    assert server.requests[2].mentions("My first and wrong answer.")
    assert "AssertionError: 1 != 2" in server.requests[2].prompt
    assert counted(made.status()) == server.billed


def test_a_conversation_that_is_gone_is_begun_anew(server: ModelServer, world: World) -> None:
    """A dead session id costs one start without a model, not the night."""
    forget = ["rm", "-rf", str(world.home / ".claude" / "projects")]
    made = project(
        world,
        server,
        stories=[story(1, "One")],
        checks=[UNITTEST, forget],
        agent_settings='context = "resume"',
        settings='[limits]\nbackoff = "200ms"\n',
    )
    server.play(
        use(*feature("one", 1, tested=2)),
        say(claim("My first and wrong answer.")),
        use(read("one.py")),
        use(edit("one.py", "    return 1", "    return 2")),
        say(claim("Now it is right.", exit_signal=True)),
    )
    run = made.ralph("run", "--json")
    assert_done(made, run)
    roles = [message["role"] for message in server.requests[2].body["messages"]]
    assert "assistant" not in roles
    assert [it["outcome"] for it in made.events(run, "iteration_finished")] == [
        "completed",
        "startup_error",
        "completed",
    ]
    assert_dollars_billed(made, server)


def test_refused_tools_are_seen_and_survived(server: ModelServer, world: World) -> None:
    """A start whose tools were refused is reported as such; the next one finds another way."""
    made = project(world, server, stories=[story(1, "One")])
    settings = made.root / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"permissions": {"deny": ["Bash(curl:*)"]}}\n')
    made.git("add", ".")
    made.git("commit", "-q", "-m", "Deny the network")
    server.play(
        use(shell("curl http://127.0.0.1:9/")),
        say(claim("I was not allowed to.", status=Status.IN_PROGRESS)),
        *ONE,
    )
    run = made.ralph("run", "--json")
    assert_done(made, run)
    first = made.events(run, "iteration_finished")[0]
    assert first["outcome"] == "denied"
    assert any("denied" in warning for warning in first["warnings"])
    assert_dollars_billed(made, server)


def test_a_prompt_of_200_kilobytes_arrives(server: ModelServer, world: World) -> None:
    """PROMPT.md goes to the model as it is, however long."""
    made = project(world, server, stories=[story(1, "One")])
    (made.root / "PROMPT.md").write_text(
        "The very first words.\n" + "All work and no play.\n" * 9_000 + "The very last words.\n"
    )
    made.git("add", ".")
    made.git("commit", "-q", "-m", "Say a lot")
    server.play(*ONE)
    assert_done(made, made.ralph("run"))
    prompt = server.requests[0].prompt
    assert prompt.startswith("The very first words.")
    assert prompt.count("All work and no play.") == 9_000
    assert "The very last words." in prompt


def test_project_memory_and_skills_are_loaded(server: ModelServer, world: World) -> None:
    """CLAUDE.md and the project's skills reach the model in an unattended run, too."""
    made = project(world, server, stories=[story(1, "One")])
    (made.root / "CLAUDE.md").write_text("Never use tabs in this house.\n")
    skill = made.root / ".claude" / "skills" / "testing-learned" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: testing-learned\ndescription: How we test\n---\nUse unittest.\n")
    made.git("add", ".")
    made.git("commit", "-q", "-m", "Teach")
    server.play(*ONE)
    assert_done(made, made.ralph("run"))
    assert server.requests[0].mentions("Never use tabs in this house.")
    assert "testing-learned" in server.requests[0].skills


def test_a_line_is_done_by_a_real_agent(server: ModelServer, world: World) -> None:
    """`ralph do`: one commit, and the story list is as before.

    The verify names a test that was yet to be written and that cannot be loaded without the new
    module: turning green alone proves nothing, so it is checked.
    """
    made = project(world, server, stories=[story(1, "One")])
    before = (made.root / "prd.json").read_bytes()
    server.play(use(*feature("tabs", 4)), say(claim("Tabs are accepted.", exit_signal=True)))
    run = made.ralph("do", "accept tabs", "--verify", "python3 -m unittest -q test_tabs")
    assert run.returncode == 0, run.stderr
    assert [one.partition(": ")[2] for one in made.subjects[1:]] == ["accept tabs"]
    assert "passed (checked)" in run.stdout
    assert (made.root / "prd.json").read_bytes() == before
