"""Running a check so that it says what became of every test.

The command line stays the user's.  Where a script sets the very variable that would make its runner
report, the runner is called once more by itself, for the names only; the exit code is always that
of the real check.

The **canary** is a failing test of ours with a name nobody can foresee, beside the project's own
tests and importing what they import: a runner that does not call it failed is not to be believed.
It is noted before it is written, so that a crash leaves no failing test behind.
"""

import ast
import json
import os
import re
import secrets
import string
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path, PurePosixPath

import msgspec

from ralphloop.atomic import write_atomic
from ralphloop.core.model import Value
from ralphloop.core.proof import Canary, TestReport
from ralphloop.repo.reports import Results, read_cargo, read_go, read_junit, read_lines, read_tap
from ralphloop.repo.runners import REPORTERS, FoundRunner, unknown

_PLAIN = {"go": read_go, "cargo": read_cargo, "tap": read_tap}
_FILES = "REPORT_TESTS_OF"


class Reporting:
    """One run of a command that is told to report; `only` and `select` say which tests.

    `apart` is for experiments: the runner itself, without what else its script does.  `afresh`: of
    what it has built before it uses nothing.
    """

    def __init__(
        self,
        argv: Sequence[str],
        found: FoundRunner | None,
        root: Path,
        scratch: str,
        *,
        apart: bool,
        only: Sequence[str] | None,
        select: str,
        afresh: bool = False,
    ) -> None:
        """Put together the command line and the environment of that run."""
        found = found or unknown(argv)
        self.began = time.time()
        self.root = root
        self.scratch = scratch
        self.runner = found.runner
        self.env = dict(os.environ)
        self.report = _own_report(found, root) or f"{scratch}/report"  # the file it is to write
        if apart and found.callable:
            argv = found.apart(only, root)
            places = (f"{root}/node_modules/.bin", self.env.get("PATH", os.defpath))
            self.env |= {"PATH": os.pathsep.join(places), **found.env}
        self.argv = tuple(word.replace("{report}", self.report) for word in argv)
        if select:
            self.env["PYTHONDONTWRITEBYTECODE"] = "1"  # of a test that is gone in a moment
        if is_hidden(found) and not apart:
            return
        if only is not None:
            self.env[_FILES] = json.dumps(list(only))
        ours = str(REPORTERS)
        runner = self.runner
        words = {"report": self.report, "reporters": ours, "scratch": scratch, "name": select}
        told = [runner.env]
        if apart:
            told.append(runner.apart)
        if select:
            told.append(runner.select)
        if afresh:
            told.append(runner.afresh)
        for variables in told:
            for name, value in variables.items():
                self._tell(name, _filled(value, words))

    def _tell(self, name: str, value: str) -> None:
        """Add to a variable of its environment what the runner is to be told."""
        given = self.env.get(name, "")
        if name == "PYTHONPATH":  # ours has to be found first
            self.env[name] = os.pathsep.join(filter(None, [value, given]))
        else:
            self.env[name] = " ".join(filter(None, [given, value]))

    @property
    def is_plain(self) -> bool:
        """The output itself names every test."""
        return self.runner.results in _PLAIN

    def results(self, text: str) -> Results | None:
        """What became of each test; None where nobody says."""
        if self.is_plain:
            return _PLAIN[self.runner.results](text) or None
        if self.runner.results == "lines":
            return read_lines(Path(self.report))
        fresh = []
        globbed = (path for pattern in self.runner.reports for path in self.root.glob(pattern))
        for path in chain((Path(self.report),), globbed):
            with suppress(OSError):
                if path.stat().st_mtime >= self.began - 1:  # file systems round
                    fresh.append(path)
        return read_junit(fresh) if fresh else None


def is_hidden(found: FoundRunner) -> bool:
    """A script sets what would make its runner report, so that it does not."""
    return not found.runner.env.keys().isdisjoint(found.env)


def _filled(value: str, words: Mapping[str, str]) -> str:
    for name, word in words.items():
        value = value.replace(f"{{{name}}}", word)
    return value


def _own_report(found: FoundRunner, root: Path) -> str:
    """The file that the user's command line has it report to."""
    option = found.runner.report_option
    words = found.argv[found.first :]
    if not option:
        return ""
    for number, word in enumerate(words):
        if word == option and number + 1 < len(words):
            return str(root / words[number + 1])
        if word.startswith(f"{option}="):
            return str(root / word.partition("=")[2])
    return ""


CANARY = "canary"  # in our directory: the note of one that is in the work tree


class PlacedTest(Value, kw_only=True):
    """A failing test of ours: where it goes, and the name it must come out failed under."""

    path: str
    content: str
    name: str  # a part of the reported name that occurs nowhere else
    beside: str = ""  # the file of tests it stands beside
    makes_directory: bool = False  # nobody else has tests where it goes

    def seen(self, report: TestReport | None) -> Canary:
        """How it came out, by what the runner reports."""
        if report is None:
            return Canary.ABSENT
        if any(self.name in name for name in report.failed):
            return Canary.FAILED
        if any(self.name in name for name in report.passed):
            return Canary.PASSED
        return Canary.ABSENT


def canary(
    found: FoundRunner, tests: Iterable[str], root: Path, modules: AbstractSet[str] = frozenset()
) -> PlacedTest | None:
    """A canary beside one of these tests; None where the runner has none, or nowhere to put it.

    It imports what that test does, and modules of these names as any of the tests import them.
    """
    runner = found.runner
    tests = list(tests)
    home = _home(found, tests, root)
    if not runner.canary or home is None:
        return None
    letters = "".join(secrets.choice(string.ascii_lowercase) for _ in range(14))
    name = letters if runner.name == "cargo" else letters.capitalize()
    text = ""
    with suppress(OSError):
        text = (root / home).read_bytes()[: 1 << 20].decode("utf-8", "replace")
    stem, _, suffix = home.name.partition(".")
    own = name.lower()
    if stem.endswith("_test"):
        own = f"{own}_test"
    if stem.startswith("test"):
        own = f"test_{own}"
    package = re.search(r"^package (\w+)", text, re.MULTILINE)
    words = {
        "name": name,
        "package": _package_beside(package[1] if package else "main"),
        "imports": "\n".join((*_imports(text, suffix, root), *_of_modules(tests, modules, root))),
        "root": json.dumps(os.path.realpath(root)),
    }
    content = _filled(runner.canary.lstrip("\n"), words)
    if suffix.rpartition(".")[2] in _TYPESCRIPT:  # whose names are global is the project's matter
        content = f"// @ts-nocheck\n{content}"
    return PlacedTest(
        path=str(home.with_name(f"{own}.{suffix}")),
        beside=str(home),
        content=content,
        name=name,
        makes_directory=not (root / home).parent.is_dir(),
    )


def _package_beside(package: str) -> str:
    """The tests of a Go package that are compiled by themselves: ours costs no more than them."""
    return f"{package.removesuffix('_test')}_test"


_TYPESCRIPT = frozenset({"ts", "tsx", "mts", "cts"})
_FILE = re.compile(r"[^\s:>]+\.(?:py|go|rs|[cm]?[jt]sx?)\b")


def file_of(name: str) -> str:
    """The file that the name of a test begins with; empty where it names none."""
    return match[0] if (match := _FILE.match(name)) else ""


def _home(found: FoundRunner, tests: Iterable[str], root: Path) -> PurePosixPath | None:
    """A file of tests that ran, by the names of the tests; the shallowest, so that it stays."""
    if found.runner.name == "go":
        homes = sorted(path.relative_to(root).as_posix() for path in root.glob("*_test.go"))
    elif found.runner.name == "cargo":
        homes = ["tests/any.rs"] if (root / "src").is_dir() else []
    else:
        homes = [name for name in {file_of(name) for name in tests} if (root / name).is_file()]
    return PurePosixPath(min(homes, key=lambda home: (home.count("/"), home))) if homes else None


_MOST_READ = 100  # files of tests
_RELATIVE = re.compile(r"""(?:from|require\(|import\(|import)\s*["'](\.{1,2}/[^"'\n]{1,200})["']""")


def _imports(text: str, suffix: str, root: Path) -> Iterator[str]:
    """Imports of the project's own modules that a test has, each of which may fail."""
    if suffix != "py":
        for name in list(dict.fromkeys(_RELATIVE.findall(text)))[:5]:
            yield f"  try {{ await import({json.dumps(name)}); }} catch {{}}"
        return
    places = (root, root / "src", root / "lib")
    ours = list[str]()
    for name in _imported(text):
        top = name.partition(".")[0]
        if any((it / top).is_dir() or (it / f"{top}.py").is_file() for it in places):
            ours.append(name)
    yield from (_tried(name) for name in ours[:5])


def _tried(module: str) -> str:
    """An import whose breaking is for the tests of the project to say, not for the canary."""
    return f"try:\n    import {module}\nexcept Exception:\n    pass"


def _imported(text: str) -> Iterator[str]:
    """The modules that a text of Python imports."""
    with suppress(SyntaxError, ValueError, RecursionError):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _of_modules(tests: Iterable[str], modules: AbstractSet[str], root: Path) -> Iterator[str]:
    """Imports of the modules of these names, written as tests write them."""
    if not modules:
        return
    names: dict[str, None] = {}
    files = [name for name in dict.fromkeys(file_of(test) for test in tests) if name]
    for file in files[:_MOST_READ]:
        if file.endswith(".py"):
            with suppress(OSError):
                text = (root / file).read_bytes()[: 1 << 20].decode("utf-8", "replace")
                names |= dict.fromkeys(_imported(text))
    yield from (_tried(name) for name in names if not modules.isdisjoint(name.split(".")))


@contextmanager
def canary_in_place(canary_test: PlacedTest, root: Path, note: Path) -> Iterator[None]:
    """The canary in the work tree for as long as this lasts; `note` remembers it."""
    write_atomic(note, msgspec.json.encode(canary_test), within=note.parent)
    try:
        content = canary_test.content.encode()
        parents = canary_test.makes_directory
        write_atomic(root / canary_test.path, content, within=root, parents=parents)
        yield
    finally:
        _take_away(canary_test, root, note)  # also where the note was removed meanwhile


def sweep(root: Path, note: Path) -> None:
    """Take away the canary that a note remembers, if there is one."""
    try:
        canary_test = msgspec.json.decode(note.read_bytes(), type=PlacedTest)
    except (OSError, msgspec.DecodeError):
        return
    _take_away(canary_test, root, note)


def _take_away(canary_test: PlacedTest, root: Path, note: Path) -> None:
    path = root / canary_test.path
    with suppress(OSError):
        if path.read_text("utf-8") == canary_test.content:
            path.unlink()
    if canary_test.makes_directory:
        with suppress(OSError):  # somebody else keeps something there by now
            path.parent.rmdir()
    with suppress(OSError):
        note.unlink()
