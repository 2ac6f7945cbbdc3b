"""What test runners tell: what became of each test, which failed, and whether any ran at all.

All of it was written by programs we do not control: sizes are bounded, patterns anchored and
without nested repetition, and what cannot be read is no report, never an empty one.  A runner is
known by its lines, not by the command, because most run behind `make`, `npm` or `tox`.  Names are
without line numbers, so that a test has the same one after an edit.

A test that fails because something cannot be imported did not fail by what the code does: it counts
as an error, like one that could not be collected or set up.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from ralphloop.core.proof import TestCounts, TestReport
from ralphloop.text.plain import LazyRegex, clean

MOST_NAMES = 50_000
_LARGEST_FILE = 64 << 20
_LONGEST_NAME = 300
_RUST_ROW = LazyRegex(r"::case_\d+\w*$")
_IMPORT = LazyRegex(
    r"(?:Uncaught )?(?:ImportError|ModuleNotFoundError"
    r"|(?:Error(?: \[\w+\])?: )?"
    r"(?:Cannot find (?:module|package)|Failed to (?:resolve import|load url)))\b"
)
_QUOTES = "'\""
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


class _Failure(NamedTuple):
    ended: str  # a field of `TestReport`
    said: str  # the first line of what it says


class _RowOfTest(NamedTuple):
    """A test by its name, and what the runner adds for one row of it."""

    name: str
    row: str = ""


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
    """The whole names of those that failed, rows included."""
    return (result.name + result.row for result in results if result.ended in _FAILED)


def _failure_of(words: str) -> _Failure:
    """How a test ended that says this, and the first line of it."""
    plain = clean(words[: 4 * _LONGEST_NAME]).strip()
    said = (_in_an_example(plain) or plain).partition("\n")[0][:_LONGEST_NAME]
    ended = "errors" if _IMPORT.match(said) else "failed"
    return _Failure(ended, said)


_RAISED = LazyRegex(r"UNEXPECTED EXCEPTION: (\w+)\((.*)\)")


def _in_an_example(words: str) -> str:
    """What an example of a docstring expected and got, in one line; empty: it is none."""
    if raised := _RAISED.search(words):
        return f"{raised[1]}: {raised[2].strip(_QUOTES)}"
    shown, expected, rest = words.partition("\nExpected:\n")
    wanted, got, found = rest.partition("\nGot:\n")
    if not (expected and got):
        return ""
    example = shown.rpartition(">>> ")[2].partition("\n")[0].strip()
    return f"{example}: expected {_first_line(wanted)}, got {_first_line(found)}"


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def read_junit(paths: Iterable[Path]) -> Results | None:
    """What JUnit files say; None where one cannot be read."""
    from xml.etree.ElementTree import ParseError

    import junitparser as junit

    class Located(junit.TestCase):  # the library's own way to know more attributes
        file = junit.Attr()

    results = Results()
    try:
        for path in paths:
            if path.stat().st_size > _LARGEST_FILE:
                return None
            for found in chain.from_iterable(junit.JUnitXml.fromfile(str(path))):
                case = Located.fromelem(found)  # type: ignore[no-untyped-call]
                test = _junit_name(case.file or "", case.classname or "", case.name or "")
                kinds = {type(result): result for result in reversed(case.result)}
                ended = "skipped" if junit.Skipped in kinds else "passed"
                said = ""
                if wrong := kinds.get(junit.Failure) or kinds.get(junit.Error):
                    words = wrong.message or wrong.type or wrong.text or ""
                    ended, said = _failure_of(words)
                    # A file that could not be loaded stands for itself; one of examples does, too.
                    is_file = case.name == case.classname and not _in_an_example(words)
                    if junit.Error in kinds or is_file:
                        ended = "errors"
                row = test.row[:_LONGEST_NAME]
                results.append(TestResult(test.name[:_LONGEST_NAME], ended, row, said))
    except (OSError, ParseError, junit.JUnitXmlError, RecursionError, ValueError):
        return None
    return results


def _junit_name(file: str, group: str, name: str) -> _RowOfTest:
    """`tests/test_a.py::TestX::test_y` where the runner tells the file, else `group.name`."""
    if _SCRIPT.search(group):
        return _RowOfTest(group if name == group else f"{group} > {name}")
    module = file.rpartition(".")[0].replace("/", ".").replace("\\", ".")
    if file and not group and name == module:
        return _RowOfTest(file)  # it could not be collected
    row = ""
    if name.endswith("]") and not name.startswith("["):
        # The function a row of a parameter table belongs to, and the row.
        name, bracket, rest = name.partition("[")
        row = bracket + rest
    if module and (group == module or group.startswith(f"{module}.")):
        classes = group[len(module) + 1 :].split(".") if group != module else []
        return _RowOfTest("::".join([file, *classes, name]), row)
    return _RowOfTest(".".join(filter(None, [group, name])), row)


def read_lines(path: Path) -> Results | None:
    """What our own reporters wrote; None where they did not come to the end."""
    try:
        if path.stat().st_size > _LARGEST_FILE:
            return None
        written = [json.loads(line) for line in path.read_text("utf-8", "replace").splitlines()]
        if not written or written[-1] != "end":
            return None
        results = Results()
        for name, ended, *why in (line for line in written if line != "end"):
            failure = _failure_of(str(why[0]) if why else "")
            how = failure.ended if ended == "failed" else _ENDINGS[ended]
            results.append(TestResult(str(name)[:_LONGEST_NAME], how, said=failure.said))
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return results


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
            package = found[1]
            rest = found[2] or ""
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
_DOC_LINE = LazyRegex(r" \(line \d+\)(?=$| - compile)")


def read_cargo(text: str) -> Results:
    """`cargo test` and `cargo nextest run`, which name every test behind its binary."""
    done = Results()
    again = set[tuple[str, str]]()
    binary = ""
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
    done = Results()
    for found in filter(None, map(_TAP.match, text.splitlines())):
        ended = "failed" if found[1] else "passed"
        if found[3]:
            ended = "skipped"
        done.append(TestResult((found[2] or "")[:_LONGEST_NAME], ended))
    return done


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
    last = "\n".join(text.splitlines()[-400:])
    numbers = Counter[str]()
    for line in filter(_SUMMARY.match, last.splitlines()):
        for what, expression in _COUNTED:
            for found in expression.finditer(line):
                numbers[what] += int(next(filter(None, found.groups())))
    for found in _NODE.finditer(last):
        numbers[_NODE_WORDS[found[1]]] += int(found[2])
    if ran := sum(map(int, _RAN.findall(last))):
        numbers["passed"] = max(0, ran - numbers["failed"] - numbers["skipped"])
    return TestCounts(**numbers) if numbers else None


MAX_NAMES = 50  # of failing tests
_LONGEST_LINE = 1_000


def plain_text(output: bytes) -> str:
    """Output as text without colours, control characters and overwritten progress lines."""
    lines = output.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    return clean("\n".join(line.rpartition("\r")[2] for line in lines))


_SIGN = LazyRegex(r"FAIL|ERROR|Failed|●|✖|<<<|not ok|^rspec |^\d+\) ")
# A line that names a test by itself, and how the name is put together.
_ONE_LINERS = [
    (LazyRegex(expression), name)
    for expression, name in (
        # pytest: the summary, one test a line, and the same by xdist
        (r"^(?:FAILED|ERROR) (\S+(?:::.*?|\.py))(?: - .*)?$", r"\1"),
        (r"^(?:\[gw\d+\] \[ *\d+%\] )?(\S+::.*) (?:FAILED|ERROR)(?: +\[ *\d+%\])?$", r"\1"),
        (r"^\[gw\d+\] \[ *\d+%\] (?:FAILED|ERROR) (\S+::.*)$", r"\1"),
        # unittest, whose newer versions name the test twice
        (r"^(?:FAIL|ERROR): (\w+) \(([\w.<>-]+\.\1)\)", r"\2"),
        (r"^(?:FAIL|ERROR): (\w+) \(([\w.<>-]+)\)", r"\2.\1"),
        (r"^\s*FAIL\s+(\S+\.\w+ > .+)$", r"\1"),  # vitest
        (r"^test (\S.*) \.\.\. FAILED$", r"\1"),  # cargo
        # maven, older and newer, and gradle
        (r"^\[ERROR\]\s+(\w+)\(([\w.$]+)\)(?: --| ) ?Time elapsed:.*<<< ", r"\2.\1"),
        (r"^\[ERROR\]\s+(?!Tests run:)(\S.*?)(?: --| ) ?Time elapsed:.*<<< ", r"\1"),
        (r"^(\w\S* > .+) FAILED$", r"\1"),
        (r"^\d+\) (\w[\w\\]*::\w.*)$", r"\1"),  # phpunit
        (r"^\s+Failed (\w\S*.*?) \[[<\d].*\]$", r"\1"),  # dotnet
        (r"^\s*not ok \d+ -? ?(?!.*# (?:TODO|SKIP))(\S.*?)(?: # .*)?$", r"\1"),  # TAP
        (r"^\s*✖ (\S.*?) \([\d.]+ms\)$", r"\1"),  # node's own reporter
        (r"^rspec (\S+?)(?::\d+|\[[\d:]+\])* # (.+)$", r"\1 \2"),
    )
]


def failing_tests(text: str) -> tuple[str, ...]:
    """Names of failing tests in the order they are told, at most MAX_NAMES."""
    lines = [line[:_LONGEST_LINE] for line in text.splitlines() if _SIGN.search(line)]
    named = chain(_mocha(text), _line_by_line(lines), failures(read_go(text)))
    once = dict.fromkeys(name.strip()[:_LONGEST_NAME] for name in named)
    return tuple(once)[:MAX_NAMES]


_JEST_FILE = LazyRegex(r"^\s*FAIL\s+(\S+\.\w+)(?: \([\d.]+ m?s\))?$")
_JEST_TEST = LazyRegex(r"^\s{1,8}● (.+)$")
_NO_TEST_NAMES = ("Console", "Validation", "Deprecation", "Cannot log after")


def _line_by_line(lines: list[str]) -> Iterator[str]:
    """Tests that are named by one line each, or below their file as jest does."""
    for line in lines:
        for expression, name in _ONE_LINERS:
            if found := expression.match(line):
                yield found.expand(name)
                break
    file = ""  # jest tells it before its tests
    for line in lines:
        if found := _JEST_FILE.match(line):
            file = found[1]
        elif (found := _JEST_TEST.match(line)) and not found[1].startswith(_NO_TEST_NAMES):
            whole_file = found[1].startswith("Test suite failed to run")
            yield file if whole_file and file else found[1]


_MOCHA_COUNT = LazyRegex(r"^ +\d+ failing$", re.MULTILINE)
_MOCHA_ENTRY = LazyRegex(r"^ +\d+\) (\S.*)$")


def _mocha(text: str) -> Iterator[str]:
    """After `2 failing`, each entry is a title over several lines up to a colon."""
    found = _MOCHA_COUNT.search(text)
    if found is None:
        return
    title: list[str] = []
    for line in text[found.end() :].splitlines()[:5_000]:
        if entry := _MOCHA_ENTRY.match(line[:_LONGEST_LINE]):
            title = [entry[1]]
        elif title:
            title.append(line.strip()[:_LONGEST_LINE])
        if title and (title[-1].endswith(":") or not title[-1] or len(title) > 8):
            yield " ".join(title).strip().removesuffix(":")
            title = []


_SOME_RAN = LazyRegex(
    r"""
    \b[1-9]\d*\ (?:passed|passing|failed|failing|tests?\ (?:passed|completed|successful))\b
    | \bRan\ [1-9]\d*\ test
    | ^running\ [1-9]\d*\ test
    | \bTests\ run:\ [1-9]
    | ^ok[ \t]+\S+[ \t]+(?:\(cached\)|[\d.]+s)(?!.*\[no\ tests\ to\ run\])
    | \b[1-9]\d*\ examples?,
    | ^OK\ \([1-9]
    | \b(?:Passed|Total|Total\ tests):\s+[1-9]
    | ^(?:\#|ℹ)\ tests\ [1-9]
    | \b[1-9]\d*\ errors?\b
    """,
    re.VERBOSE | re.MULTILINE,
)
# Runners that fail because there was nothing to run.
_NOTHING_FAILS = LazyRegex(
    r"""
    ^(?:=+\ )?(?:\d+\ deselected,\ )?no\ tests\ (?:ran|collected)\b
    | ^(?:=+\ )?\d+\ deselected\ in\b
    | ^Ran\ 0\ tests\ in
    | ^[ \t>]*(?:Error:\ )?No\ tests?\ (?:files\ )?found\b
    | ^No\ tests\ executed!
    """,
    re.VERBOSE | re.MULTILINE,
)
# Runners that call it a success.
_NOTHING_PASSES = LazyRegex(
    r"""
    ^[ \t]+0\ passing\b
    | ^0\ examples,\ 0\ failures$
    | \[no\ test\ files\]$
    | \[no\ tests\ to\ run\]$
    | ^running\ 0\ tests$
    | ^(?:\[INFO\]\ )?No\ tests\ to\ run
    | ^\[INFO\]\ Tests\ run:\ 0,
    | ^>\ Task\ \S*[tT]est\S*\ NO-SOURCE$
    | \bNo\ test\ is\ available\ in\b
    | \bNo\ test\ matches\ the\ given\ testcase\ filter
    | ^(?:\#|ℹ)\ tests\ 0$
    """,
    re.VERBOSE | re.MULTILINE,
)


def collected_nothing(text: str, exit_code: int) -> bool:
    """True where a test runner ran and found no test to run: neither red nor green."""
    if _SOME_RAN.search(text):
        return False
    if _NOTHING_FAILS.search(text):
        return not failing_tests(text)
    return exit_code == 0 and bool(_NOTHING_PASSES.search(text))
