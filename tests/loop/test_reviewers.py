"""A second model as one setting: `doubt = ["@name"]`, any agent that can be told to only read."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ralphloop.loop.reviewing import doubts_in
from ralphloop.text.status_block import Status, StatusBlock, TestsStatus, WorkType, render
from tests.loop.fake_git import FakeGit
from tests.loop.projects import Sandbox, sandbox
from tests.tools import is_there

GREEN = [["test", "-d", "."]]
DONE = render(
    StatusBlock(
        status=Status.COMPLETE,
        tasks_completed=1,
        files_modified=1,
        tests_status=TestsStatus.PASSING,
        work_type=WorkType.IMPLEMENTATION,
        exit_signal=False,
        recommendation="nothing",
    )
)
WORK = "write(f'{STORY}.txt', START); done()"
REVIEWER = """
import json, os, pathlib, sys
prompt = sys.stdin.read()
state = pathlib.Path(os.environ["TEST_STATE"])
with (state / "reviews").open("a") as file:
    file.write(json.dumps({"argv": sys.argv[1:], "prompt": prompt}) + "\\n")
number = len((state / "reviews").read_text().splitlines())
print(json.dumps({"type": "system", "subtype": "init", "session_id": "r", "uuid": "u"}))
answer = "DOUBT: 1: US-1.txt line 1, it says only a number" if number == 1 else "OK: 1"
usage = {"input_tokens": 500, "output_tokens": 5}
message = {"id": "m", "model": "m", "content": [{"type": "text", "text": answer}], "usage": usage}
print(json.dumps({"type": "assistant", "session_id": "r", "uuid": "u", "message": message}))
print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": answer,
    "session_id": "r", "uuid": "u", "num_turns": 1, "total_cost_usd": 0.25, "usage": usage}))
"""
LOOKS = """
import json, pathlib, sys
home = pathlib.Path.home()
try:
    pathlib.Path("mine.txt").write_text("x")
    wrote = "yes"
except OSError:
    wrote = "no"
(home / ".second" / "session").write_text("x")
there = (home / ".codex" / "auth.json").exists()
login = (home / ".second" / "login").read_text()
answer = f"DOUBT: login {login}; codex {'there' if there else 'none'}; wrote {wrote}"
head = {"session_id": "r", "uuid": "u"}
print(json.dumps({"type": "system", "subtype": "init", **head}))
message = {"id": "m", "model": "m", "content": [{"type": "text", "text": answer}]}
print(json.dumps({"type": "assistant", **head, "message": message}))
print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": answer,
    **head, "num_turns": 1, "total_cost_usd": 0.25}))
"""
ENDLESS = """
import time
head = {"session_id": "r", "uuid": "u"}
print(json.dumps({"type": "system", "subtype": "init", **head}), flush=True)
for number in range(1_000):
    usage = {"input_tokens": 20_000, "output_tokens": 10}
    content = [{"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {}}]
    message = {"id": f"m{number}", "model": "m", "content": content, "usage": usage}
    print(json.dumps({"type": "assistant", **head, "message": message}), flush=True)
    time.sleep(0.3 if number < 3 else 3)
"""
TOML = """\
name = "second"
program = {python}
reader = "claude"
start = ["-S", {script}, "{{safety}}"]
[safety]
moderate = ["--may-write"]
asking = ["--may-only-read"]
"""


def reviewed(
    tmp_path: Path, agent: str = WORK, *, limits: str = "", output: str = "text"
) -> Sandbox:
    """A project whose green stories a second agent looks at."""
    box = sandbox(tmp_path, agent, checks=GREEN, limits=limits, output=output)
    script = tmp_path / "reviewer.py"
    script.write_text(REVIEWER)
    (box.root / "agents.d").mkdir()
    told = TOML.format(python=json.dumps(sys.executable), script=json.dumps(str(script)))
    (box.root / "agents.d" / "second.toml").write_text(told)
    settings = box.root / "ralph.toml"
    settings.write_text(settings.read_text().replace("[checks]", '[checks]\ndoubt = ["@second"]'))
    box.git("add", "-A")
    box.git("commit", "-qm", "reviewer")
    return box


def test_a_second_agent_doubts_once_and_is_heard(tmp_path: Path) -> None:
    """Its doubt goes into the next prompt; it only reads, and what it costs is the run's."""
    box = reviewed(tmp_path)
    done = box.run()
    assert done.code == 0, done.text
    assert box.starts == 2
    assert "it says only a number" in " ".join(box.prompt(2).split())
    reviews = [json.loads(line) for line in (box.state / "reviews").read_text().splitlines()]
    assert all(one["argv"] == ["--may-only-read"] for one in reviews)
    assert "+1" in reviews[0]["prompt"]
    assert "US-1" in reviews[0]["prompt"]
    assert box.status()["cost_usd"] == 0.25 * len(reviews)


def test_stats_say_how_often_its_doubts_led_to_a_change(tmp_path: Path) -> None:
    """Asked, doubted, put to the agent, changed after; with what it cost."""
    box = reviewed(tmp_path)
    box.run()
    shown = " ".join(box.ralph("stats").out.split())
    words = "@second: asked 2 times; 1 doubt; 1 put to the agent, 1 led to a change; $0.50"
    assert words in shown, shown
    told = json.loads(box.ralph("stats", "--json").out)["doubters"]["@second"]
    assert (told["asked"], told["doubts"], told["put"], told["changed"]) == (2, 1, 1, 1)
    assert told["cost_usd"] == 0.5


def test_a_doubt_that_was_answered_without_a_change_led_to_none(tmp_path: Path) -> None:
    """The agent says that it is done as it is; the story passes for a person to look at."""
    box = reviewed(tmp_path, "write(f'{STORY}.txt', 'the same'); done()")
    done = box.run()
    assert done.code == 0, done.text
    told = json.loads(box.ralph("stats", "--json").out)["doubters"]["@second"]
    assert (told["put"], told["changed"], told["unchanged"]) == (1, 0, 1)


def test_an_agent_that_exchanges_its_reviewer_is_not_done(tmp_path: Path) -> None:
    """What declares the reviewer is settings: a change of it is put to the agent first."""
    tame = "name = 'second'\nprogram = 'true'\nstart = []\n[safety]\nmoderate = []\n"
    box = reviewed(tmp_path, f"write('agents.d/second.toml', {tame!r}); {WORK}")
    done = box.run("--max-iterations", "1")
    assert "agents.d/second.toml" in done.text, done.text
    assert not box.records()[0].verdict.passed


def test_a_reviewer_that_nobody_knows_is_refused_before_the_night(tmp_path: Path) -> None:
    """A slip in its name costs no start; one that is not installed is a warning."""
    box = reviewed(tmp_path)
    settings = box.root / "ralph.toml"
    told = settings.read_text()
    settings.write_text(told.replace("@second", "@secnd"))
    done = box.run()
    assert (done.code, box.starts) == (65, 0), done.text
    assert "checks.doubt: there is no agent named 'secnd'" in done.text
    settings.write_text(told)
    declared = box.root / "agents.d" / "second.toml"
    declared.write_text(
        declared.read_text().replace(json.dumps(sys.executable), '"no-such-program"')
    )
    box.git("commit", "-qam", "not there")
    done = box.run()
    assert done.code == 0, done.text
    said = " ".join(done.text.split())
    assert "no-such-program" in said
    assert "it will doubt nothing" in said


def test_a_reviewer_is_ended_inside_its_start(tmp_path: Path) -> None:
    """It would read for ever: it has a ceiling as any start, and is no obstacle."""
    box = reviewed(tmp_path, limits="max_start_tokens = 100_000")
    endless = REVIEWER.split("print(json.dumps({", 1)[0] + ENDLESS
    (tmp_path / "reviewer.py").write_text(endless)
    done = box.run()
    assert done.code == 0, done.text
    [record] = box.records()
    [asked] = record.evidence.doubters
    assert 40_000 < asked.usage.total_tokens <= 100_000
    assert record.verdict.passed


def test_a_reviewer_is_not_asked_where_nothing_is_left(tmp_path: Path) -> None:
    """The start that is judged has used up the money of the run: that is written down."""
    paid = """
write(f"{STORY}.txt", START)
words = TOLD
event(type="system", subtype="init", session_id="s-1", uuid="u")
says(words)
result(words, cost=0.5)
""".replace("TOLD", repr(DONE))
    box = reviewed(tmp_path, paid, limits="max_cost_usd = 0.5", output="claude")
    done = box.run()
    assert not (box.state / "reviews").exists(), done.text
    assert "@second was not asked: nothing is left" in " ".join(done.text.split())


def test_a_reviewer_that_cannot_be_asked_is_no_obstacle(tmp_path: Path) -> None:
    """It is written down, and the story passes on what was proven."""
    box = reviewed(tmp_path)
    (tmp_path / "reviewer.py").write_text("raise SystemExit(3)")
    done = box.run()
    assert done.code == 0, done.text
    assert box.starts == 1
    assert "@second did not answer: exit code 3" in " ".join(done.text.split())
    assert "asked 1 time; 0 doubts; no answer 1 time" in box.ralph("stats").out


def test_what_is_changed_by_who_may_only_read_is_a_doubt(tmp_path: Path) -> None:
    """A reviewer that writes is not believed, and its work is seen."""
    box = reviewed(tmp_path, limits="max_iterations = 1")
    (tmp_path / "reviewer.py").write_text(
        'import pathlib; pathlib.Path("mine.txt").write_text("x")\n' + REVIEWER
    )
    done = box.run()
    assert "the reviewer itself changed files" in done.text, done.text


@pytest.mark.tool("bwrap", optional=True)
def test_a_reviewer_in_the_sandbox_has_its_login_and_cannot_write(tmp_path: Path) -> None:
    """What it keeps at home is there, other agents' is not, and the work tree is read-only."""
    box = reviewed(tmp_path)
    home = tmp_path / "home"
    for name, told in ((".second/login", "me"), (".codex/auth.json", "them")):
        (home / name).parent.mkdir(parents=True)
        (home / name).write_text(told)
    # What works inside of the box lies in the work tree: nothing else of this test is there.
    (box.root / "agent.sh").write_text(f"echo 1 > US-1.txt\ncat <<'END'\n{DONE}\nEND\n")
    (box.root / "reviewer.py").write_text(LOOKS)
    declared = box.root / "agents.d" / "second.toml"
    kept = 'reader = "claude"\nhome = ["~/.second"]\nwrites = ["~/.second/"]'
    told = declared.read_text().replace('reader = "claude"', kept)
    declared.write_text(told.replace(str(tmp_path / "reviewer.py"), "reviewer.py"))
    settings = box.root / "ralph.toml"
    lines = [line for line in settings.read_text().splitlines() if "command = " not in line]
    lines.insert(1, 'command = ["sh", "agent.sh"]')
    settings.write_text("\n".join(lines) + '\n[sandbox]\nmode = "on"\n')
    box.git("add", "-A")
    box.git("commit", "-qm", "boxed")
    box.env["HOME"] = str(home)
    done = box.run("--max-iterations", "1")
    if not is_there("bwrap"):
        assert "needs a sandbox, and none works here" in done.text
        return
    [record] = box.records()
    assert record.evidence.opinions, done.text
    assert "login me; codex none; wrote no" in record.evidence.opinions[0]


def test_only_lines_that_doubt_are_doubts() -> None:
    """Whatever else an answer says, and however it is marked."""
    assert doubts_in("OK: 1\nOK: 2\n") == ""
    assert doubts_in("There is no DOUBT: it is fine") == ""
    assert doubts_in("- **DOUBT:** 2: a.py line 3, wrong\nOK: 1") == "2: a.py line 3, wrong"
    assert doubts_in("DOUBT:\n") == ""


# A git of ours is killed, again and again, from the moment at which a doubter has answered.
DISTURBS = """
fake = pathlib.Path(os.environ["FAKE_GIT"])
(fake / "first").write_text("1")
(fake / "last").write_text("6")
(fake / "dies").write_text("status")
"""


def test_an_answer_counts_where_git_is_killed_just_then(tmp_path: Path) -> None:
    """Git is asked again whether the doubter only read; what it cost was in no sum."""
    box = reviewed(tmp_path)
    script = tmp_path / "reviewer.py"
    quiet = script.read_text().replace("number == 1 else", "number == 0 else")
    script.write_text(quiet + DISTURBS)
    git = FakeGit(box, tmp_path / "fake")
    done = box.run()

    assert done.code == 0, done.text
    assert git.deaths == 6
    assert box.status()["cost_usd"] == 0.25
    [record] = box.records()
    [asked] = record.evidence.doubters
    assert asked.usage.dollars == 0.25
    assert not asked.unheard
