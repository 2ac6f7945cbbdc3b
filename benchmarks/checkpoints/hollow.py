"""Half-done work: the new functions of a solution, and the solution with one of them left empty.

It is also a program, for the Python of a problem, which may be a newer one than ours:
`python hollow.py SOLUTION [BEFORE]` prints the new functions, each with its file without it.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_LEAST_LINES = 4  # smaller ones are rarely a feature of their own


@dataclass(frozen=True, slots=True)
class NewFunction:
    """A function that a checkpoint added or changed."""

    file: str  # relative to the solution
    name: str  # with its class, e.g. Parser.parse_group
    line: int


def new_functions(solution: Path, before: Path | None) -> list[NewFunction]:
    """What a solution has and the one before has not, or has differently; by file and line."""
    found = []
    for path in sorted(solution.rglob("*.py")):
        file = str(path.relative_to(solution))
        if file.startswith("tests/"):
            continue
        old = before / file if before is not None else None
        known = _dumps(old) if old is not None and old.exists() else {}
        for name, function in _functions(ast.parse(path.read_text())).items():
            length = (function.end_lineno or function.lineno) - function.lineno
            if length < _LEAST_LINES or function.name in ("main", "__init__"):
                continue
            if known.get(name) != ast.dump(function):
                found.append(NewFunction(file, name, function.lineno))
    return found


def emptied(source: str, function: NewFunction) -> str:
    """The source with a function that returns nothing."""
    node = _functions(ast.parse(source))[function.name]
    lines = source.splitlines()
    first = node.body[0].lineno
    indent = " " * node.body[0].col_offset
    lines[first - 1 : node.end_lineno] = [f"{indent}return None"]
    return "\n".join(lines) + "\n"


def _dumps(path: Path) -> Mapping[str, str]:
    functions = _functions(ast.parse(path.read_text()))
    return {name: ast.dump(function) for name, function in functions.items()}


def _functions(tree: ast.Module) -> dict[str, _Function]:
    """The functions of a module and the methods of its classes, by name."""
    found = dict[str, _Function]()
    for node in tree.body:
        if isinstance(node, _Function):
            found[node.name] = node
        elif isinstance(node, ast.ClassDef):
            methods = [it for it in node.body if isinstance(it, _Function)]
            found |= {f"{node.name}.{it.name}": it for it in methods}
    return found


def main(solution: Path, before: Path | None) -> None:
    """Print each new function, and its file with that function empty."""
    found = new_functions(solution, before)
    texts = [emptied((solution / it.file).read_text(), it) for it in found]
    print(json.dumps([[asdict(it), text] for it, text in zip(found, texts, strict=True)]))


if __name__ == "__main__":
    _solution, *_before = map(Path, sys.argv[1:])
    main(_solution, _before[0] if _before else None)
