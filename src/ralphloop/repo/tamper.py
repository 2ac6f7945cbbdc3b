"""Was a check made easier instead of the work better?

Tests are counted in every changed source file before and after, over the whole change: what counts
is that there are as many as before, that they still run and still assert.  Moving, renaming and
regrouping tests is therefore no finding; losing, skipping or emptying them is.  What the checks are
told to do (their configuration and scripts) is compared by `weakened`.

Every finding is put to the agent once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ralphloop.core.model import Value
from ralphloop.repo.census import EMPTY, Case, Census, count, is_countable, suffix
from ralphloop.repo.measures import Change, Measure, Snapshot, printable
from ralphloop.repo.weakened import is_configuration, weakenings
from ralphloop.text.test_paths import is_test_path

MAX_FILES = 1_000
_SHOWN_NAMES = 5
_DATA = frozenset(
    "json txt snap png jpg gif svg md rst yml yaml csv tsv html xml lock golden out in toml ini cfg"
    " pdf zip gz bin sql log".split()
)


class Finding(Value, frozen=True, kw_only=True):
    """One sign that a check was weakened."""

    kind: str  # tests_removed, tests_skipped, tests_emptied, asserts_removed, config, check
    path: str
    message: str


class Review(Value, frozen=True, kw_only=True):
    """What a change did to the tests and to what the checks are told to do."""

    findings: tuple[Finding, ...] = ()
    tests_added: int = 0  # running tests more than before

    @property
    def challenges(self) -> tuple[str, ...]:
        """What the agent has to answer for, as sentences."""
        return tuple(found.message for found in self.findings)


class _File:
    """One changed file on both sides."""

    def __init__(self, change: Change, contents: dict[str, bytes]) -> None:
        self.path = printable(change.path)
        self.is_deleted = change.status == "D"
        self.before = contents.get(change.before or "")
        self.after = contents.get(change.after or "")
        # Content too large to read is unknown, and unknown is no evidence.
        unread = (change.before and self.before is None) or (change.after and self.after is None)
        self.is_known = not unread
        self.tests_before = count(self.path, self.before) if self.is_known else EMPTY
        self.tests_after = count(self.path, self.after) if self.is_known else EMPTY


def review(
    measure: Measure,
    before: Snapshot,
    after: Snapshot,
    checks: Iterable[Sequence[str]] = (),
) -> Review:
    """Look at everything that changed; `checks` are the command lines that prove stories."""
    scripts = _scripts(checks)
    changed = measure.diff(before, after).changes
    looked_at = [c for c in changed if _matters(c.path, scripts)][:MAX_FILES]
    names = [name for c in looked_at for name in (c.before, c.after) if name is not None]
    contents = measure.contents(names)
    files = [_File(change, contents) for change in looked_at]
    findings = (*_suite_findings(files), *_file_findings(files, scripts))
    return Review(findings=findings, tests_added=_added(files))


def _matters(path: str, scripts: frozenset[str]) -> bool:
    return is_countable(path) or is_test_path(path) or is_configuration(path) or path in scripts


def _scripts(checks: Iterable[Sequence[str]]) -> frozenset[str]:
    """Files of the repository that a check's command line names."""
    words = (word for argv in checks for word in argv if not word.startswith("-"))
    return frozenset(word.removeprefix("./") for word in words)


# --- tests over the whole change -------------------------------------------------------------


def _suite_findings(files: list[_File]) -> list[Finding]:
    return [*_removed(files), *_skipped(files), *_emptied(files), *_fewer_asserts(files)]


def _removed(files: list[_File]) -> list[Finding]:
    lost = sum(f.tests_before.weight for f in files) - sum(f.tests_after.weight for f in files)
    if lost <= 0:
        return []
    gone = _names(f.tests_before for f in files) - _names(f.tests_after for f in files)
    losing = [f.path for f in files if f.tests_after.weight < f.tests_before.weight]
    what = "1 test was" if lost == 1 else f"{lost} tests were"
    message = f"{what} removed in {_listed(losing)}{_example(gone)}"
    return [Finding(kind="tests_removed", path=losing[0], message=message)]


def _skipped(files: list[_File]) -> list[Finding]:
    findings = []
    for file in files:
        names = [name for name, old, new in _survivors(file) if new.skipped and not old.skipped]
        more_groups = file.tests_after.group_skips > file.tests_before.group_skips
        if names or (more_groups and file.tests_before.tests):
            what = _listed(names) if names else "a group of tests"
            message = f"skipped in {file.path}: {what}"
            findings.append(Finding(kind="tests_skipped", path=file.path, message=message))
        if file.tests_after.focuses > file.tests_before.focuses and file.tests_before.tests:
            message = f"only some tests are run in {file.path}: the others are left out"
            findings.append(Finding(kind="tests_skipped", path=file.path, message=message))
    return findings or _skipped_by_another_name(files)


def _skipped_by_another_name(files: list[_File]) -> list[Finding]:
    """As many tests as before, but fewer that run: renamed or moved, and skipped on the way."""
    idle_before, idle_after = (
        sum(c.weight for c in _cases(side) if c.skipped)
        for side in ([f.tests_before for f in files], [f.tests_after for f in files])
    )
    running = _running(f.tests_after for f in files) - _running(f.tests_before for f in files)
    if idle_after <= idle_before or running >= 0:
        return []
    paths = [f.path for f in files if any(c.skipped for c in f.tests_after.cases)]
    message = f"{-running} fewer tests run in {_listed(paths)}: they are skipped now"
    return [Finding(kind="tests_skipped", path=paths[0], message=message)]


def _emptied(files: list[_File]) -> list[Finding]:
    findings = []
    for file in files:
        names = [name for name, old, new in _survivors(file) if _is_emptied(old, new)]
        if names:
            message = f"no longer asserting anything in {file.path}: {_listed(names)}"
            findings.append(Finding(kind="tests_emptied", path=file.path, message=message))
    return findings


def _is_emptied(old: Case, new: Case) -> bool:
    # A test that asserts through a helper has lines left; an emptied one has lost its own.
    return old.asserts > 0 and new.asserts == 0 and new.lines < old.lines and not new.skipped


def _fewer_asserts(files: list[_File]) -> list[Finding]:
    """Half of the assertions gone while the tests stay is no refactoring."""
    pairs = [(old, new) for file in files for _, old, new in _survivors(file)]
    before = sum(old.asserts for old, _ in pairs)
    # Assertions may move into helpers and other tests, so everything on the new side counts.
    after = sum(case.asserts for case in _cases(f.tests_after for f in files))
    if before - after < 5 or after * 2 > before:
        return []
    losing = [f.path for f in files if _asserts(f.tests_after) < _asserts(f.tests_before)]
    message = f"{before - after} of {before} assertions are gone in {_listed(losing)}"
    return [Finding(kind="asserts_removed", path=losing[0], message=message)]


def _survivors(file: _File) -> list[tuple[str, Case, Case]]:
    """Tests of one file that are there on both sides, paired by name."""
    after = file.tests_after.tests
    return [
        (name, old, new)
        for name, cases in file.tests_before.tests.items()
        if len(cases) == len(after.get(name, ()))
        for old, new in zip(cases, after[name], strict=True)
    ]


def _added(files: list[_File]) -> int:
    return max(
        0, _asserting(f.tests_after for f in files) - _asserting(f.tests_before for f in files)
    )


def _asserting(sides: Iterable[Census]) -> int:
    return sum(c.weight for c in _cases(sides) if not c.skipped and c.asserts)


def _running(sides: Iterable[Census]) -> int:
    return sum(case.weight for case in _cases(sides) if not case.skipped)


def _cases(sides: Iterable[Census]) -> list[Case]:
    return [case for side in sides for case in side.cases]


def _asserts(side: Census) -> int:
    return sum(case.asserts for case in side.cases)


def _names(sides: Iterable[Census]) -> Counter[str]:
    """Bare names, so that a test in another class or file is the same test."""
    return Counter(
        name.rpartition(".")[2] for side in sides for name, c in side.tests.items() for _ in c
    )


# --- file by file ----------------------------------------------------------------------------


def _file_findings(files: list[_File], scripts: frozenset[str]) -> list[Finding]:
    findings: list[Finding] = []
    added = {f.after for f in files if f.before is None and f.after is not None}
    for file in files:
        if not file.is_known:
            continue
        if _is_lost_test_file(file) and file.before not in added:
            message = f"the test file {file.path} was deleted"
            findings.append(Finding(kind="tests_removed", path=file.path, message=message))
        if file.before is not None and is_configuration(file.path):
            findings += [
                Finding(kind="config", path=file.path, message=f"{file.path}: {words}")
                for words in weakenings(file.path, file.before, file.after)
            ]
        if file.path in scripts and file.before is not None and not is_test_path(file.path):
            what = "deleted" if file.is_deleted else "changed"
            message = f"{file.path}, which a check runs, was {what}"
            findings.append(Finding(kind="check", path=file.path, message=message))
    return findings


def _is_lost_test_file(file: _File) -> bool:
    """A deleted test in a language whose tests cannot be counted."""
    readable = is_countable(file.path) or suffix(file.path) in _DATA
    return file.is_deleted and is_test_path(file.path) and not readable


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN_NAMES])
    more = len(names) - _SHOWN_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


def _example(gone: Counter[str]) -> str:
    names = list(gone.elements())
    return f": {_listed(names)}" if names else ""
