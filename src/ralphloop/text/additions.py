"""Whether a text of tests only got more of them: all that it said before, it still says.

Of Python by its syntax tree, so that a test which is skipped, hidden by another one of its name or
run among other fixtures is none that still says what it said.  Of other languages by lines alone.
"""

import ast
from collections.abc import Iterator, Sequence

_AUTOMATIC = ("pytest_", "setup", "teardown", "setUp", "tearDown", "load_tests", "__")
_OBEYED = frozenset({"pytestmark", "pytest_plugins", "collect_ignore", "collect_ignore_glob"})
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def only_adds(path: str, old: str, new: str) -> bool:
    """Whether everything in a text of tests stands in the newer one, with harmless additions."""
    if not path.endswith(".py"):
        return _holds_lines(old, new)
    try:
        before = ast.parse(old)
        after = ast.parse(new)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    words = {it.id for it in ast.walk(before) if isinstance(it, ast.Name)}
    return _holds(before.body, after.body, words)


def _holds_lines(old: str, new: str) -> bool:
    lines = iter(new.splitlines())
    return all(line in lines for line in old.splitlines())


def _holds(old: Sequence[ast.stmt], new: Sequence[ast.stmt], words: set[str]) -> bool:
    """Whether all old statements come in their order, and what is between them changes none."""
    known = words.union(*(_bound(one) for one in old))
    waiting = list(old)
    for one in new:
        if waiting and _is_still(waiting[0], one, words):
            waiting.pop(0)
        elif not _is_harmless(one, known):
            return False
    return not waiting


def _is_still(old: ast.stmt, new: ast.stmt, words: set[str]) -> bool:
    """Whether a statement is what it was; a class may have more in it."""
    if isinstance(old, ast.ClassDef) and isinstance(new, ast.ClassDef):
        heads = [
            (one.name, *map(ast.dump, (*one.bases, *one.keywords, *one.decorator_list)))
            for one in (old, new)
        ]
        return heads[0] == heads[1] and _holds(old.body, new.body, words)
    return ast.dump(old) == ast.dump(new)


def _is_harmless(node: ast.stmt, known: set[str]) -> bool:
    """Whether an added statement changes nothing for the tests that were there."""
    names = set(_bound(node))
    if names & known or names & _OBEYED or any(name.startswith(_AUTOMATIC) for name in names):
        return False
    if isinstance(node, _Function):
        return not any("autouse" in ast.dump(it) for it in node.decorator_list)
    if isinstance(node, ast.Assign):
        return all(isinstance(it, ast.Name) for it in node.targets)
    return isinstance(node, ast.ClassDef | ast.Import | ast.ImportFrom | ast.AnnAssign) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _bound(node: ast.stmt) -> Iterator[str]:
    """The names that a statement gives something to."""
    if isinstance(node, _Function | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (it.asname or it.name.partition(".")[0] for it in node.names)
    elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            yield from (it.id for it in ast.walk(target) if isinstance(it, ast.Name))
