"""Checks that say what became of every test: real runners, whose command line stays the user's."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ralphloop.core.model import CheckResult, CheckStatus
from ralphloop.core.proof import Canary, TestReport
from ralphloop.repo.checks import Check, check_of, run_checks, run_once
from ralphloop.repo.named import canary, canary_in_place, sweep
from ralphloop.repo.runners import FoundRunner, find_runner

PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
UNITTEST = (sys.executable, "-m", "unittest", "discover", "-s", "tests")
MIXED = """
import unittest
import product

class TestX(unittest.TestCase):
    def test_good(self):
        self.assertEqual(product.double(2), 4)

    def test_bad(self):
        self.assertEqual(product.double(2), 5)

    def test_crash(self):
        product.double(2).nothing

    def test_late_import(self):
        import nothing_of_that_name

    @unittest.skip("not today")
    def test_skipped(self):
        pass

    def test_rows(self):
        for number in range(3):
            with self.subTest(number=number):
                self.assertNotEqual(number, 1)

class TestSetUp(unittest.TestCase):
    def setUp(self):
        raise RuntimeError("no database")

    def test_never_runs(self):
        pass
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A product with a test of everything that can become of a test."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "product.py").write_text("def double(n):\n    return 2 * n\n")
    (tmp_path / "tests" / "test_mixed.py").write_text(MIXED)
    (tmp_path / "tests" / "test_broken.py").write_text("import nothing_of_that_name\n")
    return tmp_path


def _run(argv: tuple[str, ...], root: Path, **env: str) -> CheckResult:
    with pytest.MonkeyPatch.context() as patch:
        given = {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1", **env}
        for name, value in given.items():
            patch.setenv(name, value)
        (result,) = run_checks([check_of(argv, 60)], root)
    return result


def _names(rows: dict[str, int]) -> list[str]:
    return sorted(name.removeprefix("tests/test_mixed.py::") for name in rows)


def _report(result: CheckResult) -> TestReport:
    assert result.report is not None, result.output_tail
    return result.report


def _found(argv: tuple[str, ...], root: Path) -> tuple[Check, FoundRunner]:
    found = find_runner(argv, root)
    assert found is not None
    return check_of(argv, 60), found


def test_unittest_says_what_became_of_each_test(project: Path) -> None:
    """It has no reporter; a test that failed is told from one that could not begin."""
    report = _report(_run(UNITTEST, project))
    assert _names(report.passed) == ["TestX::test_good"]
    assert _names(report.failed) == ["TestX::test_bad", "TestX::test_crash", "TestX::test_rows"]
    errors = ["TestSetUp::test_never_runs", "TestX::test_late_import", "tests/test_broken.py"]
    assert _names(report.errors) == errors
    assert _names(report.skipped) == ["TestX::test_skipped"]


def test_pytest_says_what_became_of_each_test(project: Path) -> None:
    """Names are those pytest prints; rows of a table are counted under their function."""
    (project / "tests" / "test_broken.py").unlink()
    (project / "tests" / "test_mixed.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('n', [1, 2, 3])\ndef test_rows(n):\n    assert n != 2\n"
        "class TestX:\n    def test_good(self):\n        pass\n"
        "    @pytest.mark.skip\n    def test_skipped(self):\n        pass\n"
        "def test_late_import():\n    import nothing_of_that_name\n"
        "def test_no_fixture(nothing):\n    pass\n"
    )
    result = _run(PYTEST, project)
    report = _report(result)
    assert report.passed == {
        "tests/test_mixed.py::test_rows": 2,
        "tests/test_mixed.py::TestX::test_good": 1,
    }
    assert _names(report.failed) == ["test_rows"]
    assert _names(report.errors) == ["test_late_import", "test_no_fixture"]
    assert _names(report.skipped) == ["TestX::test_skipped"]
    assert "tests/test_mixed.py::test_rows[2]" in result.failing_tests
    assert result.counts == report.counts


def test_nothing_of_us_is_left_in_output_or_tree(project: Path) -> None:
    """The paths of our own files change with every run and would make each error a new one."""
    before = sorted(project.rglob("*"))
    for argv in (PYTEST, UNITTEST):
        assert "ralph-" not in _run(argv, project).output_tail
    assert sorted(project.rglob("*")) == before


def test_a_file_that_cannot_be_collected_is_an_error(project: Path) -> None:
    """No test of it ran, so none of it failed."""
    report = _report(_run(PYTEST, project))
    assert report.errors == {"tests/test_broken.py": 1}


def test_what_tests_start_does_not_report(project: Path) -> None:
    """A test that runs unittest itself is one test, and its child sees nothing of us."""
    (project / "tests" / "test_broken.py").unlink()
    (project / "tests" / "test_mixed.py").write_text(
        "import os, subprocess, sys, unittest\n"
        "class TestX(unittest.TestCase):\n"
        "    def test_child(self):\n"
        "        self.assertNotIn('reporters', os.environ.get('PYTHONPATH', ''))\n"
        "        self.assertFalse([name for name in os.environ if 'REPORT_TESTS' in name])\n"
        "        child = [sys.executable, '-m', 'unittest', 'inner']\n"
        "        subprocess.run(child, check=True, cwd=os.path.dirname(__file__))\n"
    )
    (project / "tests" / "inner.py").write_text(
        "import unittest\nclass T(unittest.TestCase):\n    def test_x(self):\n        pass\n"
    )
    report = _report(_run(UNITTEST, project))
    assert _names(report.passed) == ["TestX::test_child"]
    assert not report.failed


def test_a_sitecustomize_of_the_user_still_runs(project: Path) -> None:
    """Ours is found first, and makes way."""
    theirs = project / "theirs"
    theirs.mkdir()
    (theirs / "sitecustomize.py").write_text("import os\nos.environ['THEIRS'] = 'yes'\n")
    (project / "tests" / "test_broken.py").write_text(
        "import os, unittest\nclass T(unittest.TestCase):\n"
        "    def test_env(self):\n        self.assertEqual(os.environ.get('THEIRS'), 'yes')\n"
    )
    report = _report(_run(UNITTEST, project, PYTHONPATH=f"{theirs}{os.pathsep}{project}"))
    assert "tests/test_broken.py::T::test_env" in report.passed


def test_a_run_that_dies_is_no_report(project: Path) -> None:
    """Half a list of names is worse than none; exit code 0 does not make it one."""
    (project / "tests" / "test_broken.py").write_text(
        "import os, unittest\nclass TestA(unittest.TestCase):\n"
        "    def test_z(self):\n        os._exit(0)\n"
    )
    for argv in (UNITTEST, PYTEST):
        result = _run(argv, project)
        assert (result.status, result.report) == (CheckStatus.PASSED, None)


def test_a_check_that_cannot_bear_to_report_is_run_as_it_is(project: Path) -> None:
    """Our wish for a report never makes a green check red."""
    (project / "tests" / "test_broken.py").unlink()
    (project / "tests" / "test_mixed.py").write_text("def test_x():\n    pass\n")
    (project / "pytest.ini").write_text("[pytest]\naddopts = -p no:junitxml\n")
    result = _run(PYTEST, project)
    assert (result.status, result.report) == (CheckStatus.PASSED, None)
    assert result.counts is not None
    assert result.counts.passed == 1


def test_a_report_of_the_users_own_is_read(project: Path) -> None:
    """A command line that names a file keeps it, and a file of yesterday is not today's report."""
    (project / "tests" / "test_broken.py").unlink()
    (project / "tests" / "test_mixed.py").write_text("def test_x():\n    pass\n")
    argv = (*PYTEST, "--junitxml=mine.xml", "-o", "junit_family=xunit1")
    assert _names(_report(_run(argv, project)).passed) == ["test_x"]
    assert (project / "mine.xml").exists()
    os.utime(project / "mine.xml", (1, 1))
    (project / "tests" / "conftest.py").write_text("import os\nos._exit(0)\n")
    assert _run(argv, project).report is None


def test_any_command_can_report_to_the_place_it_is_given(project: Path) -> None:
    """`{report}` in a check is where it writes JUnit."""
    junit = '<testsuite><testcase classname="a" name="x"/><testcase name="y"><failure/></testcase>'
    argv = ("sh", "-c", f"echo '{junit}</testsuite>' > $0", "{report}")
    result = _run(argv, project)
    assert (_report(result).passed, _report(result).failed) == ({"a.x": 1}, {"y": 1})
    assert result.status is CheckStatus.PASSED


@pytest.mark.parametrize("argv", [PYTEST, UNITTEST, (*PYTEST, "tests", "-k", "test")])
def test_some_files_can_be_run_alone(project: Path, argv: tuple[str, ...]) -> None:
    """What the command line names otherwise is left out; its options stay."""
    (project / "tests" / "test_other.py").write_text(
        "import unittest\nclass T(unittest.TestCase):\n    def test_other(self):\n        pass\n"
    )
    check, found = _found(argv, project)
    result = run_once(check, found, project, files=["tests/test_other.py"])
    assert result is not None
    assert _report(result) == TestReport(passed={"tests/test_other.py::T::test_other": 1})
    assert not list(project.rglob("__pycache__"))


def test_an_experiment_runs_where_every_warning_is_an_error(project: Path) -> None:
    """A setting of ours that the runner does not know without its cache breaks nothing."""
    (project / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    check, found = _found(PYTEST, project)
    result = run_once(check, found, project, files=["tests/test_mixed.py"])
    assert result is not None
    assert _report(result).passed


def test_an_experiment_goes_on_after_what_cannot_be_collected(project: Path) -> None:
    """One file that does not load must not hide all others."""
    check, found = _found((*PYTEST, "-x"), project)
    result = run_once(check, found, project)
    assert result is not None
    report = _report(result)
    assert "tests/test_broken.py" in report.errors
    assert "tests/test_mixed.py::TestX::test_good" in report.passed


@pytest.mark.parametrize(
    ("package", "ours"), [("shop", "shop_test"), ("shop_test", "shop_test"), ("main", "main_test")]
)
def test_the_canary_of_go_is_compiled_beside_the_package(
    tmp_path: Path, package: str, ours: str
) -> None:
    """So that nothing else has to be compiled for it."""
    (tmp_path / "a_test.go").write_text(f"package {package}\n")
    found = find_runner(["go", "test", "./..."], tmp_path)
    assert found is not None
    canary_test = canary(found, [], tmp_path)
    assert canary_test is not None
    assert canary_test.content.startswith(f"package {ours}\n")


@pytest.mark.parametrize("argv", [PYTEST, UNITTEST])
def test_the_canary_comes_out_failed(project: Path, argv: tuple[str, ...]) -> None:
    """It stands beside the tests, imports the product, fails alone, and is gone afterwards."""
    (project / "tests" / "test_broken.py").unlink()
    before = sorted(project.rglob("*"))
    check, found = _found(argv, project)
    canary_test = canary(found, ["tests/test_mixed.py::TestX::test_good"], project)
    assert canary_test is not None
    assert "import product" in canary_test.content
    with canary_in_place(canary_test, project, project / "note"):
        files = [canary_test.path] if found.runner.only == "environment" else None
        result = run_once(check, found, project, whole=True, files=files, select=canary_test.name)
    assert result is not None
    assert result.status is CheckStatus.FAILED
    assert canary_test.seen(result.report) is Canary.FAILED
    assert canary_test.seen(None) is Canary.ABSENT
    assert list(_report(result).failed.values()) == [1]
    assert sorted(project.rglob("*")) == before


def test_a_canary_left_by_a_crash_is_swept(project: Path) -> None:
    """The next start finds the note and removes just that file, unless somebody made it theirs."""
    _, found = _found(PYTEST, project)
    canary_test = canary(found, ["tests/test_mixed.py::test_x"], project)
    assert canary_test is not None
    for theirs in (False, True):
        with canary_in_place(canary_test, project, project / "note"):
            note = (project / "note").read_bytes()
        (project / "note").write_bytes(note)
        (project / canary_test.path).write_text(canary_test.content + "# mine now\n" * theirs)
        sweep(project, project / "note")
        assert (project / canary_test.path).exists() is theirs
        assert not (project / "note").exists()
