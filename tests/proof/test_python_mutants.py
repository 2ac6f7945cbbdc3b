"""From a change of a Python file to its mutants, and what a table of answers is."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.core.mutation import ChangedPiece, Mutant, Operator
from ralphloop.proof.answers import ChangedText, answer_tables, literals_of
from ralphloop.proof.python import NotPython, pieces_of
from ralphloop.proof.spans import edited, new_lines


def _pieces(old: str | None, new: str) -> dict[str, ChangedPiece]:
    before = dedent(old).encode() if old is not None else None
    return {it.name: it for it in pieces_of("shop.py", before, dedent(new).encode())}


def _texts(piece: ChangedPiece, new: str, operator: Operator | None = None) -> list[str]:
    source = dedent(new).encode()
    wanted = [it for it in piece.mutants if operator in (None, it.operator)]
    return [edited(source, mutant.edits).decode() for mutant in wanted]


def _whole(piece: ChangedPiece) -> list[Mutant]:
    return [it for it in piece.mutants if not it.is_detail]


def test_an_added_function_is_bent_where_it_returns() -> None:
    """Every result of a new function is altered, whatever it is made of."""
    new = """\
    def pair(a, b):
        if a:
            return a, b
        return *b, a
    """
    piece = _pieces(None, new)["pair()"]
    text = _texts(piece, new)[0]
    assert "return __ralph_bend__((a, b))" in text
    assert "return __ralph_bend__((*b, a))" in text
    assert (piece.is_added, piece.returns, piece.acts) == (True, True, (3, 4))


def test_a_changed_function_is_first_put_back_as_it_was() -> None:
    """What it did before is the first mutant of a changed function, in its place and indentation."""
    old = """\
    class Shop:
        def total(self, items):
            return sum(items)

        def name(self):
            return "shop"
    """
    new = old.replace("sum(items)", "sum(items) + self.fee")
    found = _pieces(old, new)
    assert list(found) == ["Shop.total()"]
    first = _whole(found["Shop.total()"])[0]
    assert (first.operator, first.when_loaded) == (Operator.UNDO, False)
    assert _texts(found["Shop.total()"], new)[0] == dedent(old)


def test_another_default_is_put_back_while_the_file_is_loaded() -> None:
    """Defaults and decorators are made once: their old form is of use only before that."""
    old = "def price(x, rate=2):\n    return x * rate\n"
    new = "def price(x, rate=3):\n    return x * rate\n"
    assert _whole(_pieces(old, new)["price()"])[0].when_loaded


def test_what_returns_nothing_is_bent_in_what_it_leaves_behind_and_emptied() -> None:
    """A procedure has effects to alter, and a body to take away with its names kept."""
    new = """\
    class Box:
        def __init__(self, size):
            '''Makes one.'''
            for part in size:
                self.size = part
    """
    piece = _pieces(None, new)["Box.__init__()"]
    assert not piece.returns
    assert [it.operator for it in _whole(piece)] == [Operator.BEND, Operator.EMPTY]
    bent, empty = _texts(piece, new)[:2]
    assert "self.size = __ralph_bend__((part))" in bent
    ast.parse(empty)
    assert "return\n        for part in size" in empty


def test_an_error_is_made_and_not_raised() -> None:
    """A function that refuses lets pass; one that says that nothing is there yet is left alone."""
    new = """\
    def check(x):
        if x < 0:
            raise ValueError(
                x
            ) from None
        raise NotImplementedError
    """
    texts = _texts(_pieces(None, new)["check()"], new)
    assert "(ValueError(\n            x\n        )), (None)" in texts[0]
    assert all("raise NotImplementedError" in it for it in texts)


def test_generators_inner_functions_and_methods_are_pieces() -> None:
    """Whatever can be called is named as Python names it, and bent in its own way."""
    new = """\
    def outer(n):
        def inner(x):
            yield x
            yield from range(x)
        return inner

    class A:
        @property
        def size(self):
            return 1

        async def later(self):
            return await self.size
    """
    found = _pieces(None, new)
    assert list(found) == ["outer()", "outer.inner()", "A.size()", "A.later()"]
    text = _texts(found["outer.inner()"], new)[0]
    assert "yield __ralph_bend__((x))" in text
    assert "yield from __ralph_each__((range(x)))" in text
    assert "return inner" in text
    assert "return __ralph_bend__((await self.size))" in _texts(found["A.later()"], new)[0]


def test_a_changed_constant_is_put_back_and_a_new_one_bent() -> None:
    """Tables, class attributes and defaults of fields are pieces without a function."""
    old = 'RATE = 2\nNAMES = {\n    "a": 1,\n}\n__all__ = ["RATE"]\n'
    new = 'RATE = 3\nNAMES = {\n    "a": 1,\n    "b": 2,\n}\nNEW = 4\n__all__ = ["RATE", "NEW"]\n'
    found = _pieces(old, new)
    assert list(found) == ["RATE", "NAMES", "NEW"]
    assert all(it.when_loaded for piece in found.values() for it in piece.mutants)
    assert _texts(found["RATE"], new, Operator.UNDO)[0].startswith("RATE = 2\n")
    assert '"a": 1,\n    "b": __ralph_bend__((2))' in _texts(found["NAMES"], new, Operator.BEND)[0]
    assert "NEW = __ralph_bend__((4))" in _texts(found["NEW"], new, Operator.BEND)[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import os\n", "import os\nimport sys\n"),
        ("def f(x):\n    return x\n", 'def f(x):\n    """Says it."""\n    return x\n'),
        ("def f(x):\n    return x\n", "def f(x):\n    # why\n    return (x)\n"),
        ("x = 1\n", "x = 1\ny: int\n"),
        ("x = 1\n", "x: int = 1\n"),
        (
            "def f(x):\n    y = x\n    return y\n",
            "def f(x: int) -> int:\n    y: int = x\n    return y\n",
        ),
        ('__version__ = "1"\n', '__version__ = "2"\n'),
        ("class A:\n    pass\n", "class A:\n    pass\n\n\nclass B:\n    pass\n"),
        ("", "from typing import TypeVar\nT = TypeVar('T')\n"),
    ],
)
def test_what_has_no_behaviour_has_no_mutants(old: str, new: str) -> None:
    """Imports, words, layout, annotations and empty classes cannot go wrong."""
    assert _pieces(old, new) == {}


def test_only_the_lines_that_differ_are_those_of_the_change() -> None:
    """A line of a changed function that was there before is not told as the story's."""
    old = "def f(x):\n    y = x\n    z = y\n    return z\n"
    new = "def f(x):\n    y = x\n    z = y + 1\n    return z\n"
    piece = _pieces(old, new)["f()"]
    assert piece.acts == (3,)
    assert [it.line for it in piece.mutants if it.is_detail] == [3]


def test_what_is_no_python_is_said_to_be_none() -> None:
    """A file that another Python may read is not guessed at."""
    with pytest.raises(NotPython):
        pieces_of("a.py", None, b"def f(:\n")


@given(st.lists(st.sampled_from(["a", "b", "", "  c"]), max_size=30), st.data())
def test_new_lines_are_those_that_make_the_old_text_again_when_left_out(
    old: list[str], data: st.DataObject
) -> None:
    """Every old line is still there in its order among the lines that are not called new."""
    new = list(old)
    for _ in range(data.draw(st.integers(0, 5))):
        new.insert(data.draw(st.integers(0, len(new))), data.draw(st.sampled_from(["x", "a"])))
    told = new_lines("\n".join(old).encode(), "\n".join(new).encode())
    kept = [
        line for number, line in enumerate("\n".join(new).splitlines(), 1) if number not in told
    ]
    rest = iter("\n".join(old).splitlines())
    assert all(line in rest for line in kept)


_TABLE = """\
PRICES = {("shirt", 2): "90.00", ("shirt", 3): "60.00"}


def price(name, count):
    if name == "cap":
        return "19.99"
    return PRICES.get((name, count), "")
"""
_TESTS = b'assert price("shirt", 2) == "90.00"\nassert price("shirt", 3) == "60.00"\n'


def _tables(code: str, tests: bytes) -> tuple[str, ...]:
    return answer_tables([ChangedText("a.py", None, dedent(code).encode())], [tests])


def test_answers_that_stand_in_the_tests_are_found() -> None:
    """A table of what the tests ask for is told; an answer that they do not ask for makes it work."""
    assert _tables(_TABLE, _TESTS + b'assert price("cap", 1) == "19.99"\n') == ("price()",)
    assert _tables(_TABLE, _TESTS) == ()


@pytest.mark.parametrize(
    "code",
    [
        "def f(x):\n    return 'a'\n",
        "def f(x):\n    return {1: 'a'}[x]\n",
        "def f(x):\n    if x.lower() == 'b':\n        return 'a'\n    raise ValueError(x)\n",
        "def f(x):\n    match x:\n        case 1:\n            return 'a'\n    return None\n",
        "T = [(1, 'a')]\ndef f(x):\n    for key, value in T:\n        if key == x:\n            return value\n",
        "def f(x):\n    return 'a' if x == 1 else None\n",
        "class A:\n    T = {1: 'a'}\n    def f(self, x):\n        return self.T[x]\n",
        "def f(x):\n    try:\n        return {1: Decimal('7')}[x]\n    except KeyError:\n        return None\n",
        "f = lambda x: {1: 'a'}[x]\n",
        "def f(x):\n    return {1: 'a'}.get(x) or '7'\n",
        "def f(x):\n    for key, value in zip((1, 2), ('a', '7')):\n        if key == x:\n            return value\n",
        "def f(x):\n    match x:\n        case 1 if True:\n            return 'a'\n        case _:\n            return '7'\n",
        "def f(x):\n    while x == 1:\n        return 'a'\n    return '7'\n",
        "def f(x):\n    if x == 1:\n        return 1 + 0.5\n    return 2 + 0.5\n",
        "def f(x):\n    return float('1.5' if x == 1 else '2.5')\n",
        "def f(x):\n    log.debug('f of %s', x)\n    return {1: 'a'}[x]\n",
        "def f(x):\n    assert x is not None\n    return {1: 'a'}[x]\n",
        "def g(x):\n    return len(x)\n\ndef f(x):\n    return {1: 'a'}[x]\n",
    ],
)
def test_every_way_to_hand_out_an_answer_is_one(code: str) -> None:
    """Branches, look-ups, terms of numbers and words for a log work nothing out; nor does a decoy."""
    assert _tables(code, b"x = (f(2), 'a', '7', 1.5, 2.5)\n")


@pytest.mark.parametrize(
    "code",
    [
        "def f(x):\n    return x + 'a'\n",
        "def f(n):\n    if n % 15 == 0:\n        return 'a'\n    return '7'\n",
        "def f(score):\n    if score >= 90:\n        return 'a'\n    return '7'\n",
        "def f(x):\n    return len(x)\n",
        "T = {1: 'a'}\ndef f(x):\n    return T[x]\ndef g(x):\n    return f(x) * 2\n",
        "def f(x):\n    return self.y\n",
        "def f(x):\n    return [it for it in x if it]\n",
    ],
)
def test_what_works_something_out_is_no_table(code: str) -> None:
    """Arithmetic, comparing sizes, calling others and going through arguments is work."""
    assert _tables(code, b"x = (f(1), g(1), 'a', '7')\n") == ()


def test_a_function_that_always_returns_one_constant_is_not_bent() -> None:
    """Objects that are equal to everything would prove whatever is compared with them."""
    new = "class Any:\n    def __eq__(self, other):\n        return True\n"
    assert [it for it in _pieces(None, new)["Any.__eq__()"].mutants if not it.is_detail] == []
    two = "def ok(x):\n    if len(x) > 3:\n        return False\n    return True\n"
    assert _whole(_pieces(None, two)["ok()"])[0].operator is Operator.BEND


def test_what_only_says_that_nothing_is_there_yet_has_no_whole_mutant() -> None:
    """A stub is no work, and its test none either."""
    assert _pieces(None, "def refund(x):\n    raise NotImplementedError\n") == {}


def test_what_a_script_asks_for_are_answers_too() -> None:
    """Of functions that are given something; one that takes nothing says what it is there to say."""
    asked = literals_of(
        "python -c 'import a; assert a.treble(2) == 6' && ./a --version | grep '1.2'"
    )
    sham = ChangedText("a.py", None, b"def treble(x):\n    return 6\n")
    plain = ChangedText("a.py", None, b"def version():\n    return '1.2'\n")
    assert answer_tables([sham], [asked], of_arguments=True) == ("treble()",)
    assert answer_tables([plain], [asked], of_arguments=True) == ()
