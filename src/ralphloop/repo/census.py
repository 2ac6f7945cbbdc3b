"""Counting tests in a source file: which there are, which are skipped, how much they assert.

Python is read by its syntax tree, everything else line by line with the patterns of `languages`.
A test that stands for several cases weighs as many as can be seen, so that folding five tests into
one table is not a loss of four.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ralphloop.repo.languages import LANGUAGES, Language
from ralphloop.text.test_paths import is_test_path

_UNKNOWN_CASES = 3
_LONGEST_LINE = 500
_ASSERTING = re.compile(r"^(?:assert|expect|check|verify|should|raises|warns|fail|deprecated_call)")
_SKIPPING = re.compile(r"(?:^|\.)(?:skip\w*|xfail|expectedFailure)$")
_ATTRIBUTES = re.compile(r"^\s*(?:(?:@[\w.:]+(?:\([^)]*\))?|#?\[[^\]]*\])[\s,]*)+")
_ROW = re.compile(r"^\s*[\[{(].*[\])}],?$")
_COMMENT_LINE = re.compile(r"^\s*(?://|#(?!\[)|\*|/\*)")


class Case(NamedTuple):
    """One test as the source shows it."""

    weight: int = 1
    skipped: bool = False
    asserts: int = 0
    lines: int = 0  # of code, to tell an emptied test from one that asserts through a helper


class Census(NamedTuple):
    """All tests of one file."""

    tests: dict[str, list[Case]]  # a name may stand for several
    group_skips: int = 0  # marks that skip a group or the whole file
    focuses: int = 0  # marks that leave all other tests out

    @property
    def weight(self) -> int:
        return sum(case.weight for case in self.cases)

    @property
    def cases(self) -> list[Case]:
        return [case for named in self.tests.values() for case in named]


EMPTY = Census({})


def suffix(path: str) -> str:
    """The last part of a file's name that tells its language."""
    return path.rpartition("/")[2].rpartition(".")[2].lower()


def is_countable(path: str) -> bool:
    """True where tests in this file can be told apart, and a runner would look for them."""
    kind = suffix(path)
    if kind in ("py", "go"):
        return is_test_path(path) or path.rpartition("/")[2].startswith("test")
    return kind in LANGUAGES


def count(path: str, content: bytes | None) -> Census:
    """The tests in a file; none where it is absent or in a language nobody reads here."""
    if not content or not is_countable(path):
        return EMPTY
    text = content.decode("utf-8", "replace")
    if suffix(path) == "py":
        return _python(text)
    return _by_lines(LANGUAGES[suffix(path)], text)


# --- Python ----------------------------------------------------------------------------------


def _python(text: str) -> Census:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # doubtful escapes are their author's business
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _by_lines(_BROKEN_PYTHON, text)
    tests: dict[str, list[Case]] = {}
    for name, function, inherited in _functions(tree, "", False):
        tests.setdefault(name, []).append(_python_case(function, inherited))
    return Census(tests, group_skips=sum(map(_skips_module, tree.body)))


_BROKEN_PYTHON = Language(
    test=re.compile(r"^\s*(?:async )?def (test\w*)\("),
    asserts=re.compile(r"\bassert\w*\b"),
    skipped=re.compile(r"^\s*@\S*skip"),
)

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(
    node: ast.Module | ast.ClassDef, prefix: str, skipped: bool
) -> Iterator[tuple[str, _Function, bool]]:
    for child in node.body:
        if isinstance(child, _Function):
            if child.name.startswith("test"):
                yield f"{prefix}{child.name}", child, skipped
        elif isinstance(child, ast.ClassDef):
            closed = skipped or _is_skipped(child) or any(map(_disables, child.body))
            yield from _functions(child, f"{prefix}{child.name}.", closed)


def _python_case(function: _Function, inherited: bool) -> Case:
    asserts = sum(map(_is_assertion, ast.walk(function)))
    skipped = inherited or _is_skipped(function) or any(map(_skips_here, function.body))
    lines = sum(not _is_filler(statement) for statement in function.body)
    return Case(_cases(function), skipped, asserts, lines)


def _is_assertion(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return not isinstance(node.test, ast.Constant)
    return isinstance(node, ast.Call) and bool(_ASSERTING.match(_name(node.func)[1]))


def _is_skipped(node: _Function | ast.ClassDef) -> bool:
    return any(_SKIPPING.search(_name(decorator)[0]) for decorator in node.decorator_list)


def _skips_here(statement: ast.stmt) -> bool:
    """A skip that is reached always, not under a condition."""
    if isinstance(statement, ast.Raise) and statement.exc is not None:
        return _name(statement.exc)[1] == "SkipTest"
    called = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(called, ast.Call) and _name(called.func)[1] in ("skip", "skipTest", "xfail")


def _skips_module(statement: ast.stmt) -> bool:
    if _skips_here(statement):
        return True
    if _disables(statement):
        return True
    if not isinstance(statement, ast.Assign):
        return False
    marks = any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in statement.targets)
    return marks and any(
        isinstance(node, ast.Attribute) and node.attr in ("skip", "skipif", "xfail")
        for node in ast.walk(statement.value)
    )


def _disables(statement: ast.stmt) -> bool:
    """`__test__ = False` hides a class or a module from pytest."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Constant):
        return False
    named = any(isinstance(t, ast.Name) and t.id == "__test__" for t in statement.targets)
    return named and statement.value.value is False


def _is_filler(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Pass):
        return True
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _cases(function: _Function) -> int:
    """How many cases the parametrize marks make, as far as they can be seen."""
    product = 1
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and _name(decorator)[1] == "parametrize":
            values = decorator.args[1] if len(decorator.args) > 1 else None
            known = isinstance(values, ast.List | ast.Tuple | ast.Set)
            product *= len(values.elts) if known else _UNKNOWN_CASES  # type: ignore[union-attr]
    return max(product, 1)


def _name(node: ast.expr) -> tuple[str, str]:
    """The dotted name of an expression and its last part; empty where it has none."""
    parts: list[str] = []
    current: ast.expr = node.func if isinstance(node, ast.Call) else node
    while isinstance(current, ast.Attribute):
        parts.append(current.attr)
        current = current.value
    if isinstance(current, ast.Name):
        parts.append(current.id)
    return ".".join(reversed(parts)), parts[0] if parts else ""


# --- everything else -------------------------------------------------------------------------


def _by_lines(language: Language, text: str) -> Census:
    lines = [line[:_LONGEST_LINE] for line in text.splitlines()]
    code = [line for line in lines if line.strip() and not _COMMENT_LINE.match(line)]
    tests: dict[str, list[Case]] = {}
    for block in _blocks(language, code):
        tests.setdefault(block.name, []).append(_case(language, block))
    return Census(
        tests,
        group_skips=sum(bool(language.skips_many.search(line)) for line in lines),
        focuses=sum(bool(language.focuses.search(line)) for line in code),
    )


class _Block(NamedTuple):
    """One test of a language that is read line by line."""

    name: str
    above: list[str]  # attributes and the first line
    inside: list[str]  # down to the next test


def _blocks(language: Language, code: list[str]) -> Iterator[_Block]:
    block: _Block | None = None
    waiting: list[str] = []
    for line in code:
        rest = _ATTRIBUTES.sub("", line)
        found = language.test.search(line) or language.test.search(rest)
        if found and _is_marked(language, (*waiting, line)):
            if block is not None:
                yield block
            name = next(group for group in reversed(found.groups()) if group)
            block, waiting = _Block(name, [*waiting, line], []), []
        elif not any(map(str.isalnum, rest)):
            waiting.append(line)
        else:
            if block is not None:
                block.inside.extend((*waiting, line))
            waiting = []
    if block is not None:
        yield block


def _is_marked(language: Language, attributes: Sequence[str]) -> bool:
    if language.attribute is None:
        return True
    return any(language.attribute.search(line) for line in attributes)


def _case(language: Language, block: _Block) -> Case:
    everything = [*block.above, *block.inside]
    skipped = any(language.skipped.search(line) for line in block.above)
    return Case(
        weight=_weight(language, everything),
        skipped=skipped or any(language.skips_inside.search(line) for line in block.inside),
        asserts=sum(len(language.asserts.findall(line)) for line in everything),
        lines=len(block.inside),
    )


def _weight(language: Language, lines: list[str]) -> int:
    tables = sum(bool(language.table.search(line)) for line in lines)
    if tables != 1:
        return max(tables, 1)
    rows = sum(bool(_ROW.match(line)) for line in lines)
    return rows if rows > 1 else _UNKNOWN_CASES
