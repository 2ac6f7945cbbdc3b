"""The problems of a clone: what they consist of, what they need, and their core tests."""

from __future__ import annotations

import ast
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML

HIDDEN = ("functionality", "error", "regression")
_NOT_SOLUTION = {"tests", "requirements.txt", "__pycache__", ".pytest_cache"}
_SETUP_S = 600.0
# What the benchmark's own runner gives to every problem.
_USUAL_NEEDS = ("pytest", "pytest-timeout", "jsonschema", "deepdiff")

_NEWER = ("python3.12", "python3.13", "python3.14")
_PARSE = "import ast, sys; [ast.parse(open(it, 'rb').read()) for it in sys.argv[1:]]"


class CannotSetUpError(Exception):
    """A problem that cannot be replayed here, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem of the clone."""

    path: Path
    entry: str  # the program, e.g. logql.py
    checkpoints: int
    assets: Mapping[str, str]  # the name its tests know, and where it lies in the problem
    needs: tuple[str, ...]  # what its tests import

    @property
    def name(self) -> str:
        return self.path.name

    def solution(self, number: int) -> Path:
        return self.path / "solutions" / f"checkpoint_{number}"

    def specification(self, number: int) -> Path:
        return self.path / f"checkpoint_{number}.md"

    def tests(self, number: int) -> Path:
        return self.path / "tests" / f"test_checkpoint_{number}.py"

    def copy_helpers(self, tests: Path) -> None:
        """Put down everything beside the tests: helpers, data, assets."""
        ignored = shutil.ignore_patterns("test_checkpoint_*", "__pycache__")
        shutil.copytree(self.path / "tests", tests, ignore=ignored)
        for name, place in self.assets.items():
            if (self.path / place).is_dir():
                shutil.copytree(self.path / place, tests / "assets" / name, dirs_exist_ok=True)

    def copy_solution(self, number: int, place: Path) -> None:
        """Put down the reference solution of a checkpoint."""
        place.mkdir(parents=True, exist_ok=True)
        for name in self.solution_names(number):
            source = self.solution(number) / name
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(source, place / name, dirs_exist_ok=True, ignore=ignored)
            else:
                shutil.copy(source, place / name)

    def solution_names(self, number: int) -> list[str]:
        """What a reference solution consists of, at its top; nothing before the first."""
        if not number:
            return []
        return [it.name for it in self.solution(number).iterdir() if it.name not in _NOT_SOLUTION]


def problems_in(directory: Path) -> list[Problem]:
    """The problems of a clone that have reference solutions."""
    found = []
    for settings in sorted(directory.glob("*/config.yaml")):
        told = YAML(typ="safe").load(settings.read_text())
        solutions = list(settings.parent.glob("solutions/checkpoint_*"))
        if not solutions or "entry_file" not in told:
            continue
        assets = told.get("static_assets") or {}
        found.append(
            Problem(
                path=settings.parent.resolve(),
                entry=f"{told['entry_file']}.py",
                checkpoints=len(solutions),
                assets={name: str(it["path"]) for name, it in assets.items()},
                needs=tuple(told.get("test_dependencies") or ()),
            )
        )
    return found


def interpreter(problem: Problem, venvs: Path, python_of_venvs: str) -> Path:
    """The Python of a virtual environment with what the problem needs, made where it is missing."""
    place = (venvs / problem.name).absolute()
    python = place / "bin" / "python"
    done = place / "ready"
    if done.exists():
        return python
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    # The newest checkpoint's list is the one that was kept up; each of them may pin differently.
    lists = [problem.solution(it) / "requirements.txt" for it in range(1, problem.checkpoints + 1)]
    needed = [it for it in reversed(lists) if it.exists()][:1]
    options = [word for it in needed for word in ("-r", str(it))]
    _do([_one_that_reads(problem, python_of_venvs), "-m", "venv", str(place)])
    _do([str(python), "-m", "pip", "install", "-q", *_USUAL_NEEDS, *problem.needs, *options])
    done.touch()
    return python


def _one_that_reads(problem: Problem, usual: str) -> str:
    """The usual Python, or where a solution is written for a newer one, a newer one found here."""
    last = problem.solution(problem.checkpoints)
    sources = [str(it) for it in sorted(last.rglob("*.py"))]
    for python in (usual, *_NEWER):
        if shutil.which(python) and _can_read(python, sources):
            return python
    return usual  # its first replay says what it cannot read


def _can_read(python: str, sources: Sequence[str]) -> bool:
    ended = subprocess.run(
        [python, "-c", _PARSE, *sources], capture_output=True, timeout=_SETUP_S, check=False
    )
    return ended.returncode == 0


def _do(command: list[str]) -> None:
    try:
        ended = subprocess.run(
            command,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_SETUP_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CannotSetUpError("its environment was not ready after ten minutes") from error
    if ended.returncode:
        said = [line for line in ended.stderr.splitlines() if line.startswith("ERROR")]
        raise CannotSetUpError(said[0] if said else ended.stderr[-200:])


def core_of(test_file: Path) -> str:
    """A test file without the tests that are marked as hidden."""
    text = test_file.read_text()
    hidden = [it for it in _tests_in(ast.parse(text)) if _marks(it) & set(HIDDEN)]
    return _without(text, hidden)


def without_tests(text: str, names: Collection[str]) -> str:
    """A test file without the test functions of these names."""
    return _without(text, [it for it in _tests_in(ast.parse(text)) if it.name in names])


_Test = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _tests_in(tree: ast.Module) -> list[_Test]:
    return [it for it in ast.walk(tree) if isinstance(it, _Test)]


def _marks(test: _Test) -> set[str]:
    """The names of the pytest marks that a test is decorated with."""
    called = [it.func if isinstance(it, ast.Call) else it for it in test.decorator_list]
    return {it.attr for it in called if isinstance(it, ast.Attribute)}


def _without(text: str, tests: list[_Test]) -> str:
    lines = text.splitlines()
    for test in tests:
        first = min([test.lineno, *(it.lineno for it in test.decorator_list)])
        last = test.end_lineno or first
        # A class of nothing but hidden tests still needs a body.
        instead = f"{' ' * test.col_offset}..." if test.col_offset else ""
        lines[first - 1 : last] = [instead] + [""] * (last - first)
    return "\n".join(lines) + "\n"
