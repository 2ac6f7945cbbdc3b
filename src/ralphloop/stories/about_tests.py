"""Is a story itself about tests?

Three test-only iterations in a row end work on a story, unless tests are what it asks for: its
title or criteria name them.  Words count, not letters ("latest", "contest" are no tests), and the
quality gates that generators append to every story ("Tests pass", "Typecheck passes") do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ralphloop.text.lazy_regex import LazyRegex

# A word edge that also splits at underscores: test_login.py names a test.
_START, _END = r"(?<![^\W_])", r"(?![^\W_])"

_NAMED = LazyRegex(
    _START
    + r"(?:tests?|testing|testsuites?|unittests?|coverage|e2e|pytest|jest|vitest|mocha|jasmine"
    + r"|rspec|phpunit|junit|xunit|nunit|testng"
    + r"|(?:playwright|cypress|selenium)[ \t-](?:specs?|suites?|scenarios?))"
    + _END,
    re.IGNORECASE,
)
_CAMEL_CASE = LazyRegex(r"(?<=[a-z0-9])Tests?(?![a-z])")
_EXPERIMENT = LazyRegex(_START + r"a ?/ ?b[ \t-]?(?:tests?|testing|tested)" + _END, re.IGNORECASE)

# Every name of tests has one of these in it; ordinary stories need no more than this look.
_PARTS = "test coverage e2e jest mocha jasmine rspec unit playwright cypress selenium".split()
_LABEL = LazyRegex(r"^[\w.-]{1,20}: ")  # "AC3: Tests pass"
_TOKEN = re.compile(r"[^\W_]+")
_VERDICT_WORDS = """
pass passes passed passing green succeed succeeds successful successfully ok fail fails failed
failing failures broken break clean cleanly
"""
_OTHER_GATE_WORDS = """
test tests testing suite suites unit integration e2e end to regression all every the existing
relevant other still continue continues keep keeps remain run runs is are must should be and with
without no not any errors error warnings in on ci locally lint linter linting typecheck
typechecking typescript type types check checks checking build builds compiles format formatting
npm npx yarn pnpm bun make cargo go python m q uv tox nox pytest jest vitest mocha rspec phpunit
junit mypy ruff eslint tsc
"""
_VERDICTS = frozenset(_VERDICT_WORDS.split())
_GATE_WORDS = _VERDICTS.union(_OTHER_GATE_WORDS.split())


def is_about_tests(title: str, criteria: Iterable[str]) -> bool:
    """True where the title, or a criterion beyond the usual gates, names tests."""
    return _names_tests(title) or any(
        _names_tests(criterion) and not _is_quality_gate(criterion) for criterion in criteria
    )


def _names_tests(text: str) -> bool:
    if not any(part in text.casefold() for part in _PARTS):
        return False
    if not (_NAMED.search(text) or _CAMEL_CASE.search(text)):
        return False
    rest = _EXPERIMENT.sub(" ", text)
    return bool(_NAMED.search(rest) or _CAMEL_CASE.search(rest))


def _is_quality_gate(criterion: str) -> bool:
    words = set(_TOKEN.findall(_LABEL.sub("", criterion).casefold()))
    return words <= _GATE_WORDS and not words.isdisjoint(_VERDICTS)
