"""What is not the agent's work alone: a person's file, a stash, a filter that is not there."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.guarantees import Measured
from tests.loop.projects import Sandbox, sandbox, story

NEVER = [story("US-1", verify=["test", "-f", "never"]), story("US-2")]
# At its second start a person is in the same directory and takes notes.
WITH_A_PERSON = """
if STORY == "US-1": write(f"half-{START}.py", START)
else: write("whole.py")
if START == 2: write("a note.md", "what I think of it")
done()
"""


def test_a_persons_file_is_named_when_a_story_is_set_aside(
    tmp_path: Path, measured: Measured
) -> None:
    """Console, stories and report name it, and the command that is printed brings it back."""
    limits = "max_attempts = 2\nmax_iterations = 3"  # no second chance
    box = sandbox(tmp_path, WITH_A_PERSON, stories=NEVER, limits=limits)
    done = box.run()
    assert not (box.root / "a note.md").exists()
    (line,) = (line for line in done.out.split("\n") if "kept at refs/ralph/set-aside/" in line)
    measured(int("a note.md" not in line))
    assert "a note.md" in box.ralph("stories").out
    assert "a note.md" in box.ralph("report").out
    command = line.split("is yours? ")[1]
    box.git(*shlex.split(command)[1:])
    assert (box.root / "a note.md").read_text() == "what I think of it"


def test_files_that_no_tool_named_come_first(tmp_path: Path) -> None:
    """Where the agent tells what its tools touch, the command is for what they did not."""
    agent = """
    write("half.py", START)
    event(type="assistant", session_id="s-1", parent_tool_use_id=None,
          message={"id": f"m{START}", "role": "assistant", "model": "m", "content": [
              {"type": "tool_use", "id": f"t{START}", "name": "Write",
               "input": {"file_path": "half.py", "content": "x"}}]})
    if START == 2: write("z-notes.md")
    result("The story is complete.")
    """
    box = sandbox(tmp_path, agent, stories=NEVER[:1], limits="max_attempts = 2", output="claude")
    assert "-- :/z-notes.md" in box.run().out


@pytest.mark.parametrize("how", ["git stash -u", "git stash push -u -m mine"])
def test_a_stash_is_said(tmp_path: Path, how: str, measured: Measured) -> None:
    """Console, report and next prompt say where the work went; the agent brings it back."""
    agent = f"""
    if START == 1:
        write("work.py"); subprocess.run({how.split()!r}, check=True, stdout=2)
    elif "git stash pop" in PROMPT: subprocess.run(["git", "stash", "pop"], check=True, stdout=2)
    done()
    """
    box = sandbox(tmp_path, agent)
    done = box.run()
    assert done.code == 0, done.text
    measured(box.starts)
    words = "work was stashed, so it does not count: it is in stash@{0}"
    assert done.out.count(words) == 1
    assert words in box.prompt(2)
    assert words in box.ralph("report").out
    assert (box.root / "work.py").exists()


def test_a_stash_that_is_not_new_is_not_said(tmp_path: Path) -> None:
    """A person's own from before, and one that the agent has taken back, are nobody's business."""
    agent = """
    write("work.py")
    for command in ("stash -u", "stash pop", "stash drop"):
        subprocess.run(["git", *command.split()], check=True, stdout=2)
    done()
    """
    box = sandbox(tmp_path, agent)
    for text in ("older", "newer"):
        (box.root / ".gitignore").write_text(text)
        box.git("stash")
    done = box.run()
    assert (done.code, "stashed" in done.text) == (0, False), done.text


LEFT = """
    def git(*words): subprocess.run(["git", *words], check=True, stdout=2, stderr=2)
    def work(): write("work.py"); git("add", "-A"); git("commit", "-qm", "work")
    if START == 1:
        {first}
    elif (found := PROMPT.partition("`git merge ")[2].partition("`")[0]): git("merge", "-q", found)
    done()
"""


@pytest.mark.parametrize(
    ("first", "where"),
    [
        ('git("switch", "-qc", "feature/x"); work(); git("switch", "-q", "main")', "on feature/x"),
        (
            'git("checkout", "-q", "--detach"); work(); git("checkout", "-q", "main")',
            "on no branch",
        ),
    ],
)
def test_commits_that_stayed_elsewhere_are_said(tmp_path: Path, first: str, where: str) -> None:
    """Console, report and next prompt say where the work is; the agent brings it along."""
    box = sandbox(tmp_path, LEFT.format(first=first))
    done = box.run()
    assert done.code == 0, done.text
    words = f"1 commit is {where} and not on main, so it does not count: "
    assert done.out.count(words) == 1
    assert words in box.prompt(2)
    assert words in box.ralph("report").out
    assert box.git("show", "HEAD:work.py") == "x"


@pytest.mark.parametrize(
    "first",
    [
        'git("switch", "-qc", "x"); work(); git("switch", "-q", "main"); git("merge", "-q", "x")',
        'git("switch", "-qc", "x"); work(); git("switch", "-q", "main"); git("cherry-pick", "x")',
        'git("switch", "-qc", "x"); work(); git("switch", "-q", "main");'
        ' git("merge", "-q", "--squash", "x")',
        'git("switch", "-qc", "x"); work(); git("switch", "-q", "main"); git("branch", "-qD", "x");'
        ' write("other.py")',
        'git("switch", "-q", "older"); git("switch", "-q", "main"); write("other.py")',
    ],
)
def test_commits_that_came_along_or_were_given_up_are_not_said(tmp_path: Path, first: str) -> None:
    """Nor are those of a branch that was there, and that the agent only looked at."""
    box = sandbox(tmp_path, LEFT.format(first=first))
    box.git("switch", "-qc", "older")
    box.git("commit", "-q", "--allow-empty", "-m", "older")
    box.git("switch", "-q", "main")
    done = box.run("--max-iterations", "1")
    assert (done.code, "does not count" in done.text) == (0, False), done.text


def filtered(box: Sandbox, clean: str, pattern: str = "*.bin") -> None:
    """Give the repository a filter that must not fail, for files of that pattern."""
    box.git("config", "filter.big.clean", clean)
    box.git("config", "filter.big.required", "true")
    (box.root / ".gitattributes").write_text(f"{pattern} filter=big\n" if pattern else "")
    box.git("add", "-A")
    box.git("commit", "-qm", "attributes")


AGENT = 'write("large.bin"); done()'


def test_a_required_filter_that_fails_is_found_before_the_first_start(
    tmp_path: Path, measured: Measured
) -> None:
    """Nothing is paid; what is missing is named with the next step."""
    box = sandbox(tmp_path, AGENT)
    filtered(box, "no-such-filter clean %f")
    done = box.run()
    assert done.code == 66, done.text
    measured(box.starts)
    assert "the git filter big is required here, but fails" in done.err
    assert "no-such-filter" in done.err
    assert "install what `git config filter.big.clean` names" in done.err


@pytest.mark.parametrize(
    ("clean", "pattern"),
    [("cat", "*.bin"), ("no-such-filter clean %f", "")],
    ids=["works", "unused"],
)
def test_other_filters_are_no_obstacle(tmp_path: Path, clean: str, pattern: str) -> None:
    """One that works, and one that is set up on this machine but that nothing here asks for."""
    box = sandbox(tmp_path, AGENT)
    filtered(box, clean, pattern)
    done = box.run()
    assert (done.code, box.starts) == (0, 1), done.text
    assert "large.bin" in box.git("ls-files")


def test_what_was_put_back_for_a_second_chance_is_not_offered_again(tmp_path: Path) -> None:
    """Its leftovers are in the work tree: bringing them back once more would only conflict."""
    limits = "max_attempts = 2\nmax_iterations = 4"  # the last one is a second chance
    box = sandbox(tmp_path, WITH_A_PERSON, stories=NEVER, limits=limits)
    box.run()
    assert box.worked_on() == ["US-1", "US-1", "US-2", "US-1"]
    assert (box.root / "half-1.py").exists()
    assert "cherry-pick" not in box.ralph("report").out
    assert "cherry-pick" not in box.ralph("stories").out
