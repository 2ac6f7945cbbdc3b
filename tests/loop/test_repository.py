"""What a run does to the user's repository, and what it never does."""

from __future__ import annotations

import json
import os
import shutil
import stat
import time
from pathlib import Path

import pytest

from tests import sentences
from tests.guarantees import Measured
from tests.loop.guards import told
from tests.loop.projects import Sandbox, contents, sandbox, story
from tests.loop.test_stories import known_grades

GREEN = [["true"]]
WORKS = "write(f'src/{STORY}.txt', START); done()"


def hook(box: Sandbox, name: str, script: str) -> None:
    """A git hook of the user."""
    path = box.root / ".git/hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_a_dry_run_runs_nothing_and_changes_nothing(tmp_path: Path) -> None:
    """The plan in order with reasons, the checks, the first prompt; no byte is different after."""
    stories = [story("US-1", dependsOn=["US-2"]), story("US-2", priority=3)]
    box = sandbox(tmp_path, WORKS, stories=stories, checks=GREEN)
    before = contents(box.root)
    done = box.run("--dry-run")
    assert done.code == 0, done.text
    assert contents(box.root) == before
    assert box.starts == 0
    assert done.out.index("US-2: Do US-2") < done.out.index("US-1: Do US-1")
    assert "after US-2" in done.out
    assert "true" in done.out
    assert "Your story: US-2" in done.out
    assert "tokens" in done.out


def test_a_dry_run_tells_of_an_unfinished_session_without_touching_it(tmp_path: Path) -> None:
    """Set aside and blocked stories are named with their reasons."""
    agent = "status('BLOCKED', files=0, recommendation='Provide STRIPE_KEY')"
    box = sandbox(tmp_path, agent, stories=1, checks=GREEN)
    assert box.run().code == 2
    before = contents(box.root)
    done = box.run("--dry-run")
    assert "Provide STRIPE_KEY" in done.out
    assert "Your story: US-1" in done.out  # given what it asked for, it is tried again
    assert "Your story: US-1" in box.run("--dry-run", "--continue").out
    changed = {
        name for name, digest in contents(box.root).items() if before.get(name) != digest
    } | before.keys() - contents(box.root).keys()
    assert {name for name in changed if "journal.db-" not in name} == set()


def test_a_dry_run_shows_the_prompt_and_the_branch_of_the_run_to_come(tmp_path: Path) -> None:
    """What was learned and asked for is in it, as in the first start; the branch is named, not made."""
    box = sandbox(tmp_path, WORKS, stories=2, checks=GREEN)
    data = json.loads((box.root / "prd.json").read_text())
    (box.root / "prd.json").write_text(json.dumps({"branchName": "ralph/work", **data}, indent=2))
    config = box.root / "ralph.toml"
    config.write_text(config.read_text().replace("enabled = false", "enabled = true"))
    box.git("commit", "-qam", "learns")
    for number, how in ((1, "created"), (2, "already")):
        plan = json.loads(box.run("--dry-run", "--json").out)
        assert (plan["branch"], plan["branch_is"]) == ("ralph/work", how)
        if number == 1:
            assert "branch   ralph/work (it would be made)" in box.run("--dry-run").out
            assert "ralph/work" not in box.git("branch", "--list")
        assert box.run("--max-iterations", "1").code == (3 if number == 1 else 0)
        assert plan["prompt"] == box.prompt(number)


def test_commits_of_stories_are_counted(tmp_path: Path) -> None:
    """One for each story that passed; files that were not changed are none, whatever is claimed."""
    agent = """
    if START == 1: status(files=7)
    else: write(f"{STORY}.txt", START); done()
    """
    box = sandbox(tmp_path, agent, stories=2, checks=GREEN)
    done = box.run()
    assert done.code == 0, done.text
    assert "0 commits" not in done.text
    status = box.status()
    view = json.loads((box.root / ".ralph-session.json").read_text())
    for counts in (view, status, status["session"]):
        assert (counts["total_commits"], counts["total_files_modified"]) == (2, 2)


def test_status_names_the_limits_of_the_run(tmp_path: Path) -> None:
    """Those it was started with, flags included, also when it is over; before a run, the next one's."""
    box = sandbox(tmp_path, WORKS, stories=3, checks=GREEN, limits="max_cost_usd = 5.0")
    rest = "$5.00, 10h 00m, 3 attempts a story, 100 starts an hour"
    assert f"50 iterations, {rest}" in " ".join(box.ralph("status").text.split())
    assert box.run("--max-iterations", "1", "--max-tokens", "9000").code == 3
    words = " ".join(box.ralph("status").text.split())
    assert f"1 iteration, {rest.replace(', ', ', 9,000 tokens, ', 1)}" in words
    assert "iterations 1 of 1 " in words


def test_a_failing_hook_is_feedback_to_the_agent(tmp_path: Path) -> None:
    """The hook's words are in the next prompt; only what was committed has passed."""
    agent = "write('src/US-1.txt', START); done(signal='true')"
    box = sandbox(tmp_path, agent, checks=GREEN)
    hook(box, "pre-commit", "grep -q 2 src/US-1.txt || { echo 'style: write a 2'; exit 1; }")
    done = box.run("--json")
    assert done.code == 0, told(done)
    assert box.starts == 2
    assert "style: write a 2" in box.prompt(2)
    assert [event["iteration"] for event in done.events("story_reopened")] == [1]
    assert [event["iteration"] for event in done.events("story_passed")] == [2]
    assert box.subjects() == ["start", "US-1: Do US-1"]
    assert box.passes() == {"US-1": True}


def test_what_a_commit_left_out_is_said_with_the_story(tmp_path: Path) -> None:
    """A repository the agent made inside is not committed, and nobody has to find that out."""
    agent = "subprocess.run(['git', 'init', '-q', 'inner']); "
    box = sandbox(tmp_path, f"{agent}write('inner/a.txt'); {WORKS}", checks=GREEN)
    done = box.run("--json")
    assert done.code == 0, told(done)
    (passed,) = done.events("story_passed")
    assert "not committed: inner/ (a repository of its own)" in passed["reasons"][0]


ELSEWHERE = """
def git(*arguments): subprocess.run(["git", *arguments], check=True)
if START == 1:
    git("worktree", "add", "-q", ".agents/one", "-b", "one")
    write(".agents/one/one.txt", "one")
    git("-C", ".agents/one", "add", "-A")
    git("-C", ".agents/one", "commit", "-qm", "one")
    git("merge", "-q", "one")
else:
    write(f"{STORY}.txt")
done()
"""


def test_work_in_another_work_tree_inside_of_this_one_is_told_once(tmp_path: Path) -> None:
    """What was merged is committed; the tree itself is no work, and no matter of later stories."""
    box = sandbox(tmp_path, ELSEWHERE, stories=3, checks=GREEN, clean_tree=True)
    done = box.run("--json")
    assert done.code == 0, told(done)
    first, *later = [" ".join(passed["reasons"]) for passed in done.events("story_passed")]
    assert "not committed: .agents/one/ (another work tree of this repository)" in first
    assert "needs review" not in {passed["grade"] for passed in done.events("story_passed")}
    assert not [words for words in later if "not committed" in words]
    assert box.git("show", "HEAD:one.txt") == "one"


def test_another_work_tree_is_looked_at_where_checks_may_have_used_it(tmp_path: Path) -> None:
    """In place, what makes a check green may lie in files that no commit holds."""
    agent = ELSEWHERE.replace('git("merge", "-q", "one")', 'write("beside.txt")')
    checks = [["test", "-e", ".agents/one/one.txt"]]
    box = sandbox(tmp_path, agent, checks=checks)
    done = box.run("--json", "--allow-red")
    (passed,) = done.events("story_passed")
    assert passed["grade"] == "needs review"
    assert "committed is not what was checked: .agents/one" in passed["reasons"][0]


def test_a_repository_that_a_story_found_is_not_its_own(tmp_path: Path) -> None:
    """Only where a later story changes something in there it is told again."""
    agent = """
        if STORY == "US-1": subprocess.run(["git", "init", "-q", "inner"], check=True)
        if STORY != "US-2": write(f"inner/{STORY}.txt")
        write(f"{STORY}.txt"); done()
    """
    box = sandbox(tmp_path, agent, stories=3, checks=GREEN, clean_tree=True)
    done = box.run("--json")
    assert done.code == 0, told(done)
    said = ["inner/" in " ".join(it["reasons"]) for it in done.events("story_passed")]
    assert said == [True, False, True]


def test_a_hook_that_always_fails_is_bounded(tmp_path: Path, measured: Measured) -> None:
    """An agent that cannot satisfy the hook does not work for ever, and nothing is committed."""
    box = sandbox(tmp_path, WORKS, checks=GREEN)
    hook(box, "pre-commit", "echo 'error: never good enough'; exit 1")
    done = box.run("--json", "--max-iterations", "20")
    assert done.code in (1, 4), told(done)
    assert box.starts <= 8
    measured(box.starts)
    assert box.subjects() == ["start"]
    assert box.passes() == {"US-1": False}


def test_a_hook_that_rewrites_is_committed_and_checked_again(tmp_path: Path) -> None:
    """A formatter in the hook: its result is committed; if it breaks the checks, that counts."""
    box = sandbox(tmp_path, WORKS, checks=[["sh", "-c", "! grep -q broken src/US-1.txt"]])
    hook(box, "pre-commit", "echo formatted >> src/US-1.txt; git add src/US-1.txt")
    done = box.run("--json")
    assert done.code == 0, told(done)
    assert "formatted" in box.git("show", "HEAD:src/US-1.txt")
    assert box.git("status", "--porcelain") == ""
    assert known_grades(box) == {"US-1": "checked"}


LATE = "echo by somebody else >> {path}; exit 0"
OTHERS = "hash=$(echo other | git hash-object -w --stdin); git update-index --add --cacheinfo 100644,$hash,{path}"


@pytest.mark.parametrize(
    ("when", "path", "named"),
    [
        (LATE, "src/US-1.txt", True),
        (LATE, "new.txt", True),
        (LATE, "progress.txt", False),
        (LATE, ".ralph/notes.txt", False),
        (OTHERS, "src/US-1.txt", True),
        ("true", "", False),
    ],
    ids=["saved late", "made late", "progress", "our directory", "a hook's own", "neither"],
)
def test_what_is_committed_is_what_was_checked(
    tmp_path: Path, when: str, path: str, *, named: bool
) -> None:
    """The trees are compared: whoever came between, the file is named and a person should look."""
    script = when.format(path=path)
    doubt = f"doubt = [{json.dumps(['sh', '-c', script])}]\n" if when == LATE else ""
    box = sandbox(tmp_path, WORKS, checks=GREEN)
    config = box.root / "ralph.toml"
    config.write_text(config.read_text().replace("[limits]", f"{doubt}[limits]", 1))
    box.git("commit", "-qam", "doubt", "--allow-empty")
    if when == OTHERS:
        hook(box, "pre-commit", script)
    done = box.run("--json")
    assert done.code == 0, told(done)
    assert known_grades(box) == {"US-1": sentences.NEEDS_REVIEW if named else "checked"}
    told_of = box.ralph("report").text
    assert (f"committed is not what was checked: {path}" in told_of) is named, told_of


def test_files_that_pass_through_a_filter_are_what_was_checked(tmp_path: Path) -> None:
    """Measuring runs no filter, committing does; large files are known by size and time."""
    box = sandbox(
        tmp_path, "write('a.up', 'small'); write('b.bin', 'x' * 6_000_000); done()", checks=GREEN
    )
    (box.root / ".gitattributes").write_text("*.up filter=up\n")
    box.git("config", "filter.up.clean", "tr a-z A-Z")
    box.git("config", "filter.up.smudge", "tr A-Z a-z")
    box.git("add", ".gitattributes")
    box.git("commit", "-qm", "filter")
    done = box.run("--json")
    assert done.code == 0, told(done)
    assert box.git("show", "HEAD:a.up") == "SMALL"
    assert known_grades(box) == {"US-1": "checked"}


def test_a_rewrite_that_breaks_the_checks_reopens_the_story(tmp_path: Path) -> None:
    """What the hook made of it is red: the story is open again and the agent is told."""
    check = "test ! -f src/US-1.txt || ! grep -q broken src/US-1.txt"
    box = sandbox(tmp_path, WORKS, checks=[["sh", "-c", check]])
    hook(box, "pre-commit", "grep -q 1 src/US-1.txt && echo broken >> src/US-1.txt; git add -A src")
    done = box.run("--json")
    assert done.code == 0, told(done)
    assert box.starts == 2
    assert "a commit hook changed files" in box.prompt(2)


def test_signing_that_fails_is_found_before_the_agent_starts(tmp_path: Path) -> None:
    """A key that cannot sign: 66 with the fix, no start, no hang."""
    box = sandbox(tmp_path, WORKS, checks=GREEN)
    box.git("config", "commit.gpgSign", "true")
    box.git("config", "gpg.program", "/bin/false")
    done = box.run()
    assert done.code == 66
    assert "sign" in done.err
    assert box.starts == 0


def test_the_branch_of_the_list_is_created_and_switched_to(tmp_path: Path) -> None:
    """`branchName` decides where commits land; main stays where it was."""
    box = sandbox(tmp_path, WORKS, stories=2, checks=GREEN)
    data = json.loads((box.root / "prd.json").read_text())
    (box.root / "prd.json").write_text(json.dumps({"branchName": "ralph/work", **data}, indent=2))
    box.git("commit", "-qam", "named branch")
    main = box.git("rev-parse", "main")
    assert box.run("--story", "US-1").code == 4
    box.git("switch", "-q", "main")
    done = box.run()
    assert done.code == 0, done.text
    assert box.git("branch", "--show-current") == "ralph/work"
    assert box.git("rev-parse", "main") == main
    assert box.subjects()[-2:] == ["US-1: Do US-1", "US-2: Do US-2"]


@pytest.mark.parametrize("state", ["detached", "rebase", "merge conflict", "no identity", "locked"])
def test_a_repository_that_is_not_ready_is_refused(tmp_path: Path, state: str) -> None:
    """66 with the way out, and no agent was started."""
    box = sandbox(tmp_path, WORKS, checks=GREEN)
    env = {}
    if state == "detached":
        box.git("switch", "-q", "--detach")
    elif state == "rebase":
        (box.root / ".git/rebase-merge").mkdir()
    elif state == "merge conflict":
        (box.root / ".git/MERGE_HEAD").write_text(box.git("rev-parse", "HEAD"))
    elif state == "locked":
        (box.root / ".git/index.lock").write_text("")
    else:
        empty = tmp_path / "gitconfig"
        empty.write_text("[user]\nuseConfigOnly = true\n")
        env = {"GIT_CONFIG_GLOBAL": str(empty)}
    done = box.run(env=env)
    assert done.code == 66, done.text
    assert "next:" in done.err
    assert box.starts == 0


def test_git_is_never_asked_to_push_reset_or_stash(tmp_path: Path, measured: Measured) -> None:
    """A wrapper that writes down every git command sees none that could lose or publish work."""
    real = shutil.which("git")
    wrappers = tmp_path / "bin"
    wrappers.mkdir()
    log = tmp_path / "git.log"
    wrapper = wrappers / "git"
    wrapper.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> {log}\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    agent = """
    if STORY == "US-1": write("wrong.txt", START); done()
    elif START == 5: print("API Error: 529 Overloaded"); sys.exit(1)
    else: write(f"{STORY}.txt"); done()
    """
    stories = [story("US-1", verify=["false"]), story("US-2"), story("US-3")]
    box = sandbox(tmp_path, agent, stories=stories, checks=GREEN, limits="max_attempts = 2")
    remote = tmp_path / "remote.git"
    box.git("init", "-q", "--bare", str(remote))
    box.git("remote", "add", "origin", str(remote))
    box.git("push", "-q", "-u", "origin", "main")
    done = box.run(env={"PATH": f"{wrappers}{os.pathsep}{os.environ['PATH']}"})
    assert done.code == 4, done.text
    words = [set(line.split()) for line in log.read_text().splitlines()]
    assert len(words) > 20
    forbidden = {"push", "stash", "clean", "gc", "rebase", "--hard", "--force-with-lease", "-f"}
    assert [line for line in words if line & forbidden] == []
    measured(sum(bool(line & forbidden) for line in words))
    assert box.git("rev-list", "--count", "origin/main..main") == "2"


def test_the_users_staged_and_ignored_files_stay(tmp_path: Path) -> None:
    """What a person staged is still staged, what git ignores is not committed."""
    box = sandbox(tmp_path, "write('src/a.txt'); write('secret.env', 'k'); done()", checks=GREEN)
    (box.root / ".git/info").mkdir(exist_ok=True)
    (box.root / ".git/info/exclude").write_text("secret.env\n")
    (box.root / "mine.txt").write_text("staged by me\n")
    box.git("add", "mine.txt")
    done = box.run("--allow-dirty")
    assert done.code == 0, done.text
    assert box.git("status", "--porcelain") == "A  mine.txt"
    assert "secret.env" not in box.git("ls-tree", "-r", "--name-only", "HEAD")


def test_dirt_we_left_ourselves_is_not_dirt(tmp_path: Path) -> None:
    """A run that ended with half a story in the tree is continued, or begun anew, without ado."""
    agent = "write(f'src/{START}.txt')\nif START < 3: status(words=f'Part {START}.')\nelse: done()"
    box = sandbox(tmp_path, agent, checks=GREEN)
    first = box.run("--max-iterations", "1")
    assert first.code == 3
    assert "limits: 1 iteration, " in first.text
    assert box.git("status", "--porcelain") != ""
    assert box.run("--continue", "--max-iterations", "2").code == 3
    done = box.run()
    assert done.code == 0, done.text
    committed = box.git("show", "--name-only", "--format=", "HEAD").split()
    assert {"src/1.txt", "src/2.txt", "src/3.txt"} <= set(committed)


def test_commit_never_leaves_everything_in_the_tree(tmp_path: Path) -> None:
    """`commit = "never"`: stories pass, the log stays, the work is there."""
    box = sandbox(tmp_path, WORKS, stories=2, checks=GREEN, toml='[git]\ncommit = "never"\n')
    done = box.run()
    assert done.code == 0, done.text
    assert box.subjects() == ["start"]
    assert (box.root / "src/US-2.txt").exists()


def test_a_file_the_agent_makes_executable_is_committed_so(tmp_path: Path) -> None:
    """Modes and links are content too."""
    agent = """
    write("run.sh", "#!/bin/sh"); os.chmod("run.sh", 0o755); os.symlink("run.sh", "start")
    done()
    """
    box = sandbox(tmp_path, agent, checks=GREEN)
    assert box.run().code == 0
    modes = {line.split()[3]: line.split()[0] for line in box.git("ls-tree", "HEAD").split("\n")}
    assert modes["run.sh"] == "100755"
    assert modes["start"] == "120000"
    assert stat.S_ISLNK((box.root / "start").lstat().st_mode)


@pytest.mark.parametrize("staged", [False, True], ids=["alone", "beside staged work"])
def test_a_directory_that_becomes_a_link_is_committed(tmp_path: Path, staged: bool) -> None:
    """Its files are gone from the commit, the link is in it, and the run goes on."""
    agent = "os.rename('docs', 'guides'); os.symlink('guides', 'docs'); done()"
    box = sandbox(tmp_path, agent, checks=GREEN)
    (box.root / "docs").mkdir()
    for name in ("a", "b"):
        (box.root / f"docs/{name}.md").write_text(name)
    box.git("add", "-A")
    box.git("commit", "-qm", "docs")
    if staged:
        (box.root / "mine.txt").write_text("staged by me")
        box.git("add", "mine.txt")
    done = box.run("--allow-dirty")
    assert done.code == 0, done.text
    assert box.git("ls-tree", "HEAD", "docs").startswith("120000")
    assert "guides/a.md" in box.git("ls-tree", "-r", "--name-only", "HEAD").split()
    assert box.git("status", "--porcelain") == ("A  mine.txt" if staged else "")


def test_a_branch_switched_by_somebody_else_holds_the_run(tmp_path: Path) -> None:
    """No start lands on another branch: the run holds, says why, and ends with its time."""
    agent = "write(f'src/{START}.txt'); status(words=f'Part {START}.')"
    box = sandbox(tmp_path, agent, checks=GREEN)
    config = (box.root / "ralph.toml").read_text()
    told_to = f'[session]\non_end = ["touch", "{tmp_path}/ended"]\n'
    (box.root / "ralph.toml").write_text(config.replace("[session]\n", told_to))
    box.git("commit", "-qam", "on_end")
    process = box.start("--json", "--max-time", "12s")
    box.wait_for_start(1)
    assert "pausing" in box.ralph("pause").text
    while box.status()["state"] != "paused":
        time.sleep(0.1)
    starts = box.starts
    box.git("switch", "-q", "-c", "elsewhere")
    box.ralph("resume")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 3, out + err
    assert "the branch is elsewhere now" in out
    assert "`git switch main`" in out
    assert box.starts == starts
    assert (tmp_path / "ended").exists()
