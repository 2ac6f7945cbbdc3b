"""Which runner a check is, behind whatever starts it; and what it obeys."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from ralphloop.repo.runners import find_runner, known_runners

SCRIPTS = {
    "test": "jest && npm run check:type",
    "check:type": "tsc --noEmit",
    "unit": "NODE_OPTIONS=--experimental-vm-modules jest --coverage",
    "both": "jest && vitest run",
    "all": "run-s lint unit",
    "lint": "eslint .",
    "posttap": "echo done",
    "tap": "cross-env CI=1 c8 mocha 'test/**/*.js' > out.txt",
    "node": "node --import tsx --test test/*.ts",
    "loop": "npm run loop",
}
MAKEFILE = """\
PYTHON ?= .venv/bin/python
.PHONY: test lint
test: lint
\t@$(PYTHON) -m pytest -q \\
\t  tests
lint:
\truff check .
moved:
\tcd sub && pytest
two:
\tpytest tests/a
\tpytest tests/b
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory with scripts of every kind."""
    (tmp_path / "package.json").write_text(json.dumps({"scripts": SCRIPTS}))
    (tmp_path / "Makefile").write_text(MAKEFILE)
    (tmp_path / "check.sh").write_text("#!/bin/sh\nset -e\nruff check .\nuv run pytest -x\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text("")
    return tmp_path


@pytest.mark.parametrize(
    "command, runner, call",
    [
        ("pytest -q", "pytest", "pytest -q"),
        (".venv/bin/python -m pytest -q", "pytest", ".venv/bin/python -m pytest -q"),
        ("uv run --with x pytest -q", "pytest", "uv run --with x pytest -q"),
        ("poetry run pytest", "pytest", "poetry run pytest"),
        ("coverage run -m pytest tests", "pytest", "coverage run -m pytest tests"),
        ("python3.12 -m unittest -q", "unittest", "python3.12 -m unittest -q"),
        ("python manage.py test shop", "unittest", "python manage.py test shop"),
        ("python -m django test shop", "unittest", "python -m django test shop"),
        ("coverage run -m django test", "unittest", "coverage run -m django test"),
        ("django-admin test shop", "unittest", "django-admin test shop"),
        ("env A=1 timeout 60 pytest", "pytest", "timeout 60 pytest"),
        ("sh -c 'ruff check . && pytest -q'", "pytest", "pytest -q"),
        ("./check.sh", "pytest", "uv run pytest -x"),
        ("bash check.sh", "pytest", "uv run pytest -x"),
        ("make test", "pytest", ".venv/bin/python -m pytest -q tests"),
        ("make", "pytest", ".venv/bin/python -m pytest -q tests"),
        ("npm test", "jest", "jest"),
        ("npm run -s all", "jest", "jest --coverage"),
        ("yarn unit", "jest", "jest --coverage"),
        ("npx jest --ci", "jest", "npx jest --ci"),
        ("npm run tap", "mocha", "c8 mocha 'test/**/*.js'"),
        ("npm run node", "node", "node --import tsx --test 'test/*.ts'"),
        ("node node_modules/jest/bin/jest.js", "jest", "node node_modules/jest/bin/jest.js"),
        ("go test ./...", "go", "go test ./..."),
        ("cargo test --workspace", "cargo", "cargo test --workspace"),
        ("./gradlew test", "gradle", "./gradlew test"),
    ],
)
def test_a_runner_is_found_behind_what_starts_it(
    command: str, runner: str, call: str, root: Path
) -> None:
    """The call that comes out is the runner's own, with its arguments."""
    found = find_runner(shlex.split(command), root)
    assert found is not None
    assert (found.runner.name, shlex.join(found.argv)) == (runner, call)
    assert found.callable


@pytest.mark.parametrize(
    "command",
    [
        "npm run both",  # two runners: which results would they be?
        "make two",
        "npm run loop",
        "npm run nothing",
        "npm test --workspace=a",
        "make -C sub test",
        "tox",
        "ruff check .",
        "mypy pytest",
        "echo pytest",
        "sh -c 'pytest \"'",
        "./nothing.sh",
    ],
)
def test_what_is_not_certain_is_no_known_runner(command: str, root: Path) -> None:
    """Nothing is guessed: counts in the output have to do then."""
    assert find_runner(command.split(" ", 2) if "sh -c" in command else command.split(), root) is (
        None
    )


def test_a_runner_in_another_directory_is_not_called_by_itself(root: Path) -> None:
    """Its results are its own, but only the whole check knows how to get there."""
    found = find_runner(["make", "moved"], root)
    assert found is not None
    assert not found.callable
    assert found.scripts == ("Makefile",)


def test_what_a_script_sets_goes_with_the_call(root: Path) -> None:
    """The environment of the call is known, so that the call can be made without its script."""
    found = find_runner(["npm", "run", "unit"], root)
    assert found is not None
    assert found.env == {"NODE_OPTIONS": "--experimental-vm-modules"}


@pytest.mark.parametrize(
    "command, expected",
    [
        ("pytest -q tests -k x", "pytest -q -k x --maxfail=0 tests/test_a.py"),
        ("pytest --cov tests -n 2", "pytest --cov tests -n 2 --maxfail=0 tests/test_a.py"),
        ("pytest tests/test_a.py::test_x -x", "pytest -x --maxfail=0 tests/test_a.py"),
        ("node --test 'test/*.js'", "node --test tests/test_a.py"),
        ("go test -race ./...", "go test -race ./tests"),
        ("cargo test", "cargo test --no-fail-fast"),
    ],
)
def test_only_some_files_are_run(command: str, expected: str, root: Path) -> None:
    """What names tests is replaced, options and their values stay."""
    found = find_runner(shlex.split(command), root)
    assert found is not None
    assert shlex.join(found.apart(["tests/test_a.py"], root)) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("npx mocha --reporter dot", "mocha --reporter dot"),
        ("npx --no-install mocha", "mocha"),
        ("npx -- mocha -b", "mocha -b"),
        ("npx -p mocha mocha", "npx -p mocha mocha"),
        ("npx jest", "npx jest"),
    ],
)
def test_an_installed_program_is_not_looked_for(command: str, expected: str, root: Path) -> None:
    """What finds it takes longer than many a test; where it is not installed, that is asked."""
    place = root / "node_modules" / ".bin"
    place.mkdir(parents=True)
    (place / "mocha").touch()
    found = find_runner(shlex.split(command), root)
    assert found is not None
    assert shlex.join(found.apart(None, root)) == expected


def test_a_runner_says_what_it_obeys() -> None:
    """Files of its own as a whole, of shared ones only its own part."""
    table = {runner.name: runner for runner in known_runners()}
    pytest_, jest = table["pytest"], table["jest"]
    for name in ("conftest.py", "a/b/conftest.py", ".pytest.ini", "pytest.toml"):
        assert pytest_.obeys(name)
    assert not pytest_.obeys("pyproject.toml")
    before = b"[project]\nversion = '1'\n[tool.pytest.ini_options]\naddopts = '-q'\n"
    after = before.replace(b"'1'", b"'2'")
    assert pytest_.own_settings("pyproject.toml", before) is not None
    assert pytest_.own_settings("pyproject.toml", before) == pytest_.own_settings(
        "pyproject.toml", after
    )
    assert pytest_.own_settings("pyproject.toml", b"[project]\n") is None
    assert jest.obeys("jest.config.mjs")
    assert jest.own_settings("package.json", b'{"jest": {"testMatch": []}}') == {
        "jest": {"testMatch": []}
    }
    assert pytest_.own_settings("setup.cfg", b"[tool:pytest]\naddopts = -q\n") is not None
