"""Is a check told to look at less than before?

Compares the two sides of a file that configures checks: options that leave tests out, rules that
are switched off, thresholds lowered, scripts that always succeed, pipelines that no longer stop.
Structured files are compared by their values, the rest by the lines that are new.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ralphloop.workspace import weakened_files


class Weakening(NamedTuple):
    kind: str  # config or ci
    message: str
    severity: str = "challenge"


class _Sides(NamedTuple):
    """A file before and after, as text; `after` is empty where it was deleted."""

    before: str
    after: str

    @property
    def new_lines(self) -> list[str]:
        old = Counter(line.strip() for line in self.before.splitlines())
        fresh = Counter(line.strip() for line in self.after.splitlines()) - old
        return [line[:500] for line in fresh]


_Rule = Callable[[_Sides], Iterator[Weakening]]


def is_configuration(path: str) -> bool:
    """True for files that tell a check what to do."""
    return bool(_rules(path)) or _is_pipeline(path)


def weakenings(path: str, before: bytes, after: bytes | None) -> list[Weakening]:
    """Everything in which the new side asks less than the old one."""
    sides = _Sides(before.decode("utf-8", "replace"), (after or b"").decode("utf-8", "replace"))
    if _is_pipeline(path):
        return list(_pipeline(sides, deleted=after is None))
    if after is None:
        # A configuration may move to another file; that alone proves nothing.
        return [Weakening("config", "the file was deleted", "note")]
    found = [weakening for rule in _rules(path) for weakening in rule(sides)]
    return list(dict.fromkeys(found))


# --- which files, which rules ----------------------------------------------------------------


def _rules(path: str) -> tuple[_Rule, ...]:
    name = path.rpartition("/")[2]
    for pattern, rules in _FILES:
        if pattern.fullmatch(name):
            return rules
    return ()


def _is_pipeline(path: str) -> bool:
    return bool(_PIPELINES.search(path))


_PIPELINES = re.compile(
    r"(?:^|/)(?:\.github/workflows/[^/]+|\.gitlab-ci\.ya?ml|\.circleci/config\.ya?ml"
    r"|azure-pipelines\.ya?ml|Jenkinsfile|\.travis\.ya?ml|bitbucket-pipelines\.ya?ml"
    r"|\.drone\.ya?ml|\.buildkite/[^/]+)$"
)


# --- lines that are new ----------------------------------------------------------------------

_ALWAYS_GREEN = re.compile(r"\|\|\s*(?:true|:|exit 0)(?:\s|$|\"|')|;\s*(?:true|exit 0)\s*[\"']?$")
_CHECK_WORDS = re.compile(
    r"\b(?:test|lint|check|pytest|unittest|jest|vitest|mocha|mypy|pyright|ruff|flake8|pylint|eslint"
    r"|tsc|cargo|go|rspec|phpunit|mvn|gradle|dotnet|npm|pnpm|yarn|make|tox|nox|coverage)\b"
)
_FEWER_TESTS = re.compile(
    r"--ignore(?:-glob)?(?=[= ])|--deselect\b|(?:^|[\s\"'])-k[\s=\"']|-m[\s=]*[\"']?not\s"
    r"|--passWithNoTests|--testPathIgnorePatterns|--testNamePattern"
)
_COLLECTS_LESS = re.compile(
    r"\bcollect_ignore(?:_glob)?\b|\bdef pytest_(?:ignore_collect|collection_modifyitems)\b"
    r"|\btestPathIgnorePatterns\b|\bpassWithNoTests\b|^\s*exclude\s*[:=]"
)
_RULE_OFF = re.compile(r"[\"']?\boff\b[\"']?|:\s*0\s*,?\s*$|\bignores?(?:Patterns)?\b\s*:")
_PIPELINE_OFF = re.compile(
    r"\bcontinue-on-error:\s*true|\ballow_failure:\s*true|^\s*(?:- )?if:\s*(?:false|\$\{\{\s*false)"
)


def _new_line(pattern: re.Pattern[str], words: str) -> _Rule:
    """A rule: no new line may match."""

    def rule(sides: _Sides) -> Iterator[Weakening]:
        for line in sides.new_lines:
            if pattern.search(line):
                yield Weakening("config", f"{words}: {line[:120]}")

    return rule


def _always_green(sides: _Sides) -> Iterator[Weakening]:
    for line in sides.new_lines:
        if _ALWAYS_GREEN.search(line) and _CHECK_WORDS.search(line):
            yield Weakening("config", f"a check now always succeeds: {line[:120]}")


def _checks_less(sides: _Sides) -> Iterator[Weakening]:
    for line in sides.new_lines:
        if _FEWER_TESTS.search(line) and _CHECK_WORDS.search(line):
            yield Weakening("config", f"tests are left out: {line[:120]}")


def _more_ignored(sides: _Sides) -> Iterator[Weakening]:
    for line in sides.new_lines:
        if line and not line.startswith(("#", "!")):
            yield Weakening("config", f"a check now leaves out {line[:120]}")


def _pipeline(sides: _Sides, *, deleted: bool) -> Iterator[Weakening]:
    if deleted:
        yield Weakening("ci", "the pipeline was deleted")
        return
    weaker = [
        line
        for line in sides.new_lines
        if _PIPELINE_OFF.search(line) or (_ALWAYS_GREEN.search(line) and _CHECK_WORDS.search(line))
    ]
    for line in weaker:
        yield Weakening("ci", f"the pipeline no longer stops on failure: {line[:120]}")
    if not weaker:
        yield Weakening("ci", "the pipeline was edited", "note")


# --- values of structured files --------------------------------------------------------------


def _from_files(rule: Callable[[str, str], Iterator[str]]) -> _Rule:
    def wrapped(sides: _Sides) -> Iterator[Weakening]:
        for message in rule(sides.before, sides.after):
            yield Weakening("config", message)

    return wrapped


_TESTS_LEFT_OUT = _new_line(_FEWER_TESTS, "tests are left out")
_THRESHOLDS = _from_files(weakened_files.thresholds)
_FILES: tuple[tuple[re.Pattern[str], tuple[_Rule, ...]], ...] = (
    (
        re.compile(r"pyproject\.toml|\.?ruff\.toml"),
        (_TESTS_LEFT_OUT, _from_files(weakened_files.python_tools_in_toml), _THRESHOLDS),
    ),
    (
        re.compile(r"\.?pytest\.ini|tox\.ini|setup\.cfg|\.?mypy\.ini|\.flake8|\.coveragerc"),
        (
            _TESTS_LEFT_OUT,
            _from_files(weakened_files.python_tools_in_ini),
            _THRESHOLDS,
            _always_green,
        ),
    ),
    (re.compile(r"conftest\.py|noxfile\.py"), (_new_line(_COLLECTS_LESS, "tests are left out"),)),
    (
        re.compile(r"package\.json"),
        (
            _from_files(weakened_files.package_scripts),
            _THRESHOLDS,
            _new_line(re.compile(r"testPathIgnorePatterns|passWithNoTests"), "tests are left out"),
        ),
    ),
    (
        re.compile(r"(?:jest|vitest|karma|playwright)\.config\.\w+|\.mocharc\.\w+"),
        (_new_line(_COLLECTS_LESS, "tests are left out"), _THRESHOLDS),
    ),
    (
        re.compile(r"\.eslintrc(?:\.\w+)?|eslint\.config\.\w+|biome\.jsonc?"),
        (_new_line(_RULE_OFF, "a rule is switched off"),),
    ),
    (re.compile(r"\.eslintignore|\.prettierignore"), (_more_ignored,)),
    (re.compile(r"tsconfig(?:\.\w+)?\.json"), (_from_files(weakened_files.strict_options),)),
    (
        re.compile(r"(?:GNU)?[Mm]akefile|[Jj]ustfile|Taskfile\.ya?ml|composer\.json"),
        (_always_green, _checks_less, _from_files(weakened_files.recipes)),
    ),
    (re.compile(r"\.pre-commit-config\.ya?ml"), (_from_files(weakened_files.hook_ids),)),
    (
        re.compile(r"pom\.xml|build\.gradle(?:\.kts)?"),
        (
            _new_line(
                re.compile(r"skipTests|testFailureIgnore>\s*true|ignoreFailures\s*=\s*true"),
                "failing tests no longer stop the build",
            ),
        ),
    ),
)
