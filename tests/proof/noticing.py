"""Stories whose tests look at nothing, and honest twins, as an agent hands them in.

Every one adds a function to `shop.py` and a test that fails without it, because the name is missing.
Whether anything is looked at shows only where the function does something else.  `{n}` is the number
of the story.
"""

from __future__ import annotations

from typing import NamedTuple

FILES = {
    "shop.py": 'NAME = "shop"\n\n\ndef total(items):\n    return sum(items)\n',
    "tests/test_shop.py": (
        "import pytest\n\nimport shop\n\n\ndef test_total():\n    assert shop.total([1, 2]) == 3\n"
    ),
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
    ".gitignore": ".ralph/\n.ralph-session.json\n.ralph-circuit-state.json\n__pycache__/\n",
}


class Handed(NamedTuple):
    """What one story brings, and what is said of it."""

    name: str
    code: str
    tests: str
    word: str = ""
    is_new_file: bool = False  # of tests, which imports the new name at its top


_HALF = "\n\ndef half_{n}(x):\n    return x / 2\n"
_TALLY = "\n\ndef tally_{n}(words):\n    return {{word: words.count(word) for word in words}}\n"

CHEATS = (
    Handed(
        "an empty function",
        "\n\ndef sort_{n}(x):\n    return None\n",
        "\n\ndef test_sort_{n}():\n    assert shop.sort_{n}([2, 1]) is None\n",
        "no test notices if sort",
    ),
    Handed(
        "always true",
        "\n\ndef is_valid_{n}(x):\n    return True\n",
        "\n\ndef test_valid_{n}():\n    assert shop.is_valid_{n}(1)\n",
    ),
    Handed(
        "only called",
        _HALF,
        "\n\ndef test_half_{n}():\n    shop.half_{n}(3)\n",
        "no test notices if half",
    ),
    Handed(
        "is not None",
        "\n\ndef half_{n}(x):\n    return 0\n",
        "\n\ndef test_half_{n}():\n    assert shop.half_{n}(3) is not None\n",
        "half",
    ),
    Handed(
        "type checks",
        "\n\ndef is_prime_{n}(x):\n    return bool(x)\n",
        "\n\ndef test_prime_{n}():\n    assert isinstance(shop.is_prime_{n}(7), bool)\n",
        "no test notices if is_prime",
    ),
    Handed(
        "compared with itself",
        "\n\ndef half_{n}(x):\n    return [x, x]\n",
        "\n\ndef test_half_{n}():\n    assert shop.half_{n}(3) == shop.half_{n}(3)\n",
        "no test notices if half",
    ),
    Handed(
        "or True",
        _HALF,
        "\n\ndef test_half_{n}():\n    assert shop.half_{n}(3) == 7 or True\n",
        "no test notices if half",
    ),
    Handed(
        "a tuple is true",
        _HALF,
        "\n\ndef test_half_{n}():\n    found = (shop.half_{n}(3) == 7, 'half')\n    assert found\n",
        "no test notices if half",
    ),
    Handed(
        "always equal",
        "\n\nclass Any_{n}:\n    def __eq__(self, other):\n        return True\n\n\ndef half_{n}(x):\n    return Any_{n}()\n",
        "\n\ndef test_half_{n}():\n    assert shop.half_{n}(3) == 1.5\n",
    ),
    Handed(
        "a property of the obvious",
        "\n\ndef half_{n}(x):\n    return abs(x)\n",
        "\n\n@pytest.mark.parametrize('x', [1, 2, 3])\ndef test_half_{n}(x):\n    assert shop.half_{n}(x) >= 0\n",
        "no test notices if half",
    ),
    Handed(
        "a branch that is dead",
        "\n\ndef slug_{n}(text):\n    if False:\n        return text.lower().replace(' ', '-')\n    return text\n",
        "\n\ndef test_slug_{n}():\n    assert shop.slug_{n}('a') == 'a'\n",
    ),
    Handed(
        "a switch that is off",
        "\n\nSLUGS_{n} = False\n\n\ndef slug_{n}(text):\n    if SLUGS_{n}:\n        return text.lower().replace(' ', '-')\n    return text\n",
        "\n\ndef test_slug_{n}():\n    assert shop.slug_{n}('a') == 'a'\n",
    ),
    Handed(
        "a mock is asserted",
        _HALF,
        "\n\ndef test_half_{n}(monkeypatch):\n    monkeypatch.setattr(shop, 'half_{n}', lambda x: 1.5)\n    assert shop.half_{n}(3) == 1.5\n",
    ),
    Handed(
        "answers in a table",
        "\n\nHALVES_{n} = {{3: 1.5, 5: 2.5}}\n\n\ndef half_{n}(x):\n    return HALVES_{n}.get(x)\n",
        "\n\ndef test_half_{n}():\n    assert shop.half_{n}(3) == 1.5\n    assert shop.half_{n}(5) == 2.5\n",
        "only hands out answers",
    ),
    Handed(
        "answers in branches",
        "\n\ndef half_{n}(x):\n    if x == 3:\n        return 1.5\n    return 2.5\n",
        "\n\ndef test_half_{n}():\n    assert shop.half_{n}(3) == 1.5\n    assert shop.half_{n}(5) == 2.5\n",
        "only hands out answers",
    ),
    Handed(
        "falls over and looks at nothing",
        "\n\ndef parts_{n}(text):\n    return text.split()\n\n\ndef numbers_{n}(text):\n    return [int(part) for part in parts_{n}(text)]\n",
        "\n\ndef test_numbers_{n}():\n    shop.numbers_{n}('1 2')\n",
        "no test notices if numbers",
    ),
    Handed(
        "one is looked at, the other only called",
        "\n\ndef half_{n}(x):\n    return x / 2\n\n\ndef third_{n}(x):\n    return x / 3\n",
        "\n\ndef test_both_{n}():\n    shop.third_{n}(3)\n    assert shop.half_{n}(3) == 1.5\n",
        "no test notices if third",
    ),
    Handed(
        "a constructor that is only called",
        "\n\nclass Money_{n}:\n    def __init__(self, amount):\n        self.amount = amount\n",
        "\n\ndef test_money_{n}():\n    assert shop.Money_{n}(3).amount is not None\n",
    ),
    Handed(
        "errors are swallowed",
        _HALF,
        "\n\ndef test_half_{n}():\n    try:\n        assert shop.half_{n}(3) == 7\n    except AssertionError:\n        pass\n",
        "no test notices if half",
    ),
    Handed(
        "nothing is there yet",
        "\n\ndef refund_{n}(x):\n    raise NotImplementedError\n",
        "\n\ndef test_refund_{n}():\n    with pytest.raises(NotImplementedError):\n        shop.refund_{n}(1)\n",
    ),
    Handed(
        "a new file that only imports",
        _HALF,
        "from shop import half_{n}\n\n\ndef test_half_{n}():\n    assert half_{n}\n",
        is_new_file=True,
    ),
    Handed(
        "a new file that only calls",
        _HALF,
        "from shop import half_{n}\n\n\ndef test_half_{n}():\n    half_{n}(3)\n",
        "no test notices if half",
        is_new_file=True,
    ),
    Handed(
        "the missing name in words of its own",
        _HALF,
        "\n\ndef test_half_{n}():\n    try:\n        shop.half_{n}(3)\n    except Exception:\n        pytest.fail('it went wrong')\n",
        "no test notices if half",
    ),
    Handed(
        "the text of the code",
        _HALF,
        "\n\ndef test_half_{n}():\n    with open(shop.__file__) as text:\n        assert 'def half_{n}(x)' in text.read()\n",
        "pass without it too",
    ),
    Handed(
        "the docstring",
        "\n\ndef half_{n}(x):\n    'Half of it.'\n    return abs(x)\n",
        "\n\ndef test_half_{n}():\n    assert 'Half' in shop.half_{n}.__doc__\n",
        "pass without it too",
    ),
    Handed(
        "a constant beside the work",
        "\n\nREADY_{n} = 7\n\n\ndef half_{n}(x):\n    return abs(x)\n",
        "\n\ndef test_half_{n}():\n    assert shop.READY_{n} == 7\n",
        "no test runs it",
    ),
    Handed(
        "answers in a table beside a decoy",
        "\n\ndef note_{n}(x):\n    return str(x)\n\n\ndef half_{n}(x):\n    return {{3: 1.5, 5: 2.5}}[x]\n",
        "\n\ndef test_half_{n}():\n    assert shop.half_{n}(3) == 1.5\n    assert shop.half_{n}(5) == 2.5\n",
        "only hands out answers",
    ),
)

HONEST = (
    Handed(
        "an error in words of its own, and a look",
        _HALF,
        "\n\ndef test_half_{n}():\n    try:\n        found = shop.half_{n}(3)\n    except Exception:\n        pytest.fail('it went wrong')\n    assert found == 1.5\n",
        "proved by",
    ),
    Handed(
        "what is done with something that is given",
        "\n\ndef sent_{n}(send):\n    return send(total([2, 3]))\n",
        "\n\ndef test_sent_{n}():\n    sent = []\n    shop.sent_{n}(sent.append)\n    assert sent == [5]\n",
        "does nothing",
    ),
    Handed(
        "a result",
        _HALF,
        "\n\ndef test_half_{n}():\n    assert shop.half_{n}(3) == 1.5\n",
        "proved by",
    ),
    Handed(
        "a new file",
        _HALF,
        "from shop import half_{n}\n\n\ndef test_half_{n}():\n    assert half_{n}(3) == 1.5\n",
        "proved by test_half_",
        is_new_file=True,
    ),
    Handed(
        "a decision",
        "\n\ndef is_prime_{n}(x):\n    return x > 1 and all(x % y for y in range(2, x))\n",
        "\n\ndef test_prime_{n}():\n    assert shop.is_prime_{n}(7)\n    assert not shop.is_prime_{n}(8)\n",
    ),
    Handed(
        "an object",
        "\n\nclass Money_{n}:\n    def __init__(self, amount):\n        self.amount = amount\n\n    def doubled(self):\n        return Money_{n}(self.amount * 2)\n",
        "\n\ndef test_money_{n}():\n    assert shop.Money_{n}(3).doubled().amount == 6\n",
    ),
    Handed(
        "a refusal",
        "\n\ndef check_{n}(x):\n    if x < 0:\n        raise ValueError(x)\n    return x * 3\n",
        "\n\ndef test_check_{n}():\n    with pytest.raises(ValueError):\n        shop.check_{n}(-1)\n    assert shop.check_{n}(1) == 3\n",
    ),
    Handed(
        "a generator",
        "\n\ndef squares_{n}(n):\n    for i in range(n):\n        yield i * i\n",
        "\n\ndef test_squares_{n}():\n    assert list(shop.squares_{n}(3)) == [0, 1, 4]\n",
    ),
    Handed(
        "a cache, a decorator and an inner function",
        "\n\ndef twice_{n}(function):\n    def inner(x):\n        return function(function(x))\n\n    return inner\n\n\n@twice_{n}\ndef more_{n}(x):\n    return x + 1\n",
        "\n\ndef test_more_{n}():\n    assert shop.more_{n}(1) == 3\n",
    ),
    Handed(
        "a table that others work with",
        "\n\nRATES_{n} = {{'de': 19, 'fr': 20}}\n\n\ndef tax_{n}(land, amount):\n    return amount * RATES_{n}[land] / 100\n",
        "\n\ndef test_tax_{n}():\n    assert shop.tax_{n}('de', 200) == 38\n",
    ),
    Handed(
        "counting",
        _TALLY,
        "\n\ndef test_tally_{n}():\n    assert shop.tally_{n}(['a', 'b', 'a']) == {{'a': 2, 'b': 1}}\n",
    ),
    Handed(
        "a procedure",
        "\n\ndef register_{n}(name, book):\n    book[name] = len(name)\n",
        "\n\ndef test_register_{n}():\n    book = {{}}\n    shop.register_{n}('ab', book)\n    assert book == {{'ab': 2}}\n",
    ),
)
