"""A run that knows its tests by name: what it keeps of them, and what it does beside the checks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ralphloop.core.model import CheckResult
from ralphloop.core.proof import TestReport
from ralphloop.journal.journal import Journal
from tests.loop.projects import Sandbox, sandbox

UNITTEST = [sys.executable, "-m", "unittest", "-q"]
AGENT = """
write('test_one.py', open('test_one.py').read() + f'''
    def test_of_start_{START}(self):
        pass
''')
done()
"""
TESTS = """\
import unittest

class T(unittest.TestCase):
    def test_old(self):
        pass
"""


def _kept(box: Sandbox) -> tuple[dict[str, TestReport], tuple[CheckResult, ...]]:
    with Journal.open(box.root / ".ralph/journal.db", check=False) as journal:
        latest = journal.latest_run()
        assert latest is not None
        session = journal.session(latest.id)
        return journal.reports(latest.id), session.baseline.results


def test_names_are_kept_once_and_numbers_with_each_iteration(tmp_path: Path) -> None:
    """The tests a passed story leaves are what the next one is compared with."""
    files = {"test_one.py": TESTS}
    box = sandbox(tmp_path, AGENT, stories=2, checks=[UNITTEST], files=files)
    done = box.run()
    assert done.code == 0, done.text
    reports, baseline = _kept(box)
    names = ["test_old", "test_of_start_1", "test_of_start_2"]
    (report,) = reports.values()
    assert sorted(report.passed) == sorted(f"test_one.py::T::{name}" for name in names)
    checks = [record.evidence.checks or () for record in box.records()]
    assert [check.counts and check.counts.passed for (check,) in checks] == [2, 3]
    assert all(check.report is None for (check,) in checks)
    assert [result.report for result in baseline] == [None]


def test_our_own_failing_test_is_tried_at_the_baseline_and_leaves_nothing(tmp_path: Path) -> None:
    """Only where it comes out failed, and the check red, can its absence mean something later."""
    swallows = ["sh", "-c", f"{sys.executable} -m unittest -q; exit 0"]
    files = {"test_one.py": TESTS}
    box = sandbox(tmp_path, AGENT, stories=1, checks=[UNITTEST, swallows], files=files)
    done = box.run()
    assert done.code == 0, done.text
    assert [result.behaved for result in _kept(box)[1]] == [True, False]
    assert [path.name for path in box.root.rglob("test_*.py")] == ["test_one.py"]
    assert not (box.root / ".ralph" / "canary").exists()
    assert box.git("status", "--porcelain") == ""


def test_a_failing_test_that_a_crash_left_is_removed_before_anything_else(tmp_path: Path) -> None:
    """It would be dirt, and red, in the repository of somebody who went to bed."""
    box = sandbox(tmp_path, AGENT, stories=1, checks=[UNITTEST], files={"test_one.py": TESTS})
    assert box.run("--dry-run").code == 0
    note = box.root / ".ralph" / "canary"
    note.parent.mkdir(exist_ok=True)
    note.write_text('{"path": "test_ralph1.py", "content": "1/0\\n", "name": "ralph1"}')
    (box.root / "test_ralph1.py").write_text("1/0\n")
    done = box.run()
    assert done.code == 0, done.text
    assert not (box.root / "test_ralph1.py").exists()


RED = """\
import unittest

import calc

class T(unittest.TestCase):
    def test_old(self):
        pass

    def test_tax(self):
        self.assertEqual(calc.tax(100), 19)
"""
NO_TEETH = """
write("calc.py", open("calc.py").read() + "\\nimport unittest\\n\\n"
      "unittest.TestCase.assertEqual = lambda self, first, second: None\\n")
done()
"""
WORK = 'write("calc.py", "def tax(x):\\n    return x * 19 // 100\\n")\ndone()\n'


@pytest.mark.parametrize(("agent", "passes"), [(NO_TEETH, False), (WORK, True)])
def test_our_own_failing_test_is_tried_where_a_check_was_red(
    tmp_path: Path, agent: str, *, passes: bool
) -> None:
    """A red test that turns green because assertions have lost their teeth proves nothing."""
    files = {"test_one.py": RED, "calc.py": "def tax(x):\n    return 0\n"}
    box = sandbox(tmp_path, agent, stories=1, checks=[UNITTEST], files=files)
    done = box.run("--allow-red", "--max-iterations", "1")
    assert [result.behaved for result in _kept(box)[1]] == [True]
    assert box.passes() == {"US-1": passes}, done.text
    assert ("a test of ours that must fail" in done.text) is not passes
