"""Helpers that assert are told from the product."""

from __future__ import annotations

from ralphloop.text.asserting import (
    imported_names,
    is_asserting,
    is_asserting_go,
    is_asserting_rust,
)

HELPER = "def same(one, other):\n    assert one == other\n"
CASE = (
    "class Case(TestCase):\n    def same(self, one, other):\n        self.assertEqual(one, other)\n"
)
PRODUCT = "def half(x):\n    assert x\n    return x / 2\n\n\ndef third(x):\n    return x / 3\n"


def test_what_is_there_to_assert_is_told_from_the_product() -> None:
    """A helper, a base of test cases; not a module with an assertion in one of its three functions."""
    assert is_asserting(HELPER)
    assert is_asserting(CASE)
    assert not is_asserting(PRODUCT + "\n\ndef fourth(x):\n    return x / 4\n")
    assert not is_asserting("def half(x:\n")


def test_imports_are_found_by_each_part_of_their_names() -> None:
    """Modules, packages and what is taken from them."""
    text = "import shop.prices\nfrom shop.testing import (\n    same,\n)\nfrom . import eq\n"
    assert imported_names(text) >= {"shop", "prices", "testing", "same", "eq"}


GO = "package sure\n\nfunc Same(t *testing.T, a, b int) {\n\tif a != b {\n\t\tt.Fatal(a)\n\t}\n}\n"
RUST = "pub fn same(a: i64, b: i64) {\n    assert_eq!(a, b);\n}\n"


def test_helpers_of_go_are_given_the_test() -> None:
    """One function for tests among those of the product makes no helper of a file."""
    assert is_asserting_go(GO)
    assert is_asserting_go(GO + "\nfunc name() string { return `a` }\n")
    assert not is_asserting_go(GO + "\nfunc A() {}\n\nfunc B() {}\n")
    assert not is_asserting_go("package testing\n\nvar T = testing.T{}\n")


def test_helpers_of_rust_assert() -> None:
    """A macro is as good as a function."""
    assert is_asserting_rust(RUST)
    assert is_asserting_rust("macro_rules! same {\n    ($a:expr) => { assert!($a) };\n}\n")
    assert not is_asserting_rust(RUST + "\nfn a() {}\n\npub(crate) fn b() {}\n")
    assert not is_asserting_rust("// assert!(a)\n")
