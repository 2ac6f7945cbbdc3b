"""The shipped fake agent does what its script says, as a real process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from ralphloop.agents.base import AgentRequest, Inquiry, load_agent
from ralphloop.agents.process import Rules, run_agent
from ralphloop.agents.script import load_script
from ralphloop.agents.transcript import Transcript
from ralphloop.config.model import AgentSection
from ralphloop.core.events import AgentStep
from ralphloop.core.iteration import Result
from ralphloop.core.model import Outcome
from ralphloop.errors import InputError
from ralphloop.proc.threads import StopSignal
from ralphloop.text.status_block import Status
from tests.agents_run.helpers import QUICK, is_alive


@dataclass
class Theatre:
    """A directory in which scripts are played."""

    directory: Path

    def play(
        self,
        script: Mapping[str, Any] | str,
        *,
        story: str = "US-001",
        prompt: str = "do it",
        rules: Rules = QUICK,
        session: str | None = None,
        resume: str | None = None,
    ) -> Result:
        """Play one start of a script through the real launch and the real supervision."""
        name = "script.yaml" if isinstance(script, str) else "script.json"
        text = script if isinstance(script, str) else json.dumps(script)
        (self.directory / name).write_text(text)
        request = AgentRequest(
            config=AgentSection(name="scripted", command=(name,)),
            settings_dir=self.directory / ".ralph" / "agent",
            prompt=prompt,
            cwd=self.directory,
            run_id="run",
            iteration=1,
            inherited=os.environ,
            story_id=story,
            session_id=session,
            resume=resume,
        )
        launch = load_agent("scripted").launch(request)
        events: list[AgentStep] = []

        async def run() -> Result:
            with Transcript(self.directory / ".ralph" / "t.log") as sink:
                return await run_agent(
                    launch,
                    sink=sink,
                    rules=rules,
                    stop=StopSignal(),
                    on_event=events.append,
                )

        return asyncio.run(run())


@pytest.fixture
def theatre(tmp_path: Path) -> Theatre:
    """An empty stage."""
    return Theatre(tmp_path)


def _steps(*steps: Any, form: str = "claude") -> dict[str, Any]:
    return {"format": form, "starts": [list(steps)]}


def test_a_story_is_done_by_the_book(theatre: Theatre) -> None:
    """Files are really written, words and status arrive, tokens and money are reported."""
    finished = theatre.play(
        """
        stories:
          US-001:
            - - say: Looking around.
              - write: {src/app.py: "print('hello')\\n", notes.txt: one}
              - append: {notes.txt: " two"}
              - delete: [gone.txt]
              - run: [sh, -c, "cat notes.txt > copy.txt"]
              - usage: {input_tokens: 900, output_tokens: 100, cost_usd: 0.02}
              - say: All of it is implemented.
              - status: {status: COMPLETE, tasks_completed: 1, tests_status: PASSING, exit_signal: true}
        """
    )
    response = finished.response
    assert finished.end.exit_code == 0
    assert response.outcome is Outcome.COMPLETED
    assert response.status is not None
    assert response.status.status is Status.COMPLETE
    assert response.status.exit_signal
    assert response.status_is_final
    assert response.usage.cost_usd == 0.02
    assert response.usage.input_tokens == 900
    assert response.tool_call_count == 5
    assert (theatre.directory / "src/app.py").read_text() == "print('hello')\n"
    assert (theatre.directory / "copy.txt").read_text() == "one two"


def test_plain_text_can_be_spoken_too(theatre: Theatre) -> None:
    """In text format only the words are printed."""
    finished = theatre.play(
        _steps({"say": "Done."}, {"status": {"status": "BLOCKED"}}, form="text")
    )
    assert finished.response.reader == "text"
    assert finished.response.text.startswith("Done.\n\n---RALPH_STATUS---")
    assert finished.response.status is not None
    assert finished.response.status.status is Status.BLOCKED


def test_the_entry_is_chosen_by_story_and_start(theatre: Theatre) -> None:
    """Each story has its own starts, the last one repeats, others share the common ones."""
    script = {
        "format": "text",
        "stories": {"A": [[{"say": "A one"}], [{"say": "A two"}]]},
        "starts": [[{"say": "other one"}], [{"say": "other two"}]],
    }
    said = [
        (theatre.play(script, story=story).response.final_text or "").strip()
        for story in ("A", "B", "A", "A", "C", "B")
    ]
    assert said == ["A one", "other one", "A two", "A two", "other one", "other two"]


def test_the_prompt_can_decide(theatre: Theatre) -> None:
    """A script can depend on what the prompt contains."""
    script = _steps(
        {
            "if_prompt": {
                "contains": "use sqlite",
                "then": [{"say": "cheap"}, {"usage": {"cost_usd": 0.01}}],
                "else": [{"say": "dear"}, {"usage": {"cost_usd": 1.0}}],
            }
        }
    )
    assert theatre.play(script, prompt="please use sqlite").response.usage.cost_usd == 0.01
    assert theatre.play(script, prompt="please").response.final_text == "dear"


@pytest.mark.parametrize(
    "steps, code, outcome",
    [
        ([{"exit": 3}], 3, Outcome.STARTUP_ERROR),
        ([{"say": "x"}, {"exit": 3}], 3, Outcome.ERROR),
        (["crash"], -signal.SIGKILL, Outcome.KILLED),
        ([{"say": "x"}, {"crash": "SIGSEGV"}], -signal.SIGSEGV, Outcome.KILLED),
        ([{"fatal": "authentication_failed"}], 1, Outcome.FATAL),
        ([{"fatal": "billing_error"}], 1, Outcome.FATAL),
        ([{"fatal": "model_not_found"}], 1, Outcome.FATAL),
        (["transient"], 1, Outcome.TRANSIENT),
        ([{"transient": 500}], 1, Outcome.TRANSIENT),
        (["deny", {"say": "I could not."}], 0, Outcome.DENIED),
        ([], 0, Outcome.EMPTY),
        ([{"say": "x"}, {"stderr": "a warning\n"}], 0, Outcome.COMPLETED),
    ],
)
def test_endings(theatre: Theatre, steps: list[Any], code: int, outcome: Outcome) -> None:
    """Every way to end is read as what it is."""
    finished = theatre.play(_steps(*steps), rules=replace(QUICK, wall_s=20))
    # A fatal answer may be stopped before the agent exits by itself.
    if not (outcome is Outcome.FATAL and finished.stopped_because):
        assert finished.end.exit_code == code
    assert finished.response.outcome is outcome


def test_a_usage_limit_names_its_reset(theatre: Theatre) -> None:
    """The limit says when it ends, in epoch seconds."""
    before = time.time()
    finished = theatre.play(_steps({"usage_limit": {"resets_in": "1h", "kind": "seven_day"}}))
    limit = finished.response.rate_limit
    assert finished.response.outcome is Outcome.USAGE_LIMIT
    assert limit.rejected
    assert "weekly" in finished.response.reason
    assert limit.resets_at is not None
    assert 3590 < limit.resets_at - before < 3620


@pytest.mark.parametrize("how, stalled", [("silent", True), ("printing", False), ("busy", False)])
def test_hanging(theatre: Theatre, how: str, stalled: bool) -> None:
    """A hung agent is stalled, a noisy or busy one runs out of time."""
    rules = replace(QUICK, stall_s=0.6, wall_s=2.5)
    finished = theatre.play(_steps({"say": "x"}, {"hang": how}), rules=rules)
    assert (finished.end.stalled, finished.end.timed_out) == (stalled, not stalled)


@pytest.mark.parametrize("daemon", [False, True])
def test_what_it_leaves_behind_is_stopped(theatre: Theatre, daemon: bool) -> None:
    """A scripted daemon is as hard to find as a real one, and found."""
    command = [
        sys.executable,
        "-S",
        "-c",
        "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(300)",
    ]
    spawn = {"argv": command, "daemon": daemon, "clear_env": True, "hold_output": True}
    finished = theatre.play(_steps({"spawn": spawn}, {"sleep": "500ms"}, {"say": "done"}))
    assert finished.response.outcome is Outcome.COMPLETED
    assert len(finished.leftovers) == 1
    assert not is_alive(int((theatre.directory / "pid").read_text()))


def test_a_conversation_has_the_id_we_chose(theatre: Theatre) -> None:
    """New or resumed, the session id is the given one."""
    assert theatre.play(_steps({"say": "x"}), session="chosen").response.session_id == "chosen"
    assert theatre.play(_steps({"say": "x"}), resume="earlier").response.session_id == "earlier"


def test_stopped_gently_it_still_reports(theatre: Theatre) -> None:
    """On SIGINT it gives a result like the real one: interrupted, with its cost."""
    script = _steps({"usage": {"cost_usd": 0.5}}, {"say": "x"}, {"sleep": 60})
    finished = theatre.play(script, rules=replace(QUICK, wall_s=1.5, stop_grace_s=5))
    assert finished.end.timed_out
    assert finished.response.usage.cost_usd == 0.5
    assert finished.response.outcome is Outcome.INTERRUPTED


# --- mistakes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "script, words",
    [
        ("", "Expected `object`, got `null`"),
        ("- x", "Expected `object`, got `array`"),
        ("stories: {", "script.yaml"),
        ("starts: []", "says nothing"),
        ("story: []", "unknown field `story`"),
        ("format: xml\nstarts: [[hang]]", "Invalid enum value 'xml' - at `$.format`"),
        ("stories: [1]", "Expected `object`, got `array` - at `$.stories`"),
        ("stories: {A: hang}", "Expected `array`, got `str` - at `$.stories[...]`"),
        ("starts: [hang]", "Expected `array`, got `str` - at `$.starts[0]`"),
        ("starts: [[sya]]", "Invalid enum value 'sya' - at `$.starts[0][0]`"),
        ("starts: [[say]]", "Invalid enum value 'say' - at `$.starts[0][0]`"),
        ("starts: [[{say: x, exit: 1}]]", "one word with its value"),
        ("starts: [[{exit: high}]]", "Expected `int | null`, got `str` - at `$.starts[0][0].exit`"),
        ("starts: [[{exit: 300}]]", "Expected `int` <= 255"),
        ("starts: [[{write: {/etc/passwd: x}}]]", "not a path inside"),
        ("starts: [[{append: {../x: x}}]]", "not a path inside"),
        ("starts: [[{delete: [a/../../x]}]]", "not a path inside"),
        ("starts: [[{sleep: soon}]]", "$.starts[0][0]"),
        ("starts: [[{crash: SIGNAL}]]", "there is no signal"),
        ("starts: [[{run: []}]]", "Expected `array` of length >= 1 - at `$.starts[0][0].run`"),
        ("starts: [[{status: {state: DONE}}]]", "unknown field `state`"),
        ("starts: [[{hang: loudly}]]", "Invalid enum value 'loudly'"),
        ("starts: [[{usage_limit: {resets_in: later}}]]", "$.starts[0][0].usage_limit"),
        ("starts: [[{if_prompt: {contains: x, then: [{sya: 1}]}}]]", "`sya` - at `$.starts[0][0].if_prompt.then[0]`"),
        ("starts: [[{if_prompt: {then: [hang]}}]]", "missing required field `contains`"),
        ("a: &a [*a]", "unknown field `a`"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place(tmp_path: Path, script: str, words: str) -> None:
    """A wrong script is refused before anything is done, and says where it is wrong."""
    path = tmp_path / "script.yaml"
    path.write_text(script)
    with pytest.raises(InputError) as caught:
        load_script(path)
    assert "script.yaml" in caught.value.message
    assert words in caught.value.message


def test_nested_conditions_are_bounded(tmp_path: Path) -> None:
    """A script cannot be made of conditions for ever."""
    opened, closed = '{"if_prompt": {"contains": "x", "then": [', "]}}"
    path = tmp_path / "script.json"
    path.write_text(f'{{"starts": [[{opened * 5_000}"hang"{closed * 5_000}]]}}')
    with pytest.raises(InputError, match="nested too deeply"):
        load_script(path)


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        ([], 64, "usage"),
        (["missing.yaml"], 65, "cannot be read"),
        (["empty.json"], 65, "says nothing"),
        (["one.json"], 65, "no entry for story 'US-9'"),
    ],
)
def test_the_program_refuses_with_an_exit_code(
    tmp_path: Path, arguments: list[str], code: int, words: str
) -> None:
    """Run by hand with a mistake, it says so and ends with our usual codes."""
    (tmp_path / "empty.json").write_text("{}")
    (tmp_path / "one.json").write_text('{"stories": {"A": [["hang"]]}}')
    done = subprocess.run(
        [sys.executable, "-m", "ralphloop.agents.scripted_main", *arguments],
        cwd=tmp_path,
        env={**os.environ, "RALPH_STORY_ID": "US-9", "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == code
    assert words in done.stderr


def test_pre_flight_reads_the_script(tmp_path: Path) -> None:
    """A missing or broken script is found before the first start."""
    agent = load_agent("scripted")
    (tmp_path / "ok.json").write_text('{"starts": [["hang"]]}')
    (tmp_path / "bad.json").write_text('{"starts": [["hung"]]}')

    def problems(*command: str) -> list[str]:
        config = AgentSection(name="scripted", command=command)
        return [p.message for p in agent.check(Inquiry(config, tmp_path, {}))]

    assert problems("ok.json") == ["a scripted agent plays ok.json: no model is asked"]
    assert "Invalid enum value 'hung'" in problems("bad.json")[0]
    assert "has no script" in problems()[0]
