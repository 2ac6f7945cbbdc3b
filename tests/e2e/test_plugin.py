"""The plugin in the real Claude Code: loops that finish, stop, fail, crash and go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from ralphloop.core.model import Response
from ralphloop.journal.queries import JournalReader
from ralphloop.readers import read as read_output
from tests.e2e.clis import CLIS, claude_env, run_cli, run_until_killed
from tests.e2e.conftest import World
from tests.e2e.model_server import ALWAYS, ModelServer, ToolUse, fail, say, shell, use, write
from tests.e2e.processes import wait_until
from tests.e2e.projects import RALPH, Json, Project, claim, feature, project, story

pytestmark = pytest.mark.e2e

STREAM = ("-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions")
START = "/ralph:ralph"


@dataclass(frozen=True, slots=True)
class Talk:
    """An open session."""

    process: subprocess.Popen[bytes]

    def say(self, prompt: str) -> None:
        """Say something and wait until the answer is over."""
        assert self.process.stdin
        assert self.process.stdout
        message = {"type": "user", "message": {"role": "user", "content": prompt}}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        while line := self.process.stdout.readline():
            if json.loads(line)["type"] == "result":
                return


@dataclass(frozen=True, slots=True)
class Claude:
    """Claude Code with our plugin in one project."""

    made: Project
    plugin: str
    env: dict[str, str]

    def arguments(self, session: str, *, resume: bool) -> list[str]:
        """What every session is started with."""
        which = "--resume" if resume else "--session-id"
        return [*STREAM, "--plugin-dir", self.plugin, which, session]

    def say(
        self, prompt: str, session: str, *, resume: bool = False
    ) -> tuple[Response, list[Json]]:
        """One prompt in print mode; what came of it, and the events."""
        done = run_cli(
            "claude",
            *self.arguments(session, resume=resume),
            prompt=prompt,
            cwd=self.made.root,
            env=self.env,
            timeout_s=100,
        )
        events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]
        return read_output(done.stdout, agent="claude", exit_code=done.returncode), events

    def end_at(self, sight: bytes, session: str, *, how: signal.Signals) -> None:
        """Start a loop and end its session by a signal as soon as something was seen."""
        run_until_killed(
            "claude",
            *self.arguments(session, resume=False),
            prompt=START,
            cwd=self.made.root,
            env=self.env,
            sight=sight,
            when=lambda: self._is_kept(session),
            how=how,
        )

    def _is_kept(self, session: str) -> bool:
        """Claude Code has written down enough of a session to resume it."""
        kept = Path(self.env["HOME"]).glob(f".claude/projects/*/{session}.jsonl")
        return any(b"draft.txt" in transcript.read_bytes() for transcript in kept)

    @contextmanager
    def talk(self, session: str) -> Iterator[Talk]:
        """A session that stays open between prompts, as an interactive one does."""
        with subprocess.Popen(
            [
                str(CLIS["claude"].program),
                *self.arguments(session, resume=False),
                *("--input-format", "stream-json"),
            ],
            cwd=self.made.root,
            env=self.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            yield Talk(process)
            assert process.stdin
            process.stdin.close()

    def holder(self) -> Json | None:
        """Who holds the project."""
        path = self.made.root / ".ralph" / "holder.json"
        return json.loads(path.read_text()) if path.exists() else None

    def outcomes(self) -> list[str]:
        """How the iterations of the newest run ended."""
        with JournalReader.open(self.made.root / ".ralph" / "journal.db") as journal:
            run = journal.latest_run()
            return [each.outcome for each in journal.iterations(run.id)] if run else []

    @property
    def run(self) -> Json:
        """The run as `ralph status --json` knows it."""
        run: Json = self.made.status()["run"]
        return run


def claude(world: World, server: ModelServer, *, stories: int = 2) -> Claude:
    """A project with stories, and the plugin installed from a path with a space in it."""
    titles = ("One", "Two")
    made = project(world, server, stories=[story(n + 1, titles[n]) for n in range(stories)])
    data = world.home / "my data"
    place = subprocess.run(
        [RALPH, "plugin", "path"],
        env={**made.env, "XDG_DATA_HOME": str(data)},
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout.strip()
    env = {**claude_env(server.url, world.home), "CLAUDE_CODE_MAX_RETRIES": "1"}
    return Claude(made, place, env)


def new_session() -> str:
    """An id that Claude Code accepts."""
    return str(uuid.uuid4())


def test_the_plugin_is_valid(server: ModelServer, world: World) -> None:
    """As it is in the package, and as `ralph plugin` writes it."""
    ready = claude(world, server)
    package = Path(__file__).parents[2] / "src" / "ralphloop" / "plugin"
    for place in (ready.plugin, str(package), str(package / ".claude-plugin" / "plugin.json")):
        done = subprocess.run(
            [str(CLIS["claude"].program), "plugin", "validate", "--strict", place],
            env=ready.env,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_ralph_plugin_install_adds_it_with_short_names(server: ModelServer, world: World) -> None:
    """Claude Code has the commands in every project, until `ralph plugin uninstall`."""
    ready = claude(world, server)
    short = world.home / ".claude" / "commands"
    short.mkdir(parents=True)
    (short / "ralph-status.md").write_text("A command of the person's own.\n")

    def plugin(verb: str) -> str:
        path = f"{CLIS['claude'].program.parent}{os.pathsep}{ready.env['PATH']}"
        done = subprocess.run(
            [RALPH, "plugin", verb],
            cwd=ready.made.root,
            env={**ready.env, "PATH": path},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def commands() -> set[str]:
        answer = run_cli("claude", *STREAM, prompt="hi", cwd=ready.made.root, env=ready.env)
        first = json.loads(next(ln for ln in answer.stdout.splitlines() if b'"init"' in ln))
        return set(first["slash_commands"])

    server.play(say("Hello.", times=ALWAYS))
    assert "/ralph-status of your own" in plugin("install")
    names = {"ralph", "cancel-ralph", "ralph:ralph", "ralph:cancel-ralph", "ralph:ralph-status"}
    assert names <= commands()
    plan = run_cli("claude", *STREAM, prompt="/ralph --dry-run", cwd=ready.made.root, env=ready.env)
    assert b"first prompt" in plan.stdout
    plugin("uninstall")
    assert not names & commands()
    assert [path.name for path in short.iterdir()] == ["ralph-status.md"]
    assert "ralph" not in (world.home / ".claude" / "settings.json").read_text()
    assert not (world.home / ".local" / "share" / "ralph").exists()
    assert "Uninstalled" in plugin("uninstall")  # again, where there is nothing left


def test_a_session_plans_with_the_same_linter(server: ModelServer, world: World) -> None:
    """It writes the proposal beside our own files, and `ralph plan` checks and adds it."""
    ready = claude(world, server)
    stories = [{"id": "N-1", "title": "Three", "acceptanceCriteria": ["`three` prints 3"]}]
    file = ".ralph/plan/session.json"
    server.play(
        use(write(file, json.dumps({"userStories": stories}))),
        use(shell(f"{RALPH} plan {file} --dry-run")),
        use(shell(f"{RALPH} plan {file} --yes")),
        say("Three was added."),
    )
    ready.say("/ralph:ralph-plan Let people count to three", new_session())
    assert "Let people count to three" in server.requests[0].prompt
    prd = json.loads((ready.made.root / "prd.json").read_text())["userStories"]
    assert (prd[-1]["id"], prd[-1]["title"], prd[-1]["passes"]) == ("N-1", "Three", False)


def test_two_stories_are_finished_in_one_session(server: ModelServer, world: World) -> None:
    """Each stop gives the next story; when all have passed the session may end."""
    ready = claude(world, server)
    server.play(
        use(*feature("one", 1)),
        say(claim("One is done.")),
        use(*feature("two", 2)),
        say(claim("All is done.", exit_signal=True)),
    )
    _, events = ready.say(f"{START} --max-iterations=9", new_session())
    assert not any(event.get("plugin_errors") for event in events)
    assert all(ready.made.passes.values())
    assert ready.made.subjects == ["Begin", "US-001: One", "US-002: Two"]
    assert ready.made.git("status", "--porcelain") == ""
    assert server.requests[0].mentions("# Your story: US-001")
    assert server.requests[2].mentions("# Your story: US-002")
    assert ready.run["decision"] == "project_complete"
    assert ready.made.status()["session"]["iterations"] == 2
    assert ready.holder() is None
    assert any("the loop is over" in json.dumps(event) for event in events)


def test_a_lie_is_found_out_in_the_same_session(server: ModelServer, world: World) -> None:
    """The checks run in the hook; what failed comes with the next prompt."""
    ready = claude(world, server, stories=1)
    server.play(
        use(*feature("one", 1, tested=2)),
        say(claim("Fully tested.")),
        use(write("one.py", "def one() -> int:\n    return 2\n")),
        say(claim("Now it is right.", exit_signal=True)),
    )
    ready.say(START, new_session())
    assert server.requests[2].mentions("AssertionError: 1 != 2")
    assert ready.made.passes == {"US-001": True}


def test_it_stops_at_its_maximum(server: ModelServer, world: World) -> None:
    """One iteration was allowed; the next is not begun, and the way on is said."""
    ready = claude(world, server)
    server.play(use(*feature("one", 1)), say("Half of it is there."))
    _, events = ready.say(f"{START} --max-iterations 1", new_session())
    assert len(server.requests) == 2
    assert ready.run["decision"] == "max_iterations"
    assert any("--max-iterations N" in json.dumps(event) for event in events)


def test_a_session_that_only_talks_is_let_go_and_never_overridden(
    server: ModelServer, world: World
) -> None:
    """Without a change the second stop stands, long before Claude Code would override the hook."""
    ready = claude(world, server)
    server.play(say("I will think about it.", times=ALWAYS))
    _, events = ready.say(START, new_session())
    assert len(server.requests) == 2
    assert not any("overriding" in json.dumps(event) for event in events)
    assert ready.holder() is None


def test_a_wrong_flag_costs_nothing(server: ModelServer, world: World) -> None:
    """It is refused before any model is asked, and so are a dry run and the status."""
    ready = claude(world, server)
    for prompt, words in (
        (f"{START} --max-iteration 3", "No such option"),
        (f"{START} don't $(touch pwned)", "quotation"),
        (f"{START} --dry-run", "first prompt"),
        ("/ralph:ralph-status", "stories"),
    ):
        response, _ = ready.say(prompt, new_session())
        assert words in (response.final_text or ""), prompt
    assert server.requests == []
    assert not (ready.made.root / "pwned").exists()
    assert ready.holder() is None


def test_an_api_error_is_recorded_and_the_loop_goes_on(server: ModelServer, world: World) -> None:
    """The turn that failed is an outage; any next word in that session goes on with the loop."""
    ready, session = claude(world, server, stories=1), new_session()
    server.play(fail(529, times=2), use(*feature("one", 1)), say(claim(exit_signal=True)))
    with ready.talk(session) as talk:
        talk.say(START)
        wait_until(lambda: ready.outcomes() == ["transient", ""], "the outage is recorded")
        talk.say("go on")
    assert ready.outcomes() == ["transient", "completed"]
    assert ready.made.passes == {"US-001": True}


def test_an_api_error_in_print_mode_is_an_interruption(server: ModelServer, world: World) -> None:
    """There the session ends with the error; `--continue` finishes the work in the same run."""
    ready, session = claude(world, server, stories=1), new_session()
    server.play(fail(529, times=2), use(*feature("one", 1)), say(claim(exit_signal=True)))
    ready.say(START, session)
    assert ready.run["status"] == "stopped"
    ready.say(f"{START} --continue", session, resume=True)
    assert ready.outcomes()[-1] == "completed"
    assert ready.made.passes == {"US-001": True}


def test_an_interrupted_session_goes_on_where_it_was(server: ModelServer, world: World) -> None:
    """Ended in the middle of a story, it is stopped; continued, the same run finishes it."""
    ready, session = claude(world, server, stories=1), new_session()
    server.play(use(write("draft.txt", "x\n")), use(shell("for i in 1 2 3 4 5; do sleep 1; done")))
    ready.end_at(b"draft.txt", session, how=signal.SIGTERM)
    before = ready.run
    assert before["status"] == "stopped"
    assert ready.made.passes == {"US-001": False}
    server.play(use(*feature("one", 1)), say(claim(exit_signal=True)))
    ready.say(f"{START} --continue", session, resume=True)
    assert ready.made.passes == {"US-001": True}
    assert ready.run["id"] == before["id"]


def test_others_are_not_touched_and_a_loop_can_be_cancelled(
    server: ModelServer, world: World
) -> None:
    """A crashed session's loop stays its own: others stop as they would, it alone may cancel it."""
    ready, session = claude(world, server), new_session()
    server.play(say("Hello, it is me."), when="ordinary")
    server.play(use(write("draft.txt", "x\n")), use(shell("for i in 1 2 3 4 5; do sleep 1; done")))
    ready.end_at(b"draft.txt", session, how=signal.SIGKILL)
    lease, asked = ready.holder(), len(server.requests)
    assert lease is not None
    response, _ = ready.say("an ordinary question", new_session())
    assert response.final_text == "Hello, it is me."
    assert len(server.requests) == asked + 1
    assert ready.holder() == lease
    response, _ = ready.say("/ralph:cancel-ralph", session, resume=True)
    assert "cancelled" in (response.final_text or "")
    assert len(server.requests) == asked + 1
    assert ready.holder() is None
    assert ready.run["decision"] == "interrupted"


def test_background_work_is_waited_for(server: ModelServer, world: World) -> None:
    """A turn that ends while a task runs is not judged; the task wakes the session by itself."""
    ready = claude(world, server, stories=1)
    build = {"command": "python3 -c 'import time; time.sleep(2)'; echo 1 > built.txt"}
    server.play(
        use(ToolUse("Bash", {**build, "run_in_background": True, "description": "the build"})),
        say("The build is running, I will hear of it."),
        use(*feature("one", 1)),
        say(claim(exit_signal=True)),
    )
    ready.say(START, new_session())
    assert ready.outcomes() == ["completed"]
    assert ready.made.passes == {"US-001": True}
    assert (ready.made.root / "built.txt").exists()
