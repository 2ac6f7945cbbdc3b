"""A train: several green stories judged at once, each on top of those before it, landed in order."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tests.lanes.yards import landed_once, starts, stories_of, yard
from tests.loop.projects import CALC, TESTS, UNITTEST, Sandbox
from tests.loop.test_stories import known_grades

# Each agent ends once the story before it is judged in the train, so they land in their order.
IN_ORDER = """
write(f"{STORY}.txt", STORY)
before = "abc"[:"abc".index(STORY)]
end = time.monotonic() + 60
while before and not [*STATE.glob(f"judged-{before}-*")] and time.monotonic() < end:
    time.sleep(0.02)
done()
"""
# In the trees of a train: who is there; each waits a while until `{many}` are.
CHECK = """
import os, pathlib, sys, time
state, many = pathlib.Path(sys.argv[1]), int(sys.argv[2])
seat = int(os.environ["RALPH_LANE"])
if seat == 0:
    with open(state / "where-they-land", "a") as file: file.write("x")
if seat > 1000:
    here = "".join(sorted(p.stem for p in pathlib.Path().glob("?.txt")))
    (state / f"judged-{here}-{seat}").write_text("")
    end = time.monotonic() + 80
    while len({p.name for p in state.glob("judged-*")}) < many and time.monotonic() < end:
        time.sleep(0.02)
    while (state / "wait").exists() and time.monotonic() < end:
        time.sleep(0.02)
"""


def checked(tmp_path: Path, many: int) -> list[list[str]]:
    """The check, which lies outside of the repository."""
    script = tmp_path / "check.py"
    script.write_text(CHECK)
    return [[sys.executable, "-S", str(script), str(tmp_path / "state"), str(many)]]


def judged(box: Sandbox) -> list[str]:
    """What lay in the trees of the train each time that checks ran there."""
    return sorted(path.name.split("-")[1] for path in box.state.glob("judged-*"))


def test_stories_are_judged_at_once_and_land_in_order(tmp_path: Path) -> None:
    """Each on top of those before it, without waiting for them; then one after the other."""
    box = yard(
        tmp_path,
        IN_ORDER,
        stories=stories_of("a", "b", "c"),
        checks=checked(tmp_path, 3),
        toml="[lanes]\ntrain = 3",
    )
    done = box.run("--lanes", "3", "--json")
    assert done.code == 0, done.text
    assert judged(box) == ["a", "ab", "abc"]
    assert (box.state / "where-they-land").read_text() == "x"  # before any work, and never again
    assert box.subjects() == ["start", "a: Do a", "b: Do b", "c: Do c"]
    assert box.passes() == {"a": True, "b": True, "c": True}
    assert [starts(box, name) for name in "abc"] == [1, 1, 1]
    told = [it for it in done.events("landing") if it["in_train"]]
    assert [(it["story"], it["on"]) for it in told] == [("a", []), ("b", ["a"]), ("c", ["a", "b"])]
    landed_once(box, "main", "a", "b", "c")
    progress = (box.root / "progress.txt").read_text()
    assert progress.count("Outcome: passed") == 3, progress


TOGETHER = """
import pathlib, sys
if pathlib.Path("a.txt").exists() and pathlib.Path("b.txt").exists():
    sys.exit(not pathlib.Path("peace.txt").exists())
"""


def test_it_is_said_who_is_judged_on_top_of_whom(tmp_path: Path) -> None:
    """By `ralph lanes` and the console, while checks run; the further trees can be cleaned."""
    box = yard(
        tmp_path,
        IN_ORDER,
        stories=stories_of("a", "b", "c"),
        checks=checked(tmp_path, 2),
        toml="[lanes]\ntrain = 2",
    )
    (box.state / "wait").write_text("")
    with box.start("--lanes", "3") as process:
        said = ""
        words = ("judged on top of a", "waits for landing, 2 before it", "lands")
        end = time.monotonic() + 80
        while not all(it in said for it in words) and time.monotonic() < end:
            said = box.ralph("lanes").text
        (box.state / "wait").unlink()
        shown, errors = process.communicate(timeout=100)
    assert process.returncode == 0, errors
    assert all(it in said for it in words), said
    assert "b is judged on top of a, to land in its turn" in shown + errors, shown + errors
    assert sorted(path.name for path in box.root.with_name("project.lanes").iterdir()) == [
        "1", "2", "3", "landing", "landing-1", "landing-2",
    ]  # fmt: skip
    assert box.ralph("lanes", "clean").code == 0
    assert not box.root.with_name("project.lanes").exists()


def test_a_red_one_goes_back_and_those_behind_it_are_judged_again(tmp_path: Path) -> None:
    """They are not given back to their agents: they were judged on top of what does not land."""
    agent = IN_ORDER.replace("done()", 'if START > 1: write("peace.txt")\ndone()')
    script = tmp_path / "together.py"
    script.write_text(TOGETHER)
    box = yard(
        tmp_path,
        agent,
        stories=stories_of("a", "b", "c"),
        checks=[*checked(tmp_path, 3), [sys.executable, "-S", str(script)]],
        toml="[lanes]\ntrain = 3",
    )
    done = box.run("--lanes", "3", "--json")
    assert done.code == 0, done.text
    assert box.subjects() == ["start", "a: Do a", "c: Do c", "b: Do b"]
    assert [starts(box, name) for name in "abc"] == [1, 2, 1]
    assert {"a", "ab", "abc", "ac"} <= {*judged(box)}
    (back,) = done.events("story_returned")
    assert back["story"] == "b"
    assert "together with a" in back["reason"]
    assert box.status()["stories"]["passed"] == 3
    assert box.ralph("replay").code == 0
    assert box.leftovers() == []


def test_a_story_is_proven_against_those_before_it_in_the_train(tmp_path: Path) -> None:
    """What turned green by the story before it proves nothing, although that has not landed yet;
    its own test does, and takes what the tests showed from there."""
    agent = (
        """
def tested(name):
    write(f"{name}.py", f"def of_{name}(x):\\n    return x + 1\\n")
    write(f"tests/test_{name}.py", f"import unittest, {name}\\nclass T(unittest.TestCase):\\n"
          f"    def test_it(self):\\n        self.assertEqual({name}.of_{name}(3), 4)\\n")
if STORY != "c": write("made.txt")
if STORY != "b": tested(STORY)
else: write("colour.py", "COLOUR = 'red'\\n")
"""
        + IN_ORDER
    )
    stories = stories_of("a", "b", "c")
    stories[1]["verify"] = "test -f made.txt"
    script = checked(tmp_path, 3)
    box = yard(
        tmp_path,
        agent,
        stories=stories,
        checks=[*UNITTEST, *script],
        files={"calc.py": CALC, "tests/__init__.py": "", "tests/test_calc.py": TESTS},
        toml="[lanes]\ntrain = 3",
    )
    done = box.run("--lanes", "3")
    assert done.code == 0, done.text
    assert known_grades(box) == {"a": "verified", "b": "checked", "c": "verified"}, done.text
    assert (box.state / "where-they-land").read_text() == "x"
    assert box.subjects() == ["start", "a: Do a", "b: Do b", "c: Do c"]
