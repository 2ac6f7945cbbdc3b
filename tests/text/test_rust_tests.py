"""Modules of tests in a file of Rust, told apart from its code."""

from __future__ import annotations

import pytest

from ralphloop.text.rust_tests import crossed_modules, modules_of_tests

HEAD = b"pub fn f() -> i64 { 1 }\n"
NEW_HEAD = b"pub fn f() -> i64 { 2 }\n"
TAIL = b"pub fn behind() {}\n"
TESTS = b"#[cfg(test)]\nmod tests {\n    #[test]\n    fn a() { assert_eq!(f(), 1); }\n}\n"
NEW_TESTS = TESTS.replace(b"1)", b"2)")


def test_code_and_tests_are_exchanged() -> None:
    """What stands behind the module stays where it is."""
    both = crossed_modules(HEAD + TESTS + TAIL, NEW_HEAD + NEW_TESTS + TAIL)
    assert both is not None
    assert both.new_code == NEW_HEAD + TESTS + TAIL
    assert both.old_code == HEAD + NEW_TESTS + TAIL


def test_the_same_tests_are_no_change() -> None:
    """Code alone changed."""
    assert crossed_modules(HEAD + TESTS, NEW_HEAD + TESTS) is None
    assert crossed_modules(HEAD, NEW_HEAD) is None


def test_a_module_that_came_or_went_is_added_or_taken_out() -> None:
    """The old code with the new tests has them at its end."""
    both = crossed_modules(HEAD, NEW_HEAD + NEW_TESTS)
    assert both is not None
    assert b"mod tests" not in both.new_code
    assert both.old_code.startswith(HEAD)
    assert NEW_TESTS.strip() in both.old_code


@pytest.mark.parametrize(
    "item",
    [
        b"#[cfg(test)]\npub fn sample(x: i64) -> i64 {\n    x\n}\n",
        b"#[cfg(test)]\n#[must_use]\npub(crate) const fn sample<T>(x: T)\n-> T where T: Copy {\n    x\n}\n",
        b"#[cfg(test)]\nimpl Price {\n    fn sample() -> Price { Price(1) }\n}\n",
        b"#[cfg(test)]\nimpl<T: Copy> From<T> for Price {\n    fn from(_: T) -> Price { Price(1) }\n}\n",
    ],
)
def test_what_is_there_for_tests_alone_goes_with_them(item: bytes) -> None:
    """A function, an impl: where only they came, the code is as it was."""
    both = crossed_modules(HEAD + TESTS, HEAD + item + NEW_TESTS)
    assert both is not None
    assert both.new_code == HEAD + TESTS
    assert item.strip() in both.old_code


@pytest.mark.parametrize(
    "inside",
    [
        rb'let a = "}";',
        rb'let a = "\"}";',
        b'let a = r#"\n}\n"}"#;',
        b"let a = '}';",
        b"let a = '\\'';",
        b'let a: &\'static str = "{";',
        b"// }\n",
        b"/* }\n} */",
        b"if a { b(); }",
    ],
)
def test_only_braces_of_the_code_count(inside: bytes) -> None:
    """Those in texts, characters and comments end nothing."""
    module = TESTS.replace(b"assert_eq!(f(), 1);", inside)
    (found,) = modules_of_tests(HEAD + module + TAIL)
    assert (HEAD + module + TAIL)[found.start : found.end] + b"\n" == module


@pytest.mark.parametrize(
    "source",
    [b"#[test]\nfn a() {}\n", b"#[cfg(test)]\nmod tests {\n", TESTS + TESTS, TESTS[:-3] + b'"\n'],
)
def test_what_cannot_be_told_apart_is_said(source: bytes) -> None:
    """Tests at the margin, two modules of one name, a module without an end."""
    with pytest.raises(ValueError):
        crossed_modules(source, HEAD)
