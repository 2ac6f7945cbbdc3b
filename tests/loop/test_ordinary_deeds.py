"""What an honest agent does with git and files ends no night: each deed in each way of the loop.

A cell is one deed of `tests/ordinary_deeds.py` as the first of two stories, by the real command.
Afterwards the commit holds exactly what the agent meant, nothing is staged or left over, each story
has one commit of ours, the journal can be read and `--continue` ends well.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.kill_points import to_be_killed_at
from tests.loop.guards import told
from tests.loop.projects import CALC, IGNORED, TESTS, UNITTEST, Sandbox, sandbox
from tests.ordinary_deeds import (
    COMMIT,
    DEEDS,
    IN_THE_CHECKOUT,
    PRELUDE,
    Deed,
    Entry,
    add_submodules,
    committed,
)
from tests.tables import every

GREEN = [["true"]]
ALWAYS = '[proof]\nexperiments = "always"\n'
AGENT = """
if STORY == "US-1":
    {work}
else:
    write("second.txt", "second\\n")
done()
"""
CODE = {"calc.py": CALC, "tests/__init__.py": "", "tests/test_calc.py": TESTS}
HALVED = """
write("calc.py", {calc!r})
write("tests/test_calc.py", {tests!r})
""".format(
    calc=CALC + "def halve(x):\n    return x // 2\n",
    tests=TESTS + "    def test_halves(self):\n        self.assertEqual(calc.halve(4), 2)\n",
)
UNTRACKED = {"build/out.bin"}  # files that only the story's own .gitignore hides
SECOND = {"second.txt": Entry("second\n")}
EVERY_DEED = (*DEEDS, *IN_THE_CHECKOUT)
BY_NAME = [pytest.param(deed, id=deed.name) for deed in EVERY_DEED]


def project(tmp_path: Path, deed: Deed, agent: str, **more: object) -> Sandbox:
    """A project as the deed wants it."""
    files = {**IGNORED, **deed.files}
    given = more.pop("files", {})
    assert isinstance(given, dict)
    checks = more.pop("checks", GREEN)
    box = sandbox(
        tmp_path,
        PRELUDE + agent,
        stories=2,
        files=files | given,
        checks=checks,  # type: ignore[arg-type]
        **more,  # type: ignore[arg-type]
    )
    add_submodules(box.root, tmp_path, deed.submodules)
    return box


def first(work: str) -> str:
    """An agent that does this for the first story."""
    return AGENT.format(work=work.replace("\n", "\n    "))


def left_over(box: Sandbox, deed: Deed) -> list[str]:
    """What git finds in index and work tree that nobody spoke of."""
    said = subprocess.run(
        ["git", "status", "--porcelain", "-z", "--untracked-files=all"],
        cwd=box.root,
        capture_output=True,
        check=True,
    ).stdout.decode("utf-8", "surrogateescape")
    repositories = (name for name, entry in deed.after.items() if entry and entry.mode == COMMIT)
    spoken_of = {name.split("/")[0] for name in (*deed.left_out, *repositories)}
    return [line for line in said.split("\0") if line and line[3:].split("/")[0] not in spoken_of]


def stories_committed(box: Sandbox) -> list[str]:
    """The stories that commits say they are for, oldest first."""
    form = "--format=%(trailers:key=Ralph-Story,valueonly)"
    return box.git("log", "--reverse", form).split()


def assert_done(box: Sandbox, deed: Deed, expected: dict[str, Entry], said: str) -> None:
    """Everything that has to be true of a cell."""
    assert committed(box.root) == expected, said
    assert left_over(box, deed) == [], said
    assert stories_committed(box) == ["US-1", "US-2"], said
    # What became of a story is not printed where the run was killed over it: then the report has it.
    told_anywhere = said + box.ralph("report").text
    assert all(words in told_anywhere for words in deed.said), said
    for name in (*deed.left_out, *deed.stays):
        assert (box.root / name).exists(), said
    assert box.ralph("log").code == 0
    assert "no journal" not in box.ralph("status").text
    assert not list((box.root / ".ralph").glob("git-index-*"))


@pytest.mark.parametrize("deed", BY_NAME)
def test_in_the_checkout_and_rejected(tmp_path: Path, deed: Deed) -> None:
    """It lands as it was meant, the next story too, and a person can send it back."""
    box = project(tmp_path, deed, first(deed.deed))
    done = box.run("--max-iterations", "6")
    assert done.code == 0, told(done)
    assert box.passes() == {"US-1": True, "US-2": True}
    assert_done(box, deed, {**deed.expected, **SECOND}, done.text)
    assert box.starts == 2 if deed.ends == "passes" else 3
    starts = box.starts
    again = box.run("--continue")
    assert again.code == 64, told(again)  # it finished: nothing is left to continue
    assert box.starts == starts, told(again)
    back = box.ralph("reject", "US-1", "not", "like", "this")
    assert back.code == 0, told(back)
    start = deed._replace(after={}).expected
    assert committed(box.root) == {**start, **SECOND}, told(back)
    assert {line[3:] for line in left_over(box, deed)} <= UNTRACKED, told(back)


@pytest.mark.parametrize("deed", every(3, EVERY_DEED, first=0), ids=lambda it: it.name)
def test_around_an_experiment(tmp_path: Path, deed: Deed) -> None:
    """Files are exchanged for the proof and come back: nothing of the deed is lost."""
    box = project(
        tmp_path,
        deed,
        first(deed.deed + HALVED),
        files=CODE,
        checks=UNITTEST,
        toml=ALWAYS,
    )
    done = box.run("--max-iterations", "6")
    assert done.code == 0, told(done)
    expected = {**{name: Entry(text) for name, text in CODE.items()}, **deed.expected, **SECOND}
    halved = {name: Entry((box.root / name).read_text()) for name in CODE}
    assert "halve" in halved["calc.py"].text
    assert_done(box, deed, expected | halved, done.text)
    assert any(record.evidence.trial for record in box.records())


@pytest.mark.parametrize("deed", every(3, EVERY_DEED, first=1), ids=lambda it: it.name)
def test_set_aside(tmp_path: Path, deed: Deed) -> None:
    """What never gets green is kept under a ref, the work tree is as before and the next lands."""
    work = f"if START == 1:\n    {deed.deed.replace(chr(10), chr(10) + '    ')}"
    agent = first(work).replace("done()", "write('green') if STORY == 'US-2' else None\ndone()")
    box = project(
        tmp_path, deed, agent, checks=[["test", "-e", "green"]], limits="max_attempts = 1"
    )
    done = box.run("--allow-red", "--max-iterations", "2")
    assert "US-1 is set aside" in done.text, told(done)
    assert box.passes() == {"US-1": False, "US-2": True}, told(done)
    start = deed._replace(after={}).expected
    assert committed(box.root) == {**start, **SECOND, "green": Entry("x")}, told(done)
    assert left_over(box, deed) == [], told(done)
    refs = box.git("for-each-ref", "--format=%(refname)", "refs/ralph/set-aside").split()
    kept = [ref for ref in refs if not ref.endswith("-in-the-way")]
    assert len(kept) == 1, told(done)
    saved = committed(box.root, kept[0])
    own = {"added": None} if "added" in deed.after else {}  # a repository that is not taken away
    expected = deed._replace(after={**deed.after, **own}).expected
    assert expected.items() <= saved.items(), told(done)
    # What is spoken of may be kept as well, and what was merely taken out of git.
    assert saved.keys() - deed.expected.keys() <= {*start, *UNTRACKED, *deed.left_out}, told(done)


@pytest.mark.parametrize("deed", every(3, EVERY_DEED, first=2), ids=lambda it: it.name)
def test_killed_and_continued(tmp_path: Path, deed: Deed) -> None:
    """Killed after the agent and killed again before the commit, it lands once and whole."""
    box = project(tmp_path, deed, first(deed.deed))
    cut = box.run(env=to_be_killed_at("journal.finish_iteration.uncommitted"))
    assert cut.code == -9, told(cut)
    cut = box.run("--continue", env=to_be_killed_at("effect.commit.before"))
    assert cut.code == -9, told(cut)
    done = box.run("--continue", "--max-iterations", "6")
    assert done.code == 0, told(done)
    assert_done(box, deed, {**deed.expected, **SECOND}, cut.text + done.text)
