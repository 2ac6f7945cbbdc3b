"""What an agent that goes in circles is told."""

from __future__ import annotations

from pathlib import Path

from tests.loop.projects import sandbox

CIRCLES = """
write(f"notes-{START}.txt", START)
status(words="Still broken.\\n\\nTypeError: cannot add int and str", tests="FAILING")
"""


def test_an_agent_that_meets_the_same_error_again_is_told_so(tmp_path: Path) -> None:
    """Before the circuit moves at all: the sign itself goes into the next prompt."""
    box = sandbox(tmp_path, CIRCLES)
    box.run("--max-iterations", "4")
    assert "goes in circles" not in (box.state / "prompt-3").read_text()
    told = (box.state / "prompt-4").read_text()
    assert "This work goes in circles: the same error 3 times" in told
    assert "Take a different and smaller step" in told


TO_AND_FRO = """
write("a.txt", "one" if START % 2 else "two")
status(words=f"Tried the {'first' if START % 2 else 'second'} way, because the {START}th run needs it.")
"""


def test_a_sign_reaches_a_prompt_before_the_circuit_opens(tmp_path: Path) -> None:
    """To and fro is told while there is a prompt to tell it in: the one that is tried last."""
    box = sandbox(tmp_path, TO_AND_FRO)
    done = box.run()
    assert done.code == 1, done.text
    assert "to and fro between two states of the work tree" in box.prompt(box.starts)
    assert "to and fro" not in box.prompt(box.starts - 1)


NO_BLOCK = """
write(f"work-{START}.txt")
if "ended without a RALPH_STATUS block" in PROMPT: done()
else: print("Ich habe die Funktion eingebaut, und alle Tests laufen. Fertig.")
"""


def test_an_answer_without_a_block_is_told_at_once(tmp_path: Path) -> None:
    """Words that nobody understands say nothing; the next start hears what is missing."""
    box = sandbox(tmp_path, NO_BLOCK)
    done = box.run("--max-iterations", "4")
    assert done.code == 0, done.text
    assert box.starts == 2


def test_an_answer_that_is_understood_is_not_told_to_have_a_block(tmp_path: Path) -> None:
    """Plain words are a claim; what is wrong then is what the check says."""
    agent = "write('work.txt', START)\nprint('I have implemented the story. All tests pass.')"
    box = sandbox(tmp_path, agent, checks=[["sh", "-c", "grep -q 2 work.txt"]])
    done = box.run("--allow-red", "--max-iterations", "4")
    assert done.code == 0, done.text
    assert box.starts == 2
    assert "without a RALPH_STATUS block" not in box.prompt(2)
