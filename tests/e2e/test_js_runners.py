"""JavaScript's test runners, new and years old: what became of each test, and nothing changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ralphloop.core.model import CheckResult, CheckStatus
from ralphloop.core.proof import TestReport
from ralphloop.repo.checks import behaves, check_of, run_checks, run_once
from ralphloop.repo.runners import find_runner
from tests.e2e.clis import CLIS

# Tests look at what they can see of us: nothing.
UNSEEN = """
  if (JSON.stringify([process.argv, process.env]).match(/reporter|REPORT_TESTS/)) {
    throw new Error("it is not alone");
  }
"""
TESTS = """
describe("math", () => {
  it("adds", () => {%s});
  it("fails", () => { throw new Error("wrong"); });
  it.skip("later", () => {});
  it("cannot find", () => { throw new Error("Cannot find module './no.js'"); });
});
"""
GOOD = 'it("good", () => {});\n'
BROKEN = 'throw new Error("at the top");\n'
COMMANDS = {
    "jest-27": "jest && echo types",
    "jest-30": "jest && echo types",
    "mocha-10": "mocha test/*.test.js && echo types",
    "mocha-12": "mocha test/*.test.js && echo types",
    "vitest-1": "vitest run --globals && echo types",
    "vitest-4": "vitest run --globals && echo types",
    "node": "node --test test/*.test.js && echo types",
}
HEAD = {"node": 'const { describe, it } = require("node:test");\n'}
CHECK = check_of(["npm", "test", "--silent"], 120)

pytestmark = pytest.mark.e2e


def _project(root: Path, runner: str) -> Path:
    """A package whose `npm test` is a compound script."""
    scripts = {"scripts": {"test": COMMANDS[runner]}}
    (root / "package.json").write_text(json.dumps(scripts))
    (root / "test").mkdir()
    head = HEAD.get(runner, "")
    seen = runner == "node"  # it hands its options on to every file, which obeys none of them
    (root / "test" / "a.test.js").write_text(head + TESTS % ("" if seen else UNSEEN))
    (root / "test" / "good.test.js").write_text(head + GOOD)
    if runner in CLIS:
        (root / "node_modules").symlink_to(CLIS[runner].home / "node_modules")
    return root


def _report(result: CheckResult | None) -> TestReport:
    assert result is not None
    assert result.report is not None, result.output_tail
    return result.report


@pytest.mark.parametrize("runner", COMMANDS)
def test_each_test_has_a_name_and_a_result(runner: str, tmp_path: Path) -> None:
    """Through a compound script, without an argument or a variable that a test could see."""
    root = _project(tmp_path, runner)
    (result,) = run_checks([CHECK], root)
    report = _report(result)
    assert result.status is CheckStatus.FAILED
    assert sorted(report.passed) == ["test/a.test.js > math > adds", "test/good.test.js > good"]
    assert list(report.failed) == ["test/a.test.js > math > fails"]
    assert list(report.errors) == ["test/a.test.js > math > cannot find"]
    assert list(report.skipped) == ["test/a.test.js > math > later"]


@pytest.mark.parametrize("runner", COMMANDS)
def test_some_files_alone_and_our_own_failing_test(runner: str, tmp_path: Path) -> None:
    """The runner itself is called for some files; ours comes out failed, and the check with it."""
    root = _project(tmp_path, runner)
    found = find_runner(CHECK.argv, root)
    assert found is not None
    alone = _report(run_once(CHECK, found, root, files=["test/good.test.js"]))
    assert alone == TestReport(passed={"test/good.test.js > good": 1})
    (root / "test" / "a.test.js").unlink()
    assert behaves(CHECK, root, list(alone.passed), root / "note")
    assert sorted(path.name for path in (root / "test").iterdir()) == ["good.test.js"]


@pytest.mark.parametrize("runner", ["jest-30", "vitest-4", "node"])
def test_a_file_that_cannot_be_loaded_is_an_error(runner: str, tmp_path: Path) -> None:
    """None of its tests ran, so none of them failed."""
    root = _project(tmp_path, runner)
    (root / "test" / "a.test.js").write_text(BROKEN)
    (result,) = run_checks([CHECK], root)
    assert list(_report(result).errors) == ["test/a.test.js"]
    assert not _report(result).failed
