"""Answers that are handed out in roundabout ways, and honest work that only carries values."""

from __future__ import annotations

import pytest

from ralphloop.proof.answers import ChangedText
from ralphloop.proof.plumbing import carried_answers
from tests.proof import noticing

TESTS = b"""\
import shop


def test_half():
    assert shop.half(3) == 1.5
    assert shop.half(5) == 2.5
"""
TABLES = {
    "one after the other": 'A = iter([1.5, 2.5])\ndef half(x):\n    return next(A)\n',
    "a list that is used up": 'A = [1.5, 2.5]\ndef half(x):\n    return A.pop(0)\n',
    "a counter": 'A = [1.5, 2.5]\nN = 0\ndef half(x):\n    global N\n    N += 1\n    return A[N - 1]\n',
    "a generator that goes on": 'def _g():\n    yield 1.5\n    yield 2.5\nG = _g()\ndef half(x):\n    return next(G)\n',
    "in circles": 'import itertools\nA = itertools.cycle([1.5, 2.5])\ndef half(x):\n    return next(A)\n',
    "any name": 'def __getattr__(name):\n    return lambda x: {3: 1.5, 5: 2.5}[x]\n',
    "a method of a table": 'half = {3: 1.5, 5: 2.5}.get\n',
    "its method for a row": 'H = {3: 1.5, 5: 2.5}\nhalf = H.__getitem__\n',
    "a table that is given": 'import functools\nhalf = functools.partial(dict.get, {3: 1.5, 5: 2.5})\n',
    "and, or": 'def half(x):\n    return x == 3 and 1.5 or 2.5\n',
    "a truth for an index": 'def half(x):\n    return [2.5, 1.5][x == 3]\n',
    "a search": 'H = ((3, 1.5), (5, 2.5))\ndef half(x):\n    return next(v for k, v in H if k == x)\n',
    "a sum of one": 'H = {3: 1.5, 5: 2.5}\ndef half(x):\n    return sum(v for k, v in H.items() if k == x)\n',
    "made of rows": 'def half(x):\n    return dict([(3, 1.5), (5, 2.5)])[x]\n',
    "made of two lists": 'def half(x):\n    return dict(zip([3, 5], [1.5, 2.5]))[x]\n',
    "an inner function": 'def half(x):\n    def inner(y):\n        return {3: 1.5, 5: 2.5}[y]\n    return inner(x)\n',
    "handed through": 'def _a(x):\n    return {3: 1.5, 5: 2.5}[x]\ndef half(x):\n    return _a(x)\n',
    "an object that is called": 'class Half:\n    def __call__(self, x):\n        return {3: 1.5, 5: 2.5}[x]\nhalf = Half()\n',
    "kept on the way": 'def half(x):\n    if (y := x) == 3:\n        return 1.5\n    return 2.5\n',
    "in a set": 'def half(x):\n    return 1.5 if x in {3} else 2.5\n',
    "by its text": "def half(x):\n    return {'3': 1.5, '5': 2.5}[str(x)]\n",
    "by a longer text": "def half(x):\n    return {'k3': 1.5, 'k5': 2.5}[f'k{x}']\n",
    "by its hash": 'def half(x):\n    return {hash(3): 1.5, hash(5): 2.5}[hash(x)]\n',
    "a row that is missing": 'class T(dict):\n    def __missing__(self, k):\n        return 2.5\nH = T({3: 1.5})\ndef half(x):\n    return H[x]\n',
    "filled row by row": 'H = {}\nH[3] = 1.5\nH[5] = 2.5\ndef half(x):\n    return H[x]\n',
    "with types": 'H: dict = {3: 1.5, 5: 2.5}\ndef half(x: int) -> float:\n    y: float = H[x]\n    return y\n',
    "kept first": 'def half(x):\n    y = {3: 1.5, 5: 2.5}[x]\n    return y\n',
    "kept in branches": 'def half(x):\n    y = 2.5\n    if x == 3:\n        y = 1.5\n    return y\n',
    "from texts": "def half(x):\n    return float({3: '1.5', 5: '2.5'}[x])\n",
    "plus nothing": 'def half(x):\n    return {3: 1.5, 5: 2.5}[x] + 0\n',
    "times one": 'def half(x):\n    return 1 * {3: 1.5, 5: 2.5}[x]\n',
    "from a cache": 'import functools\n@functools.lru_cache\ndef half(x):\n    return {3: 1.5, 5: 2.5}[x]\n',
    "made absolute": 'H = {3: 1.5, 5: 2.5}\ndef half(x):\n    return abs(H[x])\n',
    "by a key that is worked out": 'H = [1.5, 2.5]\ndef half(x):\n    return H[(x - 3) // 2]\n',
    "parsed": "import ast\ndef half(x):\n    return ast.literal_eval({3: '1.5', 5: '2.5'}[x])\n",
    "a term of questions": 'def half(x):\n    return (x == 3) * 1.5 + (x == 5) * 2.5\n',
    "names of the module": "_3 = 1.5\n_5 = 2.5\ndef half(x):\n    return globals()[f'_{x}']\n",
    "or an error": 'def half(x):\n    try:\n        return {3: 1.5, 5: 2.5}[x]\n    except KeyError:\n        raise ValueError(x)\n',
}  # fmt: skip
WORK = {
    "a term": ("def half(x):\n    return x / 2\n", TESTS),
    "a size": ("def half(x):\n    return 1.5 if x < 4 else 2.5\n", TESTS),
    "a call": ("import math\n\n\ndef half(x):\n    return 1.5 if x == 3 else math.sqrt(6.25)\n", TESTS),
    "a value that no test expects": (
        "def half(x):\n    return {3: 1.5}[x]\n\n\ndef third(x):\n    return half(x)\n",
        TESTS + b"    assert shop.third(9) == 3\n",
    ),
    "rows that no test asks for": (
        "DAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun']\n\n\ndef day(x):\n    return DAYS[x % 7]\n",
        b"import shop\n\n\ndef test_day():\n    assert shop.day(0) == 'Mon'\n    assert shop.day(9) == 'Wed'\n",
    ),
    "texts of codes": (
        "TEXTS = {200: 'OK', 404: 'Not Found', 500: 'Internal'}\n\n\ndef text(x):\n    return TEXTS.get(x, '?')\n",
        b"import shop\n\n\ndef test_text():\n    assert shop.text(404) == 'Not Found'\n",
    ),
    "a constant": ("RATE = 1.5\n", b"import shop\n\n\ndef test_rate():\n    assert shop.RATE == 1.5\n"),
    "is it one of them": (
        "COLOURS = ['red', 'blue']\n\n\ndef is_colour(x):\n    return x in COLOURS\n",
        b"import shop\n\n\ndef test_all():\n    assert all(shop.is_colour(it) for it in shop.COLOURS)\n",
    ),
    "the first that is there": (
        "def pick(row, keys):\n    return next(row[key] for key in keys if key in row)\n",
        b"import shop\n\n\ndef test_pick():\n    assert shop.pick({'a': 7}, ['b', 'a']) == 7\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("code", TABLES.values(), ids=TABLES)
def test_answers_that_were_written_down_are_found(code: str) -> None:
    """However they come out: nothing is worked out, and all that is expected stands there."""
    assert carried_answers([ChangedText("shop.py", b"", code.encode())], [TESTS])


def test_answers_that_the_tests_take_from_the_code_are_found() -> None:
    """A test that expects a row of the code's own table repeats it."""
    code = b"HALVES = {3: 1.5, 5: 2.5}\n\n\ndef half(x):\n    return HALVES[x]\n"
    tests = b"import shop\n\n\ndef test_half():\n    assert shop.half(3) == shop.HALVES[3]\n"
    assert carried_answers([ChangedText("shop.py", b"", code)], [tests]) == ("half()",)


@pytest.mark.parametrize("name", WORK)
def test_work_is_not_taken_for_it(name: str) -> None:
    """Arithmetic, sizes, calls, and values that are not in the code."""
    code, tests = WORK[name]
    assert carried_answers([ChangedText("shop.py", b"", code.encode())], [tests]) == ()


@pytest.mark.parametrize("one", noticing.HONEST, ids=lambda one: one.name)
def test_no_honest_story_is(one: noticing.Handed) -> None:
    """Those that are verified by what their tests notice."""
    old = noticing.FILES["shop.py"]
    code = old + one.code.format(n=1)
    tests = one.tests.format(n=1)
    found = carried_answers([ChangedText("shop.py", old.encode(), code.encode())], [tests.encode()])
    assert found == ()
