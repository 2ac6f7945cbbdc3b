"""How large each room is and how densely it is written, against the last tag; fails nothing.

Tokens and functions say how much there is to read; tokens a line and assignments of several values
at once say how it reads.  `make size BASE=REV` compares with another commit.
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "src/ralphloop/"
LAYOUT = (tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT)


class Size(NamedTuple):
    """What was counted in one or several modules."""

    modules: int = 0
    lines: int = 0
    tokens: int = 0
    functions: int = 0
    parallel: int = 0  # assignments of several values at once

    def plus(self, other: Size) -> Size:
        """Both together."""
        return Size(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


def size_of(text: str) -> Size:
    """What one module comes to."""
    read = io.StringIO(text).readline
    tokens = sum(token.type not in LAYOUT for token in tokenize.generate_tokens(read))
    nodes = list(ast.walk(ast.parse(text)))
    functions = sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in nodes)
    parallel = sum(is_parallel(node) for node in nodes)
    return Size(1, text.count("\n"), tokens, functions, parallel)


def is_parallel(node: ast.AST) -> bool:
    """Whether several values get their names in one statement."""
    if not isinstance(node, ast.Assign):
        return False
    return isinstance(node.value, ast.Tuple) and isinstance(node.targets[0], ast.Tuple)


def modules_now() -> Iterator[tuple[str, str]]:
    """Path and text of every module as it is in the work tree."""
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        yield path.relative_to(ROOT / PACKAGE).as_posix(), path.read_text(encoding="utf-8")


def modules_at(commit: str) -> Iterator[tuple[str, str]]:
    """The same in a commit."""
    listed = _git("ls-tree", "-r", "--name-only", commit, "--", PACKAGE)
    for path in listed.splitlines():
        if path.endswith(".py"):
            yield path.removeprefix(PACKAGE), _git("show", f"{commit}:{path}")


def by_room(modules: Iterator[tuple[str, str]]) -> dict[str, Size]:
    """The sizes of the rooms; single modules are a room of their own, together."""
    rooms: dict[str, Size] = defaultdict(Size)
    for path, text in modules:
        room = path.partition("/")[0] if "/" in path else "(single)"
        rooms[room] = rooms[room].plus(size_of(text))
    return rooms


def last_tag() -> str:
    """The newest tag, or the first commit where there is none."""
    described = subprocess.run(
        ["git", "describe", "--tags", "--abbrev=0"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip() or _git("rev-list", "--max-parents=0", "HEAD").split()[0]


def _git(*args: str) -> str:
    done = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def row(name: str, now: Size, was: Size) -> str:
    """One line of the table."""
    density = now.tokens / now.lines if now.lines else 0.0
    return (
        f"{name:10} {now.modules:4} {now.lines:7,} {now.tokens:9,} ({now.tokens - was.tokens:+8,})"
        f" {density:5.2f} {now.functions:6,} ({now.functions - was.functions:+5,})"
        f" {now.parallel:5} ({now.parallel - was.parallel:+5})"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--base", default="", help="the commit to compare with; the last tag")
    base = parser.parse_args().base or last_tag()
    now = by_room(modules_now())
    was = by_room(modules_at(base))
    print(f"against {base}: modules, lines, tokens, tokens a line, functions, parallel assignments")
    for name in sorted({*now, *was}):
        print(row(name, now.get(name, Size()), was.get(name, Size())))
    whole = Size()
    before = Size()
    for size in now.values():
        whole = whole.plus(size)
    for size in was.values():
        before = before.plus(size)
    print(row("all", whole, before))


if __name__ == "__main__":
    main()
