"""Start-up is a contract: what the quick commands may load, and what the pure rooms may call."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "ralphloop"

HEAVY = {
    "asyncio",
    "jinja2",
    "logging",
    "msgspec",
    "psutil",
    "rich",
    "ruamel",
    "sqlite3",
    "textual",
}
FRONT_DOOR = {
    "ralphloop",
    "ralphloop.__main__",
    "ralphloop.cli",
    "ralphloop.cli.main",
    "ralphloop.cli.output",
    "ralphloop.errors",
}

RUN_AND_LIST = """
import sys
from ralphloop.__main__ import main
sys.argv = ["ralph", *sys.argv[1:]]
code = main()
sys.stderr.write(" ".join(sys.modules))
sys.exit(code)
"""


def modules_after(*arguments: str) -> set[str]:
    """The names of all modules loaded once the command has run."""
    done = subprocess.run(
        [sys.executable, "-c", RUN_AND_LIST, *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(done.stderr.split())


def ours(modules: set[str]) -> set[str]:
    """The modules of the package itself."""
    return {name for name in modules if name.split(".")[0] == "ralphloop"}


def test_version_loads_two_modules_and_no_framework() -> None:
    """`ralph --version` imports neither click nor anything of the package but the way in."""
    modules = modules_after("--version")
    assert ours(modules) == {"ralphloop", "ralphloop.__main__"}
    assert not modules & (HEAVY | {"click", "subprocess", "pathlib", "re"})


def test_help_loads_no_command() -> None:
    """The list of commands is printed without importing one of them."""
    modules = modules_after("--help")
    assert ours(modules) == FRONT_DOOR
    assert not modules & HEAVY


@pytest.mark.parametrize("room", ["core", "readers"])
def test_pure_rooms_call_nothing_that_reaches_outside(room: str) -> None:
    """Builtins that touch files, the terminal or code are beyond what import rules can see."""
    forbidden = {"open", "print", "input", "exec", "eval", "breakpoint", "__import__"}
    calls = {
        f"{path.name}:{node.lineno} {node.func.id}"
        for path in (PACKAGE / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in forbidden
    }
    assert not calls
