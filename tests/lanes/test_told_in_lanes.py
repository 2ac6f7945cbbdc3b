"""What a story is told that came back from landing: who landed and why, and where things are here."""

from __future__ import annotations

from pathlib import Path

from tests.lanes.yards import prompt, starts, stories_of, yard
from tests.loop.guards import told

SAME_LINE = """
write("base.txt", f"{STORY}\\n")
write(f"{STORY}.txt", STORY)
done(f"Wrote {STORY}.")
"""
# What landed is on the branch of the run: seen by the other one from outside.
AFTER_A = """
def landed():
    for _ in range(600):
        told = subprocess.run(["git", "log", "--all", "--format=%s"], capture_output=True, text=True)
        if "a: Do a" in told.stdout.split("\\n"): return
        time.sleep(0.1)
if STORY == "b" and START == 1: landed()
"""
CHECK = """\
if test -e a.txt && test -e b.txt && ! test -e solved.txt
then echo "$PWD/base.txt:1: a and b do not go together"; exit 1
fi
"""


def test_a_conflict_names_what_landed_and_what_it_was_asked_for(tmp_path: Path) -> None:
    """Title and criteria of the story whose commit is in the way stand in the next prompt."""
    box = yard(tmp_path, AFTER_A + SAME_LINE, stories=stories_of("a", "b"))
    done = box.run("--lanes", "2")
    assert done.code == 0, told(done)
    assert starts(box, "b") == 2, told(done)
    again = prompt(box, "b", 2)
    assert "a: Do a (it changed a.txt, base.txt)" in again  # and not what ralph itself writes
    assert "it was asked for: a works" in again
    assert "- base.txt: both sides changed the same lines." in again
    assert "While you worked" not in again


def test_output_of_the_landing_tree_names_files_as_they_are_in_the_lane(tmp_path: Path) -> None:
    """A check that is red only together with what landed ran in a tree the agent never sees."""
    agent = (
        AFTER_A
        + """
if START == 2: write("solved.txt")
write(f"{STORY}.txt", STORY)
done(f"Wrote {STORY}.")
"""
    )
    files = {"check.sh": CHECK}
    box = yard(
        tmp_path, agent, stories=stories_of("a", "b"), checks=[["sh", "check.sh"]], files=files
    )
    done = box.run("--lanes", "2")
    assert done.code == 0, told(done)
    again = prompt(box, "b", 2)
    assert "base.txt:1: a and b do not go together" in again
    assert "/landing/" not in again
