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
