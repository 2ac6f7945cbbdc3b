"""The examples in the docstrings of a Python file: tests that stand among the code.

Two versions of a file are crossed: the code of the one with the docstrings of the other, wherever
both define the same thing.  Only docstrings whose examples differ are exchanged: other words around
an example are no change of a test.
"""

import ast
import codecs
from collections import Counter, deque
from collections.abc import Iterator
from typing import NamedTuple

_PROMPT = ">>>"
_EMPTY = b'""'
_HOLDING = (ast.stmt, ast.ExceptHandler, ast.match_case)
_Definition = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Crossed(NamedTuple):
    """Two versions of a file, each with the examples of the other."""

    new_code: bytes  # with the examples as they were
    old_code: bytes  # with the examples as they are


class _Docstring(NamedTuple):
    """Where the docstring of a definition stands, or would stand: a span of bytes."""

    start: int
    end: int
    literal: bytes  # as it is written; empty: there is none
    joint: bytes  # between one that is put there and the code behind it
    examples: tuple[str, ...]


def examples(text: str) -> tuple[str, ...]:
    """Every example of a text with what it expects, whatever words and margins are around it."""
    found: list[list[str]] = []
    is_inside = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith(_PROMPT):
            found.append([line])
            is_inside = True
        elif is_inside and line:
            found[-1].append(line)
        else:
            is_inside = False
    return tuple("\n".join(lines) for lines in found)


def crossed(old: bytes, new: bytes) -> Crossed | None:
    """The two versions crossed; None where no example of a definition that was there differs.

    Raises ValueError where one of them is no Python that can be read.
    """
    before = _docstrings(old)
    now = _docstrings(new)
    differing = {
        name
        for name, was in before.items()
        if was.examples != (now[name].examples if name in now else ())
    }
    if not differing:
        return None
    both = [name for name in differing if name in now]
    return Crossed(
        new_code=_with_docstrings(new, {now[name]: before[name].literal for name in both}),
        old_code=_with_docstrings(old, {before[name]: now[name].literal for name in both}),
    )


class _Described(NamedTuple):
    """Something that can have a docstring, by its name in the module."""

    name: str
    node: _Definition


def _docstrings(source: bytes) -> dict[str, _Docstring]:
    """By the names of what they describe; one that is defined twice has a number."""
    source.decode("utf-8")  # columns are counted in it
    try:
        module = ast.parse(source)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(str(error)) from error
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    if source.startswith(codecs.BOM_UTF8):
        starts[0] = len(codecs.BOM_UTF8)
    found: dict[str, _Docstring] = {}
    seen = Counter[str]()
    for name, node in _definitions(module, ""):
        first = node.body[0] if node.body else None
        if first is None:
            continue
        seen[name] += 1
        begins = starts[first.lineno - 1]
        start = begins + first.col_offset
        margin = source[begins:start]
        joint = b"; " if margin.strip() else b"\n" + margin
        place = _Docstring(start, start, b"", joint, ())
        if _is_docstring(first):
            end = starts[(first.end_lineno or first.lineno) - 1] + (first.end_col_offset or 0)
            text = examples(ast.get_docstring(node, clean=False) or "")
            place = _Docstring(start, end, source[start:end], joint, text)
        found[f"{name} {seen[name]}"] = place
    return found


def _definitions(node: _Definition, name: str) -> Iterator[_Described]:
    """A module and everything in it that can have a docstring which is collected."""
    yield _Described(name, node)
    waiting = deque[ast.AST](node.body)
    while waiting:
        one = waiting.popleft()
        if isinstance(one, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _definitions(one, f"{name}.{one.name}")
        elif isinstance(one, _HOLDING):  # `if`, `try` and the like define things, too
            waiting.extend(ast.iter_child_nodes(one))


def _is_docstring(first: ast.stmt) -> bool:
    value = first.value if isinstance(first, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _with_docstrings(source: bytes, wanted: dict[_Docstring, bytes]) -> bytes:
    """A source with these literals in the places of its own docstrings."""
    for place in sorted(wanted, key=lambda one: one.start, reverse=True):
        literal = wanted[place]
        if place.literal:
            replacement = literal or _EMPTY
        else:
            replacement = literal + place.joint if literal else b""
        source = source[: place.start] + replacement + source[place.end :]
    return source
