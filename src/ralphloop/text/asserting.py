"""Files of Python, Go and Rust that are there to assert, told by their text."""

import ast
import re

_FAILING = frozenset({"fail", "skip", "raises", "AssertionError"})


def is_asserting(text: str) -> bool:
    """Whether at least half of what a module defines asserts something."""
    tree = _parsed(text)
    defined = [it for it in tree.body if isinstance(it, ast.FunctionDef | ast.ClassDef)]
    asserting = [it for it in defined if any(_asserts(node) for node in ast.walk(it))]
    return bool(asserting) and 2 * len(asserting) >= len(defined)


def imported_names(text: str) -> frozenset[str]:
    """Every part of a module's name that a text imports from, and what it imports."""
    found = set[str]()
    for node in ast.walk(_parsed(text)):
        if isinstance(node, ast.ImportFrom):
            found.update((node.module or "").split("."))
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.update(part for alias in node.names for part in alias.name.split("."))
    return frozenset(found)


def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module(body=[], type_ignores=[])


def _asserts(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return True
    name = getattr(node, "attr", getattr(node, "id", ""))
    return name in _FAILING or name.startswith("assert")


_OF_GO = re.compile(r"^func\b", re.MULTILINE)
_GIVEN_A_TEST = re.compile(r"\btesting\.(?:T|TB|B|F)\b")
_OF_RUST = re.compile(
    r"^[ \t]*(?:pub(?:\([^)\n]{0,40}\))?[ \t]+)?fn\b|\bmacro_rules!", re.MULTILINE
)
_ASSERTING_RUST = re.compile(r"\b(?:assert|assert_eq|assert_ne|panic)!")


def is_asserting_go(text: str) -> bool:
    """Whether at least half of the functions of a file are given a test, to say what is wrong."""
    heads = [part.partition("\n")[0] for part in _OF_GO.split(text)[1:]]
    asserting = [head for head in heads if _GIVEN_A_TEST.search(head)]
    return bool(asserting) and 2 * len(asserting) >= len(heads)


def is_asserting_rust(text: str) -> bool:
    """Whether at least half of the functions and macros of a file assert something."""
    parts = _OF_RUST.split(text)[1:]
    asserting = [part for part in parts if _ASSERTING_RUST.search(part)]
    return bool(asserting) and 2 * len(asserting) >= len(parts)
