"""Reading what test runners print: which tests failed, and whether any test ran at all.

Runners are recognised by the lines they print, not by the command, because most run behind
`make`, `npm` or `tox`.  Only lines that carry a sign of failure are looked at closely; lines are
bounded, patterns anchored and without nested repetition.  Names are kept without line numbers
where the runner gives one, so that the same test is the same name after an edit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain

MAX_NAMES = 50
_LONGEST_NAME = 300
_LONGEST_LINE = 1_000

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def plain_text(output: bytes) -> str:
    """Output as text without colours, control characters and overwritten progress lines."""
    text = _ANSI.sub("", output.decode("utf-8", "replace")).replace("\r\n", "\n")
    lines = (line.rpartition("\r")[2] if "\r" in line else line for line in text.split("\n"))
    return _CONTROL.sub("", "\n".join(lines))


# --- failing tests ---------------------------------------------------------------------------


def failing_tests(text: str) -> tuple[str, ...]:
    """Names of failing tests in the order they are told, at most MAX_NAMES."""
    lines = [line[:_LONGEST_LINE] for line in text.splitlines() if _SIGN.search(line)]
    names: dict[str, None] = {}
    for name in chain(_mocha(text), *(reader(lines) for reader in _READERS)):
        names.setdefault(name.strip()[:_LONGEST_NAME])
        if len(names) >= MAX_NAMES:
            break
    return tuple(names)


_SIGN = re.compile(r"FAIL|ERROR|Failed|●|✖|<<<|not ok|^rspec |^\d+\) ")


_PYTEST_VERBOSE = re.compile(
    r"^(?:\[gw\d+\] \[ *\d+%\] )?(\S+::.*) (?:FAILED|ERROR)(?: +\[ *\d+%\])?$"
)
_PYTEST_XDIST = re.compile(r"^\[gw\d+\] \[ *\d+%\] (?:FAILED|ERROR) (\S+::.*)$")


def _pytest(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if line.startswith(("FAILED ", "ERROR ")):
            name = line.partition(" ")[2].split(" - ", 1)[0].strip()
            if "::" in name or name.endswith(".py"):
                yield name
        elif "::" in line and (found := _PYTEST_VERBOSE.match(line) or _PYTEST_XDIST.match(line)):
            yield found[1]


_UNITTEST = re.compile(r"^(?:FAIL|ERROR): (\w+) \(([\w.<>-]+)\)")


def _unittest(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if found := _UNITTEST.match(line):
            test, place = found.groups()
            yield place if place.endswith(f".{test}") else f"{place}.{test}"


_JEST_FILE = re.compile(r"^\s*FAIL\s+(\S+\.\w+)(?: \([\d.]+ m?s\))?$")
_JEST_TEST = re.compile(r"^\s{1,8}● (.+)$")
_VITEST = re.compile(r"^\s*FAIL\s+(\S+\.\w+ > .+)$")
_NO_TEST_NAMES = ("Console", "Validation", "Deprecation", "Cannot log after")


def _jest(lines: list[str]) -> Iterator[str]:
    file = ""
    for line in lines:
        if found := _VITEST.match(line):
            yield found[1]
        elif found := _JEST_FILE.match(line):
            file = found[1]
        elif (found := _JEST_TEST.match(line)) and not found[1].startswith(_NO_TEST_NAMES):
            whole_file = found[1].startswith("Test suite failed to run")
            yield file if whole_file and file else found[1]


_MOCHA_COUNT = re.compile(r"^ +\d+ failing$", re.MULTILINE)
_MOCHA_ENTRY = re.compile(r"^ +\d+\) (\S.*)$")
_MOCHA_LINES = 5_000


def _mocha(text: str) -> Iterator[str]:
    """After `2 failing`, each entry is a title over several lines up to a colon."""
    found = _MOCHA_COUNT.search(text)
    if found is None:
        return
    title: list[str] = []
    for line in text[found.end() :].splitlines()[:_MOCHA_LINES]:
        if entry := _MOCHA_ENTRY.match(line[:_LONGEST_LINE]):
            title = [entry[1]]
        elif title:
            title.append(line.strip()[:_LONGEST_LINE])
        if title and (title[-1].endswith(":") or not title[-1] or len(title) > 8):
            yield " ".join(title).strip().removesuffix(":")
            title = []


_GO_TEST = re.compile(r"^\s*--- FAIL: (\S+)")
_GO_PACKAGE = re.compile(r"^FAIL\s+(\S+)(?:\s+(?:[\d.]+s|\[\w+ failed\]))?$")


def _go(lines: list[str]) -> Iterator[str]:
    """The package is told after its tests."""
    waiting: list[str] = []
    for line in lines:
        if found := _GO_TEST.match(line):
            waiting.append(found[1])
        elif line.startswith("FAIL\t") and (found := _GO_PACKAGE.match(line)):
            yield from (f"{found[1]}.{test}" for test in waiting) if waiting else (found[1],)
            waiting = []
    yield from waiting


_MAVEN = re.compile(r"^\[ERROR\]\s+(\S.*?)(?: --| ) ?Time elapsed:.*<<< (?:FAILURE|ERROR)!")
_MAVEN_OLD_NAME = re.compile(r"^(\w+)\(([\w.$]+)\)$")
_GRADLE = re.compile(r"^(\w\S* > .+) FAILED$")


def _java(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if "<<<" in line and (found := _MAVEN.match(line)):
            name = found[1].strip()
            if not name.startswith("Tests run:"):
                yield _MAVEN_OLD_NAME.sub(r"\2.\1", name)
        elif line.endswith(" FAILED") and (found := _GRADLE.match(line)):
            yield found[1]


_ONE_LINERS = (
    re.compile(r"^test (\S.*) \.\.\. FAILED$"),  # cargo
    re.compile(r"^\d+\) (\w[\w\\]*::\w.*)$"),  # phpunit
    re.compile(r"^\s+Failed (\w\S*.*?) \[[<\d].*\]$"),  # dotnet
    re.compile(r"^\s*not ok \d+ -? ?(\S.*?)(?: # .*)?$"),  # TAP: node, bats, prove
    re.compile(r"^\s*✖ (\S.*?) \([\d.]+ms\)$"),  # node's own reporter
)
_RSPEC = re.compile(r"^rspec (\S+?)(?::\d+|\[[\d:]+\])* # (.+)$")


def _one_line_each(lines: list[str]) -> Iterator[str]:
    for line in lines:
        for pattern in _ONE_LINERS:
            if (found := pattern.match(line)) and "# TODO" not in line and "# SKIP" not in line:
                yield found[1]
                break
        if line.startswith("rspec ") and (found := _RSPEC.match(line)):
            yield f"{found[1]} {found[2]}"


_READERS: tuple[Callable[[list[str]], Iterator[str]], ...] = (
    _pytest,
    _unittest,
    _jest,
    _go,
    _java,
    _one_line_each,
)


# --- no tests at all -------------------------------------------------------------------------

_SOME_RAN = re.compile(
    r"""
    \b[1-9]\d*\ (?:passed|passing|failed|failing|tests?\ (?:passed|completed|successful))\b
    | \bRan\ [1-9]\d*\ test
    | ^running\ [1-9]\d*\ test
    | \bTests\ run:\ [1-9]
    | ^ok[ \t]+\S+[ \t]+(?:\(cached\)|[\d.]+s)(?!.*\[no\ tests\ to\ run\])
    | ^[ \t]*---\ (?:PASS|FAIL):
    | \b[1-9]\d*\ examples?,
    | ^OK\ \([1-9]
    | \b(?:Passed|Total|Total\ tests):\s+[1-9]
    | ^(?:\#|ℹ)\ tests\ [1-9]
    | \b[1-9]\d*\ errors?\b
    """,
    re.VERBOSE | re.MULTILINE,
)
# Runners that fail because there was nothing to run.
_NOTHING_FAILS = re.compile(
    r"""
    ^(?:=+\ )?(?:\d+\ deselected,\ )?no\ tests\ (?:ran|collected)\b
    | ^(?:=+\ )?\d+\ deselected\ in\b
    | ^NO\ TESTS\ RAN
    | ^Ran\ 0\ tests\ in
    | ^[ \t]*(?:Error:\ )?No\ tests?\ (?:files\ )?found\b
    | ^No\ tests\ executed!
    | ^>\ No\ tests\ found\ for\ given\ includes
    """,
    re.VERBOSE | re.MULTILINE,
)
# Runners that call it a success.
_NOTHING_PASSES = re.compile(
    r"""
    ^[ \t]+0\ passing\b
    | ^0\ examples,\ 0\ failures$
    | ^No\ examples\ found
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
