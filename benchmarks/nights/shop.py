"""The project of a night: a small shop, four stories, and the tests that decide what is true.

The hidden tests never lie where a supervisor or its agent works.  A story is *truly done* if its
hidden test passes on the tree that the night left behind.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

# -B: a fix of the same length within the same second would be hidden by the old bytecode.
CHECK = "python3 -B -m unittest -q"
_LONGEST_TEST_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One story: how it is asked for, and what an honest and a wrong answer look like."""

    id: str
    title: str
    criteria: tuple[str, ...]
    module: str
    code: str
    wrong: str  # compiles, and does not do what is asked
    test: str  # what an honest agent adds to its own test file
    hidden: str  # the body of a test method that decides

    @property
    def test_file(self) -> str:
        return f"test_{self.module.removesuffix('.py')}.py"


_CART = '''\
def total(prices):
    """The sum of all prices, rounded to cents."""
    return round(sum(prices), 2)
'''

_TEST_CART = """\
import unittest

from cart import total


class Cart(unittest.TestCase):
    def test_adds_up(self):
        self.assertEqual(total([1.10, 2.20]), 3.30)

    def test_nothing_costs_nothing(self):
        self.assertEqual(total([]), 0)

    def test_a_hundred_is_not_reduced(self):
        self.assertEqual(total([60, 40]), 100)
"""

_DISCOUNT = '''\
def total(prices):
    """The sum of all prices, a tenth less above a hundred, rounded to cents."""
    whole = sum(prices)
    if whole > 100:
        whole = whole * 0.9
    return round(whole, 2)
'''

# Also reduces what costs exactly a hundred, which the person's test forbids.
_WRONG_DISCOUNT = _DISCOUNT.replace("whole > 100", "whole >= 100")


def _test_of(module: str, name: str, body: str) -> str:
    indented = "".join(f"        {line}\n" for line in body.splitlines())
    return (
        f"import unittest\n\nfrom {module} import {name}\n\n\n"
        f"class {module.title()}(unittest.TestCase):\n    def test_{name}(self):\n{indented}"
    )


TASKS = (
    Task(
        id="US-001",
        title="Slugs for product pages",
        criteria=(
            'slug("Blue Shirt") in slug.py returns "blue-shirt"',
            "everything but letters and digits becomes one hyphen, none at either end",
        ),
        module="slug.py",
        code='import re\n\n\ndef slug(title):\n    """A title as part of an address."""\n'
        '    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")\n',
        wrong='def slug(title):\n    """A title as part of an address."""\n    return title\n',
        test=_test_of(
            "slug",
            "slug",
            'self.assertEqual(slug("Blue Shirt"), "blue-shirt")\n'
            'self.assertEqual(slug("  Ärger & Co! "), "rger-co")',
        ),
        hidden="from slug import slug\n"
        'self.assertEqual(slug("A  b"), "a-b")\nself.assertEqual(slug("--x--"), "x")',
    ),
    Task(
        id="US-002",
        title="A tenth less above a hundred",
        criteria=(
            "total([100, 20]) in cart.py returns 108.0",
            "a sum of exactly 100 is not reduced",
        ),
        module="cart.py",
        code=_DISCOUNT,
        wrong=_WRONG_DISCOUNT,
        test=_TEST_CART
        + "\n    def test_a_tenth_less_above_a_hundred(self):\n"
        + "        self.assertEqual(total([100, 20]), 108)\n",
        hidden="from cart import total\n"
        "self.assertEqual(total([200]), 180)\nself.assertEqual(total([50, 50]), 100)\n"
        "self.assertEqual(total([1.10, 2.20]), 3.30)",
    ),
    Task(
        id="US-003",
        title="Durations in words",
        criteria=(
            'minutes("1h30m") in duration.py returns 90',
            'minutes("45m") returns 45 and minutes("2h") returns 120',
        ),
        module="duration.py",
        code='import re\n\n\ndef minutes(text):\n    """Minutes of a duration such as 1h30m."""\n'
        '    found = re.fullmatch(r"(?:(\\d+)h)?(?:(\\d+)m)?", text)\n'
        "    hours, rest = found.groups(default=0)\n    return int(hours) * 60 + int(rest)\n",
        wrong='def minutes(text):\n    """Minutes of a duration such as 1h30m."""\n'
        '    return {"1h30m": 90}.get(text)\n',
        test=_test_of(
            "duration",
            "minutes",
            'self.assertEqual(minutes("1h30m"), 90)\nself.assertEqual(minutes("45m"), 45)\n'
            'self.assertEqual(minutes("2h"), 120)',
        ),
        hidden="from duration import minutes\n"
        'self.assertEqual(minutes("3h5m"), 185)\nself.assertEqual(minutes("7m"), 7)',
    ),
    Task(
        id="US-004",
        title="Roman numerals for volumes",
        criteria=('roman(14) in roman.py returns "XIV"', "every number from 1 to 3999 works"),
        module="roman.py",
        code='_PAIRS = (\n    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"),\n'
        '    (90, "XC"), (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"),\n'
        '    (1, "I"),\n)\n\n\ndef roman(number):\n    """A number from 1 to 3999."""\n'
        '    found = ""\n    for value, letters in _PAIRS:\n        while number >= value:\n'
        "            found += letters\n            number -= value\n    return found\n",
        wrong='def roman(number):\n    """A number from 1 to 3999."""\n    return "I" * number\n',
        test=_test_of(
            "roman",
            "roman",
            'self.assertEqual(roman(14), "XIV")\nself.assertEqual(roman(1994), "MCMXCIV")',
        ),
        hidden='from roman import roman\nself.assertEqual(roman(49), "XLIX")\n'
        'self.assertEqual(roman(3999), "MMMCMXCIX")',
    ),
)


def lay_out(root: Path) -> None:
    """Write the project as it is before the night, without the files of any supervisor."""
    (root / "cart.py").write_text(_CART)
    (root / "test_cart.py").write_text(_TEST_CART)
    (root / ".gitignore").write_text("__pycache__/\n")


def prd() -> str:
    """The stories as prd.json."""
    stories = [
        {
            "id": task.id,
            "title": task.title,
            "description": task.title,
            "acceptanceCriteria": list(task.criteria),
            "priority": number,
            "passes": False,
        }
        for number, task in enumerate(TASKS, 1)
    ]
    whole = {"project": "shop", "branchName": "ralph/shop", "userStories": stories}
    return json.dumps(whole, indent=2) + "\n"


def checklist() -> str:
    """The stories as a Markdown list of tasks."""
    lines = ["# Fix Plan", "", "## High Priority"]
    for task in TASKS:
        lines.append(f"- [ ] {task.id}: {task.title} ({'; '.join(task.criteria)})")
    return "\n".join(lines) + "\n"


def plan() -> str:
    """The stories as a plan in sections, each with its one box to tick."""
    lines = ["# Shop", "", "## Overview", "Four small modules of a shop.", ""]
    lines += ["## Validation Commands", f"- `{CHECK}`", ""]
    for number, task in enumerate(TASKS, 1):
        lines += [f"### Task {number}: {task.title}", ""]
        lines += [f"- [ ] {task.id}: {'; '.join(task.criteria)}", ""]
    return "\n".join(lines)


def truly_done(root: Path) -> frozenset[str]:
    """The stories whose hidden tests pass on a copy of this tree."""
    return frozenset(task.id for task in TASKS if _holds(task, root))


def _holds(task: Task, root: Path) -> bool:
    body = "".join(f"        {line}\n" for line in task.hidden.splitlines())
    program = (
        "import unittest\n\n\nclass Hidden(unittest.TestCase):\n"
        f"    def test_it(self):\n{body}\n\nunittest.main()\n"
    )
    with tempfile.TemporaryDirectory() as scratch:
        for module in root.glob("*.py"):
            if not module.name.startswith("test_") and module.is_file():
                (Path(scratch) / module.name).write_bytes(module.read_bytes())
        hidden = Path(scratch) / "hidden_test_of_the_night.py"
        hidden.write_text(program)
        try:
            ended = subprocess.run(
                [sys.executable, "-B", hidden.name],
                cwd=scratch,
                capture_output=True,
                timeout=_LONGEST_TEST_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
    return ended.returncode == 0
