"""The way of a story through a run: attempts, set aside, second chance, blocked, grades."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ralphloop.journal.journal import Journal
from tests import sentences
from tests.guarantees import Measured
from tests.loop.guards import told
from tests.loop.projects import Sandbox, sandbox, story

GREEN = [["true"]]
HAS_A = [["test", "-f", "a.txt"]]


def grades(box: Sandbox) -> list[str]:
    """The grades in the trailers of our commits, oldest first."""
    log = box.git("log", "--reverse", "--format=%(trailers:key=Ralph-Grade,valueonly)")
    return [line for line in log.split("\n") if line]


def known_grades(box: Sandbox) -> dict[str, str]:
    """The grades as the newest run knows them."""
    with Journal.open(box.root / ".ralph/journal.db") as journal:
        run = journal.latest_run()
        assert run is not None
        states = journal.story_states(run.id)
    return {name: state.proof.grade for name, state in states.items()}


def test_nothing_is_owed_once_a_run_has_ended(tmp_path: Path) -> None:
    """The last entry of progress.txt has no next agent to be made sure of beside."""
    box = sandbox(tmp_path, 'write(f"{START}.txt"); status()')
    assert box.run("--max-iterations", "2").code == 3
    with Journal.open(box.root / ".ralph/journal.db") as journal:
        assert journal.owed_effects() == []
    assert (box.root / "progress.txt").read_text().count("## Iteration") == 2


def test_failed_attempts_set_a_story_aside_and_it_gets_a_second_chance(tmp_path: Path) -> None:
    """Three attempts without a change, the next story, then once more; this time it works."""
    agent = """
    if STORY == "US-1" and START < 5: status(files=0, words=f"Looked at corner {START}.")
    else: write(f"{STORY}.txt"); done()
    """
    box = sandbox(tmp_path, agent, stories=2, checks=GREEN)
    done = box.run("--json")
    assert done.code == 0, told(done)
    assert box.worked_on() == ["US-1", "US-1", "US-1", "US-2", "US-1"]
    aside = done.events("story_set_aside")
    assert [event["story"] for event in aside] == ["US-1"]
    assert "3 attempts failed" in aside[0]["reason"]
    assert box.subjects() == ["start", "US-2: Do US-2", "US-1: Do US-1"]


def test_a_second_chance_that_fails_is_the_last(tmp_path: Path, measured: Measured) -> None:
    """Twice three attempts, then nothing can run: 4, with the story's name."""
    agent = """
    write(f"{STORY}-{START}.txt")
    done(words=f"Everything is implemented, round {START}.")
    """
    stories = [story("bad", verify=["test", "-f", "never"]), story("good")]
    box = sandbox(tmp_path, agent, stories=stories, checks=GREEN)
    done = box.run("--json")
    assert done.code == 4, told(done)
    assert box.worked_on() == ["bad"] * 3 + ["good"] + ["bad"] * 3
    assert "set aside" in done.events("run_finished")[0]["reasons"][0]
    assert "bad" in done.events("run_finished")[0]["reasons"][0]
    measured(box.worked_on().count("bad"))


def test_a_new_run_tries_what_was_set_aside_again(tmp_path: Path) -> None:
    """After 4 a person may simply start again; the story is tried and this time passes."""
    agent = "write('a.txt', START); done(words=f'Done in round {START}.')"
    stories = [story("US-1", verify=["grep", "-q", "3", "a.txt"])]
    box = sandbox(tmp_path, agent, stories=stories, checks=GREEN, limits="max_attempts = 1")
    assert box.run().code == 4
    assert box.run("--continue").code == 4
    assert box.starts == 2
    assert box.run().code == 0
    assert box.passes() == {"US-1": True}


def test_leftovers_of_a_story_set_aside_are_saved_and_cleaned(
    tmp_path: Path, measured: Measured
) -> None:
    """The next story starts in the tree the stuck one started in; a ref keeps what it left."""
    agent = """
    if STORY == "US-1":
        write("src/wrong.py", START); write("README.md", "spoiled"); done()
    else:
        (STATE / "seen").write_text(" ".join(sorted(p.name for p in pathlib.Path("src").glob("*"))))
        write("src/good.py"); done()
    """
    stories = [story("US-1", verify=["false"]), story("US-2")]
    files = {"README.md": "as it was\n", "src/old.py": "x = 1\n"}
    box = sandbox(tmp_path, agent, stories=stories, checks=GREEN, files=files)
    done = box.run("--json", "--max-iterations", "4")
    assert done.code == 3, told(done)
    assert (box.state / "seen").read_text() == "old.py"
    assert (box.root / "README.md").read_text() == "as it was\n"
    assert not (box.root / "src/wrong.py").exists()
    refs = box.git("for-each-ref", "--format=%(refname)", "refs/ralph/set-aside").split()
    assert len(refs) == 1
    measured(1 - len(refs))
    assert box.git("show", f"{refs[0]}:src/wrong.py") == "3"
    committed = box.git("show", "--name-only", "--format=", "HEAD").split()
    assert sorted(committed) == ["prd.json", "progress.txt", "src/good.py"]


def test_dependents_wait_for_a_story_set_aside(tmp_path: Path) -> None:
    """What depends on a stuck story does not run; what does not, does."""
    stories = [
        story("root", verify=["false"]),
        story("child", dependsOn=["root"]),
        story("grandchild", dependsOn=["child"]),
        story("other"),
    ]
    agent = "write(f'{STORY}.txt', START); done(words=f'Done in round {START}.')"
    box = sandbox(tmp_path, agent, stories=stories, checks=GREEN, limits="max_attempts = 2")
    done = box.run("--json")
    assert done.code == 4, told(done)
    assert box.worked_on() == ["root", "root", "other", "root", "root"]
    assert [name for name, passes in box.passes().items() if passes] == ["other"]


def test_a_chain_of_dependencies_runs_to_its_end(tmp_path: Path) -> None:
    """Each story that passes opens the way for the next; nothing else is there to run."""
    stories = [story("c", dependsOn=["b"]), story("b", dependsOn=["a"]), story("a")]
    box = sandbox(tmp_path, "write(f'{STORY}.txt'); done()", stories=stories, checks=GREEN)
    done = box.run("--json")
    assert done.code == 0, told(done)
    assert box.worked_on() == ["a", "b", "c"]


def test_moving_forward_is_no_failed_attempt(tmp_path: Path) -> None:
    """Six starts that each change something are six starts, and no attempt was lost."""
    agent = """
    write(f"src/{START}.py")
    if STORY == "US-1" and START < 6: status(words=f"Part {START}.")
    else: done()
    """
    box = sandbox(tmp_path, agent, stories=2, checks=GREEN, limits="max_attempts = 2")
    done = box.run("--json")
    assert done.code == 0, told(done)
    assert box.worked_on() == ["US-1"] * 6 + ["US-2"]
    assert {event["attempts"] for event in done.events("iteration_finished")} == {0}


def test_a_blocked_story_waits_and_the_next_run_tries_it_again(tmp_path: Path) -> None:
    """BLOCKED: its dependents wait too, exit 2 with the recommendation; a person starts anew."""
    agent = """
    if STORY == "key" and not (STATE / "key").exists():
        status("BLOCKED", files=0, recommendation="Provide STRIPE_KEY")
    else: write(f"{STORY}.txt"); done()
    """
    stories = [story("key"), story("pay", dependsOn=["key"]), story("docs")]
    box = sandbox(tmp_path, agent, stories=stories, checks=GREEN)
    done = box.run()
    assert done.code == 2, done.text
    assert "key waits for a person: Provide STRIPE_KEY" in done.out
    assert box.worked_on() == ["key", "docs"]
    (box.state / "key").write_text("")
    assert box.run("--continue").code == 0
    assert box.worked_on() == ["key", "docs", "key", "pay"]


def test_a_blocked_start_is_no_failed_attempt(tmp_path: Path) -> None:
    """Who asks a person has not failed: nothing counts against the story, nor against others."""
    agent = """
    if STORY == "US-1": status("BLOCKED", files=0, recommendation="Provide STRIPE_KEY")
    else: write(f"{STORY}.txt"); done()
    """
    done = sandbox(tmp_path, agent, stories=2, checks=GREEN).run("--json")
    told = {event["story"]: event["attempts"] for event in done.events("iteration_finished")}
    assert told == {"US-1": 0, "US-2": 0}


def test_only_one_story_where_that_is_asked(tmp_path: Path) -> None:
    """--story works on that one alone; the project is not complete while the rest is open."""
    box = sandbox(tmp_path, "write(f'{STORY}.txt'); done(signal='true')", stories=3, checks=GREEN)
    done = box.run("--story", "US-2")
    assert done.code == 4, done.text
    assert box.passes() == {"US-1": False, "US-2": True, "US-3": False}
    assert "project_complete" not in done.text
    assert "US-2 has passed, which was asked for (--story); 2 stories left open" in done.out
    assert box.run("--story", "US-1").code == 4
    last = box.run("--story", "US-3")
    assert last.code == 0, last.text
    assert sentences.ALL_DONE in last.text
    unknown = box.run("--story", "US-9")
    assert unknown.code == 65
    assert "there is no story 'US-9'" in unknown.err


# --- grades ----------------------------------------------------------------------------------

TEST_FILE = "def test_a():\n    assert 1 + 1 == 2\n"
SCRIPT: dict[str, Any] = {"checks": [["sh", "check.sh"]], "files": {"check.sh": "exit 0\n"}}
GRADES: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "verified by its own command": (
        "write('a.txt'); done()",
        {"stories": [story("US-1", verify=["test", "-f", "a.txt"])], "checks": GREEN},
        ["verified"],
    ),
    "verified by a check that turned green": (
        "write('a.txt'); done()",
        {"checks": HAS_A},
        ["verified"],
    ),
    "checked": ("write('a.txt'); done()", {"checks": GREEN}, ["checked"]),
    "claimed without checks": ("write('a.txt'); done()", {}, ["claimed"]),
    "claimed where no tests were collected": (
        "write('a.txt'); done()",
        {"checks": [["sh", "-c", "echo 'no tests ran in 0.01s'; exit 5"]]},
        ["claimed"],
    ),
    "needs review after a challenge": (
        "write('check.sh', 'true'); done()",
        SCRIPT,
        ["needs review"],
    ),
    "checked after a challenge was heeded": (
        "write('check.sh', 'true' if START == 1 else 'exit 0\\n'); write('a.txt'); done()",
        SCRIPT,
        ["checked"],
    ),
}


@pytest.mark.parametrize("name", GRADES)
def test_the_grade_says_how_well_a_story_is_proven(tmp_path: Path, name: str) -> None:
    """The commit carries the grade its proof deserves."""
    agent, setting, expected = GRADES[name]
    box = sandbox(tmp_path, agent, **setting)
    done = box.run("--json", "--allow-red")
    assert done.code == 0, told(done)
    assert grades(box) == expected


def test_a_challenge_is_put_to_the_agent(tmp_path: Path) -> None:
    """The second prompt names the script that was changed."""
    box = sandbox(tmp_path, "write('check.sh', 'true'); done()", **SCRIPT)
    assert box.run().code == 0
    assert box.starts == 2
    assert "check.sh" in box.prompt(2)
    assert "What was found last time" in box.prompt(2)


def test_every_challenge_is_put_once(tmp_path: Path) -> None:
    """An agent that changes one script after the other is not challenged in turns for ever."""
    agent = """
    write("a.sh", "true" if START % 2 else "exit 0\\n")
    write("b.sh", "exit 0\\n" if START % 2 else "true")
    done(words=f"Everything is fine, attempt {START}.")
    """
    files, checks = {"a.sh": "exit 0\n", "b.sh": "exit 0\n"}, [["sh", "a.sh"], ["sh", "b.sh"]]
    box = sandbox(tmp_path, agent, checks=checks, files=files, limits="max_attempts = 9")
    done = box.run("--max-iterations", "6")
    assert done.code == 0, done.text
    assert box.starts == 3  # once for each file, then it passes as needing review
    assert grades(box) == [sentences.NEEDS_REVIEW]


def test_what_a_person_marks_between_runs_is_by_hand(tmp_path: Path) -> None:
    """A mark that was set while no agent ran is believed; one that was taken away too."""
    box = sandbox(tmp_path, "write(f'{STORY}.txt', START); done()", stories=2, checks=GREEN)
    assert box.run("--story", "US-1").code == 4
    data = json.loads((box.root / "prd.json").read_text())
    data["userStories"][0]["passes"] = False
    data["userStories"][1]["passes"] = True
    (box.root / "prd.json").write_text(json.dumps(data, indent=2))
    done = box.run()
    assert done.code == 0, done.text
    assert box.worked_on() == ["US-1", "US-1"]
    assert box.passes() == {"US-1": True, "US-2": True}
    assert known_grades(box) == {"US-1": "checked", "US-2": "by hand"}


def test_grades_outlive_the_session_that_gave_them(tmp_path: Path) -> None:
    """A story added after a completed run changes nothing about how the others were proven."""
    box = sandbox(tmp_path, "write(f'{STORY}.txt'); done()", checks=GREEN)
    assert box.run().code == 0
    data = json.loads((box.root / "prd.json").read_text())
    data["userStories"].append(story("US-2"))
    (box.root / "prd.json").write_text(json.dumps(data, indent=2))
    assert box.run().code == 0
    assert known_grades(box) == {"US-1": "checked", "US-2": "checked"}


def test_a_saturated_story_is_tried_again_by_a_person(tmp_path: Path) -> None:
    """After test_saturation `--continue` gives it three more starts, not one."""
    agent = "write(f'tests/test_{START}.py'); status(work='TESTING', words=f'Test {START}.')"
    box = sandbox(tmp_path, agent, checks=GREEN)
    for starts in (3, 6):
        done = box.run(*(["--continue"] if box.starts else []))
        assert done.code == 1, done.text
        assert "only worked on tests" in done.out
        assert box.starts == starts


def test_work_that_was_there_already_passes_as_checked(tmp_path: Path) -> None:
    """Nothing changed, but the agent says it was there before: at most `checked`."""
    agent = "done(files=0, words='The feature is already implemented; nothing to do.')"
    box = sandbox(tmp_path, agent, checks=GREEN)
    done = box.run("--json")
    assert done.code == 0, told(done)
    assert grades(box) == ["checked"]
    assert box.starts == 1


# --- the story file in the agent's hands -----------------------------------------------------


def test_marks_the_agent_sets_are_put_back(tmp_path: Path) -> None:
    """An agent that marks every story passes only the one it worked on, by its checks."""
    agent = """
    data = json.loads(pathlib.Path("prd.json").read_text())
    for each in data["userStories"]: each["passes"] = True
    write("prd.json", json.dumps(data, indent=2))
    write(f"{STORY}.txt"); print("I changed the file.")
    """
    box = sandbox(tmp_path, agent, stories=2, checks=GREEN)
    done = box.run("--json", "--max-iterations", "1")
    assert done.code == 3, told(done)
    assert box.passes() == {"US-1": True, "US-2": False}


def test_a_story_that_an_agent_adds_is_named(tmp_path: Path) -> None:
    """It is worked on like any other, so a person hears where it came from."""
    agent = """
    data = json.loads(pathlib.Path("prd.json").read_text())
    if START == 1: data["userStories"].append({**data["userStories"][0], "id": "US-9"})
    write("prd.json", json.dumps(data, indent=2))
    write(f"{STORY}.txt"); done()
    """
    box = sandbox(tmp_path, agent, checks=GREEN)
    done = box.run("--max-iterations", "3")
    assert done.code == 0, told(done)
    assert box.passes() == {"US-1": True, "US-9": True}
    assert done.text.count("US-9 was added to the list meanwhile") == 1
    assert "US-9 was added to the list meanwhile" in box.ralph("report").out


@pytest.mark.parametrize(
    "harm", ['write("prd.json", "{ not json")', 'os.remove("prd.json")', 'write("prd.json", "[]")']
)
def test_a_story_file_made_unreadable_is_put_back(tmp_path: Path, harm: str) -> None:
    """The file is as it was, the run goes on, and the next prompt says what happened."""
    agent = f"""
    if START == 1: {harm}; write("a.txt"); status()
    else: write("b.txt"); done()
    """
    box = sandbox(tmp_path, agent, checks=GREEN)
    before = (box.root / "prd.json").read_text()
    done = box.run("--json")
    assert done.code == 0, told(done)
    assert (box.root / "prd.json").read_text() == before.replace(
        '"passes": false', '"passes": true'
    )
    assert "was made unreadable and was put back" in box.prompt(2)


def test_a_link_in_place_of_the_story_file_leads_nowhere(tmp_path: Path) -> None:
    """An agent that links prd.json to a file outside cannot make us write there."""
    outside = tmp_path / "outside.txt"
    outside.write_text("not yours\n")
    agent = f"""
    if START == 1: os.remove("prd.json"); os.symlink({str(outside)!r}, "prd.json"); write("a"); status()
    else: write("b.txt"); done()
    """
    box = sandbox(tmp_path, agent, checks=GREEN)
    done = box.run("--json")
    assert done.code == 0, told(done)
    assert outside.read_text() == "not yours\n"
    assert not (box.root / "prd.json").is_symlink()
    assert box.passes() == {"US-1": True}


def test_a_story_list_of_the_agents_own_outside_is_not_marked(tmp_path: Path) -> None:
    """Nor can it with a link to a story file that is a good one."""
    outside = tmp_path / "other.json"
    agent = f"""
    outside = pathlib.Path({str(outside)!r})
    if not outside.exists(): outside.write_text(pathlib.Path("prd.json").read_text())
    os.remove("prd.json"); os.symlink(outside, "prd.json")
    write("a.txt", START); done()
    """
    box = sandbox(tmp_path, agent, checks=GREEN)
    done = box.run("--json")
    assert done.code == 66, told(done)
    assert "leads out of the project" in done.err
    assert '"passes": false' in outside.read_text()


@pytest.mark.parametrize("what", ["removed", "weakened"])
def test_a_list_that_asks_for_less_is_challenged(tmp_path: Path, what: str) -> None:
    """Stories removed or weakened are put to the agent once, then need review."""
    harm = {
        "removed": 'data["userStories"] = [s for s in data["userStories"] if s["id"] == STORY]',
        "weakened": 'data["userStories"][0]["acceptanceCriteria"] = []',
    }[what]
    agent = f"""
    data = json.loads(pathlib.Path("prd.json").read_text())
    {harm}
    write("prd.json", json.dumps(data, indent=2))
    write(f"{{STORY}}.txt"); done()
    """
    box = sandbox(tmp_path, agent, stories=2, checks=GREEN)
    done = box.run("--json", "--max-iterations", "2")
    assert box.starts == 2, told(done)
    words = {"removed": "story US-2 was removed", "weakened": "story US-1 asks for less"}[what]
    assert words in box.prompt(2)
    assert grades(box) == [sentences.NEEDS_REVIEW]


def test_edits_of_the_agent_that_take_nothing_away_stay(tmp_path: Path) -> None:
    """New stories and notes in the file are simply the file as it is now."""
    agent = """
    if START == 1:
        data = json.loads(pathlib.Path("prd.json").read_text())
        data["userStories"][0]["notes"] = "seen"
        data["userStories"].append({"id": "new", "title": "Found on the way", "passes": False,
                                    "acceptanceCriteria": ["it works"], "priority": 5})
        write("prd.json", json.dumps(data, indent=2))
    write(f"{STORY}.txt"); done()
    """
    box = sandbox(tmp_path, agent, checks=GREEN)
    assert box.run().code == 0
    assert box.passes() == {"US-1": True, "new": True}
    assert json.loads((box.root / "prd.json").read_text())["userStories"][0]["notes"] == "seen"


def test_a_task_that_may_end_the_run_ends_it(tmp_path: Path) -> None:
    """tasks.yaml: a passed task with `exit_signal: true` completes the project, comments survive."""
    box = sandbox(tmp_path, "write(f'{STORY}.txt'); done()", checks=GREEN)
    tasks = """\
# my tasks
tasks:
  - id: first      # the first one
    title: Do the first
    passes: false
  - id: enough
    title: The one that suffices
    exit_signal: true
    passes: false
  - id: later
    title: Not needed now
    passes: false
"""
    (box.root / "prd.json").unlink()
    (box.root / "tasks.yaml").write_text(tasks)
    box.git("add", "-A")
    box.git("commit", "-qm", "tasks")
    done = box.run()
    assert done.code == 0, done.text
    assert "1 story stays open" in done.out
    assert box.worked_on() == ["first", "enough"]
    after = (box.root / "tasks.yaml").read_text()
    assert "# the first one" in after
    assert after.count("passes: true") == 2


# --- checks ----------------------------------------------------------------------------------


def test_a_red_baseline_ends_before_the_agent_starts(tmp_path: Path) -> None:
    """Without --allow-red: 66, the check is named, nothing was started."""
    box = sandbox(tmp_path, "write('a.txt'); done()", checks=HAS_A)
    done = box.run()
    assert done.code == 66
    assert "test -f a.txt" in done.err
    assert "--allow-red" in done.err
    assert box.starts == 0
    assert box.run("--allow-red").code == 0


# Runs the tests and reports in the words of pytest, which would take ten times as long.
RUNNER = """
namespace = {}
exec(open("tests/test_it.py").read(), namespace)
failed = []
for name in [n for n in namespace if n.startswith("test_")]:
    try: namespace[name]()
    except AssertionError: failed.append(f"FAILED tests/test_it.py::{name} - AssertionError")
print("=== short test summary info ===", *failed, f"{len(failed)} failed in 0.01s", sep="\\n")
raise SystemExit(bool(failed))
"""
SUITE = """\
def test_old(): assert False
def test_new(): assert {new}
"""


@pytest.mark.parametrize("new, code", [("True", 0), ("False", 3)])
def test_known_failures_are_tolerated_and_new_ones_are_not(
    tmp_path: Path, new: str, code: int
) -> None:
    """`tolerate`: what failed before by name may fail on; a test that fails newly may not."""
    agent = f"write('tests/test_it.py', {SUITE.format(new=new)!r}); write('a.py', START); done()"
    box = sandbox(
        tmp_path,
        agent,
        checks=[["python3", "-c", RUNNER]],
        files={"tests/test_it.py": SUITE.format(new="True")},
    )
    config = (box.root / "ralph.toml").read_text()
    (box.root / "ralph.toml").write_text(
        config.replace("[checks]", '[checks]\nbaseline = "tolerate"')
    )
    box.git("commit", "-qam", "tolerate")
    done = box.run("--max-iterations", "1")
    assert done.code == code, done.text
    assert box.passes() == {"US-1": code == 0}


def test_the_output_of_a_failed_check_is_in_the_next_prompt(tmp_path: Path) -> None:
    """What failed goes to the agent, as data in a fence."""
    check = [["sh", "-c", "test -f b.txt || { echo 'missing: b.txt ```'; exit 1; }"]]
    agent = "write('a.txt' if START == 1 else 'b.txt'); done()"
    box = sandbox(tmp_path, agent, checks=check)
    assert box.run("--allow-red").code == 0
    assert "missing: b.txt" in box.prompt(2)
    assert "````" in box.prompt(2)


def test_checks_are_fixed_at_the_start_of_the_run(tmp_path: Path) -> None:
    """An agent that empties the checks in ralph.toml is still held to the first ones."""
    agent = """
    write("a.txt", START)
    config = pathlib.Path("ralph.toml")
    config.write_text(config.read_text().replace('[["test", "-f", "b.txt"]]', "[]"))
    if START == 3: write("b.txt")
    done()
    """
    box = sandbox(tmp_path, agent, checks=[["test", "-f", "b.txt"]])
    done = box.run("--allow-red", "--json")
    assert done.code == 0, told(done)
    assert box.starts >= 3
