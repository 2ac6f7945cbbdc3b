"""Which changed files decide what a check does, and which it only looks at."""

from __future__ import annotations

import pytest

from ralphloop.repo.runners import changed_scripts

MAKE = "all: build\n\ncheck: lint\n\tsh ci/run.sh\n\nlint:\n\truff check src/app.py\n"
PACKAGE = '{"scripts": {"test": "node tools/check.js && jest", "build": "tsc"}}'
FILES = {
    "Makefile": MAKE,
    "package.json": PACKAGE,
    "verify.sh": "set -e\n./tools/deep.sh src/app.py\n",
    "tools/deep.sh": "exit 1\n",
    "ci/run.sh": "exit 1\n",
    "tools/check.js": "process.exit(1)\n",
    "scripts/check.py": "raise SystemExit(1)\n",
    "main.py": "print(1)\n",
    "src/app.py": "x = 1\n",
    "tests/test_a.py": "def test_a(): assert 1\n",
    "run": "#!/bin/sh\nexit 1\n",
}
GUARDED = {
    "a shell script": (["sh", "verify.sh"], {"verify.sh": "exit 0\n"}),
    "one step away": (["sh", "verify.sh"], {"tools/deep.sh": "exit 0\n"}),
    "a program in the tree": (["./run"], {"run": "exit 0\n"}),
    "a check in Python": (["python3", "scripts/check.py"], {"scripts/check.py": ""}),
    "by a Python of one's own": (
        ["/opt/bin/python3.12", "scripts/check.py"],
        {"scripts/check.py": ""},
    ),
    "a text for a shell": (["sh", "-c", "true && ./run"], {"run": "exit 0\n"}),
    "behind a recipe": (["make", "check"], {"ci/run.sh": "exit 0\n"}),
    "the recipe": (["make", "check"], {"Makefile": MAKE.replace("sh ci/run.sh", "true")}),
    "what it needs": (["make", "check"], {"Makefile": MAKE.replace("ruff check", "true")}),
    "a script of npm": (["npm", "test"], {"package.json": PACKAGE.replace("&& jest", "")}),
    "behind npm": (["npm", "run", "test"], {"tools/check.js": ""}),
    "deleted": (["sh", "verify.sh"], {"verify.sh": ""}),
}
LEFT_ALONE = {
    "a file that is read": (["grep", "-q", "x", "src/app.py"], {"src/app.py": "y = 2\n"}),
    "a file that a script reads": (["sh", "verify.sh"], {"src/app.py": "y = 2\n"}),
    "the product": (["python3", "main.py"], {"main.py": "print(2)\n"}),
    "a test": (["pytest", "tests/test_a.py"], {"tests/test_a.py": "def test_a(): pass\n"}),
    "another recipe": (["make", "check"], {"Makefile": MAKE + "new:\n\ttrue\n"}),
    "another script": (["npm", "test"], {"package.json": PACKAGE.replace("tsc", "tsc -b")}),
    "a new file": (["sh", "new.sh"], {"new.sh": "exit 0\n"}),
}


def findings(argv: list[str], changes: dict[str, str]) -> list[str]:
    """What is said of these changes."""
    now = {**FILES, **changes}
    old, new = (lambda path: FILES.get(path, "")), (lambda path: now.get(path, ""))
    return list(changed_scripts(argv, old, new))


@pytest.mark.parametrize(("argv", "changes"), GUARDED.values(), ids=GUARDED)
def test_what_a_check_executes_is_guarded(argv: list[str], changes: dict[str, str]) -> None:
    """Changed, it is named."""
    [words] = findings(argv, changes)
    assert next(iter(changes)) in words


@pytest.mark.parametrize(("argv", "changes"), LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_what_a_check_only_looks_at_is_not(argv: list[str], changes: dict[str, str]) -> None:
    """It is what the story works on."""
    assert findings(argv, changes) == []
