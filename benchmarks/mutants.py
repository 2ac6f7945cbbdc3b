"""Mutation testing: change one thing in the program, and see whether a test turns red.

A seeded sample of small changes (a comparison, a number, a condition, a statement left out) is
tried one at a time in a copy of `src`, each against the fast tests of its module.  What survives
is printed with its place and its diff: either the tests have a hole there, or the change makes no
difference.

Each trial is a fork of a process that has pytest loaded already, so that it costs its tests and
not the start of an interpreter.  The copy is compiled once, with checked hashes: only the changed
module is compiled again.  See docs/decisions/011-mutants.md.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import copy
import difflib
import os
import py_compile
import random
import re
import resource
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src/ralphloop")

# A third of the sample is of the first group, the rest of the second.
MONEY = (
    "core/totals.py", "core/policy.py", "core/story_after.py", "agents/prices.py",
    "readers/claude_usage.py", "readers/codex.py", "readers/gemini.py", "readers/opencode.py",
    "readers/failures.py",
)  # fmt: skip
DECIDING = ("core/*.py", "text/*.py")

# A module is tested by the files of its name in these rooms and by those that import it, the most
# particular of them; and where neither says it, by these.
ROOMS = ("core", "text", "agents", "agents_run", "stories", "repo")
OTHERS = {
    "readers/*": [
        f"tests/agents/test_{name}.py" for name in ("claude*", "framing", "recordings", "text")
    ],
    "core/__init__*": ["tests/core/test_events.py"],
    "core/policy*": ["tests/core/test_step.py"],
    "core/iteration*": ["tests/core/test_step.py"],
    "*/*error*": ["tests/*/test_error*.py"],
    "*/signatures*": ["tests/*/test_error*.py"],
    "*/lines*": ["tests/text/test_claims.py"],
    "*/story_after*": ["tests/core/test_step.py"],
    "*/status*": ["tests/text/test_which_block.py"],
}
MOST_IMPORTERS = 4
CASES = "tests/core/test_cases.py"  # for all that decides, after the others
SLOW = ("*linear_time*", "*_properties*", "*/e2e/*")
_FAST = "not linear and not time_grows and not memory_is_flat and not megabytes"


class Mutant(NamedTuple):
    """One change of one module."""

    path: Path  # relative to the root
    line: int
    start: int  # bytes
    end: int
    text: str

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]

    def diff(self, source: bytes) -> str:
        old, new = source.decode(), self.apply(source).decode()
        lines = difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm="")
        return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


# --- making mutants ----------------------------------------------------------------------------

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
_OTHER_NAME = {"min": "max", "max": "min", "any": "all", "all": "any", "find": "rfind"}


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """Every small change of one node."""
    match node:
        case ast.Compare(ops=[first, *rest]) if type(first) in _COMPARED:
            yield _with(node, ops=[_COMPARED[type(first)](), *rest])
        case ast.BoolOp(op=op):
            yield _with(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
            yield from node.values[:2]
        case ast.BinOp(op=operator) if type(operator) in _COMPUTED:
            yield _with(node, op=_COMPUTED[type(operator)]())
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.IfExp():
            yield from (node.body, node.orelse)
        case ast.Call(func=ast.Name(id=name)) if name in _OTHER_NAME:
            yield _with(node, func=ast.Name(_OTHER_NAME[name]))
        case ast.Constant():
            yield from _other_constants(node)
        case ast.If() | ast.While():
            yield ast.UnaryOp(ast.Not(), node.test)
        case ast.Expr() | ast.AugAssign() | ast.Continue() | ast.Break() | ast.Raise():
            yield ast.Pass()


def _other_constants(node: ast.Constant) -> Iterator[ast.AST]:
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int):
        yield ast.Constant(value + 1 if value < 20 else value // 2)
    elif isinstance(value, float):
        yield ast.Constant(value / 2 if value else 1.0)


def _with(node: ast.expr, **fields: object) -> ast.expr:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def mutants_of(path: Path) -> list[Mutant]:
    """All of one module, in the order of its lines."""
    source = (ROOT / path).read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node in _walk(ast.parse(source)):
        place = node.test if isinstance(node, ast.If | ast.While) else node
        start = starts[place.lineno - 1] + place.col_offset
        end = starts[(place.end_lineno or 0) - 1] + (place.end_col_offset or 0)
        for changed in changes(node):
            text = ast.unparse(ast.fix_missing_locations(changed))
            text = text if isinstance(changed, ast.Pass | ast.Constant) else f"({text})"
            found.append(Mutant(path, place.lineno, start, end, text))
    return found


def _walk(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Every node with a place, but nothing of annotations, docstrings and class arguments."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "keywords", "decorator_list") and not isinstance(
            node, ast.Call
        ):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr | ast.AnnAssign):
                if isinstance(child, ast.AnnAssign) and child.value:
                    yield from _walk(ast.Expression(child.value))
                continue
            if _is_docstring(child):
                continue
            if isinstance(child, ast.expr | ast.stmt):
                yield child
            yield from _walk(child)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def sample(size: int, seed: int, only: str) -> dict[Mutant, tuple[str, ...]]:
    """The chosen mutants, each with its tests."""
    chosen: dict[Mutant, tuple[str, ...]] = {}
    for patterns, count in ((MONEY, size // 3), (DECIDING, size)):
        paths = {path for pattern in patterns for path in (ROOT / PACKAGE).glob(pattern)}
        modules = [path.relative_to(ROOT) for path in sorted(paths) if only in str(path)]
        pool = [mutant for path in modules for mutant in mutants_of(path) if mutant not in chosen]
        for mutant in random.Random(seed).sample(pool, min(len(pool), count - len(chosen))):
            chosen[mutant] = tests_of(mutant.path)
    return chosen


@cache
def tests_of(path: Path) -> tuple[str, ...]:
    """The fast test files that have to notice a change of this module."""
    module = str(path.relative_to(PACKAGE))
    globs = [f"tests/{room}/test_{path.stem}*.py" for room in ROOMS]
    globs += next((more for pattern, more in OTHERS.items() if fnmatch(module, pattern)), [])
    files = {str(file.relative_to(ROOT)) for pattern in globs for file in ROOT.glob(pattern)}
    files |= set(importers(f"ralphloop.{module[:-3].replace('/', '.')}")[:MOST_IMPORTERS])
    fast = [file for file in files if not any(fnmatch(file, slow) for slow in SLOW)]
    fast.sort(key=lambda file: (path.stem not in file, file))
    decides = any(fnmatch(module, pattern) for pattern in DECIDING)
    return (*fast, CASES) if decides else tuple(fast)


def importers(module: str) -> list[str]:
    """The test files that import a module; first those that import little else of ours."""
    found = [(len(names), file) for file, names in imported().items() if module in names]
    return [file for _, file in sorted(found)]


@cache
def imported() -> dict[str, frozenset[str]]:
    """Which modules of ours each test file imports."""
    files = [file for room in ROOMS for file in sorted((ROOT / "tests" / room).glob("test_*.py"))]
    return {
        str(file.relative_to(ROOT)): frozenset(re.findall(r"\bralphloop(?:\.\w+)+", text))
        for file in files
        if (
            text := re.sub(
                r"^(from [\w.]+) import (\w+)$", r"\1.\2 \1", file.read_text(), flags=re.M
            )
        )
    }


# --- trying them -------------------------------------------------------------------------------


class Slot:
    """A copy of the program in which one mutant at a time is tried."""

    def __init__(self, directory: Path) -> None:
        self.root = directory
        shutil.copytree(
            ROOT / "src", directory / "src", ignore=shutil.ignore_patterns("__pycache__")
        )
        mode = py_compile.PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(directory / "src", quiet=1, invalidation_mode=mode)
        for name in ("tests", "benchmarks", "docs", "pyproject.toml", "README.md", "Makefile"):
            (directory / name).symlink_to(ROOT / name)

    def start(self, mutant: Mutant | None, tests: Sequence[str], cpu_s: int) -> int:
        """Begin a trial; the id of its process."""
        if mutant is not None:
            source = (ROOT / mutant.path).read_bytes()
            (self.root / mutant.path).write_bytes(mutant.apply(source))
        pid = os.fork()
        if pid == 0:
            try:
                self._run(tests, cpu_s)
            except BaseException:  # noqa: BLE001  a fork must never go on as its parent
                traceback.print_exc()
            os._exit(99)
        return pid

    def output(self) -> str:
        return (self.root / "output").read_text(errors="replace")[-2_000:]

    def restore(self, mutant: Mutant) -> None:
        shutil.copyfile(ROOT / mutant.path, self.root / mutant.path)

    def _run(self, tests: Sequence[str], cpu_s: int) -> None:
        import pytest

        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
        with (self.root / "output").open("wb") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        os.chdir(self.root)
        os.environ["PYTHONPATH"] = str(self.root / "src")
        sys.dont_write_bytecode = True
        sys.path[:] = [entry for entry in sys.path if Path(entry) != ROOT / "src"]
        # nothing but the tests, no rewriting, and the same examples every time
        switched_off = ("cacheprovider", "xdist", "inline_snapshot", "syrupy")
        plugins = [word for name in switched_off for word in ("-p", f"no:{name}")]
        settings = ["--assert=plain", "--hypothesis-seed=0", "-o", "timeout=0", "-k", _FAST]
        os._exit(int(pytest.main(["-x", "-q", *plugins, *settings, *tests])))


def baselines(slots: list[Slot], chosen: Iterable[tuple[str, ...]]) -> dict[str, float]:
    """CPU seconds of each test file, which has to be green without any change."""
    todo = sorted({test for tests in chosen for test in tests})
    free, running = list(slots), dict[int, tuple[Slot, str]]()
    taken = {}
    while todo or running:
        if todo and free:
            slot, test = free.pop(), todo.pop()
            running[slot.start(None, [test], 600)] = slot, test
            continue
        pid, status, used = os.wait4(-1, 0)
        slot, test = running.pop(pid)
        if status != 0:
            sys.exit(f"{test} is red without any change:\n{slot.output()}")
        taken[test] = used.ru_utime + used.ru_stime
        free.append(slot)
    return taken


def survivors(
    chosen: dict[Mutant, tuple[str, ...]], slots: list[Slot], deadline: float
) -> tuple[list[Mutant], int]:
    """Those that no test noticed, and how many were tried before the time was over."""
    taken = baselines(slots, chosen.values())
    todo, free = list(reversed(chosen)), list(slots)  # money first
    running: dict[int, tuple[Slot, Mutant]] = {}
    alive: list[Mutant] = []
    tried = 0
    while (todo and time.monotonic() < deadline) or running:
        if todo and free and time.monotonic() < deadline:
            slot, mutant = free.pop(), todo.pop()
            tests = chosen[mutant]
            allowed = 5 + round(3 * sum(taken[test] for test in tests))
            running[slot.start(mutant, tests, allowed)] = slot, mutant
            continue
        pid, status = os.wait()
        slot, mutant = running.pop(pid)
        slot.restore(mutant)
        free.append(slot)
        tried += 1
        if status == 0:
            alive.append(mutant)
            print("survived", told(mutant), sep=" ", flush=True)
    return alive, tried


def told(mutant: Mutant) -> str:
    """Place and change."""
    return f"{mutant.path}:{mutant.line}\n{mutant.diff((ROOT / mutant.path).read_bytes())}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Which small changes does no test notice?")
    parser.add_argument("--sample", type=int, default=300, help="how many changes are tried")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="modules whose path contains this")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--minutes", type=float, default=20.0, help="no trial begins after this")
    given = parser.parse_args()
    started = time.monotonic()
    import hypothesis  # noqa: F401  loaded once, before the trials fork
    import pytest  # noqa: F401

    chosen = sample(given.sample, given.seed, given.only)
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        slots = []
        for number in range(given.workers):
            (Path(directory) / str(number)).mkdir()
            slots.append(Slot(Path(directory) / str(number)))
        alive, tried = survivors(chosen, slots, started + 60 * given.minutes)
    took = time.monotonic() - started
    print(
        f"{len(alive)} of {tried} changes survived (seed {given.seed},"
        f" {len(chosen)} chosen), {took / 60:.1f} minutes"
    )


if __name__ == "__main__":
    main()
