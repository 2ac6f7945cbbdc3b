"""A change that a person sent back does not pass again until a person accepts it."""

from __future__ import annotations

import json
import os
import pty
import time
from pathlib import Path

import pytest

from tests.loop.guards import told
from tests.loop.projects import Sandbox, sandbox, story
from tests.loop.test_stories import known_grades
from tests.starting import Started

GREEN = [["true"]]
WHY = "Say it in French"
SAME = 'write(f"{STORY}.py", "def greet():\\n    return \'hello\'\\n"); done()'
SENT_BACK = "this is what you sent back"


def sent_back(tmp_path: Path, agent: str = SAME, *, stories: int = 1) -> Sandbox:
    """A night in which all passed, and the no of the morning to the first story."""
    box = sandbox(tmp_path, agent, stories=stories, checks=GREEN)
    assert box.run().code == 0
    said = box.ralph("reject", "US-1", WHY)
    assert said.code == 0, told(said)
    return box


def key_pressed(box: Sandbox, keys: str) -> str:
    """What `ralph review` shows on a plain terminal to whoever presses these keys."""
    ours, theirs = pty.openpty()
    started = Started(
        box.argv("review"),
        cwd=box.root,
        env=box.environment({"TERM": "dumb"}),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
        if piece.rstrip().endswith(b"[q]uit"):  # what is typed before it asks is lost
            time.sleep(0.3)
            os.write(ours, keys.encode())
    os.close(ours)
    assert started.wait(timeout=30) == 0, shown.decode()
    return shown.decode()


@pytest.mark.parametrize("how", [(), ("--continue",)], ids=["new session", "continued"])
def test_the_same_change_does_not_pass_again(tmp_path: Path, how: tuple[str, ...]) -> None:
    """Not one line differs: it is not passed, and agent and person are told why."""
    box = sandbox(tmp_path, SAME, stories=2, checks=GREEN)
    assert box.run("--max-iterations", "1").code == 3
    assert box.ralph("reject", "US-1", WHY).code == 0
    done = box.run(*how, "--story", "US-1", "--max-iterations", "3")
    assert done.code == 3, told(done)
    assert not box.passes()["US-1"]
    assert f"it says done, but {SENT_BACK}" in done.out
    assert WHY in box.prompt(3)
    assert "the very change that a person sent back" in box.prompt(3)
    assert box.ralph("replay").code == 0


def test_another_change_passes(tmp_path: Path) -> None:
    """What a person asked for was done: nothing stands in its way."""
    agent = """
    word = "bonjour" if "French" in PROMPT else "hello"
    write(f"{STORY}.py", f"def greet():\\n    return '{word}'\\n"); done()
    """
    box = sent_back(tmp_path, agent)
    done = box.run()
    assert done.code == 0, told(done)
    assert box.passes() == {"US-1": True}
    assert SENT_BACK not in done.text


def test_another_indentation_is_another_change(tmp_path: Path) -> None:
    """In some languages that is all there was to mend."""
    agent = """
    depth = 4 if "French" in PROMPT else 0
    write(f"{STORY}.py", "for x in (1, 2):\\n    pass\\n" + " " * depth + "print(x)\\n"); done()
    """
    box = sent_back(tmp_path, agent)
    assert box.run().code == 0
    assert box.passes() == {"US-1": True}


def test_the_same_change_on_a_moved_base_is_the_same(tmp_path: Path) -> None:
    """A person changed the head of the file since: the lines of the story are the same."""
    start = "".join(f"# line {n}\n" for n in range(30))
    agent = """
    path = pathlib.Path("shared.py")
    path.write_text(path.read_text() + "def greet():\\n    return 'hello'\\n"); done()
    """
    box = sandbox(tmp_path, agent, checks=GREEN, files={"shared.py": start})
    assert box.run().code == 0
    assert box.ralph("reject", "US-1", WHY).code == 0
    (box.root / "shared.py").write_text("# mine\n" + start)
    box.git("commit", "-qam", "mine")
    done = box.run("--max-iterations", "1")
    assert done.code == 3, told(done)
    assert SENT_BACK in done.text


def test_a_second_no_is_remembered_beside_the_first(tmp_path: Path) -> None:
    """The first attempt does not come back either."""
    agent = """
    word = {1: "hello", 2: "hi"}.get(START, "hello")
    write(f"{STORY}.py", f"def greet():\\n    return '{word}'\\n"); done()
    """
    box = sent_back(tmp_path, agent)
    assert box.run().code == 0
    assert box.ralph("reject", "US-1", "neither").code == 0
    done = box.run("--max-iterations", "1")
    assert SENT_BACK in done.text
    assert box.passes() == {"US-1": False}


def test_a_person_who_marks_it_has_accepted_it(tmp_path: Path) -> None:
    """Their word is the last one, also for the next time."""
    box = sent_back(tmp_path)
    assert box.run("--max-iterations", "1").code == 3
    text = (box.root / "prd.json").read_text()
    (box.root / "prd.json").write_text(text.replace('"passes": false', '"passes": true'))
    box.git("commit", "-qam", "mine")
    done = box.run()
    assert done.code == 0, told(done)
    assert known_grades(box) == {"US-1": "by hand"}


def test_a_person_who_accepts_it_in_the_review_lets_it_pass(tmp_path: Path) -> None:
    """The story is shown there with what speaks against it; after the yes it passes."""
    box = sent_back(tmp_path)
    assert box.run("--max-iterations", "1").code == 3
    status = box.ralph("status").out
    assert "US-1" in status
    assert "ralph review" in status
    listed = box.ralph("review").out
    assert "US-1: Do US-1" in listed
    assert SENT_BACK in listed
    shown = key_pressed(box, "a")
    assert SENT_BACK in shown
    done = box.run("--continue", "--max-iterations", "9")
    assert done.code == 0, told(done)
    assert box.passes() == {"US-1": True}
    assert box.ralph("replay").code == 0


def test_a_story_that_was_set_aside_for_it_passes_once_it_is_accepted(tmp_path: Path) -> None:
    """Its leftovers come back with the second chance, and are what the person said yes to."""
    agent = """
    path = pathlib.Path(f"{STORY}.py")
    if "takes it as it is" not in PROMPT: path.write_text("def greet():\\n    return 'hello'\\n")
    if STORY == "US-1" or START > 2: done()
    else: status()
    """
    box = sandbox(tmp_path, agent, stories=2, checks=GREEN, limits="max_attempts = 1")
    assert box.run("--max-iterations", "1").code == 3
    assert box.ralph("reject", "US-1", WHY).code == 0
    done = box.run("--continue", "--max-iterations", "9")
    assert done.code == 4, told(done)
    assert not box.passes()["US-1"]
    assert not (box.root / "US-1.py").exists()
    assert SENT_BACK in key_pressed(box, "a")
    done = box.run("--continue", "--max-iterations", "19")
    assert done.code == 0, told(done)
    assert box.passes() == {"US-1": True, "US-2": True}


def test_it_is_known_where_ralph_does_not_commit(tmp_path: Path) -> None:
    """The work stays in the tree: doing nothing is the same change."""
    box = sandbox(tmp_path, SAME, checks=GREEN, toml='[git]\ncommit = "never"\n')
    assert box.run().code == 0
    said = box.ralph("reject", "US-1", WHY)
    assert said.code == 0, told(said)
    done = box.run("--max-iterations", "1", "--allow-dirty")
    assert SENT_BACK in done.text, told(done)
    assert box.passes() == {"US-1": False}


def test_status_says_what_is_open_after_a_rejection(tmp_path: Path) -> None:
    """Not that all have passed; and the next command goes on."""
    box = sent_back(tmp_path, stories=2)
    shown = box.ralph("status")
    assert "all 2 stories" not in shown.out
    assert "complete" not in shown.out
    assert "1 of 2 passed" in shown.out
    assert "US-1 is open" in shown.out
    assert "`ralph run`" in shown.out
    found = box.status()
    assert found["state"] == "stopped"
    assert any("ralph run" in step for step in found["next"])
    assert box.run().code in (0, 1, 3)


def test_a_complete_night_is_still_complete(tmp_path: Path) -> None:
    """Nobody sent anything back; a story that was added since is said to be open."""
    box = sandbox(tmp_path, SAME, stories=1, checks=GREEN)
    assert box.run().code == 0
    assert box.status()["state"] == "complete"
    data = json.loads((box.root / "prd.json").read_text())
    data["userStories"].append(story("US-2"))
    (box.root / "prd.json").write_text(json.dumps(data))
    shown = box.ralph("status").out
    assert "US-2 is open" in shown
    assert "`ralph run`" in shown
