"""Agents that take commits out of the branch, or leave it: nothing is lost, and it is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import sentences
from tests.guarantees import Measured
from tests.loop.projects import Done, Sandbox, sandbox, story

GREEN = [["true"]]
GIT = """
def git(*args):
    subprocess.run(['git', '-c', 'core.editor=true', *args], check=True, stdout=subprocess.DEVNULL)
"""


def run(tmp_path: Path, agent: str, **more: Any) -> tuple[Sandbox, Done]:
    """A repository with two commits of a person, and the agent run in it to the end."""
    box = sandbox(tmp_path, GIT + agent, checks=GREEN, **more)
    (box.root / "mine.txt").write_text("of a person")
    box.git("add", "-A")
    box.git("commit", "-qm", "mine")
    return box, box.run("--max-time", "60s")


def kept(box: Sandbox) -> dict[str, str]:
    """Our refs for what left the branch, with the subjects they hold."""
    names = box.git("for-each-ref", "--format=%(refname)", "refs/ralph/lost").split()
    return {name: box.git("log", "--format=%s", name) for name in names}


def test_a_story_whose_commit_the_agent_took_away_is_open_again(
    tmp_path: Path, measured: Measured
) -> None:
    """`git reset --hard HEAD~1` over a commit of ours: it is kept, named and done again."""
    agent = """
if START == 2: git('reset', '-q', '--hard', 'HEAD~1')
write(f'{STORY}.txt'); done()
"""
    box, done = run(tmp_path, agent, stories=3)
    assert done.code == 0, done.text
    assert box.worked_on()[:3] == ["US-1", "US-2", "US-2"]
    assert "US-1" in box.worked_on()[3:]
    assert "US-1 is open again" in done.text
    assert [f"US-{n}.txt" in box.git("ls-files") for n in (1, 2, 3)] == [True] * 3
    measured(3 - sum(f"US-{n}.txt" in box.git("ls-files") for n in (1, 2, 3)))
    (name,) = kept(box)
    assert "US-1: Do US-1" in kept(box)[name]
    assert name in done.text
    assert name in box.prompt(3)
    assert "no longer" in box.prompt(box.worked_on().index("US-1", 1) + 1)
    assert "left" in box.ralph("report", "--md").out


def test_a_mark_that_went_with_its_commit_is_not_set_again(tmp_path: Path) -> None:
    """The story whose commit is gone does not pass by the word of the journal."""
    agent = """
if START == 2: git('reset', '-q', '--hard', 'HEAD~1'); sys.exit(1)
if START == 3: (STATE / 'marks').write_text(pathlib.Path('prd.json').read_text())
write(f'{STORY}.txt'); done()
"""
    box, done = run(tmp_path, agent, stories=2)
    assert done.code == 0, done.text
    marks = json.loads((box.state / "marks").read_text())["userStories"]
    assert [story["passes"] for story in marks] == [False, False]
    assert box.git("log", "--format=%s").split("\n").count("US-1: Do US-1") == 1


REWRITES = {
    "reset": "git('reset', '-q', '--hard', 'HEAD~1')",
    "amend": "write('mine.txt', 'of the agent'); git('commit', '-qam', 'theirs', '--amend')",
    "squash": """
tree = subprocess.check_output(['git', 'write-tree'], text=True).strip()
new = subprocess.check_output(['git', 'commit-tree', tree, '-m', 'all'], text=True).strip()
git('reset', '-q', '--hard', new)
""",
}


@pytest.mark.parametrize("what", REWRITES)
def test_commits_of_a_person_that_leave_the_branch_are_put_to_the_agent(
    tmp_path: Path, what: str
) -> None:
    """No pass at once; an agent that stands by it passes as needs review, and they are kept."""
    agent = f"""
if START == 1:
    {REWRITES[what].strip().replace(chr(10), chr(10) + "    ")}
write(f'a{{START}}.txt'); done()
"""
    box, done = run(tmp_path, agent)
    assert done.code == 0, done.text
    assert box.starts == 2
    (name,) = kept(box)
    assert kept(box)[name].split("\n")[0] == "mine"
    assert "mine" in box.prompt(2)
    assert name in box.prompt(2)
    assert (
        box.git("log", "-1", "--format=%(trailers:key=Ralph-Grade,valueonly)")
        == sentences.NEEDS_REVIEW
    )


@pytest.mark.parametrize(
    "repairs",
    ["git('reset', '-q', '--soft', REF)", "git('stash', '-qu'); git('cherry-pick', REF)"],
)
def test_an_agent_that_puts_history_right_again_is_not_doubted(
    tmp_path: Path, repairs: str
) -> None:
    """Once the branch holds again what it held, the grade is what the checks say."""
    agent = f"""
if START == 1: git('reset', '-q', '--hard', 'HEAD~1')
if START == 2:
    REF = subprocess.check_output(['git', 'for-each-ref', '--format=%(refname)', 'refs/ralph'],
                                  text=True).strip()
    {repairs}
    write('mine.txt', 'of a person')
write(f'a{{START}}.txt'); done()
"""
    box, done = run(tmp_path, agent)
    assert done.code == 0, done.text
    assert box.git("log", "-1", "--format=%(trailers:key=Ralph-Grade,valueonly)") == "checked"
    assert "mine" in box.subjects()


HONEST = {
    "commits": "git('add', '-A'); git('commit', '-qm', 'own')",
    "amends its own": """
git('add', '-A'); git('commit', '-qm', 'own'); write('b.txt')
git('add', '-A'); git('commit', '-q', '--amend', '-m', 'own, better')
""",
    "rebases its own": """
git('add', '-A'); git('commit', '-qm', 'one'); write('b.txt')
git('add', '-A'); git('commit', '-qm', 'fixup! one')
git('rebase', '-q', '-i', '--autosquash', 'HEAD~2')
""",
    "resets its own": """
git('add', '-A'); git('commit', '-qm', 'one'); git('reset', '-q', '--hard', 'HEAD~1')
write('a.txt', 'otherwise')
""",
}


@pytest.mark.parametrize("what", HONEST)
def test_commits_of_its_own_are_the_agents_to_change(tmp_path: Path, what: str) -> None:
    """Committing, amending and rebasing what is new in this start is nobody else's business."""
    box, done = run(tmp_path, f"write('a.txt')\n{HONEST[what].strip()}\ndone()")
    assert done.code == 0, done.text
    assert box.starts == 1
    assert kept(box) == {}


@pytest.mark.parametrize("variable", ["EDITOR", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR"])
def test_no_editor_is_waited_for_at_night(tmp_path: Path, variable: str) -> None:
    """A rebase that would open the person's editor takes the list of commits as it is."""
    agent = """
import subprocess

def git(*args):
    subprocess.run(['git', *args], check=True, stdout=subprocess.DEVNULL)

write('a.txt')
git('add', '-A'); git('commit', '-qm', 'one'); write('b.txt')
git('add', '-A'); git('commit', '-qm', 'two')
git('rebase', '-q', '-i', 'HEAD~2')
done()
"""
    box = sandbox(tmp_path, agent, checks=GREEN)
    done = box.run("--max-time", "60s", env={variable: "sleep 45; false"})
    assert done.code == 0, done.text
    assert box.starts == 1


LEAVES = {
    "detached": "git('checkout', '-q', '--detach', 'HEAD~1')",
    "orphan": "git('checkout', '-q', '--orphan', 'fresh')",
    "older branch": "git('switch', '-qc', 'aside', 'HEAD~1')",
}


@pytest.mark.parametrize("what", LEAVES)
def test_an_agent_that_left_the_branch_is_brought_back_before_it_is_judged(
    tmp_path: Path, what: str, measured: Measured
) -> None:
    """Nothing passes or is committed elsewhere; what it did there is kept under a ref and named."""
    agent = f"""
if START == 2:
    {LEAVES[what]}
    write('there.txt'); git('add', '-A'); git('commit', '-qm', 'elsewhere')
write(f'{{STORY}}.txt', START); done()
"""
    box, done = run(tmp_path, agent, stories=2)
    assert done.code == 0, done.text
    assert box.git("branch", "--show-current") == "main"
    assert box.subjects() == ["start", "mine", "US-1: Do US-1", "US-2: Do US-2"]
    assert box.git("status", "--porcelain") == ""
    assert box.worked_on() == ["US-1", "US-2", "US-2"]
    measured(box.starts)
    (name,) = kept(box)
    assert "elsewhere" in kept(box)[name]
    assert box.git("show", f"{name}:US-2.txt") == "2"
    assert name in box.prompt(3)
    assert "stay on main" in box.prompt(3)


def test_files_of_a_person_survive_an_agent_that_left_the_branch(tmp_path: Path) -> None:
    """What was not committed when the agent started is there again when it is brought back."""
    agent = """
if START == 1:
    git('stash', '-qu'); git('checkout', '-q', '--detach', 'HEAD~1')
write(f'{STORY}.txt', START); done()
"""
    box = sandbox(tmp_path, GIT + agent, checks=GREEN, stories=[story("US-1")])
    box.git("commit", "-q", "--allow-empty", "-m", "newer")
    (box.root / "notes.md").write_text("half a thought")
    done = box.run("--allow-dirty", "--max-time", "60s")
    assert done.code == 0, done.text
    assert (box.root / "notes.md").read_text() == "half a thought"
    assert box.subjects() == ["start", "newer", "US-1: Do US-1"]
