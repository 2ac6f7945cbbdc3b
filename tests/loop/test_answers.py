"""What a person says about a story, while a run goes on and between two."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.loop.guards import told
from tests.loop.projects import sandbox, story

GREEN = [["true"]]
ANSWER = "Use the v2 API, the key is in the vault."
ASKS = f"""
if "{ANSWER}" in PROMPT or STORY == "US-3": write(f"{{STORY}}.txt"); done()
else: status("BLOCKED", files=0, recommendation=f"Which API is {{STORY}} for?")
"""
SLOW = f"""
if "{ANSWER}" in PROMPT: write(f"{{STORY}}.txt"); done()
elif STORY == "US-1": status("BLOCKED", files=0, recommendation="Which API?")
else: write("slow.txt"); print("working", flush=True); time.sleep(3); done()
"""


def test_an_answer_between_runs_goes_into_the_prompt_and_the_others_still_wait(
    tmp_path: Path,
) -> None:
    """Two stories ask; one is answered: only that one is started, with question and answer."""
    box = sandbox(tmp_path, ASKS, stories=3, checks=GREEN)
    assert box.run().code == 2
    shown = box.ralph("answer")
    assert "US-1: Which API is US-1 for?" in shown.out
    assert 'ralph answer US-2 "…"' in shown.out
    said = box.ralph("answer", "US-1", *ANSWER.split())
    assert said.code == 0, told(said)
    assert "US-1 is open again, and its next prompt has your answer." in said.out
    assert "US-1" not in box.ralph("answer").out
    done = box.run("--continue")
    assert done.code == 2, told(done)
    assert box.worked_on()[3:] == ["US-1"]
    assert box.passes() == {"US-1": True, "US-2": False, "US-3": True}
    asked = box.prompt(4)
    assert "## From the person who runs this" in asked
    assert asked.index("It was asked: Which API is US-1 for?") < asked.index(ANSWER)


def test_going_on_without_an_answer_opens_all_that_waits(tmp_path: Path) -> None:
    """A person may have given what was missing without saying so."""
    box = sandbox(tmp_path, ASKS, stories=2, checks=GREEN)
    assert box.run().code == 2
    assert box.run("--continue").code == 2
    assert box.worked_on() == ["US-1", "US-2"] * 2


def test_an_answer_reaches_a_run_that_goes_on(tmp_path: Path) -> None:
    """While another story is worked on, the one that was answered becomes the next."""
    box = sandbox(tmp_path, SLOW, stories=2, checks=GREEN)
    with box.start() as run:
        box.wait_for_start(2)
        said = box.ralph("answer", "US-1", ANSWER)
        assert said.code == 0, told(said)
        assert run.wait(60) == 0
    assert box.worked_on() == ["US-1", "US-2", "US-1"]
    assert box.passes() == {"US-1": True, "US-2": True}


def test_a_night_with_an_answer_replays(tmp_path: Path) -> None:
    """The answer is data of the night like everything else that changed it."""
    box = sandbox(tmp_path, ASKS, stories=1, checks=GREEN)
    assert box.run().code == 2
    box.ralph("answer", "US-1", ANSWER)
    assert box.run("--continue").code == 0
    assert "identical" in box.ralph("replay").out


def test_what_was_tried_before_the_answer_opens_no_circuit(tmp_path: Path) -> None:
    """Three idle starts, then a question and its answer: the count begins anew."""
    agent = f"""
    if "{ANSWER}" in PROMPT and START > 6: write("done.txt"); done()
    elif START == 4: status("BLOCKED", files=0, recommendation="Which API?")
    else: status(files=0, words=f"I looked at part {{START}} of it.")
    """
    box = sandbox(tmp_path, agent, stories=1, checks=GREEN, limits="max_attempts = 9")
    assert box.run().code == 2
    assert box.ralph("answer", "US-1", ANSWER).code == 0
    assert box.run("--continue").code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["US-3", "yes"], "US-3 has passed already"),
        (["US-9", "yes"], "there is no story 'US-9'"),
        (["US-1"], "the answer has no words"),
        (["US-1", " "], "the answer was empty"),
    ],
)
def test_an_answer_to_nothing_is_refused(tmp_path: Path, arguments: list[str], words: str) -> None:
    """What cannot be done is said, and nothing changes."""
    box = sandbox(tmp_path, ASKS, stories=3, checks=GREEN)
    assert box.run().code == 2
    said = box.ralph("answer", *arguments)
    assert said.code == 64
    assert words in said.err
    assert "US-1: Which API is US-1 for?" in box.ralph("answer").out


def test_skip_retry_note_and_budget_work_between_runs(tmp_path: Path) -> None:
    """What was said while nothing ran holds for the next start."""
    agent = 'write(f"{STORY}-{START}.txt"); done() if START > 1 else status()'
    box = sandbox(tmp_path, agent, stories=2, checks=GREEN, limits="max_cost_usd = 5.0")
    assert box.run("--max-iterations", "1").code == 3
    for wish in (["skip", "US-1"], ["note", "mind", "the", "gap"], ["budget", "--cost", "2.5"]):
        said = box.ralph(*wish)
        assert said.code == 0, told(said)
    assert "set aside by a person" in box.ralph("stories").out
    assert "$7.50" in box.ralph("status").out
    assert box.run("--continue", "--max-iterations", "2").code == 4
    assert box.worked_on() == ["US-1", "US-2"]
    assert "mind the gap" in box.prompt(2)
    assert box.ralph("retry", "US-1").code == 0
    assert "open" in box.ralph("stories").out
    assert box.run("--continue", "--max-iterations", "9").code == 0


def test_a_note_for_a_run_that_is_over_waits_for_the_next_one(tmp_path: Path) -> None:
    """Whoever starts next has it, and only once."""
    box = sandbox(tmp_path, 'write(f"{STORY}.txt"); done()', stories=1, checks=GREEN)
    assert box.run().code == 0
    refused = box.ralph("budget", "--cost", "1")
    assert refused.code == 64
    assert "no unfinished run" in refused.err
    assert box.ralph("note", "mind the gap").code == 0
    stories = [story("US-1", passes=True), story("US-2")]
    (box.root / "prd.json").write_text(json.dumps({"userStories": stories}))
    box.git("commit", "-qam", "one more")
    assert box.run().code == 0
    assert "mind the gap" in box.prompt(2)


def test_nothing_can_be_said_where_nothing_ran(tmp_path: Path) -> None:
    """There is nobody to hear it, and no journal is made for it."""
    box = sandbox(tmp_path, "done()", stories=1, checks=GREEN)
    said = box.ralph("skip", "US-1")
    assert said.code == 64
    assert "nothing has run here yet" in said.err
    assert not (box.root / ".ralph").exists()


def test_an_answered_story_is_worked_on_after_a_night_that_moved_nothing(tmp_path: Path) -> None:
    """Two others were set aside in a row; the answer is news, and the run goes on with it."""
    agent = f"""
    if "{ANSWER}" in PROMPT: write(f"{{STORY}}.txt"); done()
    elif STORY == "US-1": status("BLOCKED", files=0, recommendation="Which API?")
    else: status(files=0, words=f"I looked at part {{START}} of it.")
    """
    box = sandbox(tmp_path, agent, stories=4, checks=GREEN, limits="max_attempts = 2")
    first = box.run()
    assert "two stories in a row were set aside" in first.text, first.text
    assert box.ralph("answer", "US-1", ANSWER).code == 0
    went_on = box.run("--continue")
    assert box.passes()["US-1"], went_on.text
