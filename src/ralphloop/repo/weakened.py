"""Is a check told to look at less than before?

Compares the two sides of a file that configures checks: options that leave tests out, rules that
are switched off, thresholds lowered, scripts that always succeed, pipelines that no longer stop.
Structured files are compared by their values, the rest by the lines that are new.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

from ralphloop.repo import weakened_files

_Rule = Callable[[str, str], Iterator[str]]  # before and after to what became weaker, in words


def is_configuration(path: str) -> bool:
    """True for files that tell a check what to do."""
    return bool(_rules(path))


def weakenings(path: str, before: bytes, after: bytes | None) -> list[str]:
    """Everything in which the new side asks less than the old one."""
    if after is None:
        # A configuration may move to another file; that alone proves nothing.
        return ["the pipeline was deleted"] if _PIPELINES.search(path) else []
    old, new = (side.decode("utf-8", "replace") for side in (before, after))
    return list(dict.fromkeys(words for rule in _rules(path) for words in rule(old, new)))


def _rules(path: str) -> tuple[_Rule, ...]:
    if _PIPELINES.search(path):
        return _PIPELINE_RULES
    name = path.rpartition("/")[2]
    return next((rules for pattern, rules in _FILES if pattern.fullmatch(name)), ())


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


def _new_line(words: str, *patterns: re.Pattern[str]) -> _Rule:
    """A rule: no new line may match all of these."""

    def rule(before: str, after: str) -> Iterator[str]:
        for line in _new_lines(before, after):
            if all(pattern.search(line) for pattern in patterns):
                yield f"{words}: {line[:120]}"

    return rule


def _new_lines(before: str, after: str) -> list[str]:
    old = Counter(line.strip() for line in before.splitlines())
    fresh = Counter(line.strip() for line in after.splitlines()) - old
    return [line[:500] for line in fresh]


# --- which files, which rules ----------------------------------------------------------------

_PIPELINES = re.compile(
    r"(?:^|/)(?:\.github/workflows/[^/]+|\.gitlab-ci\.ya?ml|\.circleci/config\.ya?ml"
    r"|azure-pipelines\.ya?ml|Jenkinsfile|\.travis\.ya?ml|bitbucket-pipelines\.ya?ml"
    r"|\.drone\.ya?ml|\.buildkite/[^/]+)$"
)
_PIPELINE_RULES = (
    _new_line("the pipeline no longer stops on failure", _PIPELINE_OFF),
    _new_line("the pipeline no longer stops on failure", _ALWAYS_GREEN, _CHECK_WORDS),
)
_SUCCEEDS = _new_line("a check now always succeeds", _ALWAYS_GREEN, _CHECK_WORDS)
_LEFT_OUT = "tests are left out"
_TESTS_LEFT_OUT = _new_line(_LEFT_OUT, _FEWER_TESTS)
_FILES: tuple[tuple[re.Pattern[str], tuple[_Rule, ...]], ...] = (
    (
        re.compile(r"pyproject\.toml|\.?ruff\.toml"),
        (_TESTS_LEFT_OUT, weakened_files.python_tools_in_toml, weakened_files.thresholds),
    ),
    (
        re.compile(r"\.?pytest\.ini|tox\.ini|setup\.cfg|\.?mypy\.ini|\.flake8|\.coveragerc"),
        (
            _TESTS_LEFT_OUT,
            weakened_files.python_tools_in_ini,
            weakened_files.thresholds,
            _SUCCEEDS,
        ),
    ),
    (re.compile(r"conftest\.py|noxfile\.py"), (_new_line(_LEFT_OUT, _COLLECTS_LESS),)),
    (
        re.compile(r"package\.json"),
        (
            weakened_files.package_scripts,
            weakened_files.thresholds,
            _new_line(_LEFT_OUT, re.compile(r"testPathIgnorePatterns|passWithNoTests")),
        ),
    ),
    (
        re.compile(r"(?:jest|vitest|karma|playwright)\.config\.\w+|\.mocharc\.\w+"),
        (_new_line(_LEFT_OUT, _COLLECTS_LESS), weakened_files.thresholds),
    ),
    (
        re.compile(r"\.eslintrc(?:\.\w+)?|eslint\.config\.\w+|biome\.jsonc?"),
        (_new_line("a rule is switched off", _RULE_OFF),),
    ),
    (
        re.compile(r"\.eslintignore|\.prettierignore"),
        (_new_line("a check now leaves out", re.compile(r"^[^#!]")),),
    ),
    (re.compile(r"tsconfig(?:\.\w+)?\.json"), (weakened_files.strict_options,)),
    (
        re.compile(r"(?:GNU)?[Mm]akefile|[Jj]ustfile|Taskfile\.ya?ml|composer\.json"),
        (_SUCCEEDS, _new_line(_LEFT_OUT, _FEWER_TESTS, _CHECK_WORDS), weakened_files.recipes),
    ),
    (re.compile(r"\.pre-commit-config\.ya?ml"), (weakened_files.hook_ids,)),
    (
        re.compile(r"pom\.xml|build\.gradle(?:\.kts)?"),
        (
            _new_line(
                "failing tests no longer stop the build",
                re.compile(r"skipTests|testFailureIgnore>\s*true|ignoreFailures\s*=\s*true"),
            ),
        ),
    ),
)
