"""A story's own `verify` that does not end with 0 is red, whatever its runner says about it."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.lanes.yards import stories_of, yard
from tests.loop.guards import told
from tests.loop.projects import CALC, IGNORED, TESTS, UNITTEST, Sandbox, sandbox, story

PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
FILES = {"calc.py": CALC, "tests/__init__.py": "", "tests/test_calc.py": TESTS, **IGNORED}
LIES = "write('work.txt', START); done(words=f'Done, round {START}.')"
HONEST = """
write("calc.py", "def double(x):\\n    return 2 * x\\n\\n\\ndef halve(x):\\n    return x // 2\\n")
write("tests/test_halve.py", "import unittest\\nimport calc\\n\\n\\nclass Halve(unittest.TestCase):\\n    def test_halves(self):\\n        self.assertEqual(calc.halve(4), 2)\\n")
done()
"""


def project(tmp_path: Path, agent: str, verify: list[str] | str, **files: str) -> Sandbox:
    """The small project and one story with this `verify`."""
    named = {name.replace("__", "/"): text for name, text in files.items()}
    return sandbox(
        tmp_path,
        agent,
        stories=[story("US-001", verify=verify)],
        checks=UNITTEST,
        files=FILES | named,
    )


def last_reasons(box: Sandbox) -> str:
    """Why the last start did not pass, in words."""
    return "; ".join(box.records()[-1].verdict.reasons)


def test_a_verify_that_names_a_file_nobody_wrote_is_red(tmp_path: Path) -> None:
    """Pytest ends with 4 before and after: no pass, and the missing file is named."""
    box = project(tmp_path, LIES, [*PYTEST, "tests/test_tabs.py"])
    done = box.run("--max-iterations", "1")
    assert box.passes() == {"US-001": False}, told(done)
    wanted = "verify found no test (exit 4): tests/test_tabs.py does not exist"
    assert last_reasons(box) == wanted
    assert wanted in done.out


def test_the_errand_of_the_readme_is_not_done_by_saying_so(tmp_path: Path) -> None:
    """`ralph do … --verify` with a test that is never written: not passed, exit code 3."""
    box = sandbox(tmp_path, LIES, checks=UNITTEST, files=FILES)
    verify = " ".join([*PYTEST, "tests/test_tabs.py"])
    done = box.ralph("do", "accept tabs", "--verify", verify, "--max-iterations", "1")
    assert done.code == 3, told(done)
    assert "tests/test_tabs.py does not exist" in done.out


def test_in_lanes_it_is_the_same(tmp_path: Path) -> None:
    """Nothing lands whose own verify found no test."""
    stories = stories_of("US-001", verify=[*PYTEST, "tests/test_tabs.py"])
    box = yard(
        tmp_path, "write('work.txt', str(START)); done(f'Done, round {START}.')", stories=stories
    )
    done = box.run("--lanes", "2", "--max-iterations", "1")
    assert box.passes() == {"US-001": False}, told(done)
    assert "tests/test_tabs.py does not exist" in done.out


@pytest.mark.parametrize("words", [["-k", "halves"], ["-k", "halves", "tests/test_calc.py"]])
def test_a_verify_that_selects_a_test_nobody_wrote_is_red(tmp_path: Path, words: list[str]) -> None:
    """Pytest ends with 5: everything was deselected, nothing was proven."""
    box = project(tmp_path, LIES, [*PYTEST, *words])
    done = box.run("--max-iterations", "1")
    assert box.passes() == {"US-001": False}, told(done)
    assert last_reasons(box) == "verify found no test (exit 5)"


def test_a_runner_that_ends_well_without_a_test_has_proven_nothing(tmp_path: Path) -> None:
    """`Ran 0 tests` with exit code 0 is red for a verify, and stays neither red nor green for a check."""
    box = project(
        tmp_path, LIES, ["python3", "-m", "unittest", "discover", "-s", "empty"], empty__note="x"
    )
    done = box.run("--max-iterations", "1")
    assert box.passes() == {"US-001": False}, told(done)
    assert "verify found no test" in last_reasons(box)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_another_runner_that_finds_no_file_is_red(tmp_path: Path) -> None:
    """The words of vitest and jest about a missing file are red with their exit code."""
    said = "console.log('No test files found, exiting with code 1'); process.exit(1)"
    box = project(tmp_path, LIES, ["node", "runner.js", "run", "test/tabs.test.ts"], runner_js="")
    (box.root / "runner.js").write_text(said)
    box.git("add", "-A")
    box.git("commit", "-qm", "runner")
    done = box.run("--max-iterations", "1")
    assert box.passes() == {"US-001": False}, told(done)
    assert "test/tabs.test.ts does not exist" in last_reasons(box)


@pytest.mark.parametrize(
    "verify",
    [[*PYTEST, "tests/test_halve.py"], [*PYTEST, "-k", "halves"]],
    ids=["a file", "a name"],
)
def test_honest_work_that_writes_the_named_test_is_verified_by_it(
    tmp_path: Path, verify: list[str]
) -> None:
    """Red before, green now, and the test it brought fails without the code: that is the proof."""
    box = project(tmp_path, HONEST, verify)
    done = box.run()
    assert done.code == 0, told(done)
    verdict = box.records()[-1].verdict
    assert (box.starts, verdict.grade) == (1, "verified"), verdict
    assert "proved by" in verdict.reasons[0]


@pytest.mark.parametrize("runner", [PYTEST, ["python3", "-m", "unittest", "-q"]])
def test_a_named_test_outside_of_the_checks_proves_the_story_as_well(
    tmp_path: Path, runner: list[str]
) -> None:
    """It was yet to be written, and fails without the code, in a running test."""
    agent = HONEST.replace("tests/test_halve.py", "accept/test_halve.py")
    box = project(tmp_path, agent, [*runner, "accept/test_halve.py"])
    done = box.run()
    assert done.code == 0, told(done)
    verdict = box.records()[-1].verdict
    assert verdict.grade == "verified", verdict
    assert verdict.reasons[0].startswith("proved by test_halves")
    assert box.git("status", "--porcelain") == ""


def test_a_named_test_that_proves_nothing_is_not_proven_by_having_been_missing(
    tmp_path: Path,
) -> None:
    """The file was not there and is: that alone makes nothing verified, and it is said."""
    empty = "class T:\\n    pass\\n\\n\\ndef test_it():\\n    assert True\\n"
    box = project(
        tmp_path,
        f"write('work.txt'); write('accept/test_it.py', \"{empty}\"); done()",
        [*PYTEST, "accept/test_it.py"],
    )
    done = box.run()
    assert done.code == 0, told(done)
    verdict = box.records()[-1].verdict
    assert verdict.grade == "checked", verdict
    assert "not proven: the new tests pass without it too (test_it)" in verdict.reasons


SHELL = (
    "pytest -q | tail -1",
    "pytest -q|tail -1",
    "make && make check",
    "make; true",
    "pytest -q || true",
    "pytest -q > out.txt",
    "pytest -q 2>&1",
    "pytest $(cat tests.txt)",
    "pytest `cat tests.txt`",
    "test -f $HOME/x",
    "PYTHONPATH=src pytest -q",
    "pytest -q &",
)


@pytest.mark.parametrize("verify", SHELL)
def test_what_only_a_shell_understands_is_refused_in_both_places(
    tmp_path: Path, verify: str
) -> None:
    """`do` and `stories add` say the same words, start nothing and change nothing."""
    box = sandbox(tmp_path, LIES, checks=[["true"]])
    before = (box.root / "prd.json").read_bytes()
    done = box.ralph("do", "accept tabs", "--verify", verify)
    added = box.ralph("stories", "add", "Accept tabs", "--verify", verify)
    assert (done.code, added.code) == (64, 65), told(done) + told(added)
    words = done.err.split("--verify ")[1].split("\n")[0]
    assert words in added.err
    assert words.endswith("no shell runs it")
    assert box.starts == 0
    assert (box.root / "prd.json").read_bytes() == before


PLAIN = (
    "grep -q 'a|b' work.txt",
    "python3 -c 'print(1 > 0); print(2)'",
    "sh -c 'true && true'",
    'sh -c "true | cat $HOME"',
    "curl https://example.org/?a=1&b=2",
    "grep -q a$ work.txt",
)


@pytest.mark.parametrize("verify", PLAIN)
def test_what_is_quoted_is_an_argument_like_any_other(tmp_path: Path, verify: str) -> None:
    """A program may mean it, and a shell that is asked for is one."""
    box = sandbox(tmp_path, LIES, checks=[["true"]])
    added = box.ralph("stories", "add", "Accept tabs", "--verify", verify)
    assert added.code == 0, told(added)
    last = json.loads((box.root / "prd.json").read_text())["userStories"][-1]
    assert last["verify"] == verify
