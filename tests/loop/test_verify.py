"""A story's own `verify`: what it showed before the first start decides what it proves."""

from __future__ import annotations

import json
from pathlib import Path

from tests.hook.support import box as session
from tests.hook.support import done as reported
from tests.hook.support import story as listed
from tests.loop.guards import told
from tests.loop.projects import Sandbox, sandbox, story
from tests.loop.test_stories import grades, known_grades

GREEN = [["true"]]
BUILDS = "write('build/db', START); done()"
IGNORES = {"build/.gitignore": "*\n"}


def counting(tmp_path: Path, test: str) -> list[str]:
    """A verify that writes down each of its runs, outside of the repository."""
    return ["sh", "-c", f"echo run >> {tmp_path}/verified; {test}"]


def runs(tmp_path: Path) -> int:
    """How often it ran."""
    log = tmp_path / "verified"
    return log.read_text().count("run") if log.exists() else 0


def building(tmp_path: Path, agent: str, verify: list[str] | None) -> Sandbox:
    """A repository whose build directory is ignored."""
    one = story("US-1") | ({"verify": verify} if verify else {})
    return sandbox(tmp_path, agent, stories=[one], checks=GREEN, files=IGNORES)


def test_work_in_ignored_files_passes_on_a_verify_that_was_red(tmp_path: Path) -> None:
    """Red before, green now, nothing that git sees: it passes, a fresh clone has none of it."""
    box = building(tmp_path, BUILDS, ["test", "-f", "build/db"])
    done = box.run()
    assert done.code == 0, told(done)
    assert box.starts == 1
    assert known_grades(box) == {"US-1": "checked"}, told(done)
    assert "only with files that git ignores" in done.out


def test_a_note_beside_work_in_ignored_files_makes_it_no_better(tmp_path: Path) -> None:
    """Something that git sees changed as well, and a fresh clone is still red: never verified."""
    box = building(tmp_path, f"write('notes.txt'); {BUILDS}", ["test", "-f", "build/db"])
    box.env = {}  # judged in a clean tree, as anywhere else
    done = box.run()
    assert done.code == 0, told(done)
    assert known_grades(box) == {"US-1": "checked"}, told(done)
    assert "only with files that git ignores" in done.out


def test_a_verify_that_was_green_before_proves_nothing_by_itself(tmp_path: Path) -> None:
    """Without a change it does not pass; with one it is checked, not verified."""
    agent = "if START > 1: write('src/a.py')\ndone(words=f'Done in round {START}.')"
    box = building(tmp_path, agent, ["true"])
    done = box.run()
    assert done.code == 0, told(done)
    assert box.starts == 2
    assert "nothing changed since the story began" in done.out
    assert grades(box) == ["checked"]
    assert "verify command was green before, too" in done.out


def test_without_a_verify_the_agent_is_told_what_does_not_count(tmp_path: Path) -> None:
    """Only ignored files: not passed, and the next prompt says why."""
    agent = "if START > 1: write('src/a.py')\nwrite('build/db', START); done()"
    box = building(tmp_path, agent, None)
    assert box.run().code == 0
    assert box.starts == 2
    assert "ignored" not in box.prompt(1)
    assert "files that git ignores do not count" in box.prompt(2)


def test_a_change_that_git_sees_is_told_nothing_about_ignored_files(tmp_path: Path) -> None:
    """An honest attempt that fails its verify hears of the failure alone."""
    agent = "write('src/a.py', START); done(words=f'Round {START}.')"
    box = building(tmp_path, agent, ["grep", "-q", "2", "src/a.py"])
    assert box.run().code == 0
    assert "git ignores" not in box.prompt(2)
    assert grades(box) == ["verified"]


def test_verify_runs_once_before_the_first_start_and_is_remembered(tmp_path: Path) -> None:
    """What it showed outlives the session; no story without one costs a process."""
    verify = counting(tmp_path, "test -f build/db")
    agent = """
    if START == 1: status(words="Read all of it.")
    else: write("build/db"); done()
    """
    box = building(tmp_path, agent, verify)
    assert box.run("--max-iterations", "1").code == 3
    assert runs(tmp_path) == 2  # a red one is run once more before it counts
    done = box.run("--continue", "--max-iterations", "9")
    assert done.code == 0, told(done)
    assert runs(tmp_path) == 3
    assert known_grades(box) == {"US-1": "checked"}


def test_a_verify_that_was_changed_meanwhile_was_never_red(tmp_path: Path) -> None:
    """What another command showed before says nothing about this one."""
    box = building(tmp_path, "done(words=f'Round {START}.')", ["test", "-f", "build/db"])
    assert box.run("--max-iterations", "1").code == 3
    path = box.root / "prd.json"
    data = json.loads(path.read_text())
    data["userStories"][0]["verify"] = ["true"]
    path.write_text(json.dumps(data))
    box.git("commit", "-qam", "another verify")
    done = box.run("--continue", "--max-iterations", "2")
    assert done.code == 3, told(done)
    assert box.passes() == {"US-1": False}


def test_what_verify_leaves_behind_is_not_the_agents_work(tmp_path: Path) -> None:
    """A verify that writes a file before the first start has made no progress for anybody."""
    verify = ["sh", "-c", "echo seen >> trace.txt; test -f never"]
    box = building(tmp_path, "status(files=0, words=f'Looked at {START}.')", verify)
    done = box.run("--json", "--max-iterations", "1")
    assert done.events("iteration_finished")[0]["files_changed"] == 0, told(done)


def test_in_a_session_it_is_the_same(tmp_path: Path) -> None:
    """Hook mode: the first story's verify is seen red at its begin, the next one's when it comes."""
    stories = [listed(n, verify=["test", "-f", f"build/US-00{n}"]) for n in (1, 2)]
    made = session(tmp_path, stories=stories, files=IGNORES)
    made.begin()
    made.write("build/US-001", "1")
    reply = made.stop(reported())
    assert "US-001 passed (checked)" in reply.told
    made.write("build/US-002", "1")
    assert "US-002 passed (checked)" in made.stop(reported()).told
