"""A story cannot eat the night: its share, its second chance, and what it hears on the way."""

from __future__ import annotations

from pathlib import Path

from tests.guarantees import Measured
from tests.loop.guards import TRUE, told, two
from tests.loop.projects import Done, sandbox, story

SLOW = """
if STORY == "US-2":
    write("other.txt", "all of it"); done()
else:
    part = len(list(pathlib.Path("src").glob("part_*.py"))) + 1
    write(f"src/part_{part}.py", f"part = {part}\\n")
    done() if part == PARTS else status(words=f"Implemented part {part}.")
"""


def set_aside(done: Done) -> list[tuple[str, str]]:
    """Which stories were set aside, and why."""
    return [(event["story"], event["reason"]) for event in done.events("story_set_aside")]


def test_a_story_with_its_share_lets_the_others_work_and_goes_on_from_its_leftovers(
    tmp_path: Path, measured: Measured
) -> None:
    """It is set aside for now, nothing is held against it, and it ends what it had begun."""
    box = sandbox(tmp_path, SLOW.replace("PARTS", "14"), **two(checks=TRUE))
    done = box.run("--json", "--max-iterations", "20")
    assert done.code == 0, told(done)
    assert box.worked_on() == ["US-1"] * 10 + ["US-2"] + ["US-1"] * 4
    measured(box.worked_on().index("US-2"))
    [(name, reason)] = set_aside(done)
    assert (name, reason.partition(":")[0]) == ("US-1", "it used 10 of 20 iterations, its share")
    assert "what earlier tries left is in the work tree" in box.prompt(12)
    assert box.git("show", "--name-only", "--format=", "HEAD").count("src/part_") == 14
    assert [event["after"] for event in done.events("circuit_changed")] == []


def test_a_story_that_is_done_in_its_leftovers_passes_without_another_change(
    tmp_path: Path,
) -> None:
    """What was put back is its own work: claiming it is not claiming nothing."""
    agent = """
    if STORY == "US-2": write("other.txt"); done()
    elif START > 10: done(words="It is all there.")
    else: write(f"src/part_{START}.py", START); status(words=f"Implemented part {START}.")
    """
    box = sandbox(tmp_path, agent, **two(checks=TRUE))
    done = box.run("--json", "--max-iterations", "20")
    assert done.code == 0, told(done)
    assert box.worked_on()[10:] == ["US-2", "US-1"]


def test_two_stories_with_their_share_do_not_open_the_circuit(tmp_path: Path) -> None:
    """Slow work is not idle work: every story gets its turn and its second chance."""
    agent = """
    part = len(list(pathlib.Path(STORY).glob("*.py"))) + 1
    write(f"{STORY}/part_{part}.py", f"part = {part}\\n")
    done() if part == 8 else status(words=f"Implemented part {part} of {STORY}.")
    """
    box = sandbox(tmp_path, agent, **two(checks=TRUE))
    done = box.run("--json", "--max-iterations", "30", env={"RALPH_LIMITS_MAX_STORY_SHARE": "0.2"})
    assert done.code == 0, told(done)
    assert box.worked_on() == ["US-1"] * 6 + ["US-2"] * 6 + ["US-1"] * 2 + ["US-2"] * 2


def test_money_has_shares_too(tmp_path: Path) -> None:
    """Half of the money on one story is enough while another can run, after six iterations."""
    agent = """
    write(f"{STORY}/{START}.py", START); says("Working.")
    result("The story is complete." if STORY == "US-2" else f"Did part {START}.", cost=0.5)
    """
    box = sandbox(tmp_path, agent, output="claude", **two(checks=TRUE))
    done = box.run("--json", "--max-cost", "8")
    assert set_aside(done)[0][1].startswith("it used $4.00 of $8.00, its share"), told(done)
    assert box.worked_on()[:9] == ["US-1"] * 8 + ["US-2"]


def test_no_story_is_set_aside_for_its_share_before_six_iterations(tmp_path: Path) -> None:
    """A short night is no reason to stop in the middle."""
    box = sandbox(tmp_path, SLOW.replace("PARTS", "6"), **two(checks=TRUE))
    done = box.run("--json", "--max-iterations", "8")
    assert done.code == 0, told(done)
    assert set_aside(done) == []
    assert box.worked_on() == ["US-1"] * 6 + ["US-2"]


def test_the_only_story_that_can_run_has_no_share(tmp_path: Path) -> None:
    """What nobody else could use is not taken from it."""
    stories = [story("US-1"), story("US-2", dependsOn=["US-1"])]
    box = sandbox(tmp_path, SLOW.replace("PARTS", "12"), checks=TRUE, stories=stories)
    done = box.run("--json", "--max-iterations", "20")
    assert done.code == 0, told(done)
    assert set_aside(done) == []


def test_leftovers_that_do_not_fit_any_more_are_named(tmp_path: Path) -> None:
    """Where another story changed the same places nothing is put back, and the prompt says so."""
    agent = """
    if STORY == "US-2": write("src/a.py", "from US-2\\n"); done()
    elif START > 10: write("src/b.py"); done()
    else:
        write("src/a.py", "".join(f"line {START} {n}\\n" for n in range(9)))
        status(words=f"Rewrote it, round {START}.")
    """
    box = sandbox(tmp_path, agent, files={"src/a.py": "old\n"}, **two(checks=TRUE))
    done = box.run("--json", "--max-iterations", "20")
    assert done.code == 0, told(done)
    prompt = box.prompt(12)
    assert "could not be put back (other work has changed the same places since)" in prompt
    assert "git show refs/ralph/set-aside/" in prompt
    assert box.git("show", "HEAD:src/a.py") == "from US-2"


def test_every_fifth_unclaimed_iteration_hears_how_the_checks_stand(tmp_path: Path) -> None:
    """A red check is shown to the next start, a green one too, and neither is held against it."""
    agent = """
    write(f"src/{START}.py", START)
    if START == 8: write("done")
    status(words=f"Did part {START}.") if START < 12 else done()
    """
    red = [["sh", "-c", "test -f done || { echo 'AssertionError: not yet'; exit 1; }"]]
    box = sandbox(tmp_path, agent, checks=red, limits="max_story_share = 0.0")
    done = box.run("--json", "--allow-red", env={"RALPH_CIRCUIT_SAME_ERROR_THRESHOLD": "1"})
    assert done.code == 0, told(done)
    assert box.starts == 12
    ran = [n for n, each in enumerate(box.records(), start=1) if each.evidence.checks is not None]
    assert ran == [5, 10, 12]
    said = "After {} runs in a row without a claim the checks were run: "
    assert said.format(5) + "sh" in " ".join(box.prompt(6).split())
    assert "AssertionError: not yet" in box.prompt(6)
    assert said.format(10) + "all are green." in " ".join(box.prompt(11).split())
    assert "the checks were run" not in box.prompt(7)


def test_a_night_with_shares_and_interim_checks_is_decided_the_same_again(tmp_path: Path) -> None:
    """Everything that decided is in the journal."""
    box = sandbox(tmp_path, SLOW.replace("PARTS", "9"), **two(checks=TRUE))
    assert box.run("--max-iterations", "14").code == 0
    replayed = box.ralph("replay")
    assert (replayed.code, "identical" in replayed.out) == (0, True), replayed.text
