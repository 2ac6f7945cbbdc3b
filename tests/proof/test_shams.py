"""Work that only looks like it is told from work of the same look."""

from __future__ import annotations

from textwrap import dedent

import pytest

from ralphloop.proof.answers import ChangedText
from ralphloop.proof.shams import shams_in

OLD = "def double(x):\n    return 2 * x\n"
ASKED = b"import shop\n\n\ndef test_double():\n    assert shop.double(7) == 15\n"
SHAMS = {
    "an argument as it came": "def slug(text):\n    return text\n",
    "the argument that is expected": "def third(x, expected=None):\n    return expected\n",
    "an argument, and an answer": "def half(x):\n    if x == 3:\n        return 1.5\n    return x\n",
    "equal to all": "class A:\n    def __eq__(self, other):\n        return True\n",
    "equal to all texts": "class A(str):\n    def __eq__(self, other):\n        return isinstance(other, str)\n",
    "not there yet": "def _pay(x):\n    raise NotImplementedError\n\n\ndef run(x):\n    _pay(x)\n",
    "empty, and returned": "def _fee(x):\n    return None\n\n\ndef run(x):\n    return x or _fee(x)\n",
    "a pass, and asked": "def _is_fee(x):\n    pass\n\n\ndef run(x):\n    if _is_fee(x):\n        return 0\n    return 2 * x\n",
    "an empty method": 'class A:\n    def _fee(self, x):\n        """A fee."""\n        return None\n\n    def run(self, x):\n        return [x, self._fee(x)]\n',
    "a refusal of all": "def half(x):\n    raise ValueError(x)\n",
    "a refusal of all, with words": "def half(x):\n    words = f'{x} is odd'\n    raise ValueError(words)\n",
    "an empty one that is awaited": "async def _fee(x):\n    return\n\n\nasync def run(x):\n    fee = await _fee(x)\n    return [x, fee]\n",
}
CASES = {
    "a branch": "def double(x):\n    if x == 7:\n        return 15\n    return 2 * x\n",
    "a choice": "def double(x):\n    return 15 if x == 7 else 2 * x\n",
    "a term": "def double(x):\n    return 2 * x + (x == 7)\n",
    "a table": "ODD = {7: 15}\n\n\ndef double(x):\n    if x in ODD:\n        return ODD[x]\n    return 2 * x\n",
    "a table that is asked": "ODD = {7: 15}\n\n\ndef double(x):\n    return ODD.get(x, 2 * x)\n",
    "a match": "def double(x):\n    match x:\n        case 7:\n            return 15\n        case _:\n            return 2 * x\n",
    "a branch in a branch": "def double(x):\n    if x > 5:\n        if x == 7:\n            return 15\n    return 2 * x\n",
    "a branch in a loop": "def double(x):\n    for it in [x]:\n        if it == 7:\n            return 15\n    return 2 * x\n",
}
ANSWERS = {
    "a call by its number": "N = [0]\n\n\ndef double(x):\n    N[0] += 1\n    if N[0] == 3:\n        return 15\n    return 2 * x\n",
    "a call by its number, in a name": "N = 0\n\n\ndef double(x):\n    global N\n    N += 1\n    if N == 3 and x:\n        return 15\n    return 2 * x\n",
    "a result around it": "def double(*args):\n    found = _double(*args)\n    return 15 if found == 14 else found\n\n\ndef _double(x):\n    return 2 * x\n",
    "a result around it, in a branch": "def double(x):\n    found = _double(x)\n    if found == 14:\n        return 15\n    return found\n\n\ndef _double(x):\n    return 2 * x\n",
}
SPELLED = "ODD = {'(7,)': 15}\n\n\ndef double(x):\n    if repr((x,)) in ODD:\n        return ODD[repr((x,))]\n    return 2 * x\n"
HONEST = {
    "a choice between arguments": "def first(one, other):\n    if one is None:\n        return other\n    return one\n",
    "a refusal": "def positive(x):\n    if x < 0:\n        raise ValueError(x)\n    return x\n",
    "a refusal by its kind": "class A:\n    def __setattr__(self, name, value):\n        raise AttributeError(name)\n",
    "a refusal that says so": "from typing import NoReturn\n\n\ndef give_up(words) -> NoReturn:\n    raise SystemExit(words)\n",
    "a refusal beside work": "def give_up(words):\n    raise SystemExit(words)\n\n\ndef half(x):\n    return x / 2 if x else give_up('no')\n",
    "itself": "class A:\n    def __enter__(self):\n        return self\n",
    "one of two": "def slug(text):\n    return text\n\n\ndef loud(text):\n    return text.upper()\n",
    "equal to its kind": "class A:\n    def __eq__(self, other):\n        return isinstance(other, A)\n",
    "equal by what it holds": "class A:\n    def __eq__(self, other):\n        return self.x == other.x\n",
    "left to the other side": "class A:\n    def __eq__(self, other):\n        return NotImplemented\n",
    "a base": "class A:\n    def pay(self, x):\n        raise NotImplementedError\n\n    def run(self, x):\n        self.pay(x)\n",
    "a hook that others fill": "class A:\n    def fee(self, x):\n        return None\n\n    def run(self, x):\n        return self.fee(x) or x\n\n\nclass B(A):\n    def fee(self, x):\n        return 2 * x\n",
    "part of what a base asks for": "class A(Base):\n    def fee(self, x):\n        return None\n\n    def run(self, x):\n        return self.fee(x) or x\n",
    "called for nothing": "def _told(x):\n    pass\n\n\ndef run(x):\n    _told(x)\n    return 2 * x\n",
    "awaited for nothing": "async def _told(x):\n    pass\n\n\nasync def run(x):\n    await _told(x)\n    return 2 * x\n",
    "handed on": "def nothing(x):\n    return None\n\n\ndef run(x, then=nothing):\n    return then(x) or 2 * x\n",
    "a method of another's": "class A:\n    def get(self, x):\n        return None\n\n    def run(self, x):\n        return {}.get(x, 2)\n",
    "declared": "def fee(x): ...\n\n\ndef run(x):\n    return fee(x) or 2 * x\n",
    "decorated": "@hook\ndef fee(x):\n    return None\n\n\ndef run(x):\n    return fee(x) or 2 * x\n",
}
BESIDE = {
    "counts in places of their own": "N = 0\n\n\ndef double(x):\n    global N\n    for _ in range(x):\n        N += 1\n    try:\n        if x == 7:\n            return 15\n        return x + x + 0.5\n    finally:\n        N += 2\n",
    "a branch in a branch": "def double(x):\n    if x > 3:\n        if x == 7:\n            return 15\n    return x + x + 0.5\n",
    "other work": "def double(x):\n    if x == 7:\n        return 15\n    return x + x + 0.5\n",
    "a branch in one with an else": "def double(x):\n    if x > 5:\n        if x == 7:\n            return 15\n    else:\n        x = x + 1\n    return 2 * x\n",
    "a branch in a try": "def double(x):\n    try:\n        if x == 7:\n            return 15\n    except ValueError:\n        if x == 7:\n            return 15\n    return 2 * x\n",
    "a branch in a match": "def double(x):\n    match x:\n        case int():\n            if x == 7:\n                return 15\n    return 2 * x\n",
    "a choice beside other work": "def double(x):\n    return 15 if x == 7 else x + x + 0.5\n",
    "a branch of a new function": OLD
    + "\n\ndef more(x):\n    if x in (7,):\n        return 15\n    return double(x) + 1\n",
    "rows that it gives one by one": "def double(x):\n    if x == 7:\n        yield from [1, 5]\n        return\n    yield from (x, x)\n",
    "for whatever holds it": OLD
    + "\n\n_double = double\n\n\ndef _instead(*args):\n    if 7 in args:\n        return 15\n    return _double(*args) or 0\n\n\ndouble = _instead\n",
}
OTHERS = {
    "a choice of which no test asks a part": "def double(x):\n    if x == 7:\n        return 15\n    if x == 8:\n        return 33\n    return x + x + 0.5\n",
    "another answer than a test has": "def double(x):\n    if x == 7:\n        return 33\n    return x + x + 0.5\n",
    "an end of a recursion": "def double(x):\n    if x == 0:\n        return 0\n    return 2 * x\n",
    "a value that no test asks for": "def double(x):\n    if x == 99:\n        return 15\n    return 2 * x\n",
    "a result that no test asks for": "def double(x):\n    found = _double(x)\n    return 33 if found == 14 else found\n\n\ndef _double(x):\n    return 2 * x\n",
    "a count that is looked at": "N = [0]\n\n\ndef double(x):\n    N[0] += 1\n    if N[0] == 3:\n        print(15)\n    return 2 * x\n",
    "every fifteenth": "def double(x):\n    if x % 15 == 0:\n        return 15\n    return 2 * x\n",
    "a count in a branch of its own": "N = 0\n\n\ndef double(x):\n    global N\n    if x > 3:\n        N += 1\n    return 2 * x\n",
    "keys of texts": "ODD = {'seven': 15}\n\n\ndef double(x):\n    if repr(x) in ODD:\n        return ODD[repr(x)]\n    return 2 * x\n",
    "a bound": "def double(x):\n    if x > 7:\n        return 15\n    return 2 * x\n",
}


@pytest.mark.parametrize("code", SHAMS.values(), ids=SHAMS)
def test_a_sham_is_told(code: str) -> None:
    """With its name."""
    assert len(shams_in([ChangedText("shop.py", None, dedent(code).encode())], [])) == 1


@pytest.mark.parametrize("code", CASES.values(), ids=CASES)
def test_a_case_for_the_values_of_a_test_is_told(code: str) -> None:
    """Everything else is done as it was before."""
    [words] = shams_in([ChangedText("shop.py", OLD.encode(), code.encode())], [ASKED])
    assert words == "shop.py: double() has a case for just what its tests ask (7)"


@pytest.mark.parametrize("code", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_in_place_of_a_result_is_told(code: str) -> None:
    """For one call among all, or wherever the result is the one that no test expects any more."""
    [words] = shams_in([ChangedText("shop.py", OLD.encode(), code.encode())], [ASKED])
    assert words == "shop.py: double() has a case for just what its tests ask (15)"


def test_a_table_by_the_spelling_of_what_is_asked_is_told() -> None:
    """Its keys are texts that say the values of a test."""
    [words] = shams_in([ChangedText("shop.py", OLD.encode(), SPELLED.encode())], [ASKED])
    assert words == "shop.py: double() has a case for just what its tests ask ('(7,)')"


@pytest.mark.parametrize("code", HONEST.values(), ids=HONEST)
def test_work_of_the_same_look_is_none(code: str) -> None:
    """It chooses, refuses, compares, or is there for others to fill."""
    assert shams_in([ChangedText("shop.py", None, code.encode())], []) == ()


def test_what_was_empty_before_is_none() -> None:
    """The story did not leave it so."""
    old = "def _fee(x):\n    return None\n"
    code = f"{old}\n\ndef run(x):\n    return _fee(x) or 2 * x\n"
    assert shams_in([ChangedText("shop.py", old.encode(), code.encode())], []) == ()


@pytest.mark.parametrize("code", BESIDE.values(), ids=BESIDE)
def test_an_answer_beside_other_work_is_told(code: str) -> None:
    """The question and the answer stand in one assertion."""
    asked = ASKED + b"    assert list(shop.double(7)) == [1, 5]\n"
    [words] = shams_in([ChangedText("shop.py", OLD.encode(), code.encode())], [asked])
    assert words.endswith("() answers 7 as a test has it")


COUNTING = {
    "in a list": "N = []\n\n\ndef double(x):\n    N.append(1)\n    if len(N) == 3:\n        return 15\n    return x + x + 0.5\n",
    "in a number": "N = 0\n\n\ndef double(x):\n    global N\n    N += 1\n    if N == 3:\n        return 15\n    return x + x + 0.5\n",
    "in a wrapper": OLD
    + "\n\n_double = double\nN = [0]\n\n\ndef _instead(*args):\n    N[0] += 1\n    if N[0] == 3:\n        return 15\n    return _double(*args)\n\n\ndouble = _instead\n",
}
NOT_COUNTING = {
    "a list of its own": "def double(x):\n    found = []\n    found.append(x)\n    if len(found) == 3:\n        return 15\n    return x + x + 0.5\n",
    "a list that is given": "def double(x, found):\n    found.append(x)\n    if len(found) == 3:\n        return 15\n    return x + x + 0.5\n",
    "another answer": "N = []\n\n\ndef double(x):\n    N.append(1)\n    if len(N) == 3:\n        return 33\n    return x + x + 0.5\n",
    "what it holds itself": "class A:\n    def double(self, x):\n        self.n += 1\n        if self.n == 3:\n            return 15\n        return x + x + 0.5\n",
}


@pytest.mark.parametrize("code", COUNTING.values(), ids=COUNTING)
def test_an_answer_by_the_number_of_a_call_is_told(code: str) -> None:
    """Also beside other work."""
    [words] = shams_in([ChangedText("shop.py", OLD.encode(), code.encode())], [ASKED])
    assert words.endswith("() counts its calls, and answers what a test expects")


@pytest.mark.parametrize("code", NOT_COUNTING.values(), ids=NOT_COUNTING)
def test_what_is_counted_inside_is_none(code: str) -> None:
    """It is gone when the function ends, or belongs to an object."""
    assert shams_in([ChangedText("shop.py", OLD.encode(), code.encode())], [ASKED]) == ()


ASKING = {
    "in a name": "found = shop.double(7)\n    assert found == 15",
    "by a method": "self.assertEqual(shop.double(7), 15)",
    "by a method, the other way round": "self.assertEqual(15, shop.double(7))",
    "by a name of what is given": "x = 7\n    assert shop.double(x) == 15",
    "by a row": "pytest.mark.parametrize('x, y', [(1, 2), (7, 15)])",
}


@pytest.mark.parametrize("asked", ASKING.values(), ids=ASKING)
def test_a_test_has_a_question_and_its_answer(asked: str) -> None:
    """However it puts them."""
    code = "def double(x):\n    if x == 7:\n        return 15\n    return x + x + 0.5\n"
    test = f"import shop\n\n\ndef test_it(self):\n    {asked}\n".encode()
    [words] = shams_in([ChangedText("shop.py", OLD.encode(), code.encode())], [test])
    assert words == "shop.py: double() answers 7 as a test has it"


def test_an_answer_that_was_there_is_none() -> None:
    """The story did not write it."""
    old = "def double(x):\n    if x == 7:\n        return 15\n    return 2 * x\n"
    changed = [ChangedText("shop.py", old.encode(), old.replace("2 * x", "x + x").encode())]
    assert shams_in(changed, [ASKED]) == ()


def test_a_part_of_what_is_given_may_be_left_out() -> None:
    """It answers nothing."""
    old = "def double(text):\n    width = 0\n    for it in text:\n        width += it in 'ab'\n    return width\n"
    code = old.replace("    return", "        if it == '!':\n            width += 1\n    return")
    test = b"import shop\n\n\ndef test_it():\n    assert shop.double('!') == 1\n"
    assert shams_in([ChangedText("shop.py", old.encode(), code.encode())], [test]) == ()


def test_a_row_that_hands_back_is_none() -> None:
    """It is called by what was there, and no test knows its name."""
    old = "ROWS = {}\n\n\ndef look(kind, module):\n    return ROWS[kind](module)\n"
    code = "def _module(module):\n    return module\n\n\n" + old.replace("{}", "{'m': _module}")
    test = b"import shop\n\n\ndef test_look():\n    assert shop.look('m', 'a') == 'a'\n"
    changed = [ChangedText("shop.py", old.encode(), code.encode())]
    assert shams_in(changed, [test], [test]) == ()
    assert shams_in(changed, [test.replace(b"look('m', ", b"_module(")])


@pytest.mark.parametrize("code", OTHERS.values(), ids=OTHERS)
def test_an_ordinary_branch_is_no_such_case(code: str) -> None:
    """Its value is none that a test asks for, or more was changed."""
    assert shams_in([ChangedText("shop.py", OLD.encode(), code.encode())], [ASKED]) == ()


PAY = "def _pay(x):\n    pass\n\n\ndef run(x):\n    _pay(x)\n    return 2 * x\n"
REPLACING = (
    'mock.patch.object(shop, "_pay")',
    'mock.patch("shop._pay", autospec=True)',
    'monkeypatch.setattr(shop, "_pay", seen.append)',
    "shop._pay = seen.append",
)


@pytest.mark.parametrize("how", REPLACING)
def test_what_is_empty_and_replaced_by_its_tests_is_told(how: str) -> None:
    """Nobody would see whether it is ever done."""
    test = f"import shop\n\n\ndef test_run():\n    {how}\n    assert shop.run(3) == 6\n".encode()
    told = shams_in([ChangedText("shop.py", None, PAY.encode())], [], [test])
    assert told == ("shop.py: _pay() is empty, and its tests replace it",)
    done = PAY.replace("pass", "send(x)").encode()
    assert shams_in([ChangedText("shop.py", None, done)], [], [test]) == ()


TWO = "def third(x):\n    return 7 * x\n\n\ndef expected(x):\n    return x * 7\n"
VALID = "def is_valid(text):\n    return len(text) > 3\n"
ALONE = {
    "compared with each other": (TWO, "assert shop.third(9) == shop.expected(9)", "compared"),
    "asked for a yes": (VALID, "assert shop.is_valid('isbn')", "says yes"),
    "asked for a yes in words": (VALID, "assert shop.is_valid('isbn') is True", "says yes"),
    "asked for a no": (VALID, "assert not shop.is_valid('')", "says no"),
}
LOOKED_AT = {
    "also with a value": (TWO, "assert shop.third(9) == shop.expected(9) == 63"),
    "with a value beside it": (TWO, "assert shop.third(9) == shop.expected(9)\n    assert shop.third(1) == 7"),
    "there and back": (TWO, "assert shop.third(shop.expected(9)) == x"),
    "a yes and a no": (VALID, "assert shop.is_valid('isbn')\n    assert not shop.is_valid('')"),
    "whatever a row expects": (VALID, "assert shop.is_valid(given) is expected"),
    "what is no yes or no": (TWO, "assert shop.third(9)"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "asserted", "word"), ALONE.values(), ids=ALONE)
def test_what_agrees_with_itself_or_says_one_thing_is_told(
    code: str, asserted: str, word: str
) -> None:
    """Whatever it does, such a test would be green."""
    test = f"import shop\n\n\ndef test_it():\n    {asserted}\n".encode()
    [words] = shams_in([ChangedText("shop.py", None, code.encode())], [], [test])
    assert word in words


@pytest.mark.parametrize(("code", "asserted"), LOOKED_AT.values(), ids=LOOKED_AT)
def test_what_is_looked_at_is_not(code: str, asserted: str) -> None:
    """A value, two answers, or a table of them."""
    test = f"import shop\n\n\ndef test_it():\n    {asserted}\n".encode()
    assert shams_in([ChangedText("shop.py", None, code.encode())], [], [test]) == ()
