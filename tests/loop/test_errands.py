"""`ralph do`: one line instead of a story file, and everything else as ever."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.loop.guards import told
from tests.loop.projects import Sandbox, sandbox
from tests.starting import Started

MAKES = "write('made.txt' if STORY.startswith('DO-') else f'{STORY}.txt', STORY); done()"
IS_MADE = "test -f made.txt"


def errands(box: Sandbox) -> list[bool]:
    """The marks of the stories that were given in words."""
    files = sorted((box.root / ".ralph/do").glob("*.json"))
    return [json.loads(file.read_text())["userStories"][0]["passes"] for file in files]


def killed_at_work(box: Sandbox) -> None:
    """An errand whose supervisor is killed while its agent works."""
    null, argv = subprocess.DEVNULL, box.argv("do", "make the file", "--verify", IS_MADE)
    env = box.environment()
    started = Started(argv, cwd=box.root, env=env, stdin=null, stdout=null, stderr=null)
    box.wait_for_start()
    started.kill()
    started.wait()


def test_a_line_becomes_a_verified_commit(tmp_path: Path) -> None:
    """The verify was red and is green: verified, committed, reported; the story list is as before."""
    box = sandbox(tmp_path, MAKES)
    before = (box.root / "prd.json").read_bytes()
    done = box.ralph("do", "make", "the", "file", "--verify", IS_MADE)
    assert done.code == 0, told(done)
    assert "make the file" in box.prompt(1)
    assert box.subjects()[-1].endswith("make the file")
    assert "Ralph-Grade: verified" in box.git("log", "-1", "--format=%B")
    assert box.git("show", "--name-only", "--format=").split() == ["made.txt", "progress.txt"]
    assert list((box.root / ".ralph/reports").glob("*.html"))
    assert (box.root / "prd.json").read_bytes() == before
    assert errands(box) == [True]


def test_words_may_come_from_standard_input_and_be_long(tmp_path: Path) -> None:
    """The first line is the title, all of it the description."""
    box = sandbox(tmp_path, MAKES)
    text = f"make the file {'x' * 90}\n\nand mind the details\n"
    started = Started(
        box.argv("do", "-", "--verify", IS_MADE),
        cwd=box.root,
        env=box.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    started.communicate(text, timeout=100)
    assert started.returncode == 0
    assert "and mind the details" in box.prompt(1)
    assert len(box.subjects()[-1]) < 100


def test_nothing_that_could_prove_it_is_refused(tmp_path: Path) -> None:
    """Without verify and checks it would only be what an agent says; nothing is started."""
    box = sandbox(tmp_path, MAKES)
    done = box.ralph("do", "make the file")
    assert done.code == 64, told(done)
    assert "--verify" in done.err
    assert box.starts == 0
    assert box.ralph("do", "x", "--verify", "a 'b").code == 64
    assert box.ralph("do", " ", "--verify", IS_MADE).code == 64
    assert box.ralph("do", "x", "--verify", IS_MADE, "--checks").code == 64


def test_the_checks_of_the_project_are_enough(tmp_path: Path) -> None:
    """Without a verify the configured checks judge."""
    box = sandbox(tmp_path, MAKES, checks=[["true"]])
    done = box.ralph("do", "make the file", "--checks")
    assert done.code == 0, told(done)
    assert "passed (checked)" in done.out


def test_what_stays_red_says_why(tmp_path: Path) -> None:
    """An agent that only says so does not get it passed, and the night is not spent on it."""
    box = sandbox(tmp_path, "write('other.txt', START); done()")
    done = box.ralph("do", "make the file", "--verify", IS_MADE)
    assert done.code in (1, 4), told(done)
    assert box.starts <= 8
    assert "verify failed" in done.out
    assert "say it another way: `ralph do" in done.err
    assert errands(box) == [False]


def test_a_person_who_types_a_command_agrees_to_it_and_to_nothing_else(tmp_path: Path) -> None:
    """The verify of the command line is run; the settings of a repository still need a yes."""
    box = sandbox(tmp_path, MAKES)
    untrusting = {"RALPH_TRUST": "", "XDG_STATE_HOME": str(tmp_path / "user")}
    done = box.ralph("do", "make the file", "--verify", IS_MADE, env=untrusting)
    assert done.code == 77, told(done)
    assert "agent.command" in done.err
    assert "verify" not in done.err
    assert box.ralph("trust", "--yes", env=untrusting).code == 0
    assert box.ralph("do", "make the file", "--verify", IS_MADE, env=untrusting).code == 0


def test_an_errand_leaves_the_unfinished_night_as_it_was(tmp_path: Path) -> None:
    """After it `--continue` goes on with the night, its budget included."""
    box = sandbox(tmp_path, MAKES, stories=3)
    assert box.run("--max-iterations", "1").code == 3
    night = box.status()["run"]["id"]
    done = box.ralph("do", "make the file", "--verify", IS_MADE)
    assert done.code == 0, told(done)
    assert box.status()["run"]["id"] == night
    assert "US-1" in box.ralph("stories").out
    again = box.run("--continue", "--max-iterations", "5")
    assert again.code == 0, told(again)
    assert f"Continuing run {night}" in again.err
    assert box.passes() == {"US-1": True, "US-2": True, "US-3": True}
    assert len(box.records()) == 3


def test_a_killed_errand_goes_on(tmp_path: Path) -> None:
    """Kill -9 in the middle: `ralph run --continue` finishes just that, once."""
    agent = f"if START == 1: time.sleep(60)\n{MAKES}"
    box = sandbox(tmp_path, agent, stories=2)
    killed_at_work(box)
    done = box.run("--continue")
    assert done.code == 0, told(done)
    assert errands(box) == [True]
    assert box.passes() == {"US-1": False, "US-2": False}
    assert [one for one in box.subjects() if "make the file" in one] == [box.subjects()[-1]]


def test_a_night_begins_beside_a_killed_errand(tmp_path: Path) -> None:
    """What was cut off is ended and recorded first; its agent does not go on beside the others."""
    agent = f"if START == 1: time.sleep(60)\n{MAKES}"
    box = sandbox(tmp_path, agent)
    killed_at_work(box)
    done = box.run()
    assert done.code == 0, told(done)
    assert "recorded iteration 1 as interrupted" in done.err
    assert box.passes() == {"US-1": True}
    assert not box.leftovers()


def test_a_question_of_an_errand_is_answered_like_any_other(tmp_path: Path) -> None:
    """It waits with its question; the answer stands in the next prompt, and it goes on."""
    agent = f"""
if START == 1:
    status("BLOCKED", recommendation="Which name?")
else:
    {MAKES}
"""
    box = sandbox(tmp_path, agent, stories=2)
    assert box.run("--max-iterations", "0", "--story", "US-1").code == 2
    box.git("checkout", "-q", ".")
    (box.state / "starts").unlink()
    done = box.ralph("do", "make the file", "--verify", IS_MADE)
    assert done.code == 2, told(done)
    name = box.worked_on()[-1]
    assert f"ralph answer {name}" in done.err
    assert "US-1" not in done.err
    assert box.ralph("answer", name, "made.txt, please").code == 0
    assert box.run("--continue").code == 0
    assert "made.txt, please" in box.prompt(2)
    assert errands(box) == [True]


def test_a_story_list_that_is_gone_is_no_obstacle(tmp_path: Path) -> None:
    """A night that ended properly has nothing to settle, so nobody needs its file."""
    box = sandbox(tmp_path, MAKES, stories=2)
    assert box.run("--max-iterations", "1").code == 3
    box.git("rm", "-q", "prd.json")
    box.git("commit", "-qm", "Away with it")
    done = box.ralph("do", "make the file", "--verify", IS_MADE)
    assert done.code == 0, told(done)
