"""Runs in lanes where agents, people and environments do what nobody expects of them."""

from __future__ import annotations

import itertools
import os
import shutil
import time
from pathlib import Path

import pytest

from ralphloop.lanes.checkout_watch import names_it
from tests import sentences
from tests.kill_points import to_be_killed_at
from tests.lanes.yards import prompt, starts, stories_of, yard

HONEST = 'write(f"{STORY}.txt", STORY)\ndone()\n'


def test_an_active_environment_of_the_checkout_is_refused(tmp_path: Path) -> None:
    """Checks start its programs by name, so broken code would be green in every lane: 66."""
    box = yard(tmp_path, HONEST, stories=stories_of("a"), files={".gitignore": ".ralph*\n.venv/\n"})
    site = box.root / ".venv/lib/python3.11/site-packages"
    site.mkdir(parents=True)
    (box.root / ".venv/bin").mkdir()
    (site / "p.pth").write_text(f"{box.root}/src\n")
    path = f"{box.root}/.venv/bin{os.pathsep}{os.environ['PATH']}"
    done = box.run("--lanes", "1", env={"PATH": path})
    assert done.code == 66, done.text
    assert "would test your checkout" in done.text
    assert starts(box, "a") == 0
    (site / "p.pth").write_text("/somewhere/else\n")
    assert box.run("--lanes", "1", env={"PATH": path}).code == 0


def test_an_agent_that_deletes_its_lane_ends_no_run(tmp_path: Path) -> None:
    """The lane is brought back as it began, the others go on, and the next start lands."""
    agent = (
        """
import shutil
if STORY == "a" and START == 1:
    shutil.rmtree(os.getcwd())
    done()
    sys.exit(0)
if STORY == "b":
    shutil.rmtree(pathlib.Path.cwd().parent / "landing")
"""
        + HONEST
    )
    box = yard(tmp_path, agent, stories=stories_of("a", "b"))
    done = box.run("--lanes", "2")
    assert done.code == 0, done.text
    assert "were deleted" in done.text
    assert sorted(box.subjects()) == ["a: Do a", "b: Do b", "start"]
    assert box.git("status", "--porcelain") == ""


def test_a_person_who_saves_a_file_is_no_escaped_agent(tmp_path: Path) -> None:
    """Output that names an environment in the checkout is no sign; the changed file itself is."""
    root = tmp_path / "box" / "project"
    agent = f"""
pathlib.Path({str(root / "mine.txt")!r}).write_text(STORY)
print("in {root}/.venv/lib/python3.11/x.py:" if STORY == "a" else "wrote {root}/mine.txt")
{HONEST}"""
    box = yard(tmp_path, agent, stories=stories_of("a", "b"))
    done = box.run("--lanes", "1", "--max-iterations", "2")
    assert done.code == 3, done.text
    assert "a passed" in done.text
    assert "b: the agent left its lane" in done.text


@pytest.mark.parametrize(
    "deed",
    [
        'subprocess.run("git commit -qm x --allow-empty; git branch -f other", shell=True)',
        'pathlib.Path(HOME, "base.txt").write_text("x"); print("wrote", HOME + "/base.txt")',
    ],
    ids=["branch", "file"],
)
def test_an_escape_is_known_after_a_crash(tmp_path: Path, deed: str) -> None:
    """Killed between the agent's end and its judgement: what was before is known, nothing lands."""
    root = tmp_path / "box" / "project"
    agent = f"HOME = {str(root)!r}\nif START == 1: {deed}\n{HONEST}"
    box = yard(tmp_path, agent, stories=stories_of("a"))
    box.git("branch", "other")
    killed = box.run("--lanes", "1", env=to_be_killed_at("journal.agent_ended.committed"))
    assert killed.code == -9, killed.text
    done = box.run("--continue")
    assert done.code == 0, done.text
    assert "a: the agent left its lane" in done.text
    assert starts(box, "a") == 2
    assert sentences.LEFT_LANE in prompt(box, "a", 2)


def test_a_person_who_works_on_after_a_crash_is_no_escaped_agent(tmp_path: Path) -> None:
    """Commits, branches and changes of the checkout that no agent made: its story lands at once."""
    box = yard(tmp_path, HONEST, stories=stories_of("a"))
    box.git("branch", "other")
    killed = box.run("--lanes", "1", env=to_be_killed_at("journal.agent_ended.committed"))
    assert killed.code == -9, killed.text
    (box.root / "base.txt").write_text("mine")
    box.git("commit", "-qam", "mine")
    box.git("branch", "-f", "other", "HEAD")
    (box.root / "base.txt").write_text("mine, again")
    done = box.run("--continue")
    assert done.code == 0, done.text
    assert sentences.LEFT_LANE not in done.text
    assert starts(box, "a") == 1


def test_conflict_markers_do_not_land(tmp_path: Path) -> None:
    """Checks that do not read the file are green, but a conflict that is not solved is not done."""
    agent = f"""
say(STORY); until({{"a": "b", "b": "a"}}[STORY])
if START == 1: write("same.txt", STORY)
if START == 3: write("same.txt", "both")
{HONEST}"""
    box = yard(tmp_path, agent, stories=stories_of("a", "b"))
    done = box.run("--lanes", "2")
    assert done.code == 0, done.text
    assert "conflict markers are left in same.txt" in done.text
    last = max(("a", "b"), key=lambda name: starts(box, name))
    assert starts(box, last) == 3
    assert "conflict markers are left" in prompt(box, last, 3)
    assert (box.root / "same.txt").read_text() == "both"


def test_what_waits_to_be_merged_is_not_done_again(tmp_path: Path) -> None:
    """The next run in lanes goes on from it; one in the checkout, or after a commit, says how."""
    root = tmp_path / "box" / "project"
    agent = f'pathlib.Path({str(root / "base.txt")!r}).write_text("mine")\n{HONEST}'
    box = yard(tmp_path, agent, stories=stories_of("a", "b", "c"))
    assert box.run("--lanes", "1", "--max-iterations", "1").code == 3
    branch = box.git("for-each-ref", "--format=%(refname:short)", "refs/heads/ralph/2*")
    refused = box.run("--allow-dirty")
    assert refused.code == 66, refused.text
    assert f"git merge {branch}" in refused.text
    assert box.run("--lanes", "1", "--max-iterations", "1").code == 3
    assert box.git("log", "--format=%s", branch).split("\n") == ["b: Do b", "a: Do a", "start"]
    box.git("commit", "-qam", "mine")
    refused = box.run("--lanes", "1")
    assert refused.code == 66, refused.text
    box.git("merge", "-q", "-m", "merged", branch)
    assert box.run("--lanes", "1").code == 0
    assert [starts(box, name) for name in "abc"] == [1, 1, 1]


def test_a_night_is_replayed_in_the_order_it_was_decided(tmp_path: Path) -> None:
    """A later start landed first and made the earlier one red: code and journal agree on it."""
    agent = """
def landed():
    argv = ["git", "log", "--branches", "--format=%s"]
    return "b: Do b" in subprocess.run(argv, capture_output=True, text=True).stdout
while STORY == "a" and START == 1 and not landed(): time.sleep(0.05)
write(f"{STORY}.txt" if START == 1 else "both.txt")
done()
"""
    check = ["sh", "-c", "test ! -f a.txt || test ! -f b.txt || test -f both.txt"]
    box = yard(tmp_path, agent, stories=stories_of("a", "b"), checks=[check])
    done = box.run("--lanes", "2")
    assert done.code == 0, done.text
    assert "a goes back" in done.text
    replayed = box.ralph("replay")
    assert replayed.code == 0, replayed.text


def test_lanes_that_a_person_deleted_are_made_again(tmp_path: Path) -> None:
    """After a crash they stand as their stories began: no claim of lost work lands."""
    agent = f"""
if START == 1:
    write("half.txt")
    done()
    say("s" + STORY)
    until("never", 60 if STORY == "b" else 0)
    sys.exit(0)
assert pathlib.Path("base.txt").exists()
{HONEST}"""
    slow = "touch $TEST_STATE/checked; test -e $TEST_STATE/quick || sleep 30"
    check = ["sh", "-c", f"case $PWD in */1) {slow};; esac"]
    box = yard(tmp_path, agent, stories=stories_of("a", "b"), checks=[check])
    with box.start("--lanes", "2") as process:
        deadline = time.monotonic() + 60
        while not all((box.state / it).exists() for it in ("checked", "sb")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.kill()
    shutil.rmtree(box.root.with_name("project.lanes"))
    box.git("worktree", "prune")
    (box.state / "quick").touch()
    done = box.run("--continue")
    assert done.code == 0, done.text
    assert "were deleted" in done.text
    assert [starts(box, name) for name in "ab"] == [2, 2]
    assert [it for it in box.leftovers() if "agent.py" in it] == []


def test_a_start_that_is_refused_leaves_no_branch(tmp_path: Path) -> None:
    """A setup that fails, or a check that is red before any work: 66, and all is as before."""
    toml = '[lanes]\nsetup = [["test", "-e", "base.txt"]]\n'
    box = yard(tmp_path, HONEST, stories=stories_of("a"), checks=[["test", "-e", "c"]], toml=toml)
    assert box.run("--lanes", "1").code == 66
    settings = box.root / "ralph.toml"
    settings.write_text(settings.read_text().replace("base.txt", "missing"))
    assert box.run("--lanes", "1").code == 66
    assert box.git("branch", "--format=%(refname:short)") == "main"


def test_a_lane_in_which_the_checks_are_red_is_refused(tmp_path: Path) -> None:
    """Its setup came to less than that of the landing tree: 66 before any agent is paid."""
    make = "case $PWD in */2) ;; *) echo ok > built.txt;; esac"
    toml = f'[lanes]\nsetup = [["sh", "-c", "{make}"]]\n'
    files = {".gitignore": ".ralph*\nbuilt.txt\n"}
    check = ["sh", "-c", "grep -q ok built.txt"]
    box = yard(
        tmp_path,
        'until("never", 3)\n' + HONEST,
        stories=stories_of("a", "b"),
        checks=[check],
        files=files,
        toml=toml,
    )
    done = box.run("--lanes", "2")
    assert done.code == 66, done.text
    assert "project.lanes/2) is not ready: sh -c" in done.text
    assert starts(box, "b") == 0
    assert box.leftovers() == []
    settings = box.root / "ralph.toml"
    settings.write_text(settings.read_text().replace("*/2)", "*/9)"))
    box.git("commit", "-qam", "better")
    done = box.run("--continue")
    assert done.code == 0, done.text
    assert box.status()["stories"]["passed"] == 2


def test_a_lane_is_proven_once_and_not_at_all_where_git_made_it(tmp_path: Path) -> None:
    """The checks run once in a lane that was set up, and what they leave is no story's work."""
    check = ["sh", "-c", "echo $PWD >> $TEST_STATE/ran; echo x > left.txt"]
    toml = '[lanes]\nsetup = [["true"]]\n'
    box = yard(tmp_path, HONEST, stories=stories_of("a", "b"), checks=[check], toml=toml)
    assert box.run("--lanes", "1").code == 0
    ran = (box.state / "ran").read_text().split("\n")
    assert sum(line.endswith("/1") for line in ran) == 3  # once for the lane, once for each story
    other = tmp_path / "other"
    other.mkdir()
    box = yard(other, HONEST, stories=stories_of("a"), checks=[check])
    assert box.run("--lanes", "1").code == 0
    ran = (box.state / "ran").read_text().split("\n")
    assert sum(line.endswith("/1") for line in ran) == 1


def test_what_leads_back_into_the_checkout_is_refused(tmp_path: Path) -> None:
    """A linked package, a variable, a program of an environment: the checkout would be tested."""
    files = {".gitignore": ".ralph*\nnode_modules/\n.venv/\n", "packages/p/index.js": ""}
    box = yard(
        tmp_path,
        HONEST,
        stories=stories_of("a"),
        files=files,
        toml='[lanes]\ncopy = ["node_modules"]\n',
    )
    refused = box.run("--lanes", "1", env={"PYTHONPATH": f"{box.root}/src"})
    assert (refused.code, "PYTHONPATH names" in refused.text) == (66, True), refused.text
    (box.root / "node_modules/@me").mkdir(parents=True)
    link = box.root / "node_modules/@me/p"
    link.symlink_to(box.root / "packages/p")
    refused = box.run("--lanes", "1")
    assert refused.code == 66, refused.text
    assert "your checkout would be tested" in refused.text
    assert starts(box, "a") == 0
    link.unlink()
    link.symlink_to("../../packages/p")  # as workspaces link them: in the lane it is the lane's
    done = box.run("--lanes", "1")
    assert done.code == 0, done.text


def test_many_hidden_files_cost_no_endless_search(tmp_path: Path) -> None:
    """A tool that fills a hidden directory of the checkout must not hold up all lanes."""
    transcript = tmp_path / "1.log"
    transcript.write_text("nothing of that")
    assert not names_it(transcript, tmp_path, (f".cache/{n}" for n in itertools.count()))
