"""Work that only looks like it, told by its syntax tree alone.

A function that hands back what it is given, an equality that does not look at the other side, a
function that is called and not there yet or empty, a case for just the values that a test asks for:
a test can be green with each of them, and notice where they do something else, though nothing was
done.
"""

import ast
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import NamedTuple, TypeGuard

from ralphloop.proof.answers import (
    FALLBACKS,
    ChangedText,
    Literal,
    key_of,
    parsed_all,
    takes_something,
    used_names,
)
from ralphloop.proof.python import NotPython, changed_functions

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_EQUALITIES = frozenset({"__eq__", "__ne__"})
_ANY_KIND = frozenset("object int float str bytes bool list tuple dict set complex".split())


class _Changed(NamedTuple):
    """A function that a story added or changed, where it stands, and how it was."""

    path: str
    name: str
    node: _Function
    old: _Function | None


def shams_in(
    code: Sequence[ChangedText], asking: Iterable[bytes], own: Iterable[bytes] = ()
) -> tuple[str, ...]:
    """What is a sham, in words; `asking` are all tests, `own` those that the story brought."""
    asking = tuple(asking)
    own = tuple(own)
    trees = [*parsed_all(asking)]
    found = list[_Changed]()
    for text in code:
        try:
            found += _changed_in(text)
        except (NotPython, SyntaxError, ValueError, RecursionError):
            return ()
    working = [one for one in found if not _is_nothing_yet(one.node)]
    texts = [text.new for text in code]
    told = [
        *_handing_back(working, used_names([*asking, *own])),
        *_soft_equalities(found),
        *_missing_parts(found, texts),
    ]
    told += _empty_parts(found, [*parsed_all(texts)])
    told += _only_refusing(working)
    told += _only_replaced(found, [*parsed_all(own)])
    cases = [*_special_cases(working, _tables(code), trees)]
    told += cases or _rows_and_counts(found, [*parsed_all([*asking, *own])])
    told += _only_agreeing(found, [*parsed_all(own)])
    return tuple(dict.fromkeys(told))


def _changed_in(text: ChangedText) -> Iterator[_Changed]:
    before: dict[str, _Function] = {}
    if text.old is not None:
        before = {one.name: one.node for one in changed_functions(None, text.old)}
    for one in changed_functions(text.old, text.new):
        yield _Changed(text.path, one.name, one.node, before.get(one.name))


# What is handed back


def _handing_back(working: Sequence[_Changed], asked: Collection[str]) -> Iterator[str]:
    """Functions that are all of a story's work, and give back one argument as it came.

    One that no test names is a row of something that does the work.
    """
    is_named = not asked or any(one.node.name in asked for one in working)
    if working and is_named and all(_hands_back(one.node) for one in working):
        yield from (f"{one.path}: {one.name}() only hands back what it is given" for one in working)


def _hands_back(node: _Function) -> bool:
    if node.decorator_list or not isinstance(node, ast.FunctionDef):
        return False
    names = [it.arg for it in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    returned = set[str]()
    for one in _statements(node.body):
        if not _is_idle(one):
            return False
        if isinstance(one, ast.Return) and isinstance(one.value, ast.Name):
            returned.add(one.value.id)
    given = returned.intersection(names) - {"self", "cls"}
    return len(returned) == 1 and len(given) == 1


def _is_idle(node: ast.stmt) -> bool:
    """A statement that works nothing out."""
    if isinstance(node, ast.Return):
        return isinstance(node.value, ast.Name | ast.Constant)
    if isinstance(node, ast.If):
        return _is_equality(node.test)
    return isinstance(node, ast.Pass) or _is_prose(node)


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for one in body:
        yield one
        if isinstance(one, ast.If):
            yield from _statements([*one.body, *one.orelse])


def _is_equality(node: ast.expr) -> bool:
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.Eq | ast.In):
        return False
    return any(isinstance(it, ast.Constant) and _is_telling(it) for it in node.comparators)


def _is_telling(node: ast.Constant) -> bool:
    return key_of(node.value) not in FALLBACKS


# What is equal to everything


def _soft_equalities(found: Sequence[_Changed]) -> Iterator[str]:
    for one in found:
        if one.node.name in _EQUALITIES and len(one.node.args.args) == 2 and _is_soft(one.node):
            yield f"{one.path}: {one.name}() does not look at what it is compared with"


def _is_soft(node: _Function) -> bool:
    """Whether an equality says something, and nothing of the other side goes into it."""
    other = node.args.args[1].arg
    returned = [it.value for it in ast.walk(node) if isinstance(it, ast.Return)]
    is_open = all(isinstance(it, ast.Name) and it.id == "NotImplemented" for it in returned)
    if is_open or not returned:
        return False
    asked = [it for it in ast.walk(node) if isinstance(it, ast.Call) and _asks_any_kind(it)]
    inside = {id(it) for call in asked for it in ast.walk(call)}
    uses = [it for it in ast.walk(node) if isinstance(it, ast.Name) and it.id == other]
    return all(id(it) in inside for it in uses)


def _asks_any_kind(node: ast.Call) -> bool:
    """`isinstance(other, str)`: of which kind the other side is, and not of one's own."""
    if getattr(node.func, "id", "") != "isinstance" or len(node.args) != 2:
        return False
    kinds = [it.id for it in ast.walk(node.args[1]) if isinstance(it, ast.Name)]
    return bool(kinds) and _ANY_KIND.issuperset(kinds)


# What is not there yet


def _missing_parts(found: Sequence[_Changed], texts: Sequence[bytes]) -> Iterator[str]:
    """Functions of a module that others call, and that only say that they are not there yet."""
    used = used_names(texts)
    for one in found:
        is_called = one.old is None and "." not in one.name and one.name in used
        if is_called and _is_nothing_yet(one.node) and not one.node.decorator_list:
            yield f"{one.path}: {one.name}() is called, and is not there yet"


def _is_nothing_yet(node: _Function) -> bool:
    body = [it for it in node.body if not isinstance(it, ast.Expr)]
    if len(body) != 1 or not isinstance(body[0], ast.Raise) or body[0].exc is None:
        return False
    return "NotImplementedError" in ast.dump(body[0].exc)


# What is empty, though its result is waited for


def _empty_parts(found: Sequence[_Changed], trees: Sequence[ast.Module]) -> Iterator[str]:
    """Functions that came with the story, return nothing, and whose callers use the result."""
    empty = [one for one in found if one.old is None and _is_empty(one.node)]
    if not empty:
        return
    # A name that is defined twice may be a hook, and what it returns may be filled in elsewhere.
    defined = Counter(it.name for tree in trees for it in ast.walk(tree) if _is_function(it))
    asked = {name for tree in trees for name in _asked_names(tree)}
    for one in empty:
        if defined[one.node.name] == 1 and one.name in asked:
            yield f"{one.path}: {one.name}() is empty, and its result is used"


def _is_function(node: ast.AST) -> TypeGuard[_Function]:
    return isinstance(node, _Function)


def _is_empty(node: _Function) -> bool:
    """Whether a body is `pass` or `return None`; one of dots alone is a declaration."""
    body = [it for it in node.body if not _is_prose(it)]
    return bool(body) and not node.decorator_list and all(_returns_nothing(it) for it in body)


def _returns_nothing(node: ast.stmt) -> bool:
    if isinstance(node, ast.Return):
        return node.value is None or (
            isinstance(node.value, ast.Constant) and node.value.value is None
        )
    return isinstance(node, ast.Pass)


def _asked_names(tree: ast.Module) -> Iterator[str]:
    """Functions of modules, and methods of classes without a base, whose result is used."""
    yield from _asked_in(tree, frozenset(), "")
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and not node.bases and not node.keywords:
            yield from _asked_in(node, frozenset({"self", "cls", node.name}), f"{node.name}.")


def _asked_in(inside: ast.AST, owners: frozenset[str], before: str) -> Iterator[str]:
    """What is called for its result: by its name alone, or as a method of its owner."""
    for call in _used_calls(inside):
        called = call.func
        if not owners and isinstance(called, ast.Name):
            yield called.id
        elif isinstance(called, ast.Attribute) and getattr(called.value, "id", "") in owners:
            yield f"{before}{called.attr}"


def _used_calls(inside: ast.AST) -> Iterator[ast.Call]:
    """Calls that are more than a statement of their own."""
    alone = {id(_awaited(it.value)) for it in ast.walk(inside) if isinstance(it, ast.Expr)}
    for node in ast.walk(inside):
        if isinstance(node, ast.Call) and id(node) not in alone:
            yield node


def _awaited(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Await) else node


# What only refuses, and what its own tests never run


def _only_refusing(working: Sequence[_Changed]) -> Iterator[str]:
    """New functions that are all of a story's work, and refuse whatever they are given."""
    if working and all(one.old is None and _refuses_all(one.node) for one in working):
        yield from (f"{one.path}: {one.name}() refuses whatever it is given" for one in working)


def _refuses_all(node: _Function) -> bool:
    if node.name.startswith("__") or "NoReturn" in ast.dump(node.returns or ast.Constant(None)):
        return False
    inside = [it for part in node.body for it in ast.walk(part)]
    gives = any(isinstance(it, ast.Return | ast.Yield | ast.YieldFrom) for it in inside)
    return isinstance(node.body[-1], ast.Raise) and not gives and takes_something(node)


def _only_replaced(found: Sequence[_Changed], own: Sequence[ast.Module]) -> Iterator[str]:
    """Functions that came with the story, do nothing, and are replaced in its tests."""
    empty = [one for one in found if one.old is None and _is_empty(one.node)]
    replaced = {name for tree in own for name in _replaced_names(tree)} if empty else set()
    for one in empty:
        if one.node.name in replaced:
            yield f"{one.path}: {one.name}() is empty, and its tests replace it"


def _replaced_names(tree: ast.Module) -> Iterator[str]:
    """What tests put something else in the place of, by the last part of its name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            words = ast.unparse(node.func).split(".")
            if {"patch", "setattr"} & set(words):
                texts = (it.value for it in node.args[:2] if isinstance(it, ast.Constant))
                yield from (text.rpartition(".")[2] for text in texts if isinstance(text, str))
        elif isinstance(node, ast.Assign):
            yield from (it.attr for it in node.targets if isinstance(it, ast.Attribute))


# What is done for the values of a test alone


def _special_cases(
    working: Sequence[_Changed], tables: Mapping[str, set[object]], trees: Sequence[ast.Module]
) -> Iterator[str]:
    """Functions that do what they did, but for values that their tests ask for."""
    cases = list[str]()
    before = [_body(one.old) for one in working if one.old is not None]
    added = [_body(one.node) for one in working if one.old is None]
    for one in working:
        if one.old is None and _body(one.node) in before:
            continue  # another function of the story, under a new name
        asked = {it for tree in trees for it in _asked_of(one.node.name, tree)}
        taken_out = _WithoutCases(asked, tables, trees, one)
        left = taken_out.visit(deepcopy(one.node))
        if not taken_out.values or one.old is None:
            return
        was = _body(one.old)
        if _body(left) != was and not (was in added and _hands_on(left)):
            return
        values = ", ".join(sorted({repr(value) for value in taken_out.values})[:3])
        cases.append(f"{one.path}: {one.name}() has a case for just what its tests ask ({values})")
    yield from cases


def _is_left_empty(node: ast.For | ast.If) -> bool:
    return isinstance(node.body[0], ast.Pass) and not node.orelse


def _hands_on(node: _Function) -> bool:
    """Whether all that a function does is to call another one and to give back what that gave."""
    body = [it for it in node.body if not _is_prose(it)]
    if len(body) == 2 and isinstance(body[0], ast.Assign) and isinstance(body[1], ast.Return):
        given = body[1].value
        is_same = isinstance(given, ast.Name) and ast.unparse(body[0].targets[0]) == given.id
        return is_same and isinstance(body[0].value, ast.Call)
    return (
        len(body) == 1 and isinstance(body[0], ast.Return) and isinstance(body[0].value, ast.Call)
    )


def _counters(node: _Function, old: _Function | None) -> set[str]:
    """What a function counts that it did not count before."""
    was = [it for it in ast.walk(old) if isinstance(it, ast.AugAssign)] if old else []
    before = {ast.unparse(it) for it in was}
    counted = [it for it in ast.walk(node) if isinstance(it, ast.AugAssign)]
    return {ast.unparse(it.target) for it in counted if ast.unparse(it) not in before}


def _body(node: ast.AST) -> list[str]:
    """What a function does, without its docstring."""
    found = [it for it in getattr(node, "body", []) if not _is_prose(it)]
    return [ast.dump(ast.parse(ast.unparse(it))) for it in found]


def _is_prose(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _asked_of(function: str, tree: ast.Module) -> Iterator[object]:
    """Telling constants that tests hand to a function of this name, also by a table of rows."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in (function, "parametrize"):
                for it in ast.walk(node):
                    if isinstance(it, ast.Constant) and _is_telling(it):
                        yield it.value


def _tables(code: Sequence[ChangedText]) -> dict[str, set[object]]:
    """The keys of tables outside of functions, by their names."""
    found: dict[str, set[object]] = {}
    for tree in parsed_all(text.new for text in code):
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                found[node.targets[0].id] = set(_keys(node.value))
    return found


def _keys(node: ast.expr) -> Iterator[object]:
    held = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
    for it in held:
        if isinstance(it, ast.Constant):
            yield it.value


class _WithoutCases(ast.NodeTransformer):
    """A function without the parts that are for some values alone."""

    def __init__(
        self,
        asked: set[object],
        tables: Mapping[str, set[object]],
        trees: Sequence[ast.Module],
        one: _Changed,
    ) -> None:
        self.asked = asked
        self.tables = tables
        self.trees = trees
        self.values = set[object]()
        self.counters = _counters(one.node, one.old)
        given = [it.value for it in ast.walk(one.node) if isinstance(it, ast.Return)]
        given += [it.orelse for it in ast.walk(one.node) if isinstance(it, ast.IfExp)]
        self.arguments = {it.arg for it in ast.walk(one.node.args) if isinstance(it, ast.arg)}
        self.results = {it.id for it in given if isinstance(it, ast.Name)} - self.arguments

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """The same without its cases; a block that held nothing else is there, and empty."""
        super().generic_visit(node)
        for block in ("body", "finalbody"):
            had_to_be = block == "body" or (isinstance(node, ast.Try) and not node.handlers)
            if had_to_be and getattr(node, block, None) == []:
                setattr(node, block, [ast.Pass()])
        return node

    def visit_For(self, node: ast.For) -> ast.stmt | None:
        self.generic_visit(node)
        return None if _is_left_empty(node) else node

    def visit_If(self, node: ast.If) -> list[ast.stmt] | ast.stmt | None:
        self.generic_visit(node)
        if _is_left_empty(node):
            return None
        answer = node.body[0].value if isinstance(node.body[0], ast.Return) else None
        is_case = self._is_answered(node) and self._is_case(node.test)
        return node.orelse if is_case or self._is_put_in(node, answer) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        is_case = self._is_case(node.test) or self._is_put_in(node, node.body)
        return node.orelse if is_case else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt | None:
        return None if ast.unparse(node.target) in self.counters else node

    def visit_Global(self, node: ast.Global) -> ast.stmt | None:
        return None if self.counters.issuperset(node.names) else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        is_case = any(
            isinstance(it, ast.Compare) and self._is_case(it) for it in ast.walk(node.right)
        )
        return node.left if is_case else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """`TABLE.get(x, rest)` is the rest, but for the rows of the table."""
        self.generic_visit(node)
        called = node.func
        if not isinstance(called, ast.Attribute) or called.attr != "get" or len(node.args) != 2:
            return node
        keys = set(_keys(called.value)) or self.tables.get(getattr(called.value, "id", ""), set())
        return node.args[1] if self._are_asked(keys) else node

    def visit_Match(self, node: ast.Match) -> list[ast.stmt] | ast.stmt:
        self.generic_visit(node)
        values = [it.pattern for it in node.cases if isinstance(it.pattern, ast.MatchValue)]
        constants = (it.value for it in values if isinstance(it.value, ast.Constant))
        keys: set[object] = {it.value for it in constants}
        if len(values) != len(node.cases) - 1 or not self._are_asked(keys):
            return node
        return node.cases[-1].body

    def _is_answered(self, node: ast.If) -> bool:
        """Whether a branch is for an argument, or has something to say; else it only goes on."""
        asked = {it.id for it in ast.walk(node.test) if isinstance(it, ast.Name)}
        inside = [it for part in node.body for it in ast.walk(part)]
        is_said = any(
            isinstance(it, ast.Return) or (isinstance(it, ast.Constant) and _is_telling(it))
            for it in inside
        )
        return is_said or bool(asked & self.arguments)

    def _is_case(self, node: ast.expr) -> bool:
        """Whether it is asked if an argument is one of the values that tests hand over."""
        if isinstance(node, ast.BoolOp):
            return any(self._is_case(it) for it in node.values)
        if not isinstance(node, ast.Compare) or not isinstance(
            node.ops[0], ast.Eq | ast.In | ast.Is
        ):
            return False
        keys = set[object]()
        for side in (node.left, *node.comparators):
            if isinstance(side, ast.Constant):
                keys.add(side.value)
            elif isinstance(side, ast.Name):
                keys |= self.tables.get(side.id, set())
            else:
                keys |= set(_keys(side))
        return self._are_asked(keys)

    def _is_put_in(self, node: ast.If | ast.IfExp, answer: ast.expr | None) -> bool:
        """Whether what a test expects is given for a result, or for a call by its number."""
        compared = [it for it in ast.walk(node.test) if isinstance(it, ast.Compare)]
        watched = {*self.counters, *self.results}
        is_watched = any(
            isinstance(it.ops[0], ast.Eq)
            and watched & {ast.unparse(it.left), *map(ast.unparse, it.comparators)}
            for it in compared
        )
        if answer is None or not is_watched or not self._is_expected(answer):
            return False
        self.values.add(
            ast.literal_eval(answer) if isinstance(answer, ast.Constant) else ast.unparse(answer)
        )
        return True

    def _is_expected(self, answer: ast.expr) -> bool:
        """Whether a test has this literal."""
        is_literal = isinstance(answer, ast.List | ast.Tuple | ast.Dict | ast.UnaryOp) or (
            isinstance(answer, ast.Constant) and _is_telling(answer)
        )
        if not is_literal:
            return False
        wanted = ast.dump(answer)
        kind = type(answer)
        every = (it for tree in self.trees for it in ast.walk(tree))
        return any(type(it) is kind and ast.dump(it) == wanted for it in every)

    def _are_asked(self, keys: set[object]) -> bool:
        telling = {key for key in keys if key_of(key) not in FALLBACKS}
        if not telling or not all(key in self.asked or self._is_spelled(key) for key in telling):
            return False
        self.values |= telling
        return True

    def _is_spelled(self, key: object) -> bool:
        """Whether a text is the spelling of values that tests hand over: `repr((x, y))`."""
        if not isinstance(key, str) or not key.startswith(("(", "[", "{")):
            return False
        try:
            tree = ast.parse(key, mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
        values = [it.value for it in ast.walk(tree) if isinstance(it, ast.Constant)]
        telling = [it for it in values if key_of(it) not in FALLBACKS]
        return bool(telling) and self.asked.issuperset(telling)


# What is answered as a test has it, row by row


class _Row(NamedTuple):
    """A constant that a test hands over, and what it expects for it."""

    given: Literal
    expected: str


class _Branch(NamedTuple):
    """What a function answers where it is given just this."""

    given: frozenset[Literal]
    answer: str


def _rows_and_counts(found: Sequence[_Changed], trees: Sequence[ast.Module]) -> Iterator[str]:
    yield from _repeated_rows(found, trees)
    yield from _counted_calls(found, trees)


def _repeated_rows(found: Sequence[_Changed], trees: Sequence[ast.Module]) -> Iterator[str]:
    """New functions and branches whose answers are rows of their tests, each beside its question.

    Where one of them answers what no test asks, they are what they look like: a choice.
    """
    rows: set[_Row] | None = None
    for one in found:
        before = {ast.dump(it) for it in ast.walk(one.old)} if one.old else set[str]()
        branches = [it for it in ast.walk(one.node) if isinstance(it, ast.If | ast.IfExp)]
        new = [_branch_of(it) for it in branches if ast.dump(it) not in before]
        answered = [it for it in new if it is not None]
        if not answered:
            continue
        if rows is None:
            rows = {row for tree in trees for row in _rows_of(tree)}
        if all(_is_row(it, rows) for it in answered):
            values = sorted({repr(value) for it in answered for _, value in it.given})
            told = ", ".join(values[:3])
            yield f"{one.path}: {one.name}() answers {told} as a test has it"


def _counted_calls(found: Sequence[_Changed], trees: Sequence[ast.Module]) -> Iterator[str]:
    """Functions that keep outside of themselves how often they ran, and answer a test by that."""
    for one in found:
        counted = _kept_outside(one.node) - (_kept_outside(one.old) if one.old else set())
        if not counted:
            continue
        for node in ast.walk(one.node):
            answer = _answer_of(node.body) if isinstance(node, ast.If) else None
            if not isinstance(node, ast.If) or answer is None or not _is_literal(answer):
                continue
            asked = {it.id for it in ast.walk(node.test) if isinstance(it, ast.Name)}
            wanted = ast.dump(answer)
            every = (it for tree in trees for it in ast.walk(tree))
            if asked & counted and any(ast.dump(it) == wanted for it in every):
                yield f"{one.path}: {one.name}() counts its calls, and answers what a test expects"
                break


def _kept_outside(node: _Function) -> set[str]:
    """Names of the module of which a function says that there is one more."""
    stored = {
        it.id for it in ast.walk(node) if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store)
    }
    arguments = {it.arg for it in ast.walk(node.args) if isinstance(it, ast.arg)}
    outside = {name for it in ast.walk(node) if isinstance(it, ast.Global) for name in it.names}
    changed = set[str]()
    for it in ast.walk(node):
        target: ast.expr | None = it.target if isinstance(it, ast.AugAssign) else None
        if isinstance(it, ast.Call) and getattr(it.func, "attr", "") in ("append", "add"):
            target = getattr(it.func, "value", None)
        if isinstance(target, ast.Subscript):
            target = target.value
        if isinstance(target, ast.Name):
            changed.add(target.id)
    return changed - ((stored | arguments) - outside)


def _is_row(branch: _Branch, rows: Collection[_Row]) -> bool:
    return all(_Row(given, branch.answer) in rows for given in branch.given)


def _branch_of(node: ast.If | ast.IfExp) -> _Branch | None:
    """What is answered where something is equal to one of some constants; None: another branch."""
    answer = _answer_of(node.body)
    compared = [it for it in ast.walk(node.test) if isinstance(it, ast.Compare)]
    if answer is None or not _is_literal(answer) or len(compared) != 1:
        return None
    [one] = compared
    if not isinstance(one.ops[0], ast.Eq | ast.In):
        return None
    sides = [one.left, *one.comparators]
    held = [it for side in sides for it in (side, *getattr(side, "elts", []))]
    constants = [it for it in held if isinstance(it, ast.Constant)]
    telling = frozenset(key_of(it.value) for it in constants if _is_telling(it))
    return _Branch(telling, ast.dump(answer)) if telling and len(telling) < 3 else None


def _answer_of(body: ast.expr | list[ast.stmt]) -> ast.expr | None:
    if isinstance(body, ast.expr):
        return body
    if isinstance(body[0], ast.Return):
        return body[0].value
    handed = body[0].value if isinstance(body[0], ast.Expr) else None
    return handed.value if isinstance(handed, ast.YieldFrom) else None


def _is_literal(node: ast.expr) -> bool:
    """A value that says something."""
    if isinstance(node, ast.Constant):
        return _is_telling(node)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.operand, ast.Constant) and _is_telling(node.operand)
    held = [*getattr(node, "elts", []), *getattr(node, "values", [])]
    return isinstance(node, ast.List | ast.Tuple | ast.Dict) and any(map(_is_literal, held))


def _rows_of(tree: ast.Module) -> Iterator[_Row]:
    for function in (it for it in ast.walk(tree) if _is_function(it)):
        kept = _kept_once(function)
        for node in ast.walk(function):
            for one, other in _equal_sides(node):
                for expected, asked in ((one, other), (other, one)):
                    if _is_literal(expected):
                        for given in _constants_given(asked, kept):
                            yield _Row(given, ast.dump(expected))


def _equal_sides(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What is compared in an assertion, and the ends of each row of a table of rows."""
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq):
        yield node.left, node.comparators[0]
    elif isinstance(node, ast.Call) and len(node.args) > 1:
        called = _called(node)
        if called.startswith("assert"):
            yield node.args[0], node.args[1]
        elif called == "parametrize":
            rows = (it for it in ast.walk(node) if isinstance(it, ast.Tuple) and len(it.elts) > 1)
            for row in rows:
                yield from ((it, row.elts[-1]) for it in row.elts[:-1])


def _kept_once(function: _Function) -> dict[str, ast.expr]:
    """What the names of a test stand for."""
    assigned = [it for it in ast.walk(function) if isinstance(it, ast.Assign)]
    names = [(it.targets[0].id, it.value) for it in assigned if isinstance(it.targets[0], ast.Name)]
    often = Counter(name for name, _ in names)
    return {name: value for name, value in names if often[name] == 1}


def _constants_given(node: ast.expr, kept: Mapping[str, ast.expr]) -> Iterator[Literal]:
    """Telling constants of an expression, also behind names that have one value."""
    waiting: list[ast.AST] = [node]
    seen = set[str]()
    while waiting:
        for it in ast.walk(waiting.pop()):
            if isinstance(it, ast.Constant) and _is_telling(it):
                yield key_of(it.value)
            elif isinstance(it, ast.Name) and it.id in kept and it.id not in seen:
                seen.add(it.id)
                waiting.append(kept[it.id])


# What is only asked for one answer, or whether it agrees with itself


class _Asked(NamedTuple):
    """One thing that tests assert of functions of the story."""

    names: frozenset[str]  # of the functions, as far as their results go into it
    is_agreement: bool = False  # they are compared with each other, and with nothing else
    says: bool | None = None  # yes or no is all that is expected


def _only_agreeing(found: Sequence[_Changed], trees: Sequence[ast.Module]) -> Iterator[str]:
    """Functions whose results are compared with each other alone, or asked for one answer."""
    added = {one.node.name: one for one in found if one.old is None}
    asked = [it for tree in trees for it in _asserted(tree, frozenset(added))]
    names = sorted({name for one in asked for name in one.names})
    if not names:
        return
    path = added[names[0]].path
    answers = {one.says for one in asked}
    are_predicates = all(_is_predicate(added[name].node) for name in names)
    if all(one.is_agreement for one in asked) and len(names) > 1:
        told = " and ".join(f"{name}()" for name in names[:3])
        yield f"{path}: {told} are compared with each other alone"
    elif are_predicates and answers in ({True}, {False}):
        answer = "yes" if True in answers else "no"
        yield f"{path}: {names[0]}() is asked only where it says {answer}"


def _asserted(tree: ast.Module, names: frozenset[str]) -> Iterator[_Asked]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            yield from _of_expression(node.test, names)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "").startswith("assert"):
            yield from _of_method(node, names)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "raises":
            yield _Asked(names=frozenset())


def _of_method(node: ast.Call, names: frozenset[str]) -> Iterator[_Asked]:
    method = getattr(node.func, "attr", "")
    if method in ("assertTrue", "assertFalse") and node.args:
        yield from _of_expression(node.args[0], names, says=method == "assertTrue")
    elif method in ("assertEqual", "assertIs") and len(node.args) > 1:
        pair = ast.Compare(left=node.args[0], ops=[ast.Eq()], comparators=[node.args[1]])
        yield from _of_expression(pair, names)
    else:
        yield _Asked(names=frozenset())


def _of_expression(node: ast.expr, names: frozenset[str], *, says: bool = True) -> Iterator[_Asked]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield from _of_expression(node.operand, names, says=not says)
    elif isinstance(node, ast.BoolOp):
        for part in node.values:
            yield from _of_expression(part, names, says=says)
    elif isinstance(node, ast.Compare):
        sides = (node.left, *node.comparators)
        used = [_results_in(side, names) for side in sides]
        every = frozenset[str]().union(*used)
        truth = next((it.value for it in sides if _is_truth(it)), None)
        if every and isinstance(truth, bool):
            yield _Asked(names=every, says=truth == says)
        elif every:
            yield _Asked(names=every, is_agreement=all(used))
    elif used_here := _results_in(node, names):
        is_call = isinstance(node, ast.Call) and _called(node) in names
        yield _Asked(names=used_here, says=says if is_call else None)


def _is_truth(node: ast.expr) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)


def _called(node: ast.Call) -> str:
    return str(getattr(node.func, "attr", getattr(node.func, "id", "")))


def _results_in(node: ast.expr, names: frozenset[str]) -> frozenset[str]:
    """Functions of the story that are called in an expression."""
    calls = (it for it in ast.walk(node) if isinstance(it, ast.Call))
    return frozenset(_called(it) for it in calls) & names


def _is_predicate(node: _Function) -> bool:
    """Whether a function only ever says yes or no."""
    values = [it.value for it in ast.walk(node) if isinstance(it, ast.Return)]
    return bool(values) and all(it is not None and _is_yes_or_no(it) for it in values)


def _is_yes_or_no(node: ast.expr) -> bool:
    if isinstance(node, ast.BoolOp):
        return all(_is_yes_or_no(it) for it in node.values)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not)
    if isinstance(node, ast.Call):
        return _called(node) in ("bool", "isinstance", "any", "all", "hasattr", "issubclass")
    return isinstance(node, ast.Compare) or _is_truth(node)
