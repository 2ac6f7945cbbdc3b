"""Was a check made easier instead of the work better?

Tests are counted in every changed source file before and after, over the whole change: what counts
is that there are as many as before, that they still run and still assert.  Moving, renaming and
regrouping tests is therefore no finding; losing, skipping or emptying them is.  What the checks are
told to do (their configuration and scripts) is compared by `check_files`.

Every finding is put to the agent once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from ralphloop.core.model import Value
from ralphloop.repo.census import TestCase, count, is_countable, suffix_of
from ralphloop.repo.check_files import is_configuration, weakenings
from ralphloop.repo.git import printable
from ralphloop.repo.snapshot import Change
from ralphloop.text.test_paths import is_test_path

MAX_FILES = 1_000
_SHOWN_NAMES = 5
_DATA = frozenset(
    "json txt snap png jpg gif svg md rst yml yaml csv tsv html xml lock golden out in toml ini cfg"
    " pdf zip gz bin sql log".split()
)


class Weakening(Value, frozen=True, kw_only=True):
    """One sign that a check was weakened."""

    kind: str  # tests_removed, tests_skipped, tests_emptied, asserts_removed, config, check
    path: str
    message: str


class Review(Value, frozen=True, kw_only=True):
    """What a change did to the tests and to what the checks are told to do."""

    findings: tuple[Weakening, ...] = ()
    tests_added: int = 0  # running tests more than before

    @property
    def challenges(self) -> tuple[str, ...]:
        """What the agent has to answer for, as sentences."""
        return tuple(found.message for found in self.findings)


class _File:
    """One changed file on both sides, with its tests."""

    def __init__(self, change: Change, contents: dict[str, bytes]) -> None:
        self.path = printable(change.path)
        self.before = contents.get(change.before or "")
        self.after = contents.get(change.after or "")
        self.was = count(self.path, self.before)
        self.now = count(self.path, self.after)

    def survivors(self) -> Iterator[tuple[TestCase, TestCase]]:
        """Tests that are there on both sides, paired by name."""
        old, new = (_by_name(side.cases) for side in (self.was, self.now))
        for name, cases in old.items():
            if len(cases) == len(new[name]):
                yield from zip(cases, new[name], strict=True)


def _by_name(cases: Iterable[TestCase]) -> defaultdict[str, list[TestCase]]:
    found: defaultdict[str, list[TestCase]] = defaultdict(list)
    for case in cases:
        found[case.name].append(case)
    return found


def review(
    changes: Iterable[Change],
    contents_of: Callable[[Iterable[str]], dict[str, bytes]],
    checks: Iterable[Sequence[str]] = (),
) -> Review:
    """Look at everything that changed; `checks` are the command lines that prove stories."""
    scripts = {w.removeprefix("./") for argv in checks for w in argv if not w.startswith("-")}
    looked_at = [
        change
        for change in changes
        if is_countable(change.path)
        or is_test_path(change.path)
        or is_configuration(change.path)
        or change.path in scripts
    ][:MAX_FILES]
    sides = {name for change in looked_at for name in (change.before, change.after) if name}
    contents = contents_of(sides)
    # Content too large to read is unknown, and unknown is no evidence.
    unread = sides - contents.keys()
    known = [change for change in looked_at if unread.isdisjoint((change.before, change.after))]
    files = [_File(change, contents) for change in known]
    findings = (
        *_removed(files),
        *(_skipped(files) or _skipped_by_another_name(files)),
        *_emptied(files),
        *_fewer_asserts(files),
        *_file_findings(files, scripts),
    )
    proving = [
        sum(case.weight for case in side if case.asserts and not case.skipped)
        for side in _both_sides(files)
    ]
    return Review(findings=findings, tests_added=max(0, proving[1] - proving[0]))


# --- tests over the whole change -------------------------------------------------------------


def _both_sides(files: list[_File]) -> tuple[list[TestCase], list[TestCase]]:
    was = [case for file in files for case in file.was.cases]
    return was, [case for file in files for case in file.now.cases]


def _removed(files: list[_File]) -> Iterator[Weakening]:
    was, now = _both_sides(files)
    lost = sum(case.weight for case in was) - sum(case.weight for case in now)
    if lost <= 0:
        return
    # Bare names: a test in another class or file is the same test.
    names, left = (Counter(case.name.rpartition(".")[2] for case in side) for side in (was, now))
    gone = _listed(list((names - left).elements()))
    losing = [file.path for file in files if file.now.weight < file.was.weight]
    what = "1 test was" if lost == 1 else f"{lost} tests were"
    message = f"{what} removed in {_listed(losing)}" + (f": {gone}" if gone else "")
    yield Weakening(kind="tests_removed", path=losing[0], message=message)


def _skipped(files: list[_File]) -> list[Weakening]:
    messages = []
    for file in files:
        names = [old.name for old, new in file.survivors() if new.skipped and not old.skipped]
        if not names and file.was.cases and file.now.group_skips > file.was.group_skips:
            names = ["a group of tests"]
        if names:
            messages.append((file.path, f"skipped in {file.path}: {_listed(names)}"))
        if file.was.cases and file.now.focuses > file.was.focuses:
            words = f"only some tests are run in {file.path}: the others are left out"
            messages.append((file.path, words))
    return [Weakening(kind="tests_skipped", path=path, message=words) for path, words in messages]


def _skipped_by_another_name(files: list[_File]) -> Iterator[Weakening]:
    """As many tests as before, but fewer that run: renamed or moved, and skipped on the way."""
    was, now = _both_sides(files)
    idle, running = (
        sum(case.weight for case in now if case.skipped is skipped)
        - sum(case.weight for case in was if case.skipped is skipped)
        for skipped in (True, False)
    )
    if idle > 0 > running:
        paths = [file.path for file in files if any(case.skipped for case in file.now.cases)]
        message = f"{-running} fewer tests run in {_listed(paths)}: they are skipped now"
        yield Weakening(kind="tests_skipped", path=paths[0], message=message)


def _emptied(files: list[_File]) -> Iterator[Weakening]:
    for file in files:
        # A test that asserts through a helper has lines left; an emptied one has lost its own.
        names = [
            old.name
            for old, new in file.survivors()
            if old.asserts and not new.asserts and new.lines < old.lines and not new.skipped
        ]
        if names:
            message = f"no longer asserting anything in {file.path}: {_listed(names)}"
            yield Weakening(kind="tests_emptied", path=file.path, message=message)


def _fewer_asserts(files: list[_File]) -> Iterator[Weakening]:
    """Half of the assertions gone while the tests stay is no refactoring."""
    before = sum(old.asserts for file in files for old, _ in file.survivors())
    # Assertions may move into helpers and other tests, so everything on the new side counts.
    after = sum(case.asserts for case in _both_sides(files)[1])
    if before - after < 5 or after * 2 > before:
        return
    losing = [
        file.path
        for file in files
        if sum(case.asserts for case in file.now.cases) < sum(c.asserts for c in file.was.cases)
    ]
    message = f"{before - after} of {before} assertions are gone in {_listed(losing)}"
    yield Weakening(kind="asserts_removed", path=losing[0], message=message)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN_NAMES])
    more = len(names) - _SHOWN_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


# --- file by file ----------------------------------------------------------------------------


def _file_findings(files: list[_File], scripts: set[str]) -> Iterator[Weakening]:
    added = {file.after for file in files if file.before is None}
    for path, before, after in ((file.path, file.before, file.after) for file in files):
        if before is None:
            continue
        # A deleted test in a language whose tests cannot be counted.
        readable = is_countable(path) or suffix_of(path) in _DATA
        if after is None and is_test_path(path) and not readable and before not in added:
            message = f"the test file {path} was deleted"
            yield Weakening(kind="tests_removed", path=path, message=message)
        for words in weakenings(path, before, after):
            yield Weakening(kind="config", path=path, message=f"{path}: {words}")
        if path in scripts and not is_test_path(path):
            what = "deleted" if after is None else "changed"
            message = f"{path}, which a check runs, was {what}"
            yield Weakening(kind="check", path=path, message=message)
