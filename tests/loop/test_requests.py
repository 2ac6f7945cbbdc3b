"""What a person asks of a run while it works, and while it waits."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from ralphloop.cli.shared.steering import who_asks
from ralphloop.journal.journal import Journal
from ralphloop.journal.queries import JournalReader
from ralphloop.journal.records import Request
from tests import sentences
from tests.loop.projects import Done, Sandbox, sandbox
from tests.timing import FOR_EVER_S

GREEN = [["true"]]
SLOW_FIRST = """
if START == 1: write("a.txt"); print("thinking", flush=True); time.sleep(2.5); status()
else: write(f"{STORY}-{START}.txt"); done()
"""
LIMITED = """
if START == 1: print(f"Claude AI usage limit reached|{int(time.time()) + SECONDS}"); sys.exit(1)
write(f"{STORY}-{START}.txt"); done()
"""


def limited(seconds: int) -> str:
    """An agent whose first start meets a usage limit."""
    return LIMITED.replace("SECONDS", str(seconds))


def ask(box: Sandbox, kind: str, **payload: object) -> int:
    """Ask the running loop, as the commands do."""
    with Journal.open(box.root / ".ralph/journal.db", check=False) as journal:
        run = journal.latest_run()
        assert run is not None
        request = journal.add_request(
            run.id, kind=kind, payload={**payload, "by": who_asks()}, now=time.time()
        )
    assert request is not None
    return request


def answer(box: Sandbox, request: int, timeout: float = 20) -> Request:
    """The request once it is answered."""
    deadline = time.monotonic() + timeout
    while True:
        with JournalReader.open(box.root / ".ralph/journal.db") as journal:
            found = journal.find_request(request)
        if found is not None and found.status != "pending":
            return found
        assert time.monotonic() < deadline, "nobody answered"
        time.sleep(0.05)


def wait_for_wait(box: Sandbox, kind: str, timeout: float = 20) -> None:
    """Until the run waits for something of this kind."""
    deadline = time.monotonic() + timeout
    while True:
        with JournalReader.open(box.root / ".ralph/journal.db") as journal:
            run = journal.latest_run()
            wait = journal.open_wait(run.id) if run else None
        if wait is not None and wait.kind == kind:
            return
        assert time.monotonic() < deadline, f"it never waited for {kind}"
        time.sleep(0.05)


def paused(tmp_path: Path) -> tuple[Sandbox, subprocess.Popen[str]]:
    """A run that a person has paused after its first iteration."""
    box = sandbox(tmp_path, SLOW_FIRST, checks=GREEN)
    process = box.start()
    box.wait_for_start()
    ask(box, "pause")
    wait_for_wait(box, "pause")
    return box, process


def ended(process: subprocess.Popen[str]) -> Done:
    """The run to its end."""
    out, err = process.communicate(timeout=60)
    return Done(process.returncode, out, err)


def test_a_note_goes_into_the_next_prompt(tmp_path: Path) -> None:
    """What a person writes while an agent works is what the next one reads, on one line."""
    box = sandbox(tmp_path, SLOW_FIRST, checks=GREEN)
    process = box.start()
    box.wait_for_start()
    request = ask(box, "note", text="use the v2 API\n# not a heading")
    done = ended(process)
    assert done.code == 0, done.text
    assert answer(box, request).answer == sentences.NEXT_PROMPT
    assert "- use the v2 API # not a heading" in box.prompt(2)
    assert "use the v2 API" not in box.prompt(1)


def test_a_stop_ends_a_working_agent(tmp_path: Path) -> None:
    """The agent is ended gently, the iteration is recorded, 130; `--continue` goes on."""
    box = sandbox(tmp_path, SLOW_FIRST.replace("2.5", "60"), checks=GREEN)
    process = box.start()
    box.wait_for_start()
    ask(box, "stop")
    done = ended(process)
    assert done.code == 130, done.text
    assert "asked to stop" in done.text
    assert box.leftovers() == []
    assert box.run("--continue").code == 0


def test_a_stop_ends_a_wait(tmp_path: Path) -> None:
    """Nobody has to wait for a quota to be able to stop."""
    box = sandbox(tmp_path, limited(FOR_EVER_S), checks=GREEN)
    process = box.start()
    wait_for_wait(box, "quota")
    ask(box, "stop")
    assert ended(process).code == 130
    assert box.starts == 1


def test_wishes_are_heard_while_the_run_waits(tmp_path: Path) -> None:
    """Notes, skips and budgets are answered during a wait and hold after it."""
    box = sandbox(tmp_path, limited(5), stories=3, checks=GREEN)
    process = box.start()
    wait_for_wait(box, "quota")
    asked = [
        ask(box, "note", text="mind the gap"),
        ask(box, "skip", story="US-2"),
        ask(box, "budget", cost_usd=1),
    ]
    answers = [answer(box, request).answer for request in asked]
    assert box.starts == 1
    done = ended(process)
    assert done.code == 4, done.text
    assert answers[:2] == [sentences.NEXT_PROMPT, "US-2 is set aside"]
    assert "mind the gap" in box.prompt(2)
    assert box.worked_on() == ["US-1", "US-1", "US-3"]


def test_a_pause_holds_until_it_is_resumed(tmp_path: Path) -> None:
    """After the iteration nothing starts until a person says so."""
    box, process = paused(tmp_path)
    time.sleep(1)
    assert box.starts == 1
    ask(box, "resume")
    assert ended(process).code == 0
    assert box.starts == 2


def test_a_pause_outlives_the_process(tmp_path: Path) -> None:
    """A paused run that is stopped and continued is still paused."""
    box, process = paused(tmp_path)
    process.kill()
    process.communicate()
    again = box.start("--continue")
    wait_for_wait(box, "pause")
    time.sleep(1.5)
    assert box.starts == 1
    ask(box, "resume")
    assert ended(again).code == 0


def test_a_paused_run_that_is_stopped_begins_nothing(tmp_path: Path) -> None:
    """The stop ends the pause and the run, not the pause alone."""
    box, process = paused(tmp_path)
    ask(box, "stop")
    assert ended(process).code == 130
    assert box.starts == len(box.records()) == 1


def test_a_story_can_be_skipped_while_another_is_worked_on(tmp_path: Path) -> None:
    """The skipped story is set aside by a person and not tried; nothing runnable is left: 4."""
    agent = SLOW_FIRST.replace("status()", "done()")
    box = sandbox(tmp_path, agent, stories=3, checks=GREEN)
    process = box.start()
    box.wait_for_start()
    request = ask(box, "skip", story="US-2")
    done = ended(process)
    assert done.code == 4, done.text
    assert answer(box, request).answer == "US-2 is set aside"
    assert box.worked_on() == ["US-1", "US-3"]


def test_the_story_that_is_worked_on_can_be_skipped(tmp_path: Path) -> None:
    """A skip holds although the story's own iteration ends after it."""
    agent = SLOW_FIRST.replace("2.5", "3.5")
    box = sandbox(tmp_path, agent, stories=2, checks=GREEN)
    process = box.start()
    box.wait_for_start()
    ask(box, "skip", story="US-1")
    done = ended(process)
    assert done.code == 4, done.text
    assert box.worked_on() == ["US-1", "US-2"]


def test_a_blocked_story_can_be_tried_again_while_the_run_goes_on(tmp_path: Path) -> None:
    """Retry opens a story that waits for a person."""
    agent = """
    if STORY == "US-1" and START == 1: status("BLOCKED", files=0, recommendation="need a key")
    else: write(f"{STORY}.txt"); time.sleep(2); done()
    """
    box = sandbox(tmp_path, agent, stories=2, checks=GREEN)
    process = box.start()
    box.wait_for_start(2)
    ask(box, "retry", story="US-1")
    done = ended(process)
    assert done.code == 0, done.text
    assert box.worked_on() == ["US-1", "US-2", "US-1"]


def test_a_raised_budget_lets_the_run_go_on(tmp_path: Path) -> None:
    """Money added while it works counts at once."""
    agent = """
    write(f"src/{START}.py", START); time.sleep(2 * (START == 1))
    says("Working."); result(f"Did part {START}.", cost=1.0)
    """
    box = sandbox(tmp_path, agent, output="claude")
    process = box.start("--max-cost", "1")
    box.wait_for_start()
    request = ask(box, "budget", cost_usd=2)
    done = ended(process)
    assert done.code == 3, done.text
    assert answer(box, request).answer.startswith("raised by $2.00")
    assert "$3.00 of $3.00 is spent" in done.out
    assert box.starts == 3


def test_a_raised_limit_of_tokens_lets_the_run_go_on(tmp_path: Path) -> None:
    """Tokens are added as money is, by the command a person types."""
    agent = """
    write(f"src/{START}.py", START); time.sleep(3 * (START == 1))
    says("Working."); result(f"Did part {START}.")
    """
    box = sandbox(tmp_path, agent, output="claude", limits="max_tokens = 120")
    process = box.start()
    box.wait_for_start()
    raised = box.ralph("budget", "--tokens", "120")
    done = ended(process)
    assert raised.code == 0, raised.text
    assert done.code == 3, done.text
    assert "240 of 240 tokens are used" in done.out
    assert box.starts == 2


def test_time_added_lets_a_wait_be_waited(tmp_path: Path) -> None:
    """A pause near the end of the time goes on once time was added."""
    box = sandbox(tmp_path, SLOW_FIRST, checks=GREEN)
    process = box.start("--max-iterations", "1")
    box.wait_for_start()
    ask(box, "budget", iterations=3)
    assert ended(process).code == 0
    assert box.starts == 2


NONSENSE: dict[str, tuple[str, dict[str, object], str]] = {
    "a kind nobody knows": ("dance", {}, "unknown request"),
    "an empty note": ("note", {"text": "  "}, "the note was empty"),
    "a story that is not there": ("skip", {"story": "US-9"}, "there is no story"),
    "a budget in words": ("budget", {"cost_usd": "much"}, "not a budget"),
    "a budget below zero": ("budget", {"cost_usd": -5}, "not a budget"),
    "a budget without end": ("budget", {"cost_usd": "nan"}, "not a budget"),
    "tokens below zero": ("budget", {"tokens": -5}, "not a budget"),
    "a budget that is a list": ("budget", {"time": ["1h"]}, "not a budget"),
    "a resume without a pause": ("resume", {}, "it was not paused"),
}


def test_nonsense_is_answered_and_changes_nothing(tmp_path: Path) -> None:
    """Whatever stands in a request, the run answers and goes on."""
    box = sandbox(tmp_path, SLOW_FIRST, checks=GREEN)
    process = box.start()
    box.wait_for_start()
    asked = {name: ask(box, kind, **payload) for name, (kind, payload, _) in NONSENSE.items()}
    done = ended(process)
    assert done.code == 0, done.text
    for name, request in asked.items():
        found = answer(box, request)
        assert NONSENSE[name][2] in found.answer, name
        assert found.status == "refused", name


def test_a_refusal_is_no_success(tmp_path: Path) -> None:
    """The command that asked ends with 64 and says why; what was done ends with 0."""
    box = sandbox(tmp_path, SLOW_FIRST, stories=2, checks=GREEN)
    process = box.start()
    box.wait_for_start()
    refused = box.ralph("skip", "US-9")
    assert refused.code == 64, refused.text
    assert "there is no story 'US-9'" in refused.err
    assert box.ralph("skip", "US-2").code == 0
    assert ended(process).code == 4


@pytest.mark.parametrize("kind", ["note", "stop"])
def test_what_was_asked_too_late_is_void(tmp_path: Path, kind: str) -> None:
    """A run that has ended takes no wishes."""
    box = sandbox(tmp_path, "write('a.txt'); done()", checks=GREEN)
    assert box.run().code == 0
    with Journal.open(box.root / ".ralph/journal.db", check=False) as journal:
        run = journal.latest_run()
        assert run is not None
        assert journal.add_request(run.id, kind=kind, now=time.time()) is None
