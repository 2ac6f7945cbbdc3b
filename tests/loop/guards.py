"""The ways a loop burns money, each as an agent that behaves so, and where it has to end.

`test_guards` runs them as they are.  `test_mutations` takes the guard out of the program first and
expects the same scenario to end otherwise.  An agent that is started far too often ends the run
itself, so that a missing guard costs seconds.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.loop.projects import (
    CALC,
    IGNORED,
    TESTS,
    UNITTEST,
    Done,
    Sandbox,
    library_for,
    sandbox,
    story,
)

_TOO_OFTEN = "if START > {most}: os.kill(os.getppid(), signal.SIGTERM); time.sleep(5)\n"
FALSE = [["sh", "-c", "echo 'AssertionError: the total is wrong'; exit 1"]]
SILENT_FALSE = [["test", "-f", "never-there"]]
TRUE = [["true"]]


@dataclass(frozen=True, kw_only=True)
class Guard:
    """One misbehaving agent and the end it has to come to."""

    name: str
    agent: str
    starts: int
    fewest: int = 0  # starts, where a busy machine decides; otherwise exactly as many
    code: int
    words: str  # on stdout or stderr
    outcome: str = ""  # of the last start, where it matters
    arguments: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    setting: Mapping[str, Any] = field(default_factory=dict)

    def sandbox(self, tmp_path: Path) -> Sandbox:
        """The repository with the agent in it."""
        backstop = _TOO_OFTEN.format(most=self.starts + 2)
        box = sandbox(tmp_path, backstop + textwrap.dedent(self.agent), **self.setting)
        box.env.update({"RALPH_LIMITS_BACKOFF": "1ms", **self.env})
        return box

    def run(self, box: Sandbox, *, mutation: str = "") -> Done:
        """The scenario to its end, with the real program or one whose guard is gone."""
        if mutation:
            return mutated(box, mutation, *self.arguments)
        return box.run("--json", *self.arguments)

    def faults(self, box: Sandbox, done: Done) -> list[str]:
        """Everything that is not as it has to be; nothing where the guard held."""
        found = []
        if not (self.fewest or self.starts) <= box.starts <= self.starts:
            found.append(f"{box.starts} starts, {self.starts} are allowed")
        if done.code != self.code:
            found.append(f"exit code {done.code}, not {self.code}")
        if self.words not in done.text:
            found.append(f"no word of {self.words!r}")
        outcomes = [event["outcome"] for event in done.events("iteration_finished")]
        if self.outcome and outcomes[-1:] != [self.outcome]:
            found.append(f"outcomes {outcomes}, the last is not {self.outcome}")
        if left := box.leftovers():
            found.append(f"left running: {left}")
            _end(left)
        return found


def told(done: Done) -> str:
    """The run in a few lines, for a test that fails."""
    shown = ("iteration", "outcome", "decision", "reasons", "verdict", "warnings")
    finished = done.events("iteration_finished")[-6:] + done.events("run_finished")
    lines = [str({key: event[key] for key in shown if key in event}) for event in finished]
    return "\n".join([f"exit code {done.code}", *lines, done.err])


def mutated(box: Sandbox, mutation: str, *arguments: str) -> Done:
    """`ralph run` in a process where one call has been replaced."""
    import subprocess

    program = f"{mutation}\nimport sys\nfrom ralphloop.__main__ import main\nsys.exit(main())"
    ended = subprocess.run(
        [sys.executable, "-c", program, "run", "--json", *arguments],
        cwd=box.root,
        env=box.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in ended.stderr.split("\nnext:")[0], ended.stderr
    return Done(ended.returncode, ended.stdout, ended.stderr)


def _end(left: list[str]) -> None:
    for line in left:
        try:
            os.kill(int(line.split(" ", 1)[0]), signal.SIGKILL)
        except ProcessLookupError:
            pass  # it ended by itself


WAITS_FOR_LIMIT = """
if START == 1:
    print(f"Claude AI usage limit reached|{int(time.time()) + 2}"); sys.exit(1)
write("a.txt"); done()
"""
FAKE_CLAUDE = """\
#!{python} -S
import sys
if sys.argv[1:2] == ["--version"]: print("2.1.0 (Claude Code)"); sys.exit()
if "--help" in sys.argv: print("usage: claude"); sys.exit()
{library}
{agent}
"""

DEAD_CONVERSATION = """
with (STATE / "resumed").open("a") as log: log.write(f"{'--resume' in sys.argv}\\n")
if "--resume" in sys.argv:
    sys.stderr.write("No conversation found with session ID: 1b2c")
    sys.exit(1)
write(f"src/{START}.py", START)
if START == 1: says("Half of it."); result("Half of it is there.")
else: says("All of it."); result("The story is complete.")
"""


def claude_sandbox(tmp_path: Path, agent: str, *, toml: str = "") -> Sandbox:
    """A repository whose agent is a program that passes for Claude Code."""
    box = sandbox(tmp_path, "")
    program = tmp_path / "claude"
    script = FAKE_CLAUDE.format(
        python=sys.executable, library=library_for(agent), agent=textwrap.dedent(agent)
    )
    program.write_text(script)
    program.chmod(0o755)
    config = box.root / "ralph.toml"
    text = config.read_text().replace('name = "command"', 'name = "claude"')
    binary = f"binary = {json.dumps(str(program))}\n{toml}"
    config.write_text(text.replace("[checks]", binary + "[checks]"))
    box.git("commit", "-qam", "claude")
    return box


def two(**more: Any) -> dict[str, Any]:
    """Two stories instead of one."""
    return {"stories": [story("US-1"), story("US-2")], **more}


GUARDS = (
    Guard(
        name="no progress",
        agent="status(files=0, words=f'I looked at part {START} of it.')",
        starts=4,
        code=1,
        words="still no progress after 4 iterations",
    ),
    Guard(
        name="no progress, strict",
        agent="status(files=0, words=f'I looked at part {START} of it.')",
        starts=3,
        code=1,
        words="no progress in 3 iterations in a row",
        setting={"toml": '[circuit]\npreset = "strict"\n'},
    ),
    Guard(
        name="claimed files",
        agent="status(files=12, words=f'Rewrote module {START}.')",
        starts=4,
        code=1,
        words="the agent reports 12 modified, 0 changed",
    ),
    Guard(
        name="two idle stories",
        agent="status(files=0, words=f'I looked at part {START} of it.')",
        starts=6,
        code=1,
        words="two stories in a row were set aside without any progress",
        setting=two(),
    ),
    Guard(
        name="empty commits",
        agent="""
        subprocess.run(["git", "commit", "-q", "--allow-empty", "-m", "wip"], check=True)
        status(files=1, words=f"Committed step {START}.")
        """,
        starts=4,
        code=1,
        words="no progress",
    ),
    Guard(
        name="same error",
        agent="""
        write(f"src/{START}.py", START)
        status(words=f"Changed it again.\\n\\nError: cannot import name 'total' (line {START})")
        """,
        starts=5,
        code=1,
        words="same error 5 times in a row",
    ),
    Guard(
        name="oscillation",
        agent="""
        write("src/a.py", START % 2)
        status(words=f"Went the other way, attempt {START}.")
        """,
        starts=6,  # both states are new once, then four times nothing is
        code=1,
        words="no progress in 3 iterations in a row",
    ),
    Guard(
        name="oscillation in commits",
        agent="""
        write("src/a.py", START % 2)
        subprocess.run(["git", "add", "src"], check=True)
        subprocess.run(["git", "commit", "-q", "-m", f"step {START}"], check=True)
        status(words=f"Went the other way, attempt {START}.")
        """,
        starts=6,
        code=1,
        words="no progress in 3 iterations in a row",
    ),
    Guard(
        name="a counter that goes up",
        agent="write('counter.txt', START); status(words=f'Improved it, round {START}.')",
        starts=9,  # from the sixth on nothing has come of it
        code=1,
        words="no net change: 6 iterations without a claim differ by 1 line",
        setting={"checks": TRUE},
    ),
    Guard(
        name="a counter that goes up, two stories",
        agent="write(f'{STORY}.txt', START); status(words=f'Improved it, round {START}.')",
        starts=19,  # eight for each, then three of the first one's second chance
        code=1,
        words="two stories in a row were set aside without any progress",
        setting=two(checks=TRUE),
    ),
    Guard(
        name="trivial edits under a red check",
        agent="""
        source = pathlib.Path("src/a.py")
        source.write_text(f"total = {START}\\n" + source.read_text().partition("\\n")[2])
        status(words=f"Tried value {START}.")
        """,
        starts=9,
        code=1,
        words="no net change",
        arguments=("--allow-red",),
        setting={"checks": FALSE, "files": {"src/a.py": "total = 0\nrest = 1\n"}},
    ),
    Guard(
        name="to and fro, with a line in the notes",
        agent="""
        write("src/a.py", "x = 1\\n" * (START % 2))
        with open("NOTES.md", "a") as notes: notes.write(f"- round {START}\\n")
        status(words=f"Went the other way, round {START}.")
        """,
        starts=9,
        code=1,
        words="no net change",
    ),
    Guard(
        name="another question each time",
        agent="""
        things = ("colour", "font", "name", "icon", "order", "unit", "zone", "size", "tone", "rank")
        write("QUESTIONS.md", f"Which {things[START - 1]} do you want?\\n")
        status(words=f"Wrote down what is open about the {things[START - 1]}.")
        """,
        starts=9,
        code=1,
        words="no net change",
    ),
    Guard(
        name="comments only",
        agent="""
        with open("src/a.py", "a") as source: source.write(f"# remark {START}\\n")
        status(work="DOCUMENTATION", words=f"Explained line {START}.")
        """,
        starts=9,
        code=1,
        words="no net change",
        setting={"files": {"src/a.py": "total = 0\n"}},
    ),
    Guard(
        name="false done, nothing changed",
        agent="done(signal='true', words=f'All {START} criteria are met. The work is complete.')",
        starts=4,
        code=1,
        words="nothing changed since the story began",
        setting={"checks": TRUE},
    ),
    Guard(
        name="false done, checks red",
        agent="""
        write(f"src/{START}.py", START)
        done(signal="true", words="Implemented. Everything works.")
        """,
        starts=5,
        code=1,
        words="same error 5 times in a row",
        arguments=("--allow-red",),
        setting={"checks": FALSE},
    ),
    Guard(
        name="false done, silent checks",
        agent="""
        write(f"src/{START}.py", START)
        done(signal="true", words="Implemented. Everything works.")
        """,
        starts=6,  # three attempts, and three more as its second chance
        code=4,
        words="every open story is set aside",
        arguments=("--allow-red",),
        setting={"checks": SILENT_FALSE},
    ),
    Guard(
        name="question loop",
        agent="""
        print(f"I have read part {START}. Should I use Postgres or SQLite? Please confirm.")
        """,
        starts=4,
        code=1,
        words="question to a person: ",
    ),
    Guard(
        name="growing output",
        agent="status(files=0, words='\\n'.join(f'{START} thought {n}' for n in range(START * 40)))",
        starts=4,
        code=1,
        words="still no progress after 4 iterations",
    ),
    Guard(
        name="shrinking output, strict",
        agent="""
        print("I am looking into it. " * (200 if START < 4 else 2))
        if START < 4: write(f"src/{START}.py", START)
        """,
        starts=4,
        code=1,
        words="output fell by",
        setting={"toml": '[circuit]\npreset = "strict"\n'},
    ),
    Guard(
        name="silent exits",
        agent="",
        starts=4,
        code=1,
        words="no progress",
        outcome="empty",
    ),
    Guard(
        name="crashing after words",
        agent="print(f'I am at step {START}.', flush=True); sys.exit(3)",
        starts=4,
        code=1,
        words="no progress",
        outcome="error",
    ),
    Guard(
        name="fatal error",
        agent="print('Invalid API key · Please run /login'); sys.exit(1)",
        starts=1,
        code=69,
        words="Invalid API key",
        outcome="fatal",
    ),
    Guard(
        name="billing",
        agent="print('Credit balance is too low'); sys.exit(1)",
        starts=1,
        code=69,
        words="Credit balance is too low",
        outcome="fatal",
    ),
    Guard(
        name="unknown model, said by a gateway",
        agent="print('API Error: 400 The provided model identifier is invalid.'); sys.exit(1)",
        starts=1,
        code=69,
        words="model identifier is invalid",
        outcome="fatal",
    ),
    Guard(
        name="the same failing address, another id",
        agent="""
        write(f"src/{START}.py", START)
        address = "https://api.example.com/jobs/" + ("8841", "x7fq", "f9", "1a2b3c4d", "00c1")[START - 1]
        status(words=f"The upload stops:\\n\\nError: POST {address} returned 502 Bad Gateway")
        """,
        starts=5,
        code=1,
        words="same error 5 times in a row",
    ),
    Guard(
        name="startup errors",
        agent="sys.stderr.write('libfoo.so: cannot open shared object file'); sys.exit(127)",
        starts=2,
        code=69,
        words="failed to start 2 times in a row",
        outcome="startup_error",
    ),
    Guard(
        name="usage limit, no wait",
        agent="print(f'Claude AI usage limit reached|{int(time.time()) + 7200}'); sys.exit(1)",
        starts=1,
        code=3,
        words="--no-wait was given",
        outcome="usage_limit",
        arguments=("--no-wait",),
    ),
    Guard(
        name="usage limit, stop",
        agent="print(f'Claude AI usage limit reached|{int(time.time()) + 7200}'); sys.exit(1)",
        starts=1,
        code=3,
        words="the usage limit is reached",
        outcome="usage_limit",
        env={"RALPH_LIMITS_ON_USAGE_LIMIT": "stop"},
    ),
    Guard(
        name="usage limit beyond the time",
        agent="print(f'Claude AI usage limit reached|{int(time.time()) + 7200}'); sys.exit(1)",
        starts=1,
        code=3,
        words="would outlast the",
        outcome="usage_limit",
        arguments=("--max-time", "1h"),
    ),
    Guard(
        name="usage limit, waited for",
        agent=WAITS_FOR_LIMIT,
        starts=2,
        code=0,
        words="project_complete",
        outcome="completed",
    ),
    Guard(
        name="paid infrastructure failures",
        agent="""
        says(f"Working on part {START}.")
        result("API Error: 529 overloaded_error", is_error=True, cost=0.5)
        """,
        starts=10,
        code=69,
        words="10 paid starts in a row ended in infrastructure failures",
        outcome="transient",
        setting={"output": "claude"},
    ),
    Guard(
        name="test-only",
        agent="""
        write(f"tests/test_part_{START}.py", f"def test_{START}(): assert True")
        status(work="TESTING", words=f"Wrote test file {START}.")
        """,
        starts=3,
        code=1,
        words="3 iterations in a row only worked on tests",
    ),
    Guard(
        name="hang",
        agent="""
        for beat in range(16):
            print(f"still thinking {beat}", flush=True); time.sleep(0.1)
        """,
        starts=4,
        code=1,
        words="still running after 0s",
        outcome="timeout",
        setting={"limits": 'iteration_timeout = "600ms"'},
    ),
    Guard(
        name="silence after words",
        agent="print('Let me think.', flush=True); time.sleep(2.5)",
        starts=4,
        code=1,
        words="no output, no work, no file change",
        outcome="stalled",
        setting={"limits": 'stall_timeout = "700ms"'},
    ),
    Guard(
        name="silence from the start",
        agent="time.sleep(2.5)",
        starts=3,
        code=69,
        words="the agent said nothing 3 times in a row",
        outcome="transient",
        setting={"limits": 'stall_timeout = "900ms"'},
    ),
    Guard(
        name="children left behind",
        agent="""
        subprocess.Popen(["sleep", "25"], start_new_session=True, stdout=subprocess.DEVNULL)
        write("a.txt"); done()
        """,
        starts=1,
        code=0,
        words="project_complete",
    ),
    Guard(
        name="budget",
        agent="""
        write(f"src/{START}.py", START); says("Working."); result(f"Did part {START}.", cost=0.4)
        """,
        starts=3,
        code=3,
        words="$1.20 of $1.00 is spent",
        arguments=("--max-cost", "1"),
        setting={"output": "claude"},
    ),
    Guard(
        name="max iterations",
        agent="write(f'src/{START}.py', START); status(words=f'Did part {START}.')",
        starts=3,
        code=3,
        words="3 iterations were allowed and are used",
        arguments=("--max-iterations", "3"),
    ),
    Guard(
        name="max time",
        agent="time.sleep(1.2 * (START == 1)); write(f'src/{START}.py', START); status()",
        starts=1,
        code=3,
        words="as long as it may",
        arguments=("--max-time", "1s"),
    ),
    Guard(
        name="calls per hour",
        agent="write(f'src/{START}.py', START); status(words=f'Did part {START}.')",
        starts=2,
        code=3,
        words="2 starts in the last hour",
        arguments=("--calls", "2", "--no-wait"),
    ),
    Guard(
        name="weakened tests",
        agent="""
        write("calc.py", "def double(x):\\n    return 2 * x + 1\\n")
        tests = pathlib.Path("tests/test_calc.py")
        write(tests, tests.read_text().replace("self.assertEqual(calc.double(2), 4)", "pass"))
        done(words="All tests pass.")
        """,
        starts=2,  # challenged once, then it passes as needing review
        code=0,
        words="needs review",
        setting={
            "checks": UNITTEST,
            "files": {
                "calc.py": CALC,
                "tests/__init__.py": "",
                "tests/test_calc.py": TESTS,
                **IGNORED,
            },
            "toml": '[proof]\nexperiments = "always"\n',
        },
    ),
    Guard(
        name="passes flipped",
        agent="""
        data = json.loads(pathlib.Path("prd.json").read_text())
        for each in data["userStories"]: each["passes"] = True
        write("prd.json", json.dumps(data))
        print(f"I have done it, part {START}.")
        """,
        starts=4,
        code=1,
        words="nothing changed since the story began",
    ),
)
BY_NAME = {guard.name: guard for guard in GUARDS}
