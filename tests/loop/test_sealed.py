"""Sealed tests: no agent reads or changes them, and only their names are told."""

from __future__ import annotations

import json
from pathlib import Path

from tests.loop.guards import told
from tests.loop.projects import CALC, IGNORED, TESTS, UNITTEST, Sandbox, sandbox, story
from tests.loop.test_stories import known_grades

ACCEPTS = """\
import unittest

import calc


class Accept(unittest.TestCase):
    def test_thirds(self):
        self.assertEqual(calc.third(9), 3)

    def test_keeps_the_rest(self):
        self.assertEqual(calc.third(10), 3)
"""
EDIT = """
calc = pathlib.Path("calc.py")
def add(path, text): path.write_text(path.read_text() + text)
FOUND = [str(it) for it in pathlib.Path(".").rglob("*accept*")]
(STATE / f"found-{START}").write_text(repr(FOUND))
"""
WRONG_THEN_RIGHT = (
    EDIT
    + """
if START == 1: add(calc, "def third(x):\\n    return 0\\n")
else: calc.write_text(calc.read_text().replace("return 0", "return x // 3"))
done()
"""
)


def sealed_project(tmp_path: Path, agent: str, *, toml: str = "", seals: str = "US-1") -> Sandbox:
    """A project with an acceptance test that is sealed before the first night."""
    box = sandbox(
        tmp_path,
        agent,
        stories=[story("US-1")],
        checks=UNITTEST,
        files={
            "calc.py": CALC,
            "tests/__init__.py": "",
            "tests/test_calc.py": TESTS,
            "tests/test_accept.py": ACCEPTS,
            **IGNORED,
        },
        toml=toml,
        clean_tree=True,
    )
    words = ("--for", seals) if seals else ()
    done = box.ralph("seal", "tests/test_accept.py", *words)
    assert done.code == 0, told(done)
    return box


def test_what_is_sealed_leaves_the_work_tree_and_the_branch(tmp_path: Path) -> None:
    """A commit takes it out, the list names it, history is warned of, and unseal brings it back."""
    box = sealed_project(tmp_path, "done()")
    assert not (box.root / "tests" / "test_accept.py").exists()
    assert box.git("ls-files", "tests/test_accept.py") == ""
    assert box.git("status", "--porcelain") == ""
    (listed,) = json.loads(box.ralph("seal", "--list", "--json").out)
    assert listed["path"] == "tests/test_accept.py"
    assert listed["stories"] == ["US-1"]
    done = box.ralph("unseal", "tests")
    assert done.code == 0, told(done)
    assert (box.root / "tests" / "test_accept.py").read_text() == ACCEPTS
    assert json.loads(box.ralph("seal", "--list", "--json").out) == []


def test_history_that_still_has_the_file_is_said(tmp_path: Path) -> None:
    """Who seals a committed file is told that git's history can be read."""
    box = sandbox(tmp_path, "done()", files={"tests/test_accept.py": ACCEPTS}, clean_tree=True)
    done = box.ralph("seal", "tests/test_accept.py")
    assert "history still has them" in done.text


def test_a_story_has_to_make_its_sealed_tests_green(tmp_path: Path) -> None:
    """Names reach the prompt and the report, the text reaches nobody; green proves the story."""
    box = sealed_project(tmp_path, WRONG_THEN_RIGHT)
    done = box.run()
    assert done.code == 0, told(done)
    first, second = box.records()
    assert not first.verdict.passed
    assert "sealed tests fail: 2 of 2 sealed tests" in "; ".join(first.verdict.reasons)
    assert second.verdict.passed
    assert known_grades(box)["US-1"] == "verified", second.verdict.reasons
    for start in (1, 2):
        assert "assertEqual(calc.third" not in box.prompt(start)
        assert (box.state / f"found-{start}").read_text() == "[]"
    assert "test_thirds" in box.prompt(1)
    journal = (box.root / ".ralph" / "journal.db").read_bytes()
    assert b"assertEqual(calc.third" not in journal
    assert json.loads(box.ralph("replay", "--json").out)["identical"]


def test_a_sealed_test_speaks_of_a_criterion(tmp_path: Path) -> None:
    """It is named beside the criterion, as what failed before; the agent's own test says less."""
    agent = (
        EDIT
        + """
add(calc, "def third(x):\\n    return x // 3\\n")
pathlib.Path("tests/test_third.py").write_text("import unittest, calc\\nclass T(unittest.TestCase):\\n"
    "    def test_third(self): self.assertEqual(calc.third(6), 2)\\n")
done()
"""
    )
    box = sealed_project(tmp_path, agent)
    stories = json.loads((box.root / "prd.json").read_text())
    stories["userStories"][0]["acceptanceCriteria"] = ["third keeps the rest out"]
    (box.root / "prd.json").write_text(json.dumps(stories))
    box.git("commit", "-qam", "say what is asked")
    done = box.run()
    assert done.code == 0, told(done)
    (kept,) = box.records()
    (shown,) = kept.evidence.criteria
    assert shown.words == "sealed test_keeps_the_rest: fails before, passes after"


def test_sealed_tests_of_other_stories_may_be_red(tmp_path: Path) -> None:
    """What was red before and is sealed for another story does not hold this one up."""
    agent = EDIT + 'add(calc, "def fourth(x):\\n    return x // 4\\n"); done()'
    box = sealed_project(tmp_path, agent, seals="US-9")
    done = box.run()
    assert done.code == 0, told(done)
    assert box.starts == 1


def test_a_sealed_test_that_was_green_stays_so(tmp_path: Path) -> None:
    """A story that breaks one is sent back, whomever it is sealed for."""
    agent = (
        EDIT
        + """
if START == 1: calc.write_text(calc.read_text().replace("2 * x", "x + 2"))
else: calc.write_text(calc.read_text().replace("x + 2", "x * 2"))
done()
"""
    )
    box = sandbox(
        tmp_path,
        agent,
        checks=UNITTEST,
        files={
            "calc.py": CALC,
            "tests/__init__.py": "",
            "tests/test_calc.py": TESTS,
            "tests/test_accept.py": ACCEPTS.replace("third(9), 3", "double(5), 10").replace(
                "third(10), 3", "double(0), 0"
            ),
            **IGNORED,
        },
        clean_tree=True,
    )
    assert box.ralph("seal", "tests/test_accept.py").code == 0
    done = box.run()
    assert done.code == 0, told(done)
    assert box.starts == 2
    assert "2 of 2 sealed tests" in "; ".join(box.records()[0].verdict.reasons)


def test_a_file_that_the_agent_writes_in_its_place_is_not_run(tmp_path: Path) -> None:
    """An agent that makes a file of that name changes nothing: the sealed one is laid over it."""
    agent = (
        EDIT
        + """
add(calc, "def third(x):\\n    return 3 if START == 0 else 99\\n".replace("START == 0", "False"))
write("tests/test_accept.py", "import unittest\\nclass T(unittest.TestCase):\\n"
      "    def test_thirds(self): pass\\n")
done()
"""
    )
    box = sealed_project(tmp_path, agent, toml="")
    done = box.run("--max-iterations", "1")
    assert not box.records()[0].verdict.passed, told(done)


def test_without_a_clean_tree_no_sealed_test_runs(tmp_path: Path) -> None:
    """That is said at the start, and the story is judged by what is left."""
    box = sealed_project(tmp_path, WRONG_THEN_RIGHT, toml='[proof]\nclean_tree = "off"\n')
    done = box.run()
    assert "sealed tests do not run" in done.text
    assert box.records()[0].verdict.passed


def test_an_agent_cannot_seal_or_unseal(tmp_path: Path) -> None:
    """The commands refuse a process of the run's own agent."""
    agent = EDIT + (
        "import subprocess\n"
        "ended = subprocess.run([sys.executable, '-m', 'ralphloop', 'unseal', 'tests'],"
        " capture_output=True, text=True)\n"
        "(STATE / 'unsealed').write_text(str(ended.returncode))\n"
        'add(calc, "def third(x):\\n    return x // 3\\n"); done()'
    )
    box = sealed_project(tmp_path, agent)
    done = box.run()
    assert done.code == 0, told(done)
    assert (box.state / "unsealed").read_text() != "0"
    assert len(json.loads(box.ralph("seal", "--list", "--json").out)) == 1


def test_in_lanes_they_run_where_stories_land(tmp_path: Path) -> None:
    """The landing tree takes them for a moment, and the commit does not hold them."""
    box = sealed_project(tmp_path, WRONG_THEN_RIGHT)
    done = box.run("--lanes", "1")
    assert done.code == 0, told(done)
    assert box.starts == 2
    assert "test_accept" not in box.git("ls-tree", "-r", "--name-only", "HEAD")
    assert known_grades(box)["US-1"] == "verified"
