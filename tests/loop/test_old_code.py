"""What a story is compared with is what stands without it: its own changes off, all others on.

Each night has a story that is interrupted by others, by a person or by itself.  The test of another
story never proves it, and its own work of an earlier start still counts as its own.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loop.guards import told
from tests.loop.projects import CALC, IGNORED, TESTS, UNITTEST, Sandbox, sandbox, story
from tests.loop.test_stories import known_grades

ALWAYS = '[proof]\nexperiments = "always"\n'
EDIT = """
calc, tests = pathlib.Path("calc.py"), pathlib.Path("tests/test_calc.py")
FIRST = STATE / f"begun-{STORY}"
IS_FIRST = not FIRST.exists()
FIRST.write_text("")
def add(path, text):
    path.write_text(path.read_text() + text)
    os.utime(path, (time.time() + 2 * START,) * 2)  # same size, same second: stale bytecode
def git(*words): subprocess.run(["git", *words], check=True, stdout=subprocess.DEVNULL)
def commit(words): git("add", "-A"); git("commit", "-qm", words)
def asks(): status("BLOCKED", recommendation="Which colour?")
HALVES = "    def test_halves(self):\\n        self.assertEqual(calc.halve(4), 2)\\n\\n"
def halves(): add(calc, "def halve(x):\\n    return x // 2\\n\\n\\n"); add(tests, HALVES); done()
def colours(): write("colour.py", "COLOUR = 'red'\\n"); done()
def test_file(name, code, want):
    write(f"tests/test_{name}.py", "import unittest, calc\\nclass T(unittest.TestCase):\\n"
          f"    def test_{name}(self):\\n        self.assertEqual({code}, {want})\\n")
"""
# US-1 asks and is answered, US-2 is done honestly in between.
ASKS = (
    EDIT
    + """
if STORY == "US-2": halves()
elif IS_FIRST: asks()
else: colours()
"""
)


def project(
    tmp_path: Path, agent: str, *, stories: int = 2, toml: str = ALWAYS, limits: str = ""
) -> Sandbox:
    """The small project whose check names its tests."""
    return sandbox(
        tmp_path,
        agent,
        stories=[story(f"US-{n}", priority=n) for n in range(1, stories + 1)],
        checks=UNITTEST,
        files={
            "calc.py": CALC,
            "tests/__init__.py": "",
            "tests/test_calc.py": TESTS,
            **IGNORED,
        },
        toml=toml,
        limits=limits,
    )


def answered(box: Sandbox) -> None:
    """A night with a question, its answer, and the rest of the night."""
    done = box.run()
    assert done.code == 2, told(done)
    assert known_grades(box).get("US-2") == "verified"
    assert box.ralph("answer", "US-1", "blue").code == 0
    done = box.run("--continue")
    assert done.code == 0, told(done)


def reasons(box: Sandbox) -> str:
    """Why the last start passed or not."""
    return "; ".join(box.records()[-1].verdict.reasons)


def is_replayed(box: Sandbox) -> None:
    """The journal alone decides the same again."""
    again = box.ralph("replay")
    assert again.code == 0, told(again)


def test_the_test_of_another_story_proves_nothing(tmp_path: Path) -> None:
    """US-1 asks, US-2 passes with a test, US-1 writes one wrong file: checked and not verified."""
    box = project(tmp_path, ASKS)
    answered(box)
    assert known_grades(box)["US-1"] == "checked", reasons(box)
    assert "halves" not in reasons(box)
    is_replayed(box)


@pytest.mark.parametrize("leaves", ["", "commit('half')"], ids=["uncommitted", "committed"])
def test_half_done_work_of_the_story_does_not_hide_who_wrote_the_test(
    tmp_path: Path, leaves: str
) -> None:
    """What lay in the tree when the other story passed is this story's, the test is not."""
    agent = ASKS.replace(
        ": asks()", f": write('half.py', 'HALF = 1\\n'); {leaves or 'pass'}; asks()"
    )
    box = project(tmp_path, agent)
    answered(box)
    assert known_grades(box)["US-1"] == "checked", reasons(box)
    is_replayed(box)


@pytest.mark.parametrize("leaves", ["", "commit('third')"], ids=["uncommitted", "committed"])
@pytest.mark.parametrize("where", ["apart", "same file"])
def test_work_of_an_earlier_start_still_counts_as_its_own(
    tmp_path: Path, leaves: str, where: str
) -> None:
    """All was written before the question, and went into another story's commit: verified."""
    path = "third.py" if where == "apart" else "calc.py"
    text = "def third(x):\\n    return x // 3\\n\\n\\n"
    agent = (
        EDIT
        + f"""
def thirds():
    path = pathlib.Path({path!r})
    path.write_text("{text}" + (path.read_text() if path.exists() else ""))
    os.utime(path, (time.time() + 5,) * 2)
    write("tests/test_third.py", "import unittest, {path[:-3]}\\nclass T(unittest.TestCase):\\n"
          "    def test_thirds(self):\\n        self.assertEqual({path[:-3]}.third(9), 3)\\n")
if STORY == "US-2": halves()
elif IS_FIRST: thirds(); {leaves or "pass"}; asks()
else: write("notes.md", "blue\\n"); done()
"""
    )
    box = project(tmp_path, agent)
    answered(box)
    assert known_grades(box)["US-1"] == "verified", reasons(box)
    assert "test_thirds" in reasons(box)
    assert "test_halves" not in reasons(box)
    is_replayed(box)


def test_a_commit_of_a_person_in_between_proves_nothing(tmp_path: Path) -> None:
    """What a person wrote while the story waited is nobody's proof."""
    agent = (
        EDIT
        + """
if IS_FIRST: asks()
else: colours()
"""
    )
    box = project(tmp_path, agent, stories=1)
    assert box.run().code == 2
    (box.root / "calc.py").write_text(CALC + "def halve(x):\n    return x // 2\n")
    more = "    def test_halves(self):\n        self.assertEqual(calc.halve(4), 2)\n"
    (box.root / "tests/test_calc.py").write_text(TESTS + more)
    box.git("commit", "-qam", "mine")
    assert box.ralph("answer", "US-1", "blue").code == 0
    done = box.run("--continue")
    assert done.code == 0, told(done)
    assert known_grades(box)["US-1"] == "checked", reasons(box)
    is_replayed(box)


def test_many_starts_among_others_add_up_to_the_stories_own_work(tmp_path: Path) -> None:
    """Two questions, two other stories: what is its own is verified by its own test alone."""
    agent = (
        EDIT
        + """
step = STATE / f"steps-{STORY}"
step.write_text((step.read_text() if step.exists() else "") + "x")
at = len(step.read_text())
def third(): add(calc, "def third(x):\\n    return x // 3\\n\\n\\n")
if STORY == "US-2": halves()
elif STORY == "US-3": test_file("double", "calc.double(3)", 6); calc.write_text("# kept\\n" + calc.read_text()); done()
elif at == 1: write("tests/data.txt", "3"); asks()
elif at == 2: test_file("thirds", "calc.third(9)", 3); third(); asks()
else: write("notes.md", "x"); done()
"""
    )
    box = project(tmp_path, agent, stories=3)
    assert box.run("--max-iterations", "2").code == 3
    assert box.ralph("answer", "US-1", "blue").code == 0
    assert box.run("--continue", "--max-iterations", "4").code in (2, 3)
    assert box.ralph("answer", "US-1", "green").code == 0
    done = box.run("--continue", "--max-iterations", "9")
    assert done.code == 0, told(done)
    assert known_grades(box)["US-1"] == "verified", reasons(box)
    last = next(it for it in reversed(box.records()) if it.story and it.story.id == "US-1")
    assert last.evidence.trial is not None
    own = (*last.evidence.trial.proven, *last.evidence.trial.reached)
    assert [name.rpartition("::")[2] for name in own] == ["test_thirds"]
    is_replayed(box)


def test_setting_aside_takes_nothing_of_another_story_away(tmp_path: Path) -> None:
    """The story that fails in the end had begun before the other: only its own work goes."""
    agent = (
        EDIT
        + """
if STORY == "US-2": halves()
elif STORY == "US-3": write("three.txt"); done()
elif IS_FIRST: write("half.py", "HALF = 1\\n"); asks()
else: write("broken.py", str(START)); write("tests/test_bad.py", "import nothing_like_this\\n"); done()
"""
    )
    box = project(tmp_path, agent, stories=3, limits="max_attempts = 1")
    assert box.run("--max-iterations", "2").code == 3
    assert known_grades(box)["US-2"] == "verified"
    assert box.ralph("answer", "US-1", "blue").code == 0
    box.run("--continue", "--max-iterations", "4")
    assert "def halve" in (box.root / "calc.py").read_text()
    assert "def halve" in box.git("show", "HEAD:calc.py")
    assert "half.py" not in box.git("ls-tree", "-r", "--name-only", "HEAD").split()
    refs = box.git("for-each-ref", "--format=%(refname)", "refs/ralph/set-aside").split()
    saved = box.git("show", "--name-only", "--format=", refs[0]).split()
    assert saved == ["broken.py", "half.py", "tests/test_bad.py"]
    assert box.git("status", "--porcelain") == ""


def test_a_check_that_another_story_turned_green_proves_nothing(tmp_path: Path) -> None:
    """Red when the run began, made green by US-1: to US-2 it was green before."""
    agent = (
        EDIT
        + """
if STORY == "US-1": write("made.txt"); done()
else: colours()
"""
    )
    box = sandbox(
        tmp_path, agent, stories=2, checks=[["test", "-f", "made.txt"]], files=IGNORED, toml=ALWAYS
    )
    done = box.run("--allow-red")
    assert done.code == 0, told(done)
    assert known_grades(box) == {"US-1": "verified", "US-2": "checked"}, reasons(box)
    is_replayed(box)


def test_a_verify_that_another_story_turned_green_proves_nothing(tmp_path: Path) -> None:
    """Red before the question, green by US-2: it says nothing about US-1."""
    agent = (
        EDIT
        + """
if STORY == "US-2": write("made.txt"); done()
elif IS_FIRST: asks()
else: colours()
"""
    )
    stories = [story("US-1", verify="test -f made.txt"), story("US-2")]
    box = sandbox(tmp_path, agent, stories=stories, checks=UNITTEST, toml=ALWAYS,
                  files={"calc.py": CALC, "tests/__init__.py": "", "tests/test_calc.py": TESTS, **IGNORED})  # fmt: skip
    assert box.run().code == 2
    assert box.ralph("answer", "US-1", "blue").code == 0
    done = box.run("--continue")
    assert done.code == 0, told(done)
    assert known_grades(box)["US-1"] == "checked", reasons(box)
    is_replayed(box)


def test_after_a_rejection_nobody_is_accused_of_the_test_that_went(tmp_path: Path) -> None:
    """US-2 is sent back with its test; US-3 is graded at once, without a question."""
    agent = (
        EDIT
        + """
if STORY == "US-1": write("one.txt"); done()
elif STORY == "US-2" and IS_FIRST: halves()
elif STORY == "US-2": test_file("more", "calc.double(1)", 2); add(calc, "# two\\n"); done()
else: colours()
"""
    )
    box = project(tmp_path, agent, stories=3)
    done = box.run("--max-iterations", "2")
    assert done.code == 3, told(done)
    said = box.ralph("reject", "US-2", "not like that")
    assert said.code == 0, told(said)
    box.ralph("skip", "US-2")
    done = box.run("--continue", "--max-iterations", "3")
    assert known_grades(box)["US-3"] == "checked", told(done)
    assert box.worked_on().count("US-3") == 1
    assert "no longer run" not in done.text


def test_after_an_older_story_was_rejected_nobody_is_accused(tmp_path: Path) -> None:
    """The tree is one in which no check ever ran: what passed there is found out by running."""
    agent = (
        EDIT
        + """
if STORY == "US-1": test_file("one", "calc.double(1)", 2); write("one.txt"); done()
elif STORY == "US-2": halves()
else: colours()
"""
    )
    box = project(tmp_path, agent, stories=3)
    assert box.run("--max-iterations", "2").code == 3
    said = box.ralph("reject", "US-1", "not like that")
    assert said.code == 0, told(said)
    box.ralph("skip", "US-1")
    done = box.run("--continue", "--max-iterations", "3")
    assert known_grades(box)["US-3"] == "checked", told(done)
    assert box.worked_on().count("US-3") == 1
    last = box.records()[-1]
    assert last.verdict.look_at == ()
    assert "test_one" not in " ".join((*last.verdict.reasons, *last.verdict.remarks))


def test_a_test_that_is_lost_after_a_rejection_is_still_noticed(tmp_path: Path) -> None:
    """The honest case is no blind spot: who takes a test away is asked."""
    agent = (
        EDIT
        + """
if STORY == "US-1": test_file("one", "calc.double(1)", 2); write("one.txt"); done()
elif STORY == "US-2": halves()
else:
    write("tests/test_calc.py", "import unittest\\nclass T(unittest.TestCase):\\n    def test_x(self): pass\\n")
    add(calc, "def double(x):\\n    return 5\\n")
    done()
"""
    )
    box = project(tmp_path, agent, stories=3)
    assert box.run("--max-iterations", "2").code == 3
    assert box.ralph("reject", "US-1", "not like that").code == 0
    box.ralph("skip", "US-1")
    done = box.run("--continue", "--max-iterations", "3")
    assert "asked to explain" in done.text, told(done)
    assert "test_doubles" in done.text
