"""Honest agents that work in unusual ways are never stopped.

Each of them gets to the end of its stories; nothing opens, nothing is set aside, nobody is waited
for.  They stand against the guards: a guard that stops one of these is too eager.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.guarantees import Measured
from tests.loop.guards import told
from tests.loop.projects import Done, Sandbox, sandbox, story

GREEN = [["true"]]
BUSY = """
until = time.monotonic() + 2.5
while time.monotonic() < until: sum(range(10_000))
write("build/app.bin", "binary"); write("src/app.c", "int main;"); done()
"""


@dataclass(frozen=True, kw_only=True)
class Honest:
    """An agent that does its work in its own way."""

    name: str
    agent: str
    starts: int
    setting: Mapping[str, Any] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()

    def run(self, tmp_path: Path) -> tuple[Sandbox, Done]:
        """The repository after the run, and the run."""
        box = sandbox(tmp_path, self.agent, **{"checks": GREEN, **self.setting})
        return box, box.run("--json", *self.arguments)


HONEST = (
    Honest(
        name="three starts of research before the first change",
        agent="""
        if START < 4: status(files=0, words=f"Read module {START}: it does thing number {START}.")
        else: write("src/a.py"); done()
        """,
        starts=4,
    ),
    Honest(
        name="research, one step, research again",
        agent="""
        if START in (4, 8): write(f"src/{START}.py")
        if START < 8: status(files=0, words=f"Found the cause number {START} of it.")
        else: done()
        """,
        starts=8,
    ),
    Honest(
        name="research for longer, as configured",
        agent="""
        if START < 7: status(files=0, words=f"Read module {START}: it does thing number {START}.")
        else: write("src/a.py"); done()
        """,
        starts=7,
        setting={"toml": "[circuit]\nno_progress_threshold = 8\n"},
    ),
    Honest(
        name="refactoring without new files",
        agent="""
        source = pathlib.Path("src/big.py")
        source.write_text(source.read_text().replace(f"old_{START}(", f"new_{START}("))
        if START < 6: status(work="REFACTORING", words=f"Renamed function {START}.")
        else: done(work="REFACTORING")
        """,
        starts=6,
        setting={"files": {"src/big.py": "".join(f"def old_{n}(): pass\n" for n in range(1, 7))}},
    ),
    Honest(
        name="documentation only",
        agent="""
        write(f"docs/chapter-{START}.md", f"# Chapter {START}")
        if START < 4: status(work="DOCUMENTATION", words=f"Wrote chapter {START}.")
        else: done(work="DOCUMENTATION")
        """,
        starts=4,
    ),
    Honest(
        name="a story about tests, written test by test",
        agent="""
        write(f"tests/test_{START}.py", f"def test_{START}(): assert True")
        if START < 6: status(work="TESTING", words=f"Covered case {START}.")
        else: done(work="TESTING")
        """,
        starts=6,
        setting={"stories": [story("US-1", "Add tests for the parser")]},
    ),
    Honest(
        name="tests first, then the code",
        agent="""
        if START < 3: write(f"tests/test_{START}.py"); status(work="TESTING", words=f"Test {START}.")
        else: write("src/a.py"); done()
        """,
        starts=3,
    ),
    Honest(
        name="forty small commits",
        agent="""
        for n in range(10):
            write("src/a.py", START * 10 + n)
            subprocess.run(["git", "add", "src"], check=True)
            subprocess.run(["git", "commit", "-q", "-m", f"step {START}.{n}"], check=True)
        if START < 4: status(words=f"Ten steps more, {START * 10} by now.")
        else: done()
        """,
        starts=4,
    ),
    Honest(
        name="large generated files",
        agent="""
        write("data/table.csv", "0123456789," * 800_000)
        for n in range(300): write(f"gen/part_{n}.py", n)
        done()
        """,
        starts=1,
    ),
    Honest(
        name="outages in between",
        agent="""
        if START % 3: print("API Error: 529 Overloaded"); sys.exit(1)
        write(f"src/{START}.py")
        if START < 12: status(words=f"Did part {START}.")
        else: done()
        """,
        starts=12,
    ),
    Honest(
        name="a story of 25 iterations",
        agent="""
        write(f"src/part_{START}.py", START)
        if START < 25: status(words=f"Implemented part {START} of 25.")
        else: done()
        """,
        starts=25,
    ),
    Honest(
        name="thirty small files",
        agent="""
        write(f"src/part_{START}.py", f"part = {START}\\n")
        if START < 30: status(words=f"Implemented part {START} of 30.")
        else: done()
        """,
        starts=30,
        setting={"stories": [story("US-1"), story("US-2", passes=True)]},
    ),
    Honest(
        name="one long document, paragraph by paragraph",
        agent="""
        with open("docs.md", "a") as text: text.write(f"\\nParagraph {START}, on one long line.\\n")
        if START < 15: status(work="DOCUMENTATION", words=f"Wrote paragraph {START}.")
        else: done(work="DOCUMENTATION")
        """,
        starts=15,
        setting={"files": {"docs.md": "# Guide\n"}},
    ),
    Honest(
        name="a test first, then its code, eight times",
        agent="""
        name, case = ("tests/test_all.py", "src/all.py")[START % 2 == 0], (START + 1) // 2
        pathlib.Path(name).parent.mkdir(exist_ok=True)
        with open(name, "a") as text: text.write(f"def case_{case}():\\n    return {case}\\n\\n")
        if START < 16: status(words=f"Step {START}.", tests="FAILING" if START % 2 else "PASSING")
        else: done()
        """,
        starts=16,
        setting={"checks": [["sh", "-c", "test ! -f tests/test_all.py || test -f src/all.py"]]},
    ),
    Honest(
        name="a picture that gets better",
        agent="""
        pathlib.Path("logo.png").write_bytes(bytes([0, START]) * 400)
        if START < 9: status(words=f"Drew it again, version {START}.")
        else: done()
        """,
        starts=9,
    ),
    Honest(
        name="different errors on the way",
        agent="""
        write("src/a.py", START)
        fruit = ["apple", "pear", "plum", "fig", "kiwi", "lime", "date"]
        if START < 8: status(words=f"Next problem.\\n\\nNameError: name '{fruit[START - 1]}' is not defined")
        else: done()
        """,
        starts=8,
    ),
    Honest(
        name="deleting files",
        agent="""
        os.remove(f"legacy/old_{START}.py")
        if START < 4: status(words=f"Removed module {START}.")
        else: done()
        """,
        starts=4,
        setting={"files": {f"legacy/old_{n}.py": "x = 1\n" for n in range(1, 5)}},
    ),
    Honest(
        name="a silent compiler under a short stall clock",
        agent=BUSY,
        starts=1,
        setting={"limits": 'stall_timeout = "900ms"'},
    ),
    Honest(
        name="slow writing without output under a short stall clock",
        agent="""
        for n in range(14): write(f"src/{n}.py", n); time.sleep(0.3)
        done()
        """,
        starts=1,
        setting={"limits": 'stall_timeout = "1500ms"'},
    ),
    Honest(
        name="code that speaks of errors and limits",
        agent="""
        write("src/limits.py", "raise RateLimitError('usage limit reached')")
        text = "Added `class FatalError(Exception)` and the 5-hour limit banner; Fatal: 0."
        if START < 6: status(words=f"{text} Part {START}.") or write("src/n.py", START)
        else: done(words=text)
        """,
        starts=6,
    ),
    Honest(
        name="closing with an offer",
        agent="""
        write(f"src/{START}.py")
        if START < 6: status(words=f"Part {START} is in. Would you like me to continue with the next?")
        else: done()
        """,
        starts=6,
    ),
    Honest(
        name="ever shorter reports",
        agent="""
        write(f"src/{START}.py")
        if START < 6: status(words="I changed this and that. " * (2_000 // 10**START + 1))
        else: done()
        """,
        starts=6,
        setting={"toml": '[circuit]\npreset = "strict"\n'},
    ),
    Honest(
        name="a linter that counts warnings and no errors",
        agent="""
        write(f"src/{START}.py")
        if START < 7: status(words=f"Part {START}.\\n\\n✖ 3 problems (0 errors, 3 warnings)")
        else: done()
        """,
        starts=7,
    ),
    Honest(
        name="words that show a finished field",
        agent="""
        write(f"src/{START}.py")
        shown = ("The worker ends with status: done.", "The reader takes STATUS: COMPLETE, in bold too.")
        print(shown[START - 1] if START < 3 else "The story is complete.")
        """,
        starts=3,
    ),
    Honest(
        name="no status block at all",
        agent="""
        write(f"src/{START}.py")
        print(f"Part {START} of 5 is in place." if START < 5 else "The story is complete.")
        """,
        starts=5,
    ),
)


@pytest.mark.parametrize("honest", HONEST, ids=lambda honest: honest.name)
def test_an_honest_agent_is_never_stopped(
    tmp_path: Path, honest: Honest, measured: Measured
) -> None:
    """It is started as often as it needs, its story passes, and nothing was held against it."""
    box, done = honest.run(tmp_path)
    assert done.code == 0, told(done)
    assert box.starts == honest.starts
    measured(box.starts)
    assert all(box.passes().values())
    assert done.events("story_set_aside") == []
    opened = [event for event in done.events("circuit_changed") if event["after"] == "OPEN"]
    assert opened == []
    assert box.git("status", "--porcelain") == ""


def test_flaky_tests_pass_and_are_named(tmp_path: Path) -> None:
    """A check that fails every other time is run again, counts as green and is noted as flaky."""
    check = "import pathlib, sys; p = pathlib.Path(sys.argv[1]); n = len(p.read_text()) if p.exists() else 0; p.write_text('x' * (n + 1)); sys.exit(n % 2)"
    counter = tmp_path / "runs"
    box = sandbox(
        tmp_path, "write('src/a.py'); done()", checks=[["python3", "-c", check, str(counter)]]
    )
    done = box.run("--json")
    assert done.code == 0, told(done)
    assert box.starts == 1
    checks = box.records()[0].evidence.checks or ()
    assert [check.flaky for check in checks] == [True]


def test_own_commits_of_the_agent_are_kept(tmp_path: Path) -> None:
    """What the agent committed stays as it is; our commit adds the mark and the progress entry."""
    agent = """
    write("src/a.py")
    subprocess.run(["git", "add", "src"], check=True)
    subprocess.run(["git", "commit", "-q", "-m", "the agent's own words"], check=True)
    done()
    """
    box = sandbox(tmp_path, agent, checks=GREEN)
    assert box.run().code == 0
    assert box.subjects() == ["start", "the agent's own words", "US-1: Do US-1"]
    changed = box.git("show", "--name-only", "--format=", "HEAD").split()
    assert sorted(changed) == ["prd.json", "progress.txt"]


def test_a_dirty_tree_that_is_allowed_stays_as_it_was(tmp_path: Path) -> None:
    """With --allow-dirty the work goes on beside a person's changes, which nobody commits."""
    box = sandbox(
        tmp_path,
        "write('src/a.py'); write('src/shared.py', 'agent'); done()",
        checks=GREEN,
        files={"notes.txt": "clean\n", "src/shared.py": "clean\n"},
    )
    (box.root / "notes.txt").write_text("mine\n")
    (box.root / "draft.txt").write_text("mine too\n")
    (box.root / "src/shared.py").write_text("mine as well\n")
    refused = box.run()
    assert refused.code == 66
    assert "draft.txt" in refused.err
    done = box.run("--allow-dirty")
    assert done.code == 0, done.text
    assert (box.root / "notes.txt").read_text() == "mine\n"
    assert sorted(box.git("status", "--porcelain").split("\n")) == ["?? draft.txt", "M notes.txt"]
    committed = box.git("show", "--name-only", "--format=", "HEAD").split()
    assert sorted(committed) == ["prd.json", "progress.txt", "src/a.py", "src/shared.py"]


def test_a_repository_without_commits_is_worked_in(tmp_path: Path) -> None:
    """The very first commit of a repository may be a story's."""
    box = sandbox(tmp_path, "write('src/a.py'); done()", checks=GREEN)
    (box.root / ".git").rename(tmp_path / "old.git")
    box.git("init", "-q", "-b", "main")
    done = box.run("--allow-dirty")
    assert done.code == 0, done.text
    assert box.subjects() == ["US-1: Do US-1"]
    assert box.git("show", "HEAD:src/a.py") == "x"


def test_without_git_the_loop_works_and_says_what_it_cannot(tmp_path: Path) -> None:
    """No repository: work is measured by files, stories pass, nothing is committed."""
    box = sandbox(
        tmp_path,
        "write(f'src/{START}.py')\nif START < 5: status(words=f'Part {START}.')\nelse: done()",
        checks=GREEN,
    )
    (box.root / ".git").rename(tmp_path / "old.git")
    done = box.run()
    assert done.code == 0, done.text
    assert "no git repository" in done.err
    assert box.passes() == {"US-1": True}


def test_a_long_answer_is_not_a_hang(tmp_path: Path, measured: Measured) -> None:
    """An agent that prints slowly but steadily outlives the stall clock."""
    agent = """
    for n in range(20): print(f"step {n}", flush=True); time.sleep(0.15)
    write("src/a.py"); done()
    """
    box = sandbox(tmp_path, agent, checks=GREEN, limits='stall_timeout = "1500ms"')
    [event] = box.run("--json").events("iteration_finished")
    assert event["passed"]
    measured(box.starts)
    assert event["duration_s"] > 2 * 1.5  # twice as long as it may be silent
