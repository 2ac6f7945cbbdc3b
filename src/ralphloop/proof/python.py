"""The mutants of a change to a Python file, by its syntax tree.

Mutants are edits of the text that keep every name where it is: a function whose code is exchanged
while it lives must close over the same variables.  `__ralph_bend__` alters a value,
`__ralph_each__` those of an iterator, `__ralph_off__` is false: who runs the mutants provides them.
Probes call `__ralph_ran__`, which answers nothing; `{number}` in them is that of the probe.

Nothing is made of what has no behaviour: imports, docstrings, annotations without a value, names
for type checkers.
"""

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ralphloop.core.mutation import ChangedPiece, Edit, Mutant, Operator, Probe
from ralphloop.proof.spans import Lines, new_lines

BEND = "__ralph_bend__"
EACH = "__ralph_each__"
OFF = "__ralph_off__"
RAN = "__ralph_ran__"
OTHERWISE = "returns something else"
NOTHING = "does nothing"
AS_BEFORE = "is as it was before"
_SILENT = "lets pass what it refuses"
_EFFECTS = "leaves something else behind"
_PRINTED = "prints something else"
_WRITTEN = "writes something else"
_PRINTING = frozenset("print echo secho".split())
_WRITING = frozenset("write writelines write_text write_bytes dump".split())
_MOST_DETAILS = 40
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Defining = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_OF_TYPES = ("type_comment", "simple")
_TYPING = frozenset("TypeVar NewType ParamSpec TypeAliasType TypeVarTuple getLogger".split())


class NotPython(ValueError):
    """The file cannot be read."""


class NamedFunction(NamedTuple):
    name: str  # with those of the classes and functions around it
    node: _Function


def pieces_of(path: str, old: bytes | None, new: bytes) -> tuple[ChangedPiece, ...]:
    """What a story added or changed in one file, each with its mutants, the whole first."""
    tree = _parsed(new)
    before = _parsed(old) if old is not None else ast.Module(body=[], type_ignores=[])
    changed = new_lines(old or b"", new)
    reader = _Reader(path, Lines(new), Lines(old or b""), changed)
    known = dict(_keyed(before))
    found = list[ChangedPiece]()
    for key, one in _keyed(tree):
        if piece := reader.function(one, known.get(key)):
            found.append(piece)
    statements = _outside(before)
    for name, node in _outside(tree).items():
        if piece := reader.statement(name, node, statements.get(name)):
            found.append(piece)
    return tuple(found)


def changed_functions(old: bytes | None, new: bytes) -> tuple[NamedFunction, ...]:
    """The functions that a story added or changed in one file."""
    known = dict(_keyed(_parsed(old))) if old is not None else {}
    found = list[NamedFunction]()
    for key, one in _keyed(_parsed(new)):
        before = known.get(key)
        if before is None or _shape(before.node) != _shape(one.node):
            found.append(NamedFunction(one.name, one.node))
    return tuple(found)


def _parsed(source: bytes) -> ast.Module:
    try:
        source.decode("utf-8")  # columns are counted in it
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotPython(str(error)) from error


def _keyed(tree: ast.Module) -> Iterator[tuple[str, NamedFunction]]:
    """Every function of a module; one that is defined several times has a number."""
    seen: dict[str, int] = {}
    for one in _functions(tree, ""):
        seen[one.name] = seen.get(one.name, 0) + 1
        yield f"{one.name} {seen[one.name]}", one


def _functions(node: ast.AST, name: str) -> Iterator[NamedFunction]:
    waiting = list(reversed(list(ast.iter_child_nodes(node))))
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            own = f"{name}{one.name}"
            yield NamedFunction(own, one)
            yield from _functions(one, f"{own}.")
        elif isinstance(one, ast.ClassDef):
            yield from _functions(one, f"{name}{one.name}.")
        elif not isinstance(one, ast.expr):
            waiting.extend(reversed(list(ast.iter_child_nodes(one))))


def _outside(tree: ast.Module) -> dict[str, ast.stmt]:
    """Statements that give names a value outside of functions, by what they name."""
    found: dict[str, ast.stmt] = {}
    waiting: list[tuple[str, ast.AST]] = [("", tree)]
    while waiting:
        name, node = waiting.pop()
        for one in ast.iter_child_nodes(node):
            if isinstance(one, ast.ClassDef):
                waiting.append((f"{name}{one.name}.", one))
            elif isinstance(one, ast.If) and _is_for_types(one):
                continue
            elif isinstance(one, ast.Assign | ast.AugAssign | ast.AnnAssign):
                if key := _named(one):
                    found.setdefault(f"{name}{key}", one)
            elif isinstance(one, ast.If | ast.Try | ast.With | ast.For | ast.ExceptHandler):
                waiting.append((name, one))
    return found


def _is_for_types(node: ast.If) -> bool:
    return "TYPE_CHECKING" in ast.dump(node.test)


def _named(node: ast.Assign | ast.AugAssign | ast.AnnAssign) -> str:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    if node.value is None or not isinstance(targets[0], ast.Name | ast.Attribute | ast.Subscript):
        return ""
    name = ast.unparse(targets[0])
    is_about_itself = name.startswith("__") and name.endswith("__")  # its version, its names
    return "" if is_about_itself else name


def _own(node: _Function) -> Iterator[ast.AST]:
    """Everything in a function but what stands in functions and classes inside it."""
    waiting: list[ast.AST] = list(reversed(_body(node)))
    while waiting:
        one = waiting.pop()
        yield one
        if isinstance(one, ast.AnnAssign):
            waiting.extend(it for it in (one.value, one.target) if it is not None)
        elif not isinstance(one, _SCOPES):
            waiting.extend(reversed(list(ast.iter_child_nodes(one))))


def _body(node: _Function) -> list[ast.stmt]:
    """The statements of a function without its docstring, or whatever constant begins it."""
    first = node.body[0]
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return node.body[1:] if is_text else node.body


def _first_line(node: _Defining) -> int:
    return min([node.lineno, *(it.lineno for it in node.decorator_list)])


def _shape(node: _Function) -> list[str]:
    """What a function itself says, without docstring, annotations and the functions inside it."""
    found = [type(node).__name__, *_head(node)]
    for one in _own(node):
        # With a type or without one, a value is given to the same name.
        kind = "Assign" if isinstance(one, ast.AnnAssign) else type(one).__name__
        plain = [
            it
            for name, it in ast.iter_fields(one)
            if not isinstance(it, ast.AST | list) and name not in _OF_TYPES
        ]
        found.append(f"{kind} {plain}")
    return found


def _head(node: _Function) -> list[str]:
    """Decorators, parameters and their defaults, without types."""
    given = node.args
    every = (*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg)
    names = [one.arg if one else "" for one in every]
    values = [ast.dump(it) if it else "" for it in (*given.defaults, *given.kw_defaults)]
    return [*names, *values, *(ast.dump(it) for it in node.decorator_list)]


class _Reader:
    """One file while its mutants are made."""

    def __init__(self, path: str, new: Lines, old: Lines, changed: frozenset[int]) -> None:
        self.path = path
        self.new = new
        self.old = old
        self.changed = changed

    def function(self, one: NamedFunction, before: NamedFunction | None) -> ChangedPiece | None:
        """The piece that a function is; None where nothing of its own differs."""
        node = one.node
        if before is not None and _shape(before.node) == _shape(node):
            return None
        own = list(_own(node))
        is_added = before is None
        lines = [it for it in own if isinstance(it, ast.stmt) and (is_added or self._is_new(it))]
        mutants = list[Mutant]()
        if not _body(node):
            return None
        if before is not None:
            mutants += self._undone(one, before)
        mutants += self._whole(node, own, lines)
        details = list[Mutant]()
        for statement in lines:
            details += self._detail(statement)
        mutants += details[:_MOST_DETAILS]
        if not mutants:
            return None
        acts = [it for it in lines if _acts(it)]
        arguments = {it.arg for it in ast.walk(node.args) if isinstance(it, ast.arg)}
        return ChangedPiece(
            path=self.path,
            name=f"{one.name}()",
            line=_first_line(node),
            last_line=node.end_lineno or node.lineno,
            is_added=is_added,
            returns=any(_results(own)),
            lines=_numbers(lines),
            acts=_numbers(acts),
            easy=_numbers(it for it in acts if _is_easy(it, arguments)),
            mutants=tuple(mutants),
            probes=tuple(self._probes([*_body(node)[:1], *lines])),
        )

    def statement(self, name: str, node: ast.stmt, before: ast.stmt | None) -> ChangedPiece | None:
        """The piece that a statement outside of functions is; None where it is as it was."""
        value = node.value if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) else None
        if value is None or _is_of_types(value):
            return None
        was = getattr(before, "value", None)
        if was is not None and ast.dump(was) == ast.dump(value):
            return None
        mutants = list[Mutant]()
        if before is not None:
            text = self._old_text(before)
            edit = self._instead(node, text)
            mutants.append(self._mutant(Operator.UNDO, AS_BEFORE, [edit], node, when_loaded=True))
        bent = list(self._new_constants(value))
        if before is None and not isinstance(value, ast.Dict | ast.List | ast.Tuple | ast.Set):
            bent = [value]
        if edits := [edit for it in bent for edit in self._wrapped(it, BEND)]:
            mutants.append(self._mutant(Operator.BEND, "is another", edits, node, when_loaded=True))
        if not mutants:
            return None
        return ChangedPiece(
            path=self.path,
            name=name,
            line=node.lineno,
            last_line=node.end_lineno or node.lineno,
            is_function=False,
            is_added=before is None,
            lines=(node.lineno,),
            acts=(node.lineno,),
            mutants=tuple(mutants),
        )

    # What is changed

    def _is_new(self, node: ast.stmt) -> bool:
        """A statement of which a line is new; of one that holds others, its head."""
        last = _head_end(node)
        return any(line in self.changed for line in range(node.lineno, last + 1))

    def _new_constants(self, value: ast.expr) -> Iterator[ast.expr]:
        """Plain values of a table that are new; its keys are not meant."""
        waiting: list[ast.AST] = [value]
        while waiting:
            one = waiting.pop()
            if isinstance(one, ast.Constant):
                if one.lineno in self.changed:
                    yield one
            elif isinstance(one, ast.Dict):
                waiting.extend(one.values)
            elif not isinstance(one, ast.JoinedStr):  # its parts are no places to write in
                waiting.extend(ast.iter_child_nodes(one))

    # Mutants of a whole function

    def _undone(self, one: NamedFunction, before: NamedFunction) -> Iterator[Mutant]:
        """The function as it was; with another head only while its file is loaded."""
        old = before.node
        node = one.node
        if old.col_offset != node.col_offset or type(old) is not type(node):
            return
        start = _first_line(old)
        text = self.old.between(
            start, old.col_offset, old.end_lineno or old.lineno, old.end_col_offset or 0
        )
        edit = Edit(
            line=_first_line(node),
            column=node.col_offset,
            last_line=node.end_lineno or node.lineno,
            last_column=node.end_col_offset or 0,
            text=text,
        )
        has_other_head = _head(old) != _head(node)
        yield self._mutant(Operator.UNDO, AS_BEFORE, [edit], node, when_loaded=has_other_head)

    def _whole(
        self, node: _Function, own: Sequence[ast.AST], lines: Sequence[ast.stmt]
    ) -> Iterator[Mutant]:
        has_results = any(_results(own))
        if has_results and not _is_always_the_same(own):
            edits = [edit for it in _results(own) for edit in self._bent_result(it)]
            yield self._mutant(Operator.BEND, OTHERWISE, edits, node)
        if raises := [edit for it in lines for edit in self._kept_quiet(it)]:
            yield self._mutant(Operator.BEND, _SILENT, raises, node)
        effects = [edit for it in own if _is_effect(it) for edit in self._bent_value(it)]
        if effects and not has_results:
            yield self._mutant(Operator.BEND, _EFFECTS, effects, node)
        calls = [it for it in own if _is_output(it)]
        if edits := [edit for it in calls for edit in self._bent_output(it)]:
            what = _PRINTED if any(_called(it) in _PRINTING for it in calls) else _WRITTEN
            yield self._mutant(Operator.BEND, what, edits, node)
        if not _is_always_the_same(own) and any(
            _acts(it) and not isinstance(it, ast.Raise) for it in own
        ):
            yield self._mutant(Operator.EMPTY, NOTHING, [self._emptied(node)], node)

    def _bent_result(self, node: ast.AST) -> list[Edit]:
        if isinstance(node, ast.YieldFrom):
            return self._wrapped(node.value, EACH)
        if isinstance(node, ast.Return | ast.Yield) and node.value is not None:
            return self._wrapped(node.value, BEND)
        return []

    def _bent_value(self, node: ast.AST) -> list[Edit]:
        if not isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) or node.value is None:
            return []
        return self._wrapped(node.value, BEND)

    def _bent_output(self, node: ast.AST) -> list[Edit]:
        """What is handed to somebody outside, altered."""
        first = node.args[0] if isinstance(node, ast.Call) else None
        if first is None or isinstance(first, ast.Starred):
            return []
        return self._wrapped(first, BEND)

    def _kept_quiet(self, node: ast.AST) -> list[Edit]:
        """An error that is made and not raised; one that says that nothing is there yet, is."""
        if not isinstance(node, ast.Raise) or node.exc is None:
            return []
        if "NotImplemented" in ast.dump(node.exc):
            return []
        parts = [self._text(part) for part in (node.exc, node.cause) if part is not None]
        return [self._instead(node, ", ".join(f"({part})" for part in parts))]

    def _emptied(self, node: _Function) -> Edit:
        """A return before everything else, which stays behind it for the names in it."""
        first = _body(node)[0]
        line = _first_line(first) if isinstance(first, _Defining) else first.lineno
        column = first.col_offset
        text = "return; "
        if _holds_others(first):
            margin = self.new.between(line, 0, line, column)
            text = f"return\n{margin}"
        return Edit(line=line, column=column, last_line=line, last_column=column, text=text)

    # Mutants of one line

    def _detail(self, node: ast.stmt) -> Iterator[Mutant]:
        """One statement that does something else, for what is watched line by line."""
        if isinstance(node, ast.Return) and _is_result(node):
            yield self._one_line(OTHERWISE, self._bent_result(node), node)
        elif isinstance(node, ast.Raise):
            if edits := self._kept_quiet(node):
                yield self._one_line(_SILENT, edits, node)
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            if edits := self._bent_value(node):
                yield self._one_line("has another value", edits, node)
        elif isinstance(node, ast.Expr):
            yield from self._left_out(node)
        elif isinstance(node, ast.If):
            edits = self._wrapped(node.test, "not ")
            yield self._one_line("decides the other way", edits, node)

    def _left_out(self, node: ast.Expr) -> Iterator[Mutant]:
        value = node.value
        if isinstance(value, ast.Yield | ast.YieldFrom):
            if edits := self._bent_result(value):
                yield self._one_line(OTHERWISE, edits, node)
        elif isinstance(value, ast.Call | ast.Await):
            yield self._one_line("is left out", self._wrapped(value, f"{OFF} and "), node)

    def _one_line(self, what: str, edits: Iterable[Edit], node: ast.stmt) -> Mutant:
        return self._mutant(Operator.BEND, what, edits, node, is_detail=True)

    # Probes

    def _probes(self, nodes: Iterable[ast.stmt]) -> Iterator[Probe]:
        """Before each of these statements, or within its head; no line moves."""
        seen = set[tuple[int, int]]()
        for node in nodes:
            place = (node.lineno, node.col_offset)
            if place in seen:
                continue
            seen.add(place)
            if edits := self._probed(node):
                yield Probe(line=node.lineno, edits=tuple(edits))

    def _probed(self, node: ast.stmt) -> list[Edit]:
        call = f"{RAN}({{number}})"
        if isinstance(node, ast.If | ast.While):
            return self._wrapped(node.test, f"{call} or ")
        if isinstance(node, ast.For | ast.AsyncFor):
            return self._wrapped(node.iter, f"{call} or ")
        if isinstance(node, ast.With | ast.AsyncWith):
            return self._wrapped(node.items[0].context_expr, f"{call} or ")
        if isinstance(node, ast.Match):
            return self._wrapped(node.subject, f"{call} or ")
        if _holds_others(node) or isinstance(node, ast.Global | ast.Nonlocal):
            return []
        line = node.lineno
        column = node.col_offset
        return [
            Edit(line=line, column=column, last_line=line, last_column=column, text=f"{call}; ")
        ]

    # Edits

    def _mutant(
        self,
        operator: Operator,
        what: str,
        edits: Iterable[Edit],
        node: ast.stmt,
        *,
        when_loaded: bool = False,
        is_detail: bool = False,
    ) -> Mutant:
        return Mutant(
            operator=operator,
            what=what,
            edits=tuple(edits),
            line=node.lineno,
            when_loaded=when_loaded,
            is_detail=is_detail,
        )

    def _wrapped(self, node: ast.expr, word: str) -> list[Edit]:
        """This word and a pair of brackets around an expression."""
        line = node.lineno
        last = node.end_lineno or line
        column = node.end_col_offset or 0
        before = Edit(
            line=line,
            column=node.col_offset,
            last_line=line,
            last_column=node.col_offset,
            text=f"{word}((",
        )
        behind = Edit(line=last, column=column, last_line=last, last_column=column, text="))")
        return [before, behind]

    def _instead(self, node: ast.stmt, text: str) -> Edit:
        return Edit(
            line=node.lineno,
            column=node.col_offset,
            last_line=node.end_lineno or node.lineno,
            last_column=node.end_col_offset or 0,
            text=text,
        )

    def _text(self, node: ast.expr) -> str:
        last = node.end_lineno or node.lineno
        return self.new.between(node.lineno, node.col_offset, last, node.end_col_offset or 0)

    def _old_text(self, node: ast.stmt) -> str:
        last = node.end_lineno or node.lineno
        return self.old.between(node.lineno, node.col_offset, last, node.end_col_offset or 0)


def _numbers(nodes: Iterable[ast.stmt]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(node.lineno for node in nodes))


def _holds_others(node: ast.stmt) -> bool:
    return hasattr(node, "body")


def _head_end(node: ast.stmt) -> int:
    """The last line of a statement; of one that holds others, the last one before them."""
    body = getattr(node, "body", None)
    if not body or not isinstance(body, list):
        return node.end_lineno or node.lineno
    first = body[0]
    begins = _first_line(first) if isinstance(first, _Defining) else first.lineno
    return max(node.lineno, begins - 1)


def _results(own: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Returns and yields with a value that can be altered."""
    return (node for node in own if _is_result(node))


def _is_result(node: ast.AST) -> bool:
    if isinstance(node, ast.YieldFrom):
        return True
    if isinstance(node, ast.Yield):
        return node.value is not None
    if not isinstance(node, ast.Return) or node.value is None:
        return False
    value = node.value
    is_fixed = isinstance(value, ast.Name) and value.id in ("self", "cls", "NotImplemented")
    is_nothing = isinstance(value, ast.Constant) and value.value is None
    return not is_fixed and not is_nothing


def _is_effect(node: ast.AST) -> bool:
    """Something that outlives the call is given a value."""
    if not isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
        return False
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return any(isinstance(it, ast.Attribute | ast.Subscript) for it in targets)


def _is_output(node: ast.AST) -> bool:
    """A call that hands something to whoever reads what the program prints or writes."""
    return isinstance(node, ast.Call) and bool(node.args) and _called(node) in _PRINTING | _WRITING


def _called(node: ast.AST) -> str:
    called = node.func if isinstance(node, ast.Call) else None
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def _is_always_the_same(own: Iterable[ast.AST]) -> bool:
    """One constant is all it ever returns: that somebody notices another says nothing of work."""
    values = [getattr(node, "value", None) for node in _results(own)]
    are_constants = bool(values) and all(isinstance(value, ast.Constant) for value in values)
    return are_constants and len({ast.dump(value) for value in values if value}) == 1


def _acts(node: ast.AST) -> bool:
    """A statement that does something itself; heads of others, declarations and `pass` do not."""
    if isinstance(node, ast.Return):
        return node.value is not None
    if isinstance(node, ast.Expr):
        return not isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Raise | ast.Delete)


def _is_easy(node: ast.stmt, arguments: set[str]) -> bool:
    """A return of a constant or of an argument as it came."""
    value = node.value if isinstance(node, ast.Return) else None
    if isinstance(value, ast.Constant):
        return True
    return isinstance(value, ast.Name) and value.id in arguments


def _is_of_types(value: ast.expr) -> bool:
    return _called(value) in _TYPING
