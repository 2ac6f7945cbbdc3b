"""Answers of tests that are handed out in roundabout ways: by state, by closures, by bound methods.

`answers` follows a function statement by statement.  This looks at all that a story wrote at once:
where nothing in it works anything out (values are only kept, passed on, counted off and looked up)
and every value that its tests expect stands in it, the answers were written down, however they
come out.
"""

import ast
from collections.abc import Iterable, Iterator, Sequence

from ralphloop.proof.answers import (
    FALLBACKS,
    MAKERS,
    SAYING,
    ChangedText,
    Literal,
    folded,
    key_of,
    made,
    parsed_all,
    takes_something,
    used_names,
)

_CARRYING = frozenset(
    "next iter cycle pop popleft deque zip dict partial get items keys values setdefault hash"
    " isinstance getattr append index enumerate __getitem__ super __init__ lru_cache cache property"
    " update lower strip casefold abs round loads literal_eval sorted reversed globals vars locals"
    " wraps".split()
)
_CHOOSING = frozenset("sum max min".split())  # of what a comprehension lets through
_NAMING = frozenset("get pop hash isinstance setdefault __getitem__".split())  # by what comes first
_SAME = (0, 1, -1)
_EXPECTING = frozenset(
    "assertEqual assertEquals assertIs assertAlmostEqual assertDictEqual".split()
)
_WORKING = (ast.Await, ast.With, ast.AsyncWith, ast.AsyncFor, ast.Slice)
_ASKING = (ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot)
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def carried_answers(code: Sequence[ChangedText], tests: Iterable[bytes]) -> tuple[str, ...]:
    """What hands the answers out, by name; empty where something is worked out."""
    trees = [*parsed_all(tests)]
    expected = {it for tree in trees for it in _expected(tree)} - FALLBACKS
    used = used_names([ast.unparse(tree).encode() for tree in trees])
    written = list[ast.stmt]()
    for text in code:
        try:
            written += _changed(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return ()
    kept = [node for node in written if not _is_unused(node, written, used)]
    tables = {name for node in kept for name in _tables_of(node)}
    has_own_values = any(_compares_with(tree, tables) for tree in trees)
    if not (expected or has_own_values) or not kept:
        return ()
    own = {node.name for node in kept if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    has_texts = any(kind == "str" for kind, _ in expected)
    if not all(_Plumbing(own, has_texts=has_texts).is_all(node) for node in kept):
        return ()
    values = {it for node in kept for it in _constants(node)}
    names = [name for node in kept for name in _answering(node)]
    # Rows that no test asks for are work: a table of all days, of which tests name two.
    said = {it for tree in trees for it in _constants(tree)}
    handed = {it for node in kept for it in _handed(node)} - FALLBACKS
    is_repeated = has_own_values or all(said.intersection(_spelled(it)) for it in handed)
    is_written_down = expected <= values and bool(values - FALLBACKS) and is_repeated
    return tuple(dict.fromkeys(names)) if is_written_down else ()


def _changed(text: ChangedText) -> Iterator[ast.stmt]:
    """Statements that a story added or changed, but imports and prose."""
    before = {ast.dump(node) for node in ast.parse(text.old or b"").body}
    for node in ast.parse(text.new).body:
        if isinstance(node, ast.Import | ast.ImportFrom) or ast.dump(node) in before:
            continue
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            yield node


def _is_unused(node: ast.stmt, written: Sequence[ast.stmt], used: frozenset[str]) -> bool:
    """A function that neither the tests nor the rest of the story names."""
    if not isinstance(node, ast.FunctionDef) or node.name.startswith("__") or node.decorator_list:
        return False
    others = [ast.unparse(it).encode() for it in written if it is not node]
    return node.name not in used and node.name not in used_names(others)


def _compared(tree: ast.Module) -> Iterator[ast.expr]:
    """What stands on a side of a comparison in tests."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            yield from (node.left, *node.comparators)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _EXPECTING:
            yield from node.args[:2]


def _expected(tree: ast.Module) -> Iterator[Literal]:
    """Constants that something is compared with in tests."""
    for side in _compared(tree):
        if not isinstance(side, ast.Call):  # what goes into a call is no answer
            yield from _constants(side)


def _compares_with(tree: ast.Module, tables: set[str]) -> bool:
    """Whether tests expect what stands in a table of the code itself."""
    rows = [it.value for it in _compared(tree) if isinstance(it, ast.Subscript)]
    return any(getattr(it, "attr", getattr(it, "id", "")) in tables for it in rows)


def _constants(node: ast.AST) -> Iterator[Literal]:
    for it in ast.walk(node):
        if isinstance(it, ast.Constant):
            yield key_of(it.value)
            for maker in ("float", "int"):
                yield key_of(made(maker, it.value))
        elif isinstance(it, ast.UnaryOp | ast.BinOp):
            yield from (key_of(value) for value in folded(it) or ())


def _handed(node: ast.AST) -> Iterator[Literal]:
    """Constants that may be answers: rows of tables and what is returned, but no keys."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.Constant):
            yield key_of(one.value)
        elif isinstance(one, ast.Call) and _called(one) in _NAMING:
            waiting += one.args[1:]
        elif isinstance(one, ast.Dict):
            waiting += one.values
        elif isinstance(one, ast.Subscript):
            waiting.append(one.value)
        elif isinstance(one, ast.Compare | ast.JoinedStr | ast.Expr | ast.arguments):
            continue
        elif isinstance(one, ast.UnaryOp | ast.BinOp) and (values := folded(one)):
            yield from (key_of(value) for value in values)
        else:
            waiting += ast.iter_child_nodes(one)


def _spelled(value: Literal) -> Iterator[Literal]:
    """A value as it stands, and as the number that a text of it is."""
    yield value
    for maker in ("float", "int"):
        yield key_of(made(maker, value[1]))


def _tables_of(node: ast.stmt) -> Iterator[str]:
    """Names under which constants are kept."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign):
        targets = [node.target]
    value = getattr(node, "value", None)
    if isinstance(value, ast.Dict | ast.List | ast.Tuple):
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def _answering(node: ast.stmt) -> Iterator[str]:
    """What of a statement can be called with something: a function, or a method of a table."""
    for it in ast.walk(node):
        if isinstance(it, ast.FunctionDef | ast.AsyncFunctionDef) and takes_something(it):
            yield f"{it.name}()"
    value = getattr(node, "value", None)
    is_bound = isinstance(value, ast.Attribute | ast.Lambda) or (
        isinstance(value, ast.Call) and getattr(value.func, "attr", "") == "partial"
    )
    if isinstance(node, ast.Assign) and is_bound:
        yield from (f"{it.id}()" for it in node.targets if isinstance(it, ast.Name))


def _called(node: ast.Call) -> str:
    called = node.func
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def _outside_of_keys(node: ast.AST) -> Iterator[ast.AST]:
    """Everything in a statement but how a row is found: the answer stands in the row."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        if isinstance(one, ast.Subscript) and not isinstance(one.slice, ast.Slice):
            waiting += [one.value, one.ctx]
        else:
            waiting += ast.iter_child_nodes(one)


def _is_choice(node: ast.expr) -> bool:
    """A term of constants and of questions for values: one of the constants is what it gives."""
    if isinstance(node, ast.BinOp):
        return _is_choice(node.left) and _is_choice(node.right)
    if isinstance(node, ast.Compare):
        return all(isinstance(it, _ASKING) for it in node.ops)
    return isinstance(node, ast.Constant)


class _Plumbing:
    """Whether values are only carried from one place to another."""

    def __init__(self, own: set[str], *, has_texts: bool) -> None:
        self.own = own  # functions and classes of the story itself
        self.has_texts = has_texts  # among what is expected

    def is_all(self, node: ast.stmt) -> bool:
        own = self.own | {it.name for it in ast.walk(node) if isinstance(it, ast.FunctionDef)}
        arguments = {it.arg for it in ast.walk(node) if isinstance(it, ast.arg)}
        return all(self._is_carrying(it, own | arguments) for it in _outside_of_keys(node))

    def _is_carrying(self, node: ast.AST, own: set[str]) -> bool:
        if isinstance(node, _WORKING):
            return False
        if isinstance(node, ast.JoinedStr):  # as the key of a row
            return not self.has_texts
        if isinstance(node, ast.Call):
            return self._is_carrying_call(node, own)
        if isinstance(node, ast.BinOp):
            is_nothing = folded(node) is not None or self._is_same(node.left, node.right)
            return is_nothing or _is_choice(node)
        if isinstance(node, ast.AugAssign):
            return self._is_same(node.value)
        if isinstance(node, ast.UnaryOp):
            return isinstance(node.op, ast.Not) or folded(node) is not None
        if isinstance(node, ast.Compare):
            return all(isinstance(it, _ASKING) for it in node.ops)
        return True

    def _is_carrying_call(self, node: ast.Call, own: set[str]) -> bool:
        called = node.func
        name = _called(node)
        if name in _CHOOSING:
            return all(isinstance(it, ast.GeneratorExp | ast.ListComp) for it in node.args)
        is_error = name.endswith(("Error", "Exception"))
        is_known = name in _CARRYING or name in MAKERS or name in SAYING or name in own
        # What a table holds may be called, too: a function that was written down there.
        is_looked_up = isinstance(called, ast.Subscript | ast.Lambda | ast.Call)
        return is_error or is_known or is_looked_up

    def _is_same(self, *sides: ast.expr) -> bool:
        """A term that changes nothing, or counts."""
        return any(isinstance(it, ast.Constant) and it.value in _SAME for it in sides)
