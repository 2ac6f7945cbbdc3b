"""What a story needs was done by others: what they left to say reaches it."""

from __future__ import annotations

from pathlib import Path

from tests.loop.projects import sandbox, story

AGENT = """
write(f"{STORY}.txt")
if STORY == "US-3":
    status("IN_PROGRESS")
else:
    status("COMPLETE", recommendation=f"{STORY} has left a word", tasks=1)
"""


def test_the_words_of_a_needed_story_are_in_the_prompt(tmp_path: Path) -> None:
    """Also where no file is shared; of a story that has nothing to do with it nothing is said."""
    stories = [story("US-1"), story("US-2"), story("US-3", dependsOn=["US-1"])]
    box = sandbox(tmp_path, AGENT, stories=stories, checks=[["true"]])
    assert box.run("--max-iterations", "3").code == 3
    needs = box.prompt(3).partition("# Recent progress")[2]
    assert "next: US-1 has left a word" in needs
    assert "US-2 has left" not in needs
    shown = box.ralph("review", "us-3")
    assert shown.code == 64
    assert "US-3 has not passed" in shown.err
