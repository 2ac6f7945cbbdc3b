"""Counting tests in a source file: which there are, which are skipped, how much they assert.

Python is read by its syntax tree, everything else line by line with the expressions of
`data/languages.toml`.  A test that stands for several cases weighs as many as can be seen, so that
folding five tests into one table is not a loss of four.
"""

from __future__ import annotations

import ast
import re
import tomllib
import warnings
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import msgspec

from ralphloop.core.model import Value
from ralphloop.text.test_paths import is_test_path

_UNKNOWN_CASES = 3
_LONGEST_LINE = 500
_NEVER = "(?!)"
_ATTRIBUTES = re.compile(r"^\s*(?:(?:@[\w.:]+(?:\([^)]*\))?|#?\[[^\]]*\])[\s,]*)+")
_ROW = re.compile(r"^\s*[\[{(].*[\])}],?$")
_COMMENT_LINE = re.compile(r"^\s*(?://|#(?!\[)|\*|/\*)")


class TestCase(NamedTuple):
    """One test as the source shows it."""

    name: str
    weight: int = 1
    skipped: bool = False
    asserts: int = 0
    lines: int = 0  # of code, to tell an emptied test from one that asserts through a helper


class Census(NamedTuple):
    """All tests of one file."""

    cases: tuple[TestCase, ...] = ()  # several may have the same name
    group_skips: int = 0  # marks that skip a group or the whole file
    focuses: int = 0  # marks that leave all other tests out

    @property
    def weight(self) -> int:
        return sum(case.weight for case in self.cases)


class Language(Value, frozen=True):
    """What to look for in one language; the data file says what each expression is for."""

    suffixes: str
    test: str
    asserts: str
    skipped: str = _NEVER
    skips_inside: str = _NEVER
    skips_many: str = _NEVER
    focuses: str = _NEVER
    attribute: str = ""
    table: str = _NEVER


@cache
def _languages() -> dict[str, Language]:
    """Languages by the suffixes of their files."""
    text = files("ralphloop.repo").joinpath("data/languages.toml").read_text(encoding="utf-8")
    rows = msgspec.convert(tomllib.loads(text)["language"], list[Language])
    return {suffix: row for row in rows for suffix in row.suffixes.split()}


def suffix_of(path: str) -> str:
    """The last part of a file's name that tells its language."""
    return path.rpartition("/")[2].rpartition(".")[2].lower()


def is_countable(path: str) -> bool:
    """True where tests in this file can be told apart, and a runner would look for them."""
    kind = suffix_of(path)
    if kind in ("py", "go"):
        return is_test_path(path) or path.rpartition("/")[2].startswith("test")
    return kind in _languages()


def count(path: str, content: bytes | None) -> Census:
    """The tests in a file; none where it is absent or in a language nobody reads here."""
    if not content or not is_countable(path):
        return Census()
    kind, text = suffix_of(path), content.decode("utf-8", "replace")
    if kind == "py":
        try:
            return _by_syntax(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass  # the lines may still tell
    return _by_lines(_languages()[kind], text)


# --- Python ----------------------------------------------------------------------------------

_ASSERTING = re.compile(r"(?:assert|expect|check|verify|should|raises|warns|fail|deprecated_call)")
_SKIPPING = re.compile(r"(?:.*\.)?(?:skip\w*|xfail|expectedFailure)")
# Statements that are reached always, not under a condition, and skip all around them.
_CLOSING = re.compile(
    r"(?:\w+\.)*(?:skip|skipTest|xfail)\(|raise (?:\w+\.)*SkipTest\b|__test__ = False"
    r"|pytestmark = .*\.(?:skip|skipif|xfail)\b"
)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _by_syntax(text: str) -> Census:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # doubtful escapes are their author's business
        tree = ast.parse(text)
    return Census(tuple(_python_cases(tree, "", False)), sum(map(_closes, tree.body)))


def _python_cases(
    scope: ast.Module | ast.ClassDef, prefix: str, skipped: bool
) -> Iterator[TestCase]:
    for node in scope.body:
        if not isinstance(node, ast.ClassDef | _Function):
            continue
        closed = skipped or _is_marked(node) or any(map(_closes, node.body))
        if isinstance(node, ast.ClassDef):
            yield from _python_cases(node, f"{prefix}{node.name}.", closed)
        elif node.name.startswith("test"):
            yield TestCase(
                name=f"{prefix}{node.name}",
                weight=_parameters(node),
                skipped=closed,
                asserts=sum(map(_is_assertion, ast.walk(node))),
                lines=sum(not _is_filler(statement) for statement in node.body),
            )


def _is_marked(node: _Function | ast.ClassDef) -> bool:
    marks = (mark.func if isinstance(mark, ast.Call) else mark for mark in node.decorator_list)
    return any(_SKIPPING.fullmatch(ast.unparse(mark)) for mark in marks)


def _closes(statement: ast.stmt) -> bool:
    simple = isinstance(statement, ast.Expr | ast.Raise | ast.Assign)
    return simple and _CLOSING.match(ast.unparse(statement)) is not None


def _is_assertion(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return not isinstance(node.test, ast.Constant)
    return isinstance(node, ast.Call) and _ASSERTING.match(_last_name(node.func)) is not None


def _last_name(node: ast.expr) -> str:
    return str(getattr(node, "attr", "") or getattr(node, "id", ""))


def _is_filler(statement: ast.stmt) -> bool:
    said = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(statement, ast.Pass) or isinstance(said, ast.Constant)


def _parameters(function: _Function) -> int:
    """How many cases the parametrize marks make, as far as they can be seen."""
    product = 1
    for mark in function.decorator_list:
        if isinstance(mark, ast.Call) and _last_name(mark.func) == "parametrize":
            rows = getattr(mark.args[1], "elts", None) if len(mark.args) > 1 else None
            product *= _UNKNOWN_CASES if rows is None else len(rows)
    return max(product, 1)


# --- everything else -------------------------------------------------------------------------


def _by_lines(language: Language, text: str) -> Census:
    lines = [line[:_LONGEST_LINE] for line in text.splitlines()]
    code = [line for line in lines if line.strip() and not _COMMENT_LINE.match(line)]
    return Census(
        cases=tuple(_case(language, *block) for block in _blocks(language, code)),
        group_skips=_matching(language.skips_many, lines),
        focuses=_matching(language.focuses, code),
    )


def _matching(expression: str, lines: list[str]) -> int:
    return sum(bool(re.search(expression, line)) for line in lines)


def _blocks(language: Language, code: list[str]) -> list[tuple[str, list[str], list[str]]]:
    """Each test: its name, attributes with its first line, and all down to the next test."""
    blocks: list[tuple[str, list[str], list[str]]] = []
    waiting: list[str] = []
    for line in code:
        bare = _ATTRIBUTES.sub("", line)
        found = re.search(language.test, line) or re.search(language.test, bare)
        if found and _matching(language.attribute, [*waiting, line]):
            name = next(group for group in reversed(found.groups()) if group)
            blocks.append((name, [*waiting, line], []))
            waiting = []
        elif not any(map(str.isalnum, bare)):
            waiting.append(line)
        else:
            if blocks:
                blocks[-1][2].extend((*waiting, line))
            waiting = []
    return blocks


def _case(language: Language, name: str, above: list[str], inside: list[str]) -> TestCase:
    lines = [*above, *inside]
    weight = _matching(language.table, lines)
    if weight == 1:
        rows = sum(bool(_ROW.match(line)) for line in lines)
        weight = rows if rows > 1 else _UNKNOWN_CASES
    skips = _matching(language.skipped, above) + _matching(language.skips_inside, inside)
    return TestCase(
        name=name,
        weight=max(weight, 1),
        skipped=skips > 0,
        asserts=sum(len(re.findall(language.asserts, line)) for line in lines),
        lines=len(inside),
    )
