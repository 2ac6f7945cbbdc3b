"""Several stories at once through the front door: what lands, what goes back, what stays yours."""

from __future__ import annotations

import json
import time
from pathlib import Path

from tests import sentences
from tests.kill_points import to_be_killed_at
from tests.lanes.yards import prompt, starts, stories_of, yard
from tests.loop.projects import Sandbox, story

HONEST = 'write(f"{STORY}.txt", STORY)\ndone()\n'


def lanes_of(box: Sandbox) -> Path:
    """Where the lanes of the repository are."""
    return box.root.with_name("project.lanes")


def test_one_lane_leaves_the_checkout_alone_until_the_end(tmp_path: Path) -> None:
    """While agents work nothing in the checkout changes but our own; then the branch moves on."""
    agent = (
        "import hashlib\n"
        f"root = pathlib.Path({str(tmp_path / 'box' / 'project')!r})\n"
        "seen = sorted(p.name for p in root.iterdir())\n"
        '(STATE / f"seen-{STORY}").write_text(json.dumps(seen))\n' + HONEST
    )
    box = yard(tmp_path, agent, stories=stories_of("a", "b"))
    done = box.run("--lanes", "1")
    assert done.code == 0, done.text
    seen = json.loads((box.state / "seen-b").read_text())
    ours = {".ralph", ".ralph-session.json", ".ralph-circuit-state.json"}
    assert set(seen) - ours == {".git", ".gitignore", "base.txt", "prd.json", "ralph.toml"}
    assert box.subjects() == ["start", "a: Do a", "b: Do b"]
    assert box.passes() == {"a": True, "b": True}
    assert box.git("status", "--porcelain") == ""
    assert box.git("branch", "--show-current") == "main"
    assert "main has what landed" in done.err
    assert box.git("log", "--format=%H", "--merges") == ""


def test_two_lanes_work_at_the_same_time(tmp_path: Path) -> None:
    """Each waits for a word of the other: that only ends where both run."""
    agent = 'say(STORY)\nuntil({"a": "b", "b": "a"}[STORY])\n' + HONEST
    box = yard(tmp_path, agent, stories=stories_of("a", "b"))
    done = box.run("--lanes", "2", "--json")
    assert done.code == 0, done.text
    assert {it["lane"] for it in done.events("iteration_started")} == {1, 2}
    assert sorted(box.subjects()) == ["a: Do a", "b: Do b", "start"]
    assert box.status()["stories"]["passed"] == 2
    assert box.leftovers() == []


def test_a_dependent_story_begins_with_what_landed(tmp_path: Path) -> None:
    """It sees the work of the one it depends on, and starts only then."""
    agent = 'if STORY == "b": assert pathlib.Path("a.txt").exists()\n' + HONEST
    stories = [story("a"), story("b", dependsOn=["a"])]
    done = (box := yard(tmp_path, agent, stories=stories)).run("--lanes", "2")
    assert done.code == 0, done.text
    assert starts(box, "b") == 1


def test_your_own_work_meanwhile_is_never_touched(tmp_path: Path) -> None:
    """With changes or commits of yours the branch stays, and one command is said."""
    root = tmp_path / "box" / "project"
    agent = f'pathlib.Path({str(root)!r}, "mine.txt").write_text("mine")\n' + HONEST
    box = yard(tmp_path, agent, stories=stories_of("a"))
    done = box.run("--lanes", "1")
    assert done.code == 0, done.text
    assert (box.root / "mine.txt").read_text() == "mine"
    assert box.subjects() == ["start"]
    branch = box.git("branch", "--list", "ralph/2*", "--format=%(refname:short)")
    assert f"git merge {branch}" in done.err
    assert box.git("show", f"{branch}:a.txt") == "a"
    box.git("merge", "-q", branch)
    assert box.passes() == {"a": True}


def test_a_story_file_that_is_not_committed_stays_yours(tmp_path: Path) -> None:
    """It is marked where it lies, agents see it in their lane, and no commit has it."""
    agent = 'assert json.loads(pathlib.Path("prd.json").read_text())["project"] == "p"\n' + HONEST
    box = yard(tmp_path, agent, stories=stories_of("a", "b"), commit_list=False)
    done = box.run("--lanes", "2")
    assert done.code == 0, done.text
    assert box.passes() == {"a": True, "b": True}
    assert box.git("ls-files", "prd.json") == ""
    assert (box.root / "a.txt").exists()


def test_a_spec_that_is_not_committed_comes_with_such_a_story_file(tmp_path: Path) -> None:
    """The agent in a lane is told what it says."""
    stories = stories_of("a", parent_spec="specs/a.md")
    box = yard(tmp_path, HONEST, stories=stories, commit_list=False)
    (box.root / "specs").mkdir()
    (box.root / "specs" / "a.md").write_text("The lid is blue.")
    done = box.run("--lanes", "1")
    assert done.code == 0, done.text
    assert "The lid is blue." in prompt(box, "a", 1)


def test_a_conflict_goes_back_with_the_intent_of_both(tmp_path: Path) -> None:
    """The second one gets the markers and the words of the first, and lands without an attempt."""
    agent = """
if STORY == "b" and START == 1: until("landed")
text = pathlib.Path("base.txt").read_text()
if "<<<<<<<" in text:
    write("base.txt", "from a\\nfrom b\\n")
elif START == 1:
    write("base.txt", f"from {STORY}\\n")
done()
"""
    box = yard(tmp_path, agent, stories=stories_of("a", "b"))
    say_landed(box, "a")
    done = box.run("--lanes", "2", "--json")
    assert done.code == 0, done.text
    assert (box.root / "base.txt").read_text() == "from a\nfrom b\n"
    (back,) = done.events("story_returned")
    assert back["story"] == "b"
    assert "a" in back["reason"]
    assert "base.txt" in back["reason"]
    told = prompt(box, "b", 2)
    assert "a: Do a" in told
    assert "conflict markers" in told
    assert [it["attempts"] for it in done.events("iteration_finished")] == [0, 0, 0]
    assert "b went back to lane" in box.ralph("report").out
    assert box.subjects() == ["start", "a: Do a", "b: Do b"]


def say_landed(box: Sandbox, name: str) -> None:
    """Let agents know when a story has landed: git tells whoever asked to be told."""
    hook = box.root / ".git/hooks/reference-transaction"
    hook.write_text(
        f'#!/bin/sh\n[ "$1" = committed ] || exit 0\n'
        f"while read old new ref; do case $ref in refs/heads/ralph/2*) "
        f'git log -1 --format=%s "$new" | grep -q "^{name}:" && : > "{box.state}/landed";; esac;'
        f" done; exit 0\n"
    )
    hook.chmod(0o755)


def test_green_alone_and_red_together_goes_back(tmp_path: Path) -> None:
    """A check that fails only with what landed meanwhile is no failed attempt of the story."""
    check = tmp_path / "check.py"
    check.write_text(
        "import pathlib, sys\n"
        "both = pathlib.Path('a.txt').exists() and pathlib.Path('b.txt').exists()\n"
        "sys.exit(both and not pathlib.Path('fixed.txt').exists())\n"
    )
    agent = (
        """
if STORY == "b" and START == 1: until("landed")
if START > 1: write("fixed.txt")
"""
        + HONEST
    )
    box = yard(tmp_path, agent, stories=stories_of("a", "b"), checks=[["python3", str(check)]])
    say_landed(box, "a")
    done = box.run("--lanes", "2", "--json")
    assert done.code == 0, done.text
    (back,) = done.events("story_returned")
    assert "fails together with a" in back["reason"]
    assert "green alone" in prompt(box, "b", 2)
    assert (box.root / "fixed.txt").exists()
    assert starts(box, "b") == 2


def test_a_stuck_story_is_set_aside_and_its_work_kept(tmp_path: Path) -> None:
    """The others land; what it left is under a ref, and its second chance begins with it."""
    agent = (
        """
if STORY == "b":
    write(f"bad{START}.txt"); done(); sys.exit()
"""
        + HONEST
    )
    stories = [
        story("a", priority=1),
        story("b", priority=2, verify=["test", "-e", "never"]),
        story("c", priority=3),
    ]
    box = yard(tmp_path, agent, stories=stories, limits="max_attempts = 2")
    done = box.run("--lanes", "2")
    assert done.code == 4, done.text
    assert box.passes() == {"a": True, "b": False, "c": True}
    assert box.git("for-each-ref", "refs/ralph/set-aside") != ""
    assert not (box.root / "bad1.txt").exists()


def test_an_agent_that_moves_your_branch_does_not_land(tmp_path: Path) -> None:
    """It is named, told to stay, and lands once it does."""
    root = tmp_path / "box" / "project"
    agent = (
        f"""
if START == 1:
    git = ["git", "-C", {str(root)!r}]
    subprocess.run([*git, "checkout", "-q", "-b", "elsewhere"], check=True)
"""
        + HONEST
    )
    box = yard(tmp_path, agent, stories=stories_of("a"))
    done = box.run("--lanes", "1", "--json")
    assert done.code == 0, done.text
    (left,) = done.events("lane_left")
    assert "worked in another work tree" in left["reason"]
    first, second = done.events("iteration_finished")
    assert not first["passed"]
    assert second["passed"]
    assert sentences.LEFT_LANE in prompt(box, "a", 2)


def test_a_person_who_commits_meanwhile_is_no_escaped_agent(tmp_path: Path) -> None:
    """Commits in the checkout that no agent made are nobody's fault."""
    root = tmp_path / "box" / "project"
    env = "{k: v for k, v in os.environ.items() if not k.startswith('GIT_')}"
    agent = (
        f"""
git = ["git", "-C", {str(root)!r}, "commit", "-q", "--allow-empty", "-m", "mine"]
subprocess.run(git, check=True, env={env})
"""
        + HONEST
    )
    box = yard(tmp_path, agent, stories=stories_of("a"))
    box.git("config", "user.name", "me")
    box.git("config", "user.email", "me@example.org")
    done = box.run("--lanes", "1", "--json")
    assert done.code == 0, done.text
    assert done.events("lane_left") == []
    assert box.passes() == {"a": False}  # main moved: the branch waits to be merged
    assert "git merge" in done.err


def test_a_lane_starts_no_lanes(tmp_path: Path) -> None:
    """Neither its agent while it runs, nor a person in it afterwards."""
    agent = (
        """
import subprocess
env = {**os.environ, "RALPH_TRUST": "1"}
out = subprocess.run([sys.executable, "-P", "-m", "ralphloop", "run", "--lanes", "2"], env=env,
                     capture_output=True, text=True)
(STATE / "inner").write_text(f"{out.returncode} {out.stderr}")
"""
        + HONEST
    )
    box = yard(tmp_path, agent, stories=stories_of("a"))
    done = box.run("--lanes", "1")
    assert done.code == 0, done.text
    assert (box.state / "inner").read_text().split()[0] in ("1", "75")
    inside = Sandbox(lanes_of(box) / "1", box.state, box.env)
    again = inside.run("--lanes", "1")
    assert again.code == 64, again.text
    assert "a lane starts no lanes" in again.err


def test_files_that_git_ignores_are_brought_along(tmp_path: Path) -> None:
    """By `copy`, by .worktreeinclude and by `setup`; nothing else that is ignored is there."""
    agent = (
        'for name in (".env", "more.key", "made.txt"): assert os.path.exists(name), name\n' + HONEST
    )
    checks = [
        ["sh", "-c", "test -e .env && test -e more.key && test -e made.txt && test ! -e left"]
    ]
    files = {".gitignore": ".ralph*\n.env\n*.key\nmade.txt\nleft\n", ".worktreeinclude": "*.key\n"}
    toml = '[lanes]\ncopy = [".env"]\nsetup = [["touch", "made.txt"]]\n'
    box = yard(tmp_path, agent, stories=stories_of("a", "b"), checks=checks, files=files, toml=toml)
    (box.root / ".env").write_text("x=1\n")
    (box.root / "more.key").write_text("k\n")
    done = box.run("--lanes", "2")
    assert done.code == 0, done.text


def test_an_environment_of_the_checkout_is_refused(tmp_path: Path) -> None:
    """A copied one that installs the project from the checkout would test the checkout: 66."""
    toml = '[lanes]\ncopy = [".venv"]\n'
    files = {".gitignore": ".ralph*\n.venv/\n"}
    box = yard(tmp_path, HONEST, stories=stories_of("a"), files=files, toml=toml)
    site = box.root / ".venv/lib/python3.11/site-packages"
    site.mkdir(parents=True)
    (box.root / ".venv/pyvenv.cfg").write_text("home = /usr/bin\n")
    (site / "__editable__.p.pth").write_text(f"{box.root}/src\n")
    done = box.run("--lanes", "1")
    assert done.code == 66, done.text
    assert "would test your checkout" in done.text
    assert starts(box, "a") == 0


def test_a_branch_of_the_stories_is_landed_on_beside_the_checkout(tmp_path: Path) -> None:
    """Nobody is switched to it."""
    box = yard(tmp_path, HONEST, stories=stories_of("a"))
    data = json.loads((box.root / "prd.json").read_text())
    (box.root / "prd.json").write_text(json.dumps({**data, "branchName": "feature/x"}))
    box.git("commit", "-qam", "named")
    done = box.run("--lanes", "1")
    assert done.code == 0, done.text
    assert box.git("branch", "--show-current") == "main"
    assert box.git("show", "feature/x:a.txt") == "a"
    assert "git switch feature/x" in done.err


def test_lanes_are_shown_and_cleaned_without_loss(tmp_path: Path) -> None:
    """Work trees and their branches go; what a lane still held is a commit afterwards."""
    agent = 'write("half.txt", STORY)\nstatus("BLOCKED", recommendation="which colour?")\n'
    box = yard(tmp_path, agent, stories=stories_of("a"))
    assert box.run("--lanes", "1").code == 2
    shown = box.ralph("lanes").out
    assert "holds a" in shown
    assert "landing tree" in shown
    cleaned = box.ralph("lanes", "clean")
    assert cleaned.code == 0, cleaned.text
    assert not lanes_of(box).exists()
    assert "ralph/lane-" not in box.git("branch", "--list")
    ref = box.git("for-each-ref", "--format=%(refname)", "refs/ralph/lanes")
    assert box.git("show", f"{ref}:half.txt") == "a"
    assert "No lanes" in box.ralph("lanes").out


def test_a_story_that_waited_goes_on_with_its_work(tmp_path: Path) -> None:
    """Its lane was given to another and then cleaned; an answer brings its work back."""
    agent = (
        """
if STORY == "a" and START == 1:
    write("half.txt", "half"); status("BLOCKED", recommendation="which colour?"); sys.exit()
if STORY == "a": assert pathlib.Path("half.txt").read_text() == "half"
"""
        + HONEST
    )
    box = yard(tmp_path, agent, stories=stories_of("a", "b"))
    first = box.run("--lanes", "1")
    assert first.code == 2, first.text
    assert box.passes() == {"a": False, "b": True}
    assert box.ralph("lanes", "clean").code == 0
    assert box.ralph("answer", "a", "blue").code == 0
    done = box.run("--continue")
    assert done.code == 0, done.text
    assert (box.root / "half.txt").read_text() == "half"
    assert box.subjects() == ["start", "b: Do b", "a: Do a"]


def test_the_screens_know_lanes(tmp_path: Path) -> None:
    """Console lines name their lane, status and report count what has landed, and what waits."""
    agent = """
say(STORY)
until({"a": "b"}.get(STORY, "a"))
if STORY != "c": until("seen")
if STORY == "b": until("never", 2)
"""
    stories = [*stories_of("a", "b"), story("c", dependsOn=["b"])]
    box = yard(tmp_path, agent + HONEST, stories=stories)
    process = box.start("--lanes", "2")
    until = time.monotonic() + 60
    waiting = "c: it needs b first"
    while waiting not in (shown := box.ralph("status").out) and time.monotonic() < until:
        time.sleep(0.05)
    assert waiting in shown
    assert f"waiting: {waiting}" in box.ralph("lanes").out
    (box.state / "seen").write_text("")
    while "1 of 3 passed" not in (shown := box.ralph("status").out) and time.monotonic() < until:
        time.sleep(0.05)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "1 of 3 passed" in shown
    assert "1│" in out
    assert "2│" in out
    report = box.ralph("report").out
    assert box.git("log", "-1", "--format=%h") in report
    assert '<figure id="lanes">' in box.ralph("report", "--html").out


def test_what_lanes_cannot_begin_with_is_said_first(tmp_path: Path) -> None:
    """A rebase half done ends 66; a plain loop or no commits of ours 64; nothing is started."""
    box = yard(tmp_path, HONEST, stories=stories_of("a"))
    (box.root / ".git/rebase-merge").mkdir()
    assert "a rebase is in progress" in (found := box.run("--lanes", "1")).text
    assert found.code == 66
    (box.root / ".git/rebase-merge").rmdir()
    (box.root / "p.md").write_text("x")
    assert box.run("--lanes", "1", "--prompt", "p.md").code == 64
    plain = box.run("--prompt", "p.md", "--max-iterations", "1", env={"RALPH_LANES_COUNT": "1"})
    assert plain.code != 64, plain.text  # a setting for stories is none for a plain loop
    never = {"RALPH_GIT_COMMIT": "never"}
    assert box.run("--lanes", "1", env=never).code == 64
    assert starts(box, "a") == 0
    assert not lanes_of(box).exists()


def test_a_new_run_in_the_checkout_settles_what_lanes_left(tmp_path: Path) -> None:
    """A run in lanes that was killed after its commit is finished first; nothing lands twice."""
    box = yard(tmp_path, HONEST, stories=stories_of("a", "b"))
    killed = box.run("--lanes", "1", env=to_be_killed_at("landing.committed"))
    assert killed.code == -9, killed.text
    done = box.run("--lanes", "0")
    assert "Recovered" in done.err
    branch = box.git("branch", "--list", "ralph/2*", "--format=%(refname:short)")
    assert box.git("show", f"{branch}:a.txt") == "a"
    assert box.git("log", "--format=%s", branch).split("\n") == ["a: Do a", "start"]
    assert box.leftovers() == []
