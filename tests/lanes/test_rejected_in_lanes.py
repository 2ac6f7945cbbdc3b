"""In lanes, too, what a person sent back does not land again."""

from __future__ import annotations

from pathlib import Path

from tests.lanes.yards import prompt, stories_of, yard
from tests.loop.guards import told

SENT_BACK = "this is what you sent back"
AGENT = """
word = "bonjour" if "French" in PROMPT and START >= OTHER else "hello"
write(f"{STORY}.py", f"def greet():\\n    return '{word}'\\n")
done()
"""


def test_the_same_change_does_not_land_again_and_another_one_does(tmp_path: Path) -> None:
    """The second start writes the same bytes and is told; the third does what was asked."""
    agent = "OTHER = 3\n" + AGENT
    box = yard(tmp_path, agent, stories=stories_of("a", "b"))
    done = box.run("--lanes", "2")
    assert done.code == 0, told(done)
    said = box.ralph("reject", "a", "Say it in French")
    assert said.code == 0, told(said)
    done = box.run("--lanes", "2")
    assert done.code == 0, told(done)
    assert SENT_BACK in done.text
    assert "the very change that a person sent back" in prompt(box, "a", 3)
    assert "bonjour" in box.git("show", "HEAD:a.py")
    assert box.passes() == {"a": True, "b": True}
    assert box.ralph("replay").code == 0
