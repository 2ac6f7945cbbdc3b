"""Which paths count as tests."""

from __future__ import annotations

import pytest

from ralphloop.core.proof import is_test_path

TESTS = [
    "tests/test_a.py",
    "test/a.c",
    "src/test/java/com/x/Foo.java",
    "pkg/__tests__/button.js",
    "spec/models/user_spec.rb",
    "test_calc.py",
    "deep/er/test_calc.py",
    "calc_test.go",
    "calc_test.exs",
    "ui/button.test.tsx",
    "ui/button.spec.ts",
    "ui/button.test.helper.ts",
    "conftest.py",
    "pkg/conftest.py",
    "Tests/FooTests.swift",
    "tests\\windows.py",
    "tests/data/input.json",
]
SOURCES = [
    "src/latest.py",
    "contest/entry.py",
    "testing.md",
    "attestation/key.go",
    "src/testutil.py",
    "specs/001.md",
    "spec.md",
    "src/spectrum.ts",
    "a_test",
    "README.md",
    "test",
    "src/fastest.test_data",
    "",
]


@pytest.mark.parametrize("path", TESTS)
def test_a_test_path_is_known_by_its_name(path: str) -> None:
    """Directories and file names of the convention are tests."""
    assert is_test_path(path)


@pytest.mark.parametrize("path", SOURCES)
def test_a_source_path_is_not_a_test(path: str) -> None:
    """Names that merely contain the letters are not tests."""
    assert not is_test_path(path)
