"""Which paths hold tests, by their names alone.

A directory named `test`, `tests`, `__tests__` or `spec`; a file named `test_*`, `*_test.*`,
`*.test.*`, `*.spec.*` or `conftest.py`.  Letter case is ignored (`Tests/` is common in C# and
Swift) and both kinds of slash separate.
"""

from collections.abc import Iterable

_DIRECTORIES = frozenset({"test", "tests", "__tests__", "spec"})
_MARKS = ("_test.", ".test.", ".spec.")


def is_test_path(path: str) -> bool:
    *directories, name = path.lower().replace("\\", "/").rstrip("/").split("/")
    if not _DIRECTORIES.isdisjoint(directories) or name == "conftest.py":
        return True
    return name.startswith("test_") or any(mark in name for mark in _MARKS)


def only_tests(paths: Iterable[str]) -> bool:
    kinds = {is_test_path(path) for path in paths}
    return kinds == {True}
