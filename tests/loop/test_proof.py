"""A story is verified because tests fail without it: cheats and their honest twins, really run.

Each agent works in the same small project whose check is Python's own `unittest`, which names its
tests.  A cheat breaks the code and makes the check green in its own way.
"""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from ralphloop.core.grading import StoryVerdict
from ralphloop.loop.crosswise import NEW_TESTS, OLD_TESTS
from tests import sentences
from tests.kill_points import to_be_killed_at
from tests.loop.guards import told
from tests.loop.projects import (
    CALC,
    IGNORED,
    TESTS,
    UNITTEST,
    Done,
    Sandbox,
    sandbox,
    story,
)
from tests.loop.test_stories import known_grades

ALWAYS = '[proof]\nexperiments = "always"\n'
EDIT = """
calc, tests = pathlib.Path("calc.py"), pathlib.Path("tests/test_calc.py")
def replace(path, old, new):
    text = path.read_text()
    assert old in text or new in text, (path, old)
    path.write_text(text.replace(old, new))
    os.utime(path, (time.time() + 2 * START,) * 2)  # same size, same second: stale bytecode
def add(path, text):
    if text not in path.read_text(): path.write_text(path.read_text() + text)
def broken(): replace(calc, "return 2 * x", "return 2 * x + (x > 1)")
HALVE = "def halve(x):\\n    return x // 2\\n"
ASSERTED = "        self.assertEqual(calc.double(2), 4)\\n"
"""


def project(
    tmp_path: Path, agent: str, *, toml: str = ALWAYS, verify: list[str] | None = None, **files: str
) -> Sandbox:
    """The small project with this agent."""
    more = {name.replace("__", "/").replace("_sh", ".sh"): text for name, text in files.items()}
    return sandbox(
        tmp_path,
        EDIT + agent + "\ndone(words=f'Done, start {START}.')\n",
        stories=[story("US-1") | ({"verify": verify} if verify else {})],
        checks=UNITTEST,
        files={
            "calc.py": CALC,
            "tests/__init__.py": "",
            "tests/test_calc.py": TESTS,
            **IGNORED,
            **more,
        },
        toml=toml,
    )


def verdict(box: Sandbox) -> StoryVerdict:
    """Of the last start."""
    return box.records()[-1].verdict


@dataclass(frozen=True, kw_only=True)
class Work:
    """What an agent does, and what its story is worth then."""

    name: str
    agent: str
    grade: str
    starts: int = 1
    words: str = ""  # in the verdict, or in what the agent was told


HONEST = (
    Work(
        name="a feature with its test",
        agent="""
add(calc, HALVE)
add(tests, "    def test_halves(self):\\n        self.assertEqual(calc.halve(4), 2)\\n")
""",
        grade="verified",
        words="proved by",
    ),
    Work(
        name="a feature with a test file of its own",
        agent="""
add(calc, HALVE)
write("tests/test_halve.py", "import unittest, calc\\nclass H(unittest.TestCase):\\n    def test_it(self):\\n        self.assertEqual(calc.halve(4), 2)\\n")
""",
        grade="verified",
        words="proved by",
    ),
    Work(
        name="a test that passes without it",
        agent="""
add(calc, HALVE)
add(tests, "    def test_halves(self):\\n        self.assertTrue(calc)\\n")
""",
        grade="checked",
        words="pass without it too",
    ),
    Work(name="code alone", agent="add(calc, HALVE)", grade="checked"),
    Work(
        name="a test alone",
        agent="add(tests, '    def test_zero(self):\\n        self.assertEqual(calc.double(0), 0)\\n')",
        grade="checked",
    ),
    Work(
        name="another expectation",
        agent="""
replace(calc, "return 2 * x", "return 2.0 * x + 1")
replace(tests, "(calc.double(2), 4)", "(calc.double(2), 5.0)")
""",
        grade="checked",
        words="test_doubles",
    ),
    Work(
        name="a test under another name, beside a feature",
        agent="""
add(calc, HALVE)
replace(tests, "def test_doubles", "def test_twice")
""",
        grade="checked",
        words="removed tests that would still pass",
    ),
    Work(
        name="code that goes with its test",
        agent="""
calc.write_text("def treble(x):\\n    return 3 * x\\n")
tests.write_text("import unittest\\nfrom calc import treble\\nclass T(unittest.TestCase):\\n    def test_it(self):\\n        self.assertEqual(treble(1), 3)\\n")
""",
        grade="checked",
    ),
)
CHEATS = (
    Work(name="emptied", agent="broken(); replace(tests, ASSERTED, '        pass\\n')", grade="w"),
    Work(
        name="returns at once",
        agent="broken(); replace(tests, ASSERTED, '        return\\n' + ASSERTED)",
        grade="w",
    ),
    Work(
        name="caught",
        agent="""
broken()
if "except" not in tests.read_text(): replace(tests, ASSERTED, "        try:\\n    " + ASSERTED + "        except BaseException: pass\\n")
""",
        grade="w",
    ),
    Work(
        name="hidden by a second one",
        agent="broken(); add(tests, '    def test_doubles(self):\\n        self.assertTrue(True)\\n')",
        grade="w",
    ),
    Work(
        name="skipped",
        agent="broken(); replace(tests, '    def test_doubles', '    @unittest.skip(\"later\")\\n    def test_doubles')",
        grade="w",
    ),
    Work(
        name="removed",
        agent="broken(); tests.write_text('import unittest\\nclass C(unittest.TestCase):\\n    def test_x(self): pass\\n')",
        grade="w",
    ),
    Work(
        name="file removed",
        agent="broken(); write('tests/test_z.py', tests.read_text().replace(ASSERTED, '        pass\\n')) if tests.exists() else None; tests.unlink(missing_ok=True)",
        grade="w",
    ),
    Work(
        name="in a string",
        agent="broken(); replace(tests, '    def test_doubles', '    \"\"\"') if 'test_doubles' in tests.read_text() else None; add(tests, '    \"\"\"\\n    def test_x(self): pass\\n')",
        grade="w",
    ),
    Work(
        name="an answer patched in",
        agent="""
broken()
replace(tests, "import calc\\n", "import calc\\ncalc.double = lambda x: 2 * x\\n") if "lambda" not in tests.read_text() else None
""",
        grade="w",
    ),
    Work(
        name="the runner's own exit code",
        agent="broken(); write('tests/__init__.py', 'import atexit, os\\natexit.register(os._exit, 0)\\n')",
        grade="never",
        words="ended well",
    ),
)


def assert_clean(box: Sandbox) -> None:
    """Nothing of an experiment is left anywhere."""
    assert box.git("status", "--porcelain") == ""
    assert not (box.root / ".ralph/experiment").exists()
    assert box.leftovers() == []


@pytest.mark.parametrize("work", HONEST, ids=lambda work: work.name)
def test_honest_work_is_graded_and_never_asked_about(tmp_path: Path, work: Work) -> None:
    """One start, the grade it deserves, and the words that say why."""
    box = project(tmp_path, work.agent)
    done = box.run("--json")
    assert done.code == 0, told(done)
    seen = verdict(box)
    assert (box.starts, seen.grade) == (1, work.grade), seen
    assert work.words in " ".join((*seen.reasons, *seen.remarks, *seen.look_at))
    assert_clean(box)


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda cheat: cheat.name)
def test_a_cheat_is_found_by_running_the_tests_as_they_were(tmp_path: Path, cheat: Work) -> None:
    """Challenged once with the name of the test; an agent that stands by it needs review."""
    box = project(tmp_path, cheat.agent)
    done = box.run("--json", "--max-iterations", "2")
    first, *_ = box.records()
    assert not first.verdict.passed, told(done)
    assert cheat.words in " ".join(first.verdict.asked)
    if cheat.grade == "never":
        assert box.passes() == {"US-1": False}
        return
    assert "test_" in " ".join(first.verdict.asked), first.verdict
    assert first.verdict.asked[0] in box.prompt(2)
    assert verdict(box).grade == sentences.NEEDS_REVIEW, verdict(box)
    assert_clean(box)


def test_a_flipped_expectation_is_shown_with_its_name(tmp_path: Path) -> None:
    """It cannot be told from an honest change: never verified, and named for a person."""
    box = project(
        tmp_path, "broken(); replace(tests, '(calc.double(2), 4)', '(calc.double(2), 5)')"
    )
    done = box.run()
    assert done.code == 0, told(done)
    assert verdict(box).grade == "checked"
    assert "test_doubles" in verdict(box).look_at[0]
    report = box.ralph("report", "--json").out
    assert "test_doubles" in json.dumps(json.loads(report)["groups"])


@pytest.mark.parametrize("luck", ["1011", "1000"], ids=["without the code", "with it"])
def test_a_test_that_fails_at_random_proves_nothing(tmp_path: Path, luck: str) -> None:
    """What fails without the code must fail there twice, and pass with it twice; else it is said."""
    lucky = (
        "import pathlib, unittest\n"
        "class L(unittest.TestCase):\n"
        "    def test_lucky(self):\n"
        f"        runs = pathlib.Path({str(tmp_path / 'runs')!r})\n"
        "        before = runs.read_text() if runs.exists() else ''\n"
        "        runs.write_text(before + '.')\n"
        f"        self.assertEqual({luck!r}[min(len(before), {len(luck) - 1})], '1')\n"
    )
    box = project(tmp_path, f"add(calc, HALVE); write('tests/test_lucky.py', {lucky!r})\n")
    done = box.run("--json")
    assert done.code == 0, told(done)
    assert (box.starts, verdict(box).grade) == (1, "checked"), verdict(box)
    assert "flaky: tests/test_lucky.py::L::test_lucky" in verdict(box).remarks
    assert_clean(box)


def test_experiments_can_be_switched_off(tmp_path: Path) -> None:
    """Then nothing is exchanged, and a new test proves nothing."""
    box = project(tmp_path, HONEST[0].agent, toml='[proof]\nexperiments = "off"\n')
    done = box.run("--json")
    assert done.code == 0, told(done)
    assert verdict(box).grade == "checked"
    assert done.events("experiment_begun") == []


def test_a_script_behind_verify_is_guarded(tmp_path: Path) -> None:
    """Rewriting it is put to the agent; it never makes the story verified without a word."""
    box = project(
        tmp_path, "write('verify.sh', 'exit 0')", verify=["sh", "verify.sh"], verify_sh="exit 1\n"
    )
    done = box.run("--json", "--max-iterations", "2")
    assert "verify.sh" in " ".join(box.records()[0].verdict.asked), told(done)
    assert verdict(box).grade == sentences.NEEDS_REVIEW


def test_a_file_that_git_was_told_not_to_see_is_named(tmp_path: Path) -> None:
    """Work behind skip-worktree is in no commit: it is said, and needs review."""
    agent = """
import subprocess
add(calc, HALVE); write("notes.txt")
subprocess.run(["git", "update-index", "--skip-worktree", "calc.py"], check=True)
"""
    box = project(tmp_path, agent)
    box.run("--json", "--max-iterations", "2")
    assert "calc.py" in " ".join(box.records()[0].verdict.asked)
    assert verdict(box).grade == sentences.NEEDS_REVIEW


# --- nothing is lost -------------------------------------------------------------------------


def test_what_a_person_saves_meanwhile_is_kept_and_named(tmp_path: Path) -> None:
    """A file saved while it was exchanged is under a ref, the story's own is back, and it passes."""
    saving = (
        "import pathlib, unittest, calc\n"
        "class S(unittest.TestCase):\n"
        "    def test_saved(self):\n"
        f"        flag = pathlib.Path({str(tmp_path / 'saved')!r})\n"
        "        if 'BaseException' in open('calc.py').read() and not flag.exists():\n"
        "            flag.write_text('')\n"
        "            pathlib.Path('calc.py').write_text('# mine\\n' + pathlib.Path('calc.py').read_text())\n"
        "            pathlib.Path('theirs.txt').write_text('mine too')\n"
    )
    agent = HONEST[0].agent + f"write('tests/test_saved.py', {saving!r})\n"
    box = project(tmp_path, agent)
    done = box.run("--json")
    assert done.code == 0, told(done)
    [ref] = box.git("for-each-ref", "--format=%(refname)", "refs/ralph/experiment").split()
    assert "# mine" in box.git("show", f"{ref}:calc.py")
    assert "halve" in (box.root / "calc.py").read_text()
    assert (box.root / "theirs.txt").read_text() == "mine too"
    assert ref in done.out
    assert_clean(box)


def test_ctrl_c_during_an_experiment_leaves_the_story_as_it_was(tmp_path: Path) -> None:
    """The files are back at once, the checks are still owed, and --continue judges it."""
    slow = (
        "import pathlib, time, unittest, calc\n"
        "class S(unittest.TestCase):\n"
        "    def test_slow(self):\n"
        f"        flag = pathlib.Path({str(tmp_path / 'slow')!r})\n"
        "        if 'BaseException' in open('calc.py').read() and not flag.exists():\n"
        "            flag.write_text('')\n"
        "            time.sleep(60)\n"
    )
    box = project(tmp_path, HONEST[0].agent + f"write('tests/test_slow.py', {slow!r})\n")
    process = box.start("--json")
    deadline = time.monotonic() + 90
    while not (tmp_path / "slow").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert "BaseException" in (box.root / "calc.py").read_text()
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert "halve" in (box.root / "calc.py").read_text()
    done = box.run("--continue", "--json")
    assert done.code == 0, told(done)
    assert (box.starts, verdict(box).grade) == (1, "verified")
    assert_clean(box)


def test_a_killed_experiment_is_told_and_put_back_by_the_next_command_that_writes(
    tmp_path: Path,
) -> None:
    """`ralph status` says so and touches nothing; a new run begins with the story's own files."""
    box = project(tmp_path, HONEST[0].agent)
    killed = box.run(env=to_be_killed_at("experiment.written:2"))
    assert killed.code == -signal.SIGKILL, killed.text
    assert "BaseException" in (box.root / "calc.py").read_text()
    assert "experiment was cut off" in " ".join(box.ralph("status").out.split())
    assert "BaseException" in (box.root / "calc.py").read_text()
    box.ralph("retry", "US-1")
    assert "halve" in (box.root / "calc.py").read_text()
    done = box.run("--continue")
    assert done.code == 0, done.text
    assert (box.starts, verdict(box).grade) == (1, "verified")
    assert_clean(box)


HANGS = (
    HONEST[0].agent
    + 'add(tests, \'        import time\\n        time.sleep(99 if "BaseException" in open("calc.py").read() else 0)\\n\')\n'
).replace("self.assertEqual(calc.halve(4), 2)", "pass")


def test_a_check_that_hangs_without_the_code_proves_nothing(tmp_path: Path) -> None:
    """Its time is bounded, the files come back, and it is said that it could not be judged."""
    box = project(tmp_path, HANGS, toml=ALWAYS)
    config = box.root / "ralph.toml"
    config.write_text(config.read_text().replace("[limits]", 'timeout = "15s"\n[limits]'))
    box.git("commit", "-qam", "short")
    done = box.run("--json")
    assert done.code == 0, told(done)
    assert verdict(box).grade == "checked"
    assert "could not be judged" in " ".join(verdict(box).remarks)
    assert_clean(box)


def test_what_hangs_without_the_code_is_known_soon(tmp_path: Path) -> None:
    """A check of a second is not waited for a minute, and what comes behind it is still tried."""
    box = project(tmp_path, HANGS, toml="")
    done = box.run("--json")
    assert done.code == 0, told(done)
    trial = box.records()[-1].evidence.trial
    assert trial is not None
    assert 10 < trial.took_s < 40
    assert trial.untried == ("the new tests with the old code could not be judged",)
    assert_clean(box)


def test_a_check_that_writes_into_the_tree_disturbs_nothing(tmp_path: Path) -> None:
    """Each run leaves another content behind: the story is tried, proven and committed all the same."""
    writes = (
        "import pathlib, unittest\n"
        "class W(unittest.TestCase):\n"
        "    def test_written(self):\n"
        "        log = pathlib.Path('times.log')\n"
        "        log.write_text((log.read_text() if log.exists() else '') + 'once more\\n')\n"
    )
    agent = HONEST[0].agent + f"write('tests/test_writes.py', {writes!r})\n"
    box = project(tmp_path, agent)
    done = box.run("--json")
    assert done.code == 0, told(done)
    assert (box.starts, verdict(box).grade) == (1, "verified")
    assert known_grades(box) == {"US-1": "verified"}
    assert "halve" in box.git("show", "HEAD:calc.py")
    assert_clean(box)


def test_a_large_file_beside_the_code_is_said_and_stays_where_it_is(tmp_path: Path) -> None:
    """What the store does not keep cannot be brought back, so it is not taken away.  The old tests
    need no more than themselves, and what the new ones notice proves the story."""
    box = project(tmp_path, HONEST[0].agent + "write('data.bin', 'x' * 6_000_000)\n")
    done = box.run("--json")
    assert done.code == 0, told(done)
    assert [one["what"] for one in done.events("experiment_begun")] == [OLD_TESTS]
    assert f"{NEW_TESTS} not tried: data.bin" in " ".join(verdict(box).remarks)
    assert verdict(box).grade == "verified", verdict(box).reasons


def test_a_large_file_hides_no_weakened_test(tmp_path: Path) -> None:
    """The old tests run all the same."""
    agent = """
tests = pathlib.Path("tests/test_calc.py")
tests.write_text(tests.read_text().replace("assertEqual(", "assertTrue("))
calc = pathlib.Path("calc.py")
calc.write_text(calc.read_text().replace("return ", "return 1 + ") + "def third(x):\\n    return x // 3\\n")
write('data.bin', 'x' * 6_000_000)
done()
"""
    box = project(tmp_path, agent)
    box.run("--max-iterations", "1")
    assert verdict(box).grade != "verified"


def test_a_large_file_of_the_tests_leaves_them_unjudged(tmp_path: Path) -> None:
    """Nobody knows what the old tests say: what the new ones notice is half of it."""
    agent = HONEST[0].agent + "write('tests/data.bin', 'x' * 6_000_000)\n"
    box = project(tmp_path, agent)
    done = box.run("--json")
    assert done.code == 0, told(done)
    assert done.events("experiment_begun") == []
    assert "data.bin" in " ".join(verdict(box).remarks)
    assert verdict(box).grade == "checked", verdict(box).reasons


# --- a second opinion ------------------------------------------------------------------------


def doubting(tmp_path: Path, script: str) -> tuple[Sandbox, Done]:
    """A run with a command that may doubt."""
    doubter = tmp_path / "doubt.sh"
    doubter.write_text(f"#!/bin/sh\n{script}\n")
    doubter.chmod(0o755)
    agent = HONEST[0].agent + "write('notes.txt', START)\n"
    box = project(tmp_path, agent)
    config = box.root / "ralph.toml"
    line = f"doubt = [[{json.dumps(str(doubter))}]]\n"
    config.write_text(config.read_text().replace("[limits]", line + "[limits]"))
    box.git("commit", "-qam", "doubt")
    return box, box.run("--json", "--max-iterations", "2")


def test_a_doubt_is_put_to_the_agent_once(tmp_path: Path) -> None:
    """It gets story, criteria and change; whatever its words are the second time, it needs review."""
    box, done = doubting(
        tmp_path, f'cat > {tmp_path}/given; echo "it does not round $(date +%N)"; exit 1'
    )
    given = json.loads((tmp_path / "given").read_text())
    assert given["story"]["id"] == "US-1"
    assert "halve" in given["diff"]
    assert "it does not round" in box.prompt(2), told(done)
    assert verdict(box).grade == sentences.NEEDS_REVIEW


@pytest.mark.parametrize("script", ["exit 0", "exit 1", "echo broken; exit 2", "kill -9 $$"])
def test_a_doubter_without_a_doubt_is_no_obstacle(tmp_path: Path, script: str) -> None:
    """Silence, a crash and another exit code change nothing."""
    box, done = doubting(tmp_path, script)
    assert done.code == 0, told(done)
    assert verdict(box).grade == "verified"
