"""What one attempt knows reaches the next one, and the person in the morning."""

from __future__ import annotations

import json
from datetime import UTC
from pathlib import Path

from ralphloop.night.look import look
from ralphloop.project import Project
from ralphloop.ui.monitor.pages import story_pages
from ralphloop.ui.monitor.paint import plain
from ralphloop.ui.report import gather
from ralphloop.ui.report.render import as_markdown
from tests.loop.guards import told
from tests.loop.projects import CALC, IGNORED, TESTS, UNITTEST, Sandbox, sandbox, story
from tests.plan.projects import Terminal

GREEN = [["true"]]
FILES = {"calc.py": CALC, "tests/test_calc.py": TESTS, "tests/__init__.py": "", **IGNORED}
HALF_DONE = "calc.triple is written, its test fails on purpose; the guard for None is missing."
THREE_STARTS = f"""
TEST = '''import unittest
import calc
class Triple(unittest.TestCase):
    def test_triple(self):
        self.assertEqual(calc.triple(2), 6)
    def test_none(self):
        self.assertEqual(calc.triple(None), 0)
'''
if START == 1:
    write("calc.py", open("calc.py").read() + "def triple(x):\\n    return 3 * x\\n")
    status("BLOCKED", words="Half of it.\\n\\n{HALF_DONE}", recommendation="What is None times 3?")
elif START == 2:
    write("tests/test_triple.py", TEST)
    done(words="Added the test.")
else:
    write("calc.py", open("calc.py").read().replace("return 3 * x", "return 3 * (x or 0)"))
    done(words="None is nothing.")
"""
FOUND = "calc.double returns a string twice for text, see calc.py"
MORNING = f"""
write(f"{{STORY}}.txt", STORY)
doubt = "\\nDOUBT: I took the longer name, the shorter one is taken." if STORY == "US-2" else ""
found = "\\nFOUND: {FOUND}." if STORY in ("US-1", "US-3") else ""
done(words=f"Wrote the file of {{STORY}} with its name in it.\\n{{doubt}}{{found}}")
"""


def test_the_next_attempt_is_told_what_the_last_one_left(tmp_path: Path) -> None:
    """After an answer: its work, its whole words; after red checks: which tests, what is met."""
    asked = story(
        "US-1",
        acceptanceCriteria=["triple multiplies (seen: test_triple)", "None is 0 (seen: test_none)"],
    )
    box = sandbox(tmp_path, THREE_STARTS, stories=[asked], checks=UNITTEST, files=FILES)
    assert box.run().code == 2
    assert box.ralph("answer", "US-1", "Nothing: 0.").code == 0
    done = box.run("--continue")
    assert done.code == 0, told(done)
    first, second, third = (box.prompt(number) for number in (1, 2, 3))
    assert "already" not in first.partition("# Your story")[2]
    assert " calc.py | 2 ++" in second
    assert HALF_DONE in second
    assert "Nothing: 0." in second
    failed = third.partition("# Tests that failed last time")[2].partition("#")[0]
    assert "test_none" in failed
    assert "- [met] triple multiplies" in third
    assert "- None is 0" in third
    assert "[met]: seen so when the checks ran last" in third
    assert third.count("triple multiplies") == 1
    assert " tests/test_triple.py |" in third
    assert "$ python3 -m unittest discover" in third


ONWARDS = """
if START == 1:
    write("calc.py", "def double(x):\\n    return 3 * x\\n"); done(words="Tripled it.")
elif START == 2:
    status(words="Looked around.", recommendation="double is 2 * x in calc.py")
elif START == 3:
    write("calc.py", "def double(x):\\n    return x + x  # another length: no stale bytecode\\n")
    status("BLOCKED", words="Mended double.", recommendation="Is that all?")
else:
    write("note.txt"); done(words="That was all.")
"""


def test_what_should_be_done_next_and_what_is_red_are_told_as_long_as_they_are_true(
    tmp_path: Path,
) -> None:
    """A start that changed nothing leaves what was red as it was; one that did may have mended it."""
    box = sandbox(tmp_path, ONWARDS, checks=UNITTEST, files=FILES)
    assert box.run().code == 2
    assert box.ralph("answer", "US-1", "Yes.").code == 0
    done = box.run("--continue")
    assert done.code == 0, told(done)
    second, third, fourth = (box.prompt(number) for number in (2, 3, 4))
    assert "test_doubles" in second.partition("# Tests that failed last time")[2]
    assert "next: double is 2 * x in calc.py" in third
    assert "test_doubles" in third.partition("# Tests that failed last time")[2]
    assert "# What failed last time" in third
    assert "Mended double." in fourth
    assert "test_doubles" not in fourth
    assert "It was asked: Is that all?" in fourth
    assert "next: Is that all?" not in fourth


def test_a_command_is_told_as_it_must_be_typed(tmp_path: Path) -> None:
    """Where the program lies is part of an instruction, though not of a name on the screen."""
    check = tmp_path / "bin" / "check"
    check.parent.mkdir()
    check.write_text("#!/bin/sh\ntest -e good.txt\n")
    check.chmod(0o755)
    box = sandbox(
        tmp_path,
        "write('good.txt' if START == 2 else 'bad.txt'); done()",
        checks=[[str(check)]],
    )
    done = box.run("--allow-red")
    assert done.code == 0, told(done)
    assert f"$ {check}\n" in box.prompt(2)


def test_output_of_a_tree_nobody_can_read_names_files_as_they_are_here(tmp_path: Path) -> None:
    """Judged in a clean tree, a failure's paths are those of the agent's own tree; what the whole
    last answer says is not said again as progress."""
    breaks = """
    if START == 1: write("calc.py", "def double(x):\\n    return 3 * x\\n")
    else: write("calc.py", "def double(x):\\n    return x + x\\n")
    done(words=f"Rewrote double, start {START}.")
    """
    box = sandbox(tmp_path, breaks, checks=UNITTEST, files=FILES, clean_tree=True)
    done = box.run()
    assert done.code == 0, told(done)
    second = box.prompt(2)
    assert 'File "tests/test_calc.py"' in second
    assert "/clean/" not in second
    assert second.count("Rewrote double, start 1.") == 1


def morning(tmp_path: Path, toml: str = "") -> Sandbox:
    """A night of four stories, two of which found the same."""
    return sandbox(tmp_path, MORNING, stories=4, checks=GREEN, toml=toml)


def test_what_the_agent_found_and_doubts_is_with_the_person_in_the_morning(tmp_path: Path) -> None:
    """Commit, report, review and the list of proposals have its words; the grade is as it was."""
    box = morning(tmp_path)
    done = box.run("--json")
    assert done.code == 0, told(done)
    (proposed,) = done.events("story_proposed")
    assert proposed["story"] == "US-1"
    assert proposed["text"].startswith("calc.double returns a string twice")
    body = box.git("log", "-1", "--format=%b", "--grep=^US-2:")
    assert body.startswith("Wrote the file of US-2 with its name in it.")
    assert "Doubt: I took the longer name" in body
    assert "Ralph-Story: US-2" in body
    assert all(len(line) <= 100 for line in body.splitlines())
    grades = {
        one["id"]: one["grade"] for one in json.loads(box.ralph("stories", "--json").out)["stories"]
    }
    assert len(set(grades.values())) == 1
    report = box.ralph("report", "--md").out
    review = box.ralph("review").out
    for shown in (report, review):
        assert "its doubt: I took the longer name" in shown
        assert "Wrote the file of US-2" in shown
        assert FOUND in shown
    listed = box.ralph("stories", "proposed").out
    assert listed.count(FOUND) == 1
    assert "found by command at US-1, 2 times" in " ".join(listed.split())
    assert (
        "1 story is proposed, found on the way: `ralph stories proposed`" in box.ralph("status").out
    )


def test_they_stand_with_the_story_in_monitor_page_and_pull_request(tmp_path: Path) -> None:
    """The page shows what the monitor shows of a story; a pull request has the report."""
    box = morning(tmp_path)
    assert box.run().code == 0
    project = Project(box.root)
    night = look(project)
    shown = {}
    for one in night.counted:
        (page,) = story_pages(project, night.session.run, one)
        shown[one.story.id] = "\n".join(map(plain, page.lines))
    assert "I took the longer name" in shown["US-2"]
    assert "Wrote the file of US-2" in shown["US-2"]
    assert "F-1: calc.double returns a string twice" in shown["US-1"]
    assert "F-1" not in shown["US-4"]
    pull = as_markdown(gather(project, None), UTC, brief=True)
    assert "its doubt: I took the longer name" in pull
    assert "the agent says: Wrote the file of US-2" in pull
    assert FOUND in pull


def test_a_proposal_becomes_a_story_or_is_dropped(tmp_path: Path) -> None:
    """Accepted with a criterion it is in the list and runs; dropped, it is not proposed again."""
    box = morning(tmp_path)
    assert box.run().code == 0
    refused = box.ralph("stories", "accept", "F-1")
    assert refused.code == 64
    assert "a story needs a criterion" in refused.text
    said = box.ralph("stories", "accept", "F-1", "-c", "double('a') is refused (test_text)")
    assert said.code == 0, told(said)
    assert "US-5 was added to prd.json." in said.out
    made = json.loads((box.root / "prd.json").read_text())["userStories"][-1]
    assert made["description"].startswith(FOUND)
    assert "Proposed as F-1: found by command at US-1" in made["notes"]
    assert "Nothing is proposed." in box.ralph("stories", "proposed").out
    box.git("commit", "-qam", "accepted")
    assert box.run().code == 0
    assert box.passes()["US-5"]
    assert "Nothing is proposed." in box.ralph("stories", "proposed").out


def test_what_was_dropped_stays_dropped(tmp_path: Path) -> None:
    """The same words of another night ask nobody a second time."""
    box = morning(tmp_path)
    box.run("--story", "US-1")
    assert FOUND in box.ralph("stories", "proposed").out
    assert "F-1 was dropped." in box.ralph("stories", "drop", "F-1").out
    assert box.run().code == 0
    assert "Nothing is proposed." in box.ralph("stories", "proposed").out


def test_found_stories_run_by_themselves_only_where_the_settings_say_so(tmp_path: Path) -> None:
    """With `stories.accept_found` a run takes in so many, says so, and goes on with them."""
    finds = """
    write(f"{STORY}.txt", STORY)
    done(words=f"Wrote it.\\n\\nFOUND: number {START} is odd in part{START}.py and breaks sums{START}.")
    """
    toml = "[stories]\naccept_found = true\nmax_found = 2\n"
    box = sandbox(tmp_path, finds, stories=1, checks=GREEN, toml=toml)
    done = box.run("--json")
    assert done.code == 0, told(done)
    assert box.worked_on() == ["US-1", "US-2", "US-3"]
    assert [it["became"] for it in done.events("story_proposed")] == ["", "US-2", "", "US-3", ""]
    assert "F-3" in box.ralph("stories", "proposed").out


def test_a_morning_takes_few_keys(tmp_path: Path) -> None:
    """Four stories, one of them sent back in the middle, one proposal accepted: under 60 keys."""
    box = morning(tmp_path)
    assert box.run().code == 0
    person = Terminal(box.root, env=box.environment({"TERM": "dumb"}), command="review")
    pressed = 0
    for answer in ("a", "r", "a", "a"):
        person.wait_for("[q]uit").press(answer)
        pressed += 1
        if answer == "r":
            why = "It must say hello.\r"
            person.wait_for("Why").type(why)
            pressed += len(why)
    person.wait_for("[d]rop").press("a")
    person.wait_for("when it is done").type("\r")
    pressed += 2
    assert person.end() == 0, person.shown
    assert pressed < 60
    passes = box.passes()
    # The one with a doubt came first, and the next one was sent back.
    assert [name for name, is_passed in passes.items() if not is_passed] == ["US-1", "US-5"]
    assert FOUND in (box.root / "prd.json").read_text()


NIGHT = """
area = "calc" if STORY in ("US-1", "US-3", "US-5") else f"part{STORY[-1]}"
with open(f"{area}.py", "a") as file: file.write(f"# {STORY}, start {START}\\n")
with open("CHANGELOG.md", "a") as file: file.write(f"- {STORY}\\n")
print("A long account of what was done. " * 30)
done(words=f"Changed {area} for {STORY} and wrote it into the changelog.")
"""


def asked(name: str, area: str) -> dict[str, object]:
    """A story as people write them, about one module."""
    return story(
        name,
        f"Teach {area} what {name} needs",
        description=f"As somebody who uses {area}.py I want it to do what {name} says. " * 3,
        acceptanceCriteria=[f"{area}.double is as it was (seen: test_doubles)"] * 3,
    )


def test_two_nights_keep_their_prompts_about_the_story(tmp_path: Path) -> None:
    """Over eight stories of two nights no first prompt grows with the night: a third of what varies
    is the story, and progress is of those that changed the same code, never of a changelog."""
    areas = ["calc", "part2", "calc", "part4", "calc", "part6", "part7", "part8"]
    listed = [asked(f"US-{number}", area) for number, area in enumerate(areas, 1)]
    parts = {f"{area}.py": "x = 1\n" for area in areas if area != "calc"}
    box = sandbox(tmp_path, NIGHT, stories=listed, checks=GREEN, files={**FILES, **parts})
    box.run("--max-iterations", "4")
    assert box.run().code == 0
    assert box.starts == 8
    lengths = []
    for number in range(1, 9):
        variable = box.prompt(number).partition("# Your story")[2]
        about, _, besides = variable.partition("# Recent progress")
        assert len(about) >= len(variable) / 3
        lengths.append(len(variable))
        told_of = {name for name in (f"US-{n}: " for n in range(1, 9)) if name in besides}
        expected = {3: {"US-1: "}, 5: {"US-1: ", "US-3: "}}
        assert told_of == expected.get(number, set())
    assert max(lengths) < 3 * min(lengths)
