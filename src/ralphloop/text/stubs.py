"""A Python file as it was, with a stub for every name that only its new version defines.

On old code a new test fails because a name is missing, whatever it asserts.  With a stub in its
place, that raises an error of ours as soon as it is used, three kinds of tests can be told apart:
one that passes all the same asks nothing of the new code; one that meets the error only reaches it;
one that fails otherwise says what the old code does wrong.

A stub of a function reads like the function: who looks at its text, its docstring or its
parameters has not asked what it does.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from textwrap import indent
from typing import NamedTuple

MARK = "this is not there without the story"  # what is read for the tag in the words of a test

# `@` is the tag of a run: nothing that a test could look for stands there under a fixed name.
_HELPERS = """

class @(BaseException):
    pass


def @raises(name):
    raise @(f"@: {name}")


class @meta(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        @raises(f"{cls.__name__}.{name}")


def @class(name):
    def made(cls, *args, **named):
        @raises(name)

    return @meta(name, (Exception,), {"__new__": made, "__module__": __name__})


def @function(name):
    def made(*args, **named):
        @raises(name)

    made.__name__ = name
    return made


def @coroutine(name):
    async def made(*args, **named):
        @raises(name)

    made.__name__ = name
    return made


def @value(name):
    def used(self, *args, **named):
        @raises(name)

    def missing(self, member):
        if member.startswith("__"):
            raise AttributeError(member)
        @raises(f"{name}.{member}")

    kinds = "eq ne lt le gt ge bool len iter getitem contains add radd sub mul str call int"
    body = {f"__{kind}__": used for kind in kinds.split()}
    body["__getattr__"] = missing
    body["__hash__"] = object.__hash__
    return type(name, (), body)()


"""


def words_of_stub(words: str, tag: str) -> str:
    """What a test said when it met a stub, told once and without the stub's own name."""
    once = re.sub(rf"(?:\w+\.)*{re.escape(tag)}: (?={re.escape(tag)})", "", words)
    return once.replace(tag, MARK)


class _Definition(NamedTuple):
    """Something that a module or a class defines."""

    maker: str  # of its stub, behind the tag
    wrapper: str = ""  # what is called with the stub, in a class
    function: ast.FunctionDef | ast.AsyncFunctionDef | None = None


_VALUE = _Definition("value")


def with_stubs(old: bytes | None, new: bytes, tag: str) -> bytes | None:
    """The old text with stubs behind it; None where nothing is missing, or nobody can read it.

    `old` is None where the file itself came with the story.  The error of a stub has `tag`, an
    identifier that nobody can foresee, for its name and in its words.  It is no `Exception`: a test
    that catches those, to fail in words of its own, does not catch this one.
    """
    try:
        before = ast.parse(old or b"")
        now = ast.parse(new)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    lines = [*_missing(before, now, tag)]
    if not lines and old is not None:
        return None
    text = "\n".join(lines)
    return (old or b"") + f"{_HELPERS.replace('@', tag)}{text}\n".encode()


def _missing(before: ast.Module, now: ast.Module, tag: str) -> Iterator[str]:
    """The lines that define what is not there."""
    had = _defined(before.body)
    for name, kind in _defined(now.body).items():
        if name not in had and not name.startswith("__"):
            yield _stub(name, kind, tag)
    classes = _classes(before.body)
    for name, body in _classes(now.body).items():
        if name in classes:
            yield from _missing_in_class(name, classes[name], body, tag)


def _stub(name: str, kind: _Definition, tag: str) -> str:
    plain = f'{name} = {tag}{kind.maker}("{name}")'
    alike = _reading_alike(kind.function, tag) if kind.function else ""
    if not alike:
        return plain
    # Its parameters may stand for something that is not there either.
    return f"try:\n{indent(alike, '    ')}\nexcept BaseException:\n    {plain}"


def _reading_alike(node: ast.FunctionDef | ast.AsyncFunctionDef, tag: str) -> str:
    """The function, which raises our error before it does anything; empty where it cannot."""
    if any(isinstance(it, ast.Yield | ast.YieldFrom) for it in ast.walk(node)):
        return ""  # a generator would raise it late
    raising = ast.parse(f'{tag}raises("{node.name}")').body
    first = 0 if ast.get_docstring(node) is None else 1
    alike = copy(node)
    alike.body = [*node.body[:first], *raising, *node.body[first:]]
    alike.decorator_list = []
    try:
        text = ast.unparse(ast.fix_missing_locations(alike))
        ast.parse(text.replace("raises", "raises"))
    except (SyntaxError, ValueError, RecursionError):
        return ""
    return text


def _missing_in_class(
    name: str, before: list[ast.stmt], now: list[ast.stmt], tag: str
) -> Iterator[str]:
    had = _defined(before)
    for member, kind in _defined(now).items():
        is_method = kind.maker in ("function", "coroutine")
        if member in had or not is_method or member.startswith("__"):
            continue  # without a field or a special method other words say that it is missing
        stub = f'{tag}{kind.maker}("{name}.{member}")'
        if kind.wrapper:
            stub = f"{kind.wrapper}({stub})"
        yield f"{name}.{member} = {stub}"


def _classes(body: Iterable[ast.stmt]) -> Mapping[str, list[ast.stmt]]:
    return {node.name: node.body for node in body if isinstance(node, ast.ClassDef)}


def _defined(body: Iterable[ast.stmt]) -> dict[str, _Definition]:
    found: dict[str, _Definition] = {}
    for node in _statements(body):
        if isinstance(node, ast.FunctionDef):
            found[node.name] = _Definition("function", _wrapper(node), node)
        elif isinstance(node, ast.AsyncFunctionDef):
            found[node.name] = _Definition("coroutine", _wrapper(node), node)
        elif isinstance(node, ast.ClassDef):
            found[node.name] = _Definition("class")
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                if name != "*":
                    found[name] = _of_import(name)
        else:
            found |= dict.fromkeys(_assigned(node), _VALUE)
    return found


def _of_import(name: str) -> _Definition:
    """What a module hands on from another one: a class by the look of its name, else anything."""
    is_class = name[:1].isupper() and not name.isupper()
    return _Definition("class") if is_class else _VALUE


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Those of a body, and of the branches in it that define something all the same."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try):
            yield from _statements(node.body)
            yield from _statements(node.orelse)


def _assigned(node: ast.stmt) -> Iterator[str]:
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        targets = [node.target]
    for target in targets:
        parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        yield from (part.id for part in parts if isinstance(part, ast.Name))


def _wrapper(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """What a method is wrapped in."""
    names = [it.id for it in node.decorator_list if isinstance(it, ast.Name)]
    if "cached_property" in names:
        return "property"
    return next((it for it in names if it in ("property", "staticmethod", "classmethod")), "")
