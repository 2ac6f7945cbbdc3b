"""Four lanes and one checkout with the same agents end with the same: files, marks and grades."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ralphloop.journal.queries import JournalReader
from tests.lanes.yards import starts, yard
from tests.loop.projects import Sandbox, story

# Every third story writes a line into one shared file, so that lanes meet there.
AGENT = """
number = int(STORY[1:])
def lines():
    text = pathlib.Path("shared.txt").read_text()
    return {line for line in text.splitlines() if line and line[:1] not in "<=>|"}
if number % 3 == 0:
    write("shared.txt", "\\n".join(sorted({*lines(), f"line {number:02}"})) + "\\n")
if STORY == "s05" and START == 1:  # it moves a branch that is not its own
    subprocess.run(["git", "branch", "-f", "other", "HEAD"], check=True)
if STORY == "s13":
    write(f"stuck{START}.txt"); done(); sys.exit()
if number == 8 and START == 1:
    write("half.txt"); status(); sys.exit()
write(f"src/{STORY}.py", f"x = {number}\\n")
done()
"""
FLAKY = """
import fcntl, os, sys
with open(os.environ["TEST_STATE"] + "/checks", "a+") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    file.write("x"); file.seek(0)
    count = len(file.read())
sys.exit(count % 11 == 0)
"""


def twenty() -> list[dict[str, Any]]:
    """Twenty stories: chains of dependencies, groups that meet, one that cannot be done."""
    found = []
    for number in range(20):
        name = f"s{number:02}"
        more: dict[str, Any] = {"dependsOn": [f"s{number - 4:02}"]} if number in (4, 9, 17) else {}
        if number == 13:
            more["verify"] = ["test", "-e", "never"]
        if number % 5 == 1:
            more["verify"] = ["grep", "-q", "x", f"src/{name}.py"]
        found.append(story(name, priority=number, **more))
    return found


def night(tmp_path: Path, *words: str, env: dict[str, str] | None = None) -> Sandbox:
    """The same project and agents, run to the end."""
    tmp_path.mkdir()
    check = tmp_path / "check.py"
    check.write_text(FLAKY)
    files = {"shared.txt": "line 00\n"}
    limits = "max_iterations = 120\nmax_attempts = 2"
    box = yard(
        tmp_path,
        AGENT,
        stories=twenty(),
        checks=[["python3", "-S", str(check)]],
        files=files,
        limits=limits,
    )
    box.git("branch", "other")
    done = box.run(*words, env=env, timeout=400)
    assert done.code == 4, done.text
    return box


def left_behind(box: Sandbox) -> dict[str, Any]:
    """What a person finds: the files of the branch, marks and grades."""
    tree = box.git("ls-tree", "-r", "HEAD").splitlines()
    marks = json.loads((box.root / "prd.json").read_text())
    with JournalReader.open(box.root / ".ralph/journal.db") as journal:
        run = journal.latest_run()
        assert run is not None
        states = journal.story_states(run.id).items()
    grades = {name: (one.standing, one.proof.grade) for name, one in states}
    apart = ("progress.txt", "ralph.toml")  # entries come in the order of landing
    files = [line for line in tree if not line.endswith(apart)]
    return {"files": files, "marks": marks, "grades": grades, "dirty": box.git("status", "-s")}


def assert_as_one_after_the_other(lanes: Sandbox, plain: Sandbox) -> None:
    """The same files, marks and grades; more starts only where a story met another one."""
    found, wanted = left_behind(lanes), left_behind(plain)
    assert found["marks"] == wanted["marks"]
    assert found["grades"] == wanted["grades"]
    assert found["files"] == wanted["files"]
    assert found["dirty"] == ""
    assert lanes.git("log", "--merges", "--format=%h") == ""
    subjects = lanes.subjects()
    assert (
        len(subjects) == len(set(subjects)) == 19
    )  # the start, without the stuck one and what waits for it
    back = [
        name for name in range(20) if starts(lanes, f"s{name:02}") > starts(plain, f"s{name:02}")
    ]
    assert set(back) <= {5, 8, 13, *range(0, 20, 3)}, back  # more starts only after a conflict
    assert lanes.leftovers() == []


def test_twenty_stories_in_four_lanes_are_as_if_one_after_the_other(tmp_path: Path) -> None:
    """Dependencies, collisions, a flaky check, a stuck story and one agent that left its lane; the
    same where three are judged at once."""
    plain = night(tmp_path / "p")
    assert_as_one_after_the_other(night(tmp_path / "l", "--lanes", "4"), plain)
    train = {"RALPH_LANES_TRAIN": "3"}
    assert_as_one_after_the_other(night(tmp_path / "t", "--lanes", "4", env=train), plain)
