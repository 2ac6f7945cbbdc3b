"""Reading what test runners print: which tests failed, and whether any test ran at all.

Runners are recognised by the lines they print, not by the command, because most run behind
`make`, `npm` or `tox`.  Only lines that carry a sign of failure are looked at closely; lines are
bounded, patterns anchored and without nested repetition.  Names are kept without line numbers
where the runner gives one, so that the same test is the same name after an edit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from ralphloop.repo.reports import failures, read_go
from ralphloop.text.lazy_regex import LazyRegex
from ralphloop.text.plain import clean

MAX_NAMES = 50
_LONGEST_NAME = 300
_LONGEST_LINE = 1_000


def plain_text(output: bytes) -> str:
    """Output as text without colours, control characters and overwritten progress lines."""
    lines = output.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    return clean("\n".join(line.rpartition("\r")[2] for line in lines))


# --- failing tests ---------------------------------------------------------------------------

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
    names: dict[str, None] = {}
    for name in chain(_mocha(text), _one_line_each(lines), _jest(lines), failures(read_go(text))):
        names.setdefault(name.strip()[:_LONGEST_NAME])
        if len(names) >= MAX_NAMES:
            break
    return tuple(names)


def _one_line_each(lines: list[str]) -> Iterator[str]:
    for line in lines:
        for expression, name in _ONE_LINERS:
            if found := expression.match(line):
                yield found.expand(name)
                break


_JEST_FILE = LazyRegex(r"^\s*FAIL\s+(\S+\.\w+)(?: \([\d.]+ m?s\))?$")
_JEST_TEST = LazyRegex(r"^\s{1,8}● (.+)$")
_NO_TEST_NAMES = ("Console", "Validation", "Deprecation", "Cannot log after")


def _jest(lines: list[str]) -> Iterator[str]:
    file = ""
    for line in lines:
        if found := _JEST_FILE.match(line):
            file = found[1]
        elif (found := _JEST_TEST.match(line)) and not found[1].startswith(_NO_TEST_NAMES):
            whole_file = found[1].startswith("Test suite failed to run")
            yield file if whole_file and file else found[1]


_MOCHA_COUNT = LazyRegex(r"^ +\d+ failing$", re.MULTILINE)
_MOCHA_ENTRY = LazyRegex(r"^ +\d+\) (\S.*)$")
_MOCHA_LINES = 5_000


def _mocha(text: str) -> Iterator[str]:
    """After `2 failing`, each entry is a title over several lines up to a colon."""
    found = _MOCHA_COUNT.search(text)
    title: list[str] = []
    for line in text[found.end() :].splitlines()[:_MOCHA_LINES] if found else ():
        if entry := _MOCHA_ENTRY.match(line[:_LONGEST_LINE]):
            title = [entry[1]]
        elif title:
            title.append(line.strip()[:_LONGEST_LINE])
        if title and (title[-1].endswith(":") or not title[-1] or len(title) > 8):
            yield " ".join(title).strip().removesuffix(":")
            title = []


# --- no tests at all -------------------------------------------------------------------------

_SOME_RAN = LazyRegex(
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
_NOTHING_FAILS = LazyRegex(
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
_NOTHING_PASSES = LazyRegex(
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
