"""The run's branch among people and agents who stand on it, commit to it, move it or delete it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests import sentences
from tests.kill_points import to_be_killed_at
from tests.lanes.yards import landed_once, run_branch, starts, stories_of, yard
from tests.loop.projects import story

HONEST = 'write(f"{STORY}.txt", STORY)\ndone()\n'
# A person at the checkout, played by the agent of `b`, whose start begins when `a` has landed.
PERSON = """
HOME = {root!r}
PLAIN = {{k: v for k, v in os.environ.items() if not k.startswith("GIT_")}}
def git(*args, cwd=HOME, ok=True):
    ran = subprocess.run(["git", *args], cwd=cwd, env=PLAIN, capture_output=True, text=True)
    assert not ok or ran.returncode == 0, ran.stderr
    return ran.stdout.strip()
def branch():
    args = ("for-each-ref", "--format=%(refname:short)", "refs/heads/ralph/2*")
    return git(*args).split()[-1]
"""


def person(tmp_path: Path) -> str:
    """What lets an agent act as the person in the checkout."""
    return PERSON.format(root=str(tmp_path / "box" / "project"))


def in_a_row(*names: str) -> list[dict[str, object]]:
    """Stories of which each waits for the one before it."""
    before = [None, *names[:-1]]
    pairs = zip(names, before, strict=True)
    return [story(name, dependsOn=[earlier] if earlier else []) for name, earlier in pairs]


@pytest.mark.parametrize("where", ["checkout", "work tree"])
def test_a_branch_that_somebody_stands_on_is_not_moved(tmp_path: Path, where: str) -> None:
    """The rest lands beside it, which is said; their `commit -a` takes back nothing."""
    deed = 'git("switch", "-q", branch())'
    if where == "work tree":
        deed = 'git("worktree", "add", "-q", "../theirs", branch())'
    agent = f"{person(tmp_path)}\nif STORY == 'b': {deed}\n{HONEST}"
    box = yard(tmp_path, agent, stories=in_a_row("a", "b", "c"))
    done = box.run("--lanes", "2")
    assert done.code == 0, done.text
    theirs = box.root if where == "checkout" else box.root.with_name("theirs")
    mine = done.text.partition(" on branch ")[2].partition(",")[0]
    assert f"somebody stands on {mine} ({theirs})" in done.text
    assert f"stories land on {mine}-2 from now on" in done.text
    assert box.git("-C", str(theirs), "status", "--porcelain") == ""
    assert box.git("log", "--format=%s", mine).split("\n")[-2:] == ["a: Do a", "start"]
    landed_once(box, mine if where == "checkout" else "main", "a", "b", "c")
    assert [starts(box, name) for name in "abc"] == [1, 1, 1]


def test_a_person_who_commits_where_they_stand_loses_nothing(tmp_path: Path) -> None:
    """They switch, edit and `commit -a` on the run's branch: what landed is in it, and stays."""
    agent = f"""{person(tmp_path)}
if STORY == "b":
    git("switch", "-q", branch())
if STORY == "c":
    pathlib.Path(HOME, "base.txt").write_text("mine")
    git("commit", "-qam", "mine")
{HONEST}"""
    box = yard(tmp_path, agent, stories=in_a_row("a", "b", "c"))
    done = box.run("--lanes", "1")
    assert done.code == 0, done.text
    assert [starts(box, name) for name in "abc"] == [1, 1, 1]
    assert box.git("log", "-1", "--format=%s") == "mine"
    other = run_branch(box)
    assert f"git merge {other}" in done.text
    box.git("merge", "-q", "-m", "merged", other)
    assert box.passes() == {"a": True, "b": True, "c": True}
    assert (box.root / "base.txt").read_text() == "mine"
    assert box.ralph("replay").code == 0


def test_a_commit_on_the_run_branch_is_taken_in(tmp_path: Path) -> None:
    """Made while a story was checked where it lands: it is checked again on top, and lands."""
    root = tmp_path / "box" / "project"
    person_commits = f"""
test -e b.txt && test ! -e $TEST_STATE/did && case $PWD in */landing)
  : > $TEST_STATE/did; cd {root}
  name=$(git for-each-ref --format='%(refname:short)' 'refs/heads/ralph/2*')
  git worktree add -q ../theirs $name && cd ../theirs && echo p > person.txt
  git add person.txt && git commit -qm 'by a person' && cd .. && git -C project worktree remove theirs
esac; true"""
    check = ["sh", "-c", person_commits]
    box = yard(tmp_path, HONEST, stories=in_a_row("a", "b", "c"), checks=[check])
    done = box.run("--lanes", "2")
    assert done.code == 0, done.text
    assert (box.state / "did").exists()
    assert sentences.BY_A_PERSON in done.text
    assert box.subjects() == ["start", "a: Do a", sentences.BY_A_PERSON, "b: Do b", "c: Do c"]
    landed_once(box, "main", "a", "b", "c", others=1)
    assert [starts(box, name) for name in "abc"] == [1, 1, 1]


REVIEWER = """
import json, os, pathlib, subprocess, sys
sys.stdin.read()
asked = pathlib.Path(os.environ["TEST_STATE"], "asked")
number = len(asked.read_text()) + 1 if asked.exists() else 1
asked.write_text("x" * number)
def git(*words):
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout.strip()
if number == 1:
    (name,) = git("for-each-ref", "--format=%(refname)", "refs/heads/ralph/2*").split()
    tree = git("rev-parse", f"{name}^{{tree}}")
    git("update-ref", name, git("commit-tree", "-p", name, "-m", "by a person", tree))
print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": "OK: 1",
    "session_id": "r", "uuid": "u", "num_turns": 1, "total_cost_usd": 0.25}))
"""
SECOND = """
name = "second"
program = {python}
reader = "claude"
start = ["-S", {script}, "{{safety}}"]
[safety]
moderate = ["--may-write"]
asking = ["--may-only-read"]
"""


def test_a_doubter_whose_answer_came_too_late_is_paid_as_well(tmp_path: Path) -> None:
    """Somebody committed while it was asked: it is asked about what stands now, and both count."""
    script = tmp_path / "reviewer.py"
    script.write_text(REVIEWER)
    second = SECOND.format(python=json.dumps(sys.executable), script=json.dumps(str(script)))
    box = yard(
        tmp_path,
        HONEST,
        stories=stories_of("a"),
        checks=[["true"]],
        files={"agents.d/second.toml": second},
    )
    settings = box.root / "ralph.toml"
    settings.write_text(settings.read_text().replace("[checks]", '[checks]\ndoubt = ["@second"]'))
    box.git("commit", "-qam", "doubter")
    done = box.run("--lanes", "1")
    assert done.code == 0, done.text
    assert (box.state / "asked").read_text() == "xx"
    assert box.status()["cost_usd"] == 0.5
    (record,) = box.records()
    assert [it.name for it in record.evidence.doubters] == ["@second", "@second"]


def test_a_commit_in_the_last_moment_loses_nothing(tmp_path: Path) -> None:
    """Made by a hook's time, when the story's own commit is there: it lands beside, and is said."""
    box = yard(tmp_path, HONEST, stories=in_a_row("a", "b", "c"))
    hook = box.root / ".git/hooks/post-commit"
    hook.write_text(
        "#!/bin/sh\ntest -e b.txt && test ! -e $TEST_STATE/did || exit 0\n: > $TEST_STATE/did\n"
        "name=$(git for-each-ref --format='%(refname)' 'refs/heads/ralph/2*')\n"
        "new=$(git commit-tree -p $name -m 'by a person' $name^{tree})\n"
        "git update-ref $name $new\n"
    )
    hook.chmod(0o755)
    done = box.run("--lanes", "2")
    assert done.code == 0, done.text
    assert [starts(box, name) for name in "abc"] == [1, 1, 1]
    first = run_branch(box, 0)
    assert box.git("log", "-1", "--format=%s", first) == sentences.BY_A_PERSON
    assert first in done.text
    landed_once(box, "main", "a", "b", "c")


def test_commits_of_an_agent_on_the_run_branch_are_not_taken_in(tmp_path: Path) -> None:
    """It puts its own, which nobody judged, onto the branch: that is left alone, and said."""
    name = "git for-each-ref --format='%(refname)' 'refs/heads/ralph/2*'"
    push = f"echo x > sneaked.txt; git add -A; git commit -qm sneaked; git push -q . HEAD:$({name})"
    agent = f"""
if STORY == "b" and START == 1: subprocess.run({push!r}, shell=True, check=True)
if STORY == "b" and START == 2: subprocess.run("git reset -q --hard HEAD~", shell=True)
{HONEST}"""
    box = yard(tmp_path, agent, stories=in_a_row("a", "b", "c"))
    done = box.run("--lanes", "1")
    assert done.code == 0, done.text
    assert "the agent left its lane" in done.text
    assert "was moved by an agent" in done.text
    assert "sneaked" not in box.git("log", "--format=%s", "main")
    listed = box.git("ls-tree", "--name-only", "main")
    assert "sneaked.txt" not in listed
    assert starts(box, "c") == 1


def test_a_new_run_where_somebody_stands_pays_nothing_again(tmp_path: Path) -> None:
    """They stand and commit on a branch that the run has left: what landed beside comes first."""
    agent = f"""{person(tmp_path)}
if STORY == "b": git("switch", "-q", branch())
if STORY == "c":
    pathlib.Path(HOME, "base.txt").write_text("mine")
    git("commit", "-qam", "mine")
{HONEST}"""
    box = yard(tmp_path, agent, stories=in_a_row("a", "b", "c", "d"))
    done = box.run("--lanes", "1", "--max-iterations", "3")
    assert done.code == 3, done.text
    for words in (("--lanes", "1"), ()):
        refused = box.run(*words)
        assert refused.code == 66, refused.text
        assert f"git merge {run_branch(box)}" in refused.text
    box.git("merge", "-q", "-m", "merged", run_branch(box))
    done = box.run("--lanes", "1")
    assert done.code == 0, done.text
    assert [starts(box, name) for name in "abcd"] == [1, 1, 1, 1]


def test_a_branch_that_is_forced_back_is_not_paid_again(tmp_path: Path) -> None:
    """What landed is kept, said and gone on from; the branch stays where somebody put it."""
    agent = f"""{person(tmp_path)}
if STORY == "c": git("branch", "-f", branch(), "main")
{HONEST}"""
    box = yard(tmp_path, agent, stories=in_a_row("a", "b", "c", "d"))
    done = box.run("--lanes", "2")
    assert done.code == 0, done.text
    assert "was moved" in done.text
    assert "2 landed commits" in done.text
    assert [starts(box, name) for name in "abcd"] == [1, 1, 1, 1]
    landed_once(box, "main", "a", "b", "c", "d")


@pytest.mark.parametrize("how", ["--continue", "--lanes"])
def test_a_branch_that_is_forced_back_between_two_runs(tmp_path: Path, how: str) -> None:
    """Whoever goes on has what landed, and pays for none of it again; the checkout is told how."""
    box = yard(tmp_path, HONEST, stories=stories_of("a", "b", "c"))
    (box.root / "base.txt").write_text("mine")  # so that the branch is not moved home
    assert box.run("--lanes", "1", "--max-iterations", "1").code == 3
    first = run_branch(box)
    box.git("branch", "-f", first, "main")
    refused = box.run("--allow-dirty")
    assert refused.code == 66, refused.text
    assert f"{first} was moved by somebody" in refused.text
    assert f"git merge {first}-2" in refused.text
    words = ("--continue",) if how == "--continue" else ("--lanes", "1")
    done = box.run(*words, "--max-iterations", "9")
    assert done.code == 0, done.text
    assert [starts(box, name) for name in "abc"] == [1, 1, 1]
    landed_once(box, run_branch(box), "a", "b", "c")


def test_a_deleted_branch_is_made_again(tmp_path: Path) -> None:
    """An agent deletes everything under ralph/, its own branch too: it is all there again."""
    delete = (
        "git for-each-ref --format='%(refname)' refs/heads/ralph/"
        " | xargs -n1 git update-ref -d --no-deref"
    )
    agent = f'{HONEST}\nif STORY == "b" and START == 1: subprocess.run({delete!r}, shell=True)\n'
    box = yard(tmp_path, agent, stories=[*in_a_row("a", "b"), *in_a_row("c", "d")])
    done = box.run("--lanes", "2")
    assert done.code == 0, done.text
    assert "made again" in done.text
    landed_once(box, "main", "a", "b", "c", "d")
    assert [starts(box, name) for name in "abcd"] == [1, 1, 1, 1]


def test_a_branch_that_is_named_ralph_is_no_obstacle(tmp_path: Path) -> None:
    """Git makes no `ralph/…` beside it: another name is taken, for lanes as well."""
    box = yard(tmp_path, HONEST, stories=stories_of("a", "b"))
    box.git("branch", "ralph")
    done = box.run("--lanes", "2", "--max-iterations", "1")
    assert done.code == 3, done.text
    done = box.run("--continue", "--max-iterations", "5")
    assert done.code == 0, done.text
    landed_once(box, "main", "a", "b")
    assert "ralph-lanes/" in done.text
    assert box.ralph("lanes", "clean").code == 0
    assert box.git("branch", "--format=%(refname:short)").split() == ["main", "ralph"]


def test_a_branch_name_that_cannot_be_made_is_replaced_and_said(tmp_path: Path) -> None:
    """`branchName` lies below a branch that exists: it lands on the run's own branch."""
    box = yard(tmp_path, HONEST, stories=stories_of("a"))
    text = (box.root / "prd.json").read_text()
    (box.root / "prd.json").write_text(
        text.replace('"project"', '"branchName": "main/x", "project"')
    )
    box.git("commit", "-qam", "named")
    done = box.run("--lanes", "1")
    assert done.code == 0, done.text
    assert "main/x cannot be made" in done.text
    landed_once(box, "main", "a", others=1)


def test_a_crash_between_landing_and_its_words_lands_once(tmp_path: Path) -> None:
    """Killed when the branch has moved and the journal has not: the successor knows."""
    box = yard(tmp_path, HONEST, stories=stories_of("a", "b"))
    for point in ("landing.committed", "landing.landed"):
        killed = box.run("--lanes", "1", env=to_be_killed_at(point))
        assert killed.code == -9, killed.text
    done = box.run("--continue")
    assert done.code == 0, done.text
    landed_once(box, "main", "a", "b")
    assert [starts(box, name) for name in "ab"] == [1, 1]
