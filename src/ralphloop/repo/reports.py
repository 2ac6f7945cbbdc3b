"""What test runners report, test by test, made one `TestReport`.

Three sources: JUnit files (pytest's, or of anything that writes them), the lines our own small
reporters write from inside a runner that has no such file, and plain output that names every test.
Everything that is read was written by programs we do not control: sizes are bounded, and what
cannot be read is no report, never an empty one.

A test that fails because something cannot be imported did not fail by what the code does, whoever
raised it: it counts as an error, like one that could not be collected or set up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from ralphloop.core.proof import TestCounts, TestReport
from ralphloop.text.lazy_regex import LazyRegex
from ralphloop.text.plain import clean

MOST_NAMES = 50_000
_LARGEST_FILE = 64 << 20
_LONGEST_NAME = 300
_RUST_ROW = LazyRegex(r"::case_\d+\w*$")
_IMPORT = LazyRegex(
    r"(?:Uncaught )?(?:ImportError|ModuleNotFoundError"
    r"|(?:Error(?: \[\w+\])?: )?"
    r"(?:Cannot find (?:module|package)|Failed to (?:resolve import|load url)))\b"
)
_ENDINGS = {name: name for name in ("passed", "failed", "errors", "skipped")}
_FAILED = frozenset({"failed", "errors"})
_SCRIPT = LazyRegex(r"\.[cm]?[jt]sx?$")  # a group that is a file of JavaScript


class TestResult(NamedTuple):
    """How one row of one test ended: a field of `TestReport`."""

    name: str
    ended: str
    row: str = ""  # what the runner adds to the name of its function
    said: str = ""  # by one that failed


Results = list[TestResult]


def tally(results: Results) -> TestReport | None:
    """All rows of each test together; None where there are none, or too many to keep."""
    report = TestReport()
    rows_of = {name: getattr(report, name) for name in _ENDINGS}
    for name, ended, _, said in results:
        rows = rows_of[ended]
        rows[name] = rows.get(name, 0) + 1
        if said and ended in _FAILED:
            report.said.setdefault(name, said)
    return report if 0 < sum(map(len, rows_of.values())) <= MOST_NAMES else None


def failures(results: Results) -> Iterator[str]:
    """The rows that failed, by their full names."""
    return (name + row for name, ended, row, _ in results if ended in _FAILED)


def _failed(words: str) -> tuple[str, str]:
    """How a test ended that says this, and the first line of it."""
    said = clean(words[: 4 * _LONGEST_NAME]).strip().partition("\n")[0][:_LONGEST_NAME]
    return ("errors" if _IMPORT.match(said) else "failed"), said


def _folded(name: str) -> tuple[str, str]:
    """The function a row of a parameter table belongs to, and the row."""
    function, bracket, row = name.partition("[") if name.endswith("]") else (name, "", "")
    return (function, bracket + row) if function else (name, "")


# --- files -----------------------------------------------------------------------------------


def read_junit(paths: Iterable[Path]) -> Results | None:
    """What JUnit files say; None where one cannot be read."""
    from xml.etree.ElementTree import ParseError

    from junitparser import JUnitXmlError

    try:
        return [case for path in paths for case in _junit_cases(path)]
    except (OSError, ParseError, JUnitXmlError, RecursionError, ValueError):
        return None


def _junit_cases(path: Path) -> Iterator[TestResult]:
    from junitparser import Attr, Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

    class Located(TestCase):  # the library's own way to know more attributes
        file = Attr()

    class Suite(TestSuite):
        testcase = Located

    class Document(JUnitXml):
        testsuite = Suite

    if path.stat().st_size > _LARGEST_FILE:
        raise ValueError("too large")
    for case in chain.from_iterable(Document.fromfile(str(path))):
        name, row = _junit_name(
            getattr(case, "file", "") or "", case.classname or "", case.name or ""
        )
        kinds = {type(result): result for result in reversed(case.result)}
        ended, said = "skipped" if Skipped in kinds else "passed", ""
        if wrong := kinds.get(Failure) or kinds.get(Error):
            ended, said = _failed(wrong.message or wrong.type or wrong.text or "")
        if Error in kinds or (wrong and case.name == case.classname):
            ended = "errors"  # a file that could not be loaded stands for itself
        yield TestResult(name[:_LONGEST_NAME], ended, row[:_LONGEST_NAME], said)


def _junit_name(file: str, group: str, name: str) -> tuple[str, str]:
    """`tests/test_a.py::TestX::test_y` where the runner tells the file, else `group.name`."""
    if _SCRIPT.search(group):
        return (group if name == group else f"{group} > {name}"), ""
    module = file.rpartition(".")[0].replace("/", ".").replace("\\", ".")
    if file and not group and name == module:
        return file, ""  # it could not be collected
    name, row = _folded(name)
    if module and (group == module or group.startswith(f"{module}.")):
        classes = group[len(module) + 1 :].split(".") if group != module else []
        return "::".join([file, *classes, name]), row
    return ".".join(filter(None, [group, name])), row


def read_lines(path: Path) -> Results | None:
    """What our own reporters wrote; None where they did not come to the end."""
    try:
        if path.stat().st_size > _LARGEST_FILE:
            return None
        written = [json.loads(line) for line in path.read_text("utf-8", "replace").splitlines()]
        if not written or written[-1] != "end":
            return None
        return list(_line_results([line for line in written if line != "end"]))
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _line_results(written: list[list[str]]) -> Iterator[TestResult]:
    for name, ended, *why in written:
        failed, said = _failed(str(why[0]) if why else "")
        how = failed if ended == "failed" else _ENDINGS[ended]
        yield TestResult(str(name)[:_LONGEST_NAME], how, said=said)


# --- plain output ----------------------------------------------------------------------------

_GO_RESULT = LazyRegex(r"^\s*--- (PASS|FAIL|SKIP): (\S+) \([\d.]+s\)$")
_GO_PACKAGE = LazyRegex(r"^(?:ok|FAIL|\?)\s+\t?(\S+)(?:\s+(.*))?$")
_GO = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}


def read_go(text: str) -> Results:
    """`go test -v`: the package is told after its tests; rows of a table are `Test/row`."""
    done: list[TestResult] = []
    waiting: dict[str, str] = {}
    for line in text.splitlines():
        if found := _GO_RESULT.match(line):
            waiting[found[2]] = _GO[found[1]]
        elif found := _GO_PACKAGE.match(line):
            package, rest = found[1], found[2] or ""
            parents = {name.rpartition("/")[0] for name in waiting}
            rows = {name: ended for name, ended in waiting.items() if name not in parents}
            for name, ended in rows.items():
                function, slash, row = name.partition("/")
                done.append(TestResult(f"{package}.{function}", ended, slash + row))
            if not rows and "failed]" in rest:
                done.append(TestResult(package, "errors"))
            waiting = {}
    return done


_CARGO_BINARY = LazyRegex(r"^\s*(?:Running (?:unittests )?(\S+)|Doc-tests (\S+))")
_CARGO_RESULT = LazyRegex(r"^test (\S.*?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)(?:,.*)?$")
_NEXTEST = LazyRegex(r"^\s+(PASS|FAIL|SIGABRT|TIMEOUT) \[ *[\d.]+s\](?: \([^)]*\))? +(\S+) (\S+)$")
_CARGO = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}
_DOC_LINE = LazyRegex(r" \(line \d+\)$")


def read_cargo(text: str) -> Results:
    """`cargo test` and `cargo nextest run`, which name every test behind its binary."""
    done, again, binary = Results(), set[tuple[str, str]](), ""
    for line in text.splitlines():
        if found := _CARGO_BINARY.match(line):
            binary = found[1] or f"{found[2]} (doc)"
        elif found := _CARGO_RESULT.match(line):
            name = _RUST_ROW.sub("", _DOC_LINE.sub("", found[1]))
            done.append(TestResult(f"{binary}::{name}", _CARGO[found[2]]))
        elif (found := _NEXTEST.match(line)) and (found[2], found[3]) not in again:
            again.add((found[2], found[3]))  # failures are told once more at the end
            ended = "passed" if found[1] == "PASS" else "failed"
            done.append(TestResult(f"{found[2]}::{_RUST_ROW.sub('', found[3])}", ended))
    return done


_TAP = LazyRegex(r"^(not )?ok \d+(?: -)?(?: (.*?))?(?: # (?i:(SKIP|TODO))\b.*)?$")
_TAP_PLAN = LazyRegex(r"^(?:TAP version \d+|1\.\.\d+)\b", re.MULTILINE)


def read_tap(text: str) -> Results:
    """Test anything protocol: the outer tests, whatever printed them."""
    if not _TAP_PLAN.search(text):
        return []
    found = (_TAP.match(line) for line in text.splitlines())
    return [
        TestResult(
            (line[2] or "")[:_LONGEST_NAME],
            "skipped" if line[3] else "failed" if line[1] else "passed",
        )
        for line in found
        if line
    ]


# --- counts ----------------------------------------------------------------------------------

_LAST_LINES = 400
_COUNTED = (
    ("passed", LazyRegex(r"\b(\d{1,9}) (?:passed|passing|tests? passed)\b")),
    (
        "failed",
        LazyRegex(r"\b(\d{1,9}) (?:failed|failing|failures?)\b|\b(?:failures|errors)=(\d{1,9})"),
    ),
    ("failed", LazyRegex(r"\b(\d{1,9}) errors?\b(?= in \d|,)")),
    ("skipped", LazyRegex(r"\b(\d{1,9}) (?:skipped|pending|ignored|todo)\b|\bskipped=(\d{1,9})")),
    ("deselected", LazyRegex(r"\b(\d{1,9}) (?:deselected|filtered out)\b")),
)
_SUMMARY = LazyRegex(
    r"^(?:=+ )?\d+ (?:passed|failed|skipped|deselected|errors?)\b.* in [\d.]+s"  # pytest
    r"|^\s{0,10}Tests:? +.*\b\d+ (?:passed|failed|skipped|todo)\b"  # jest, vitest
    r"|^\s+\d+ (?:passing|failing|pending)\b"  # mocha
    r"|^test result: "  # cargo
    r"|^(?:OK|FAILED) \(.*=\d"  # unittest, after `Ran`
)
_RAN = LazyRegex(r"^Ran (\d{1,9}) tests? in ", re.MULTILINE)
_NODE = LazyRegex(r"^(?:#|ℹ) (pass|fail|skipped|todo) (\d{1,9})$", re.MULTILINE)
_NODE_WORDS = {"pass": "passed", "fail": "failed", "skipped": "skipped", "todo": "skipped"}


def read_counts(text: str) -> TestCounts | None:
    """The numbers in the last lines of a runner's output; None where there are none."""
    last = "\n".join(text.splitlines()[-_LAST_LINES:])
    numbers: dict[str, int] = {}

    def add(what: str, number: str | None) -> None:
        numbers[what] = numbers.get(what, 0) + int(number or 0)

    for line in filter(_SUMMARY.match, last.splitlines()):
        for what, expression in _COUNTED:
            for found in expression.finditer(line):
                add(what, next(filter(None, found.groups()), "0"))
    for found in _NODE.finditer(last):
        add(_NODE_WORDS[found[1]], found[2])
    if ran := sum(map(int, _RAN.findall(last))):
        rest = numbers.get("failed", 0) + numbers.get("skipped", 0)
        numbers["passed"] = max(0, ran - rest)
    return TestCounts(**numbers) if numbers else None
