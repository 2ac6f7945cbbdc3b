"""Functions that work nothing out: they hand out answers which their own tests repeat.

A function of this kind returns constants, or looks them up in a table of constants, and all that
it asks of its arguments is whether they are one of some constants.  Where every value that such
functions return stands as a literal in the story's tests, and the story has no other function,
nobody can tell whether it does more than its tests ask.
"""

import ast
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ralphloop.proof.python import NamedFunction, NotPython, changed_functions

MAKERS = frozenset(
    "Decimal Fraction date datetime time timedelta Path str int float bool bytes tuple list set"
    " dict frozenset UUID complex".split()
)
_PLAIN_METHODS = frozenset("lower upper strip casefold get".split())
SAYING = frozenset("print debug info warning error exception log".split())
_TERMS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_NO_ANSWER = (None, True, False, 0, 1, -1, 0.0, "", b"", ...)


_NUMBER = re.compile(r"(?<![\w.])(-?(?:0|[1-9]\d*)(?:\.\d+)?)(?![\w.])")
_QUOTED = re.compile(r"\"([^\"\n]{1,80})\"|'([^'\n]{1,80})'")
Literal = tuple[str, object]  # the name of a type, and a value of it


class ChangedText(NamedTuple):
    """A file of a story's change."""

    path: str
    old: bytes | None
    new: bytes


def answer_tables(
    code: Sequence[ChangedText], tests: Iterable[bytes], *, of_arguments: bool = False
) -> tuple[str, ...]:
    """Names of the functions, where all that the story did is to hand out such answers.

    `of_arguments`: only those that are given something to work with.
    """
    texts = tuple(tests)
    known = set(_literals_of_all(texts))
    used = used_names([text.new for text in code] + [*texts])
    working = list[_Working]()
    for text in code:
        try:
            tree = ast.parse(text.new)
            functions = (*changed_functions(text.old, text.new), *_lambdas(text.old, tree))
        except (NotPython, SyntaxError, RecursionError):
            return ()
        tables = _tables(tree)
        for name, node in functions:
            if not _is_bare(node):
                is_decoy = _is_decoy(node, text.old, used)
                is_meant = not of_arguments or takes_something(node)
                values = _answers(node, tables) if is_meant else None
                working.append(_Working(f"{name}()", values, is_decoy))
    asked = [one for one in working if not one.is_decoy] or working
    are_tables = all(one.values is not None and _are_known(one.values, known) for one in asked)
    return tuple(one.name for one in asked) if are_tables else ()


class _Working(NamedTuple):
    """A function that does something."""

    name: str
    values: list[object] | None  # that it can hand out; None where it works something out
    is_decoy: bool


def takes_something(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return any(it.arg not in ("self", "cls") for it in given) or node.args.vararg is not None


def literals_of(text: str) -> bytes:
    """The numbers and quoted words of any text, as a text of Python."""
    quoted = (repr(one or other) for one, other in _QUOTED.findall(text))
    return "\n".join(dict.fromkeys((*_NUMBER.findall(text), *quoted))).encode()


def used_names(texts: Iterable[bytes]) -> frozenset[str]:
    """Every name that is used in a text, rather than defined."""
    found = set[str]()
    for tree in parsed_all(texts):
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                found.add(node.id)
            elif isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.alias):
                found.add(node.name)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.update(node.value.split())
    return frozenset(found)


def _is_decoy(
    node: ast.FunctionDef | ast.AsyncFunctionDef, old: bytes | None, used: frozenset[str]
) -> bool:
    """A function that came with the story and that neither its code nor its tests use."""
    is_called_by_others = node.name.startswith("__") or bool(node.decorator_list)
    is_new = node.name.encode() not in (old or b"")
    return is_new and not is_called_by_others and node.name not in used


def _lambdas(old: bytes | None, tree: ast.Module) -> Iterator[NamedFunction]:
    """Functions without a `def` that a story added or changed outside of all others."""
    before = {ast.dump(node) for node in ast.parse(old or b"").body}
    for node in tree.body:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Lambda):
            continue
        target = node.targets[0]
        if isinstance(target, ast.Name) and ast.dump(node) not in before:
            body: list[ast.stmt] = [ast.Return(value=node.value.body)]
            made = ast.FunctionDef(
                name=target.id, args=node.value.args, body=body, decorator_list=[]
            )
            yield NamedFunction(target.id, made)


def parsed_all(texts: Iterable[bytes]) -> Iterator[ast.Module]:
    for text in texts:
        try:
            yield ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue


def _are_known(values: Sequence[object], known: set[Literal]) -> bool:
    """Every value stands in the tests, but for what is handed out where there is no answer."""
    telling = {key_of(value) for value in values} - FALLBACKS
    return bool(telling) and telling <= known


def key_of(value: object) -> Literal:
    return type(value).__name__, value


FALLBACKS = {key_of(value) for value in _NO_ANSWER}


def _is_bare(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """It has nothing to say: an abstract method, a docstring, a bare error."""
    rest = [it for it in node.body if not isinstance(it, ast.Pass | ast.Raise)]
    return all(isinstance(it, ast.Expr) and isinstance(it.value, ast.Constant) for it in rest)


def _literals_of_all(tests: Iterable[bytes]) -> Iterator[Literal]:
    for tree in parsed_all(tests):
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant):
                yield key_of(node.value)
            if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
                value = node.operand.value
                if isinstance(node.op, ast.USub) and isinstance(value, int | float | complex):
                    yield key_of(-value)


def _tables(tree: ast.Module) -> dict[str, list[object]]:
    """Tables of constants outside of functions, by name, with the values they hold."""
    found: dict[str, list[object]] = {}
    waiting: list[ast.AST] = [tree]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, ast.ClassDef):
                waiting.append(node)
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                values = _held(node.value)
                for target in targets:
                    if isinstance(target, ast.Name) and values is not None:
                        found[target.id] = values
    return found


def _held(node: ast.expr) -> list[object] | None:
    """The constants that a display holds as values; None where something is worked out in it."""
    if isinstance(node, ast.Constant):
        return [node.value]
    if isinstance(node, ast.UnaryOp | ast.BinOp):
        return folded(node)
    parts: list[ast.expr] = []
    if isinstance(node, ast.Dict):
        parts = node.values
    elif isinstance(node, ast.List | ast.Tuple | ast.Set):
        parts = node.elts
    elif isinstance(node, ast.Call) and _called(node.func) in MAKERS and not node.keywords:
        parts = node.args
    else:
        return None
    found = list[object]()
    for part in parts:
        values = _held(part)
        if values is None:
            return None
        found += values
    return found


def folded(node: ast.expr) -> list[object] | None:
    """The number that a term of numbers alone stands for: `1 + 0.5` is an answer, too."""
    value = _worth(node)
    return None if value is None else [value]


def _worth(node: ast.expr) -> int | float | None:
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) in (int, float) else None  # type: ignore[return-value]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _worth(node.operand)
        return None if inner is None else -inner
    if not isinstance(node, ast.BinOp) or type(node.op) not in _TERMS:
        return None
    left = _worth(node.left)
    right = _worth(node.right)
    if left is None or right is None:
        return None
    try:
        return _TERMS[type(node.op)](left, right)
    except ArithmeticError:
        return None


def _called(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _answers(
    node: ast.FunctionDef | ast.AsyncFunctionDef, outside: Mapping[str, list[object]]
) -> list[object] | None:
    """Everything that a function can hand out; None where it works something out."""
    found = _Answers(dict(outside))
    return found.values if found.follow(node.body) and found.has_answer else None


def made(maker: str, value: object) -> object:
    """The value that `float("1.5")` or `int("3")` is; any other as it stands."""
    makers: dict[str, type[float | int]] = {"float": float, "int": int}
    if maker not in makers or not isinstance(value, str):
        return value
    try:
        return makers[maker](value)
    except ValueError:
        return value


class _Answers:
    """What a function hands out, followed statement by statement."""

    def __init__(self, tables: dict[str, list[object]]) -> None:
        self.tables = tables
        self.values: list[object] = []
        self.has_answer = False

    def follow(self, body: Sequence[ast.stmt]) -> bool:
        return all(self._statement(node) for node in body)

    def _statement(self, node: ast.stmt) -> bool:
        if isinstance(node, ast.Expr):
            return isinstance(node.value, ast.Constant) or self._is_said(node.value)
        if isinstance(node, ast.Assert):
            return self._is_plain_question(node.test)
        if isinstance(node, ast.Return):
            return node.value is None or self._handed_out(node.value)
        if isinstance(node, ast.Assign):
            return self._is_kept(node)
        silent = ast.Pass | ast.Raise | ast.Break | ast.Continue | ast.Import | ast.ImportFrom
        return isinstance(node, silent) or self._branch(node)

    def _is_said(self, node: ast.expr) -> bool:
        """Something is printed or logged, which is no answer."""
        return isinstance(node, ast.Call) and _called(node.func) in SAYING

    def _branch(self, node: ast.stmt) -> bool:
        if isinstance(node, ast.If | ast.While):
            is_plain = self._is_plain_question(node.test)
            return is_plain and self.follow(node.body) and self.follow(node.orelse)
        if isinstance(node, ast.Try):
            handlers = [it.body for it in node.handlers]
            bodies = [node.body, node.orelse, node.finalbody, *handlers]
            return all(self.follow(body) for body in bodies)
        if isinstance(node, ast.Match):
            return self._is_passed_on(node.subject) and all(
                (it.guard is None or self._is_plain_question(it.guard)) and self.follow(it.body)
                for it in node.cases
            )
        return isinstance(node, ast.For) and self._is_search(node)

    def _is_kept(self, node: ast.Assign) -> bool:
        """A table, or an argument under another name: in lower case, as a tuple with others."""
        target = node.targets[0]
        values = _held(node.value)
        if values is not None and isinstance(target, ast.Name):
            self.tables[target.id] = values
            return True
        return self._is_passed_on(node.value)

    def _handed_out(self, node: ast.expr) -> bool:
        """A constant, or what a table of constants holds."""
        values = _held(node)
        if values is None:
            values = self._looked_up(node)
        if values is None:
            return False
        self.values += values
        self.has_answer = True
        return True

    def _looked_up(self, node: ast.expr) -> list[object] | None:
        if isinstance(node, ast.Name):
            return self.tables.get(node.id)
        if isinstance(node, ast.IfExp):
            is_plain = self._is_plain_question(node.test)
            return self._either([node.body, node.orelse]) if is_plain else None
        if isinstance(node, ast.BoolOp):
            return self._either(node.values)
        if isinstance(node, ast.Subscript) and self._is_passed_on(node.slice):
            return self._table(node.value)
        return self._asked_for(node) if isinstance(node, ast.Call) else None

    def _either(self, nodes: Sequence[ast.expr]) -> list[object] | None:
        """What one of these hands out; None where one of them works something out."""
        found = list[object]()
        for node in nodes:
            values = _held(node)
            if values is None:
                values = self._looked_up(node)
            if values is None:
                return None
            found += values
        return found

    def _asked_for(self, node: ast.Call) -> list[object] | None:
        """What `table.get(argument, constant)` gives, or a maker of values around a look-up."""
        if _called(node.func) in MAKERS and len(node.args) == 1:
            values = self._looked_up(node.args[0])
            return None if values is None else [made(_called(node.func), it) for it in values]
        called = node.func
        if not isinstance(called, ast.Attribute) or called.attr != "get" or not node.args:
            return None
        held = self._table(called.value)
        rest = [_held(it) for it in node.args[1:]]
        if held is None or None in rest or not self._is_passed_on(node.args[0]):
            return None
        return [*held, *(value for part in rest for value in part or ())]

    def _table(self, node: ast.expr) -> list[object] | None:
        if isinstance(node, ast.Attribute):
            return self.tables.get(node.attr)
        if isinstance(node, ast.Name):
            return self.tables.get(node.id)
        return _held(node) if isinstance(node, ast.Dict | ast.List | ast.Tuple) else None

    def _is_search(self, node: ast.For) -> bool:
        """A table gone through until an argument is found in it."""
        held = self._table(node.iter)
        if held is None and isinstance(node.iter, ast.Call) and _called(node.iter.func) == "zip":
            held = self._either(node.iter.args)
        elif held is None and isinstance(node.iter, ast.Call):
            called = node.iter.func
            held = self._table(called.value) if isinstance(called, ast.Attribute) else None
        if held is None:
            return False
        for target in ast.walk(node.target):
            if isinstance(target, ast.Name):
                self.tables[target.id] = held
        return self.follow(node.body) and self.follow(node.orelse)

    def _is_plain_question(self, node: ast.expr) -> bool:
        """Whether arguments are some constants, or are there at all."""
        if isinstance(node, ast.BoolOp):
            return all(self._is_plain_question(it) for it in node.values)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self._is_plain_question(node.operand)
        if isinstance(node, ast.Compare):
            kinds = (ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot)
            sides = (node.left, *node.comparators)
            are_plain = all(self._is_passed_on(it) or _held(it) is not None for it in sides)
            return are_plain and all(isinstance(it, kinds) for it in node.ops)
        if isinstance(node, ast.Call) and _called(node.func) == "isinstance":
            return True
        return self._is_passed_on(node) or _held(node) is not None

    def _is_passed_on(self, node: ast.expr) -> bool:
        """An argument as it came, or several, or one in another spelling."""
        if isinstance(node, ast.Name | ast.Constant):
            return True
        if isinstance(node, ast.Attribute):
            return self._is_passed_on(node.value)
        if isinstance(node, ast.Tuple | ast.List):
            return all(self._is_passed_on(it) for it in node.elts)
        if isinstance(node, ast.Call):
            called = node.func
            are_passed = all(self._is_passed_on(it) for it in node.args) and not node.keywords
            if isinstance(called, ast.Attribute) and called.attr in _PLAIN_METHODS:
                return are_passed and self._is_passed_on(called.value)
            return are_passed and _called(called) in MAKERS
        return False
