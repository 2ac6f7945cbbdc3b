"""Which texts of tests still say all that they said."""

from __future__ import annotations

import pytest

from ralphloop.text.additions import only_adds

OLD = '''\
"""Tests of the shop."""

import pytest

import shop


class TestShop:
    def test_half(self):
        assert shop.half(4) == 2


def test_total():
    assert shop.total([1, 2]) == 3
'''
MORE = "\n\ndef test_more():\n    assert shop.more(1) == 2\n"
GREW = {
    "nothing": "",
    "a test": MORE,
    "a class of tests": "\n\nclass TestMore:\n    def test_it(self):\n        assert shop\n",
    "a fixture": "\n\n@pytest.fixture\ndef cart():\n    return [1]\n",
    "rows": "\nROWS = [1, 2]\n",
}
OTHERWISE = {
    "another of its name": "\n\ndef test_total():\n    pass\n",
    "a mark for all": "\npytestmark = pytest.mark.skip\n",
    "a fixture for all": "\n\n@pytest.fixture(autouse=True)\ndef quiet():\n    shop.total = sum\n",
    "a set-up": "\n\ndef setup_module():\n    shop.total = sum\n",
    "a hook": "\n\ndef pytest_runtest_call(item):\n    pass\n",
    "something that is done": "\nshop.total = sum\n",
    "the product from elsewhere": "\nimport other as shop\n",
}


@pytest.mark.parametrize("more", GREW.values(), ids=GREW)
def test_a_file_that_only_grew_says_what_it_said(more: str) -> None:
    """Tests, rows and fixtures that somebody has to ask for."""
    assert only_adds("tests/test_shop.py", OLD, OLD + more)
    assert only_adds("tests/conftest.py", "", more)


def test_a_class_may_have_more_tests() -> None:
    """Also between the old ones."""
    new = OLD.replace("class TestShop:\n", "class TestShop:\n    def test_new(self): pass\n\n")
    assert only_adds(
        "tests/test_shop.py", OLD, new.replace("import shop", "import os\nimport shop")
    )


@pytest.mark.parametrize("more", OTHERWISE.values(), ids=OTHERWISE)
def test_what_changes_the_tests_that_were_there_is_told(more: str) -> None:
    """It hides them, skips them, or runs for all of them."""
    assert not only_adds("tests/test_shop.py", OLD, OLD + more)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("== 3", "is not None"),
        ("def test_total", "@pytest.mark.skip\ndef test_total"),
        ("class TestShop", "@pytest.mark.skip\nclass TestShop"),
        ("    def test_half", "    __test__ = False\n\n    def test_half"),
        ("def test_total():\n    assert shop.total([1, 2]) == 3\n", ""),
    ],
)
def test_a_test_that_is_not_what_it_was_is_told(old: str, new: str) -> None:
    """Emptied, skipped or gone."""
    assert not only_adds("tests/test_shop.py", OLD, OLD.replace(old, new))


def test_other_languages_are_told_by_lines() -> None:
    """A line that is gone may have been an assertion."""
    old = "test('a', () => {\n  expect(a()).toBe(1);\n});\n"
    assert only_adds("a.test.js", old, f"{old}test('b', () => {{}});\n")
    assert not only_adds("a.test.js", old, old.replace("toBe(1)", "toBeDefined()"))
