"""Start-up is a contract: what the quick commands may load, and what the pure rooms may call."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hook.support import box, done

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
    "ralphloop.cli.shared",
    "ralphloop.cli.shared.help_page",
    "ralphloop.errors",
}

HOOK_DOOR = {"ralphloop", "ralphloop.__main__", "ralphloop.hook", "ralphloop.hook.entry"}

# What costs a noticeable part of a turn.
EVENT_LOOP = {"asyncio", "concurrent", "logging"}  # 30 ms of a turn that took minutes
TOO_MUCH_FOR_A_TURN = HEAVY - EVENT_LOOP - {"msgspec", "sqlite3"} | {
    "click",
    "ralphloop.agents.environment",
    "ralphloop.redaction",
    "ralphloop.repo.commit",
    "ralphloop.repo.set_aside",
    "shutil",
    "tempfile",
}

RUN_AND_LIST = """
import os, sys
from ralphloop.__main__ import main
os._exit = sys.exit  # the way a turn leaves; it would leave before we can look
sys.argv = ["ralph", *sys.argv[1:]]
try:
    sys.exit(main())
finally:
    sys.stderr.write(" ".join(sys.modules))
"""


def modules_after(*arguments: str, given: str = "", cwd: Path | None = None) -> set[str]:
    """The names of all modules loaded once the command has run."""
    ended = subprocess.run(
        [sys.executable, "-c", RUN_AND_LIST, *arguments],
        cwd=cwd,
        env={**os.environ, "CLAUDE_PROJECT_DIR": str(cwd or "")},
        input=given,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(ended.stderr.split())


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


@pytest.mark.parametrize("event", ["stop", "stop-failure", "session-start", "session-end"])
def test_a_hook_without_a_loop_loads_next_to_nothing(tmp_path: Path, event: str) -> None:
    """It runs at every stop of every session of whoever has the plugin."""
    modules = modules_after("hook", event, cwd=tmp_path)
    assert ours(modules) == HOOK_DOOR
    assert not modules & (HEAVY | {"click", "subprocess", "pathlib", "re", "json", "typing"})


def test_a_hook_beside_the_loop_of_another_session_reads_it_with_json_alone(tmp_path: Path) -> None:
    """That the lease is not ours is known before anything of the loop is loaded."""
    (tmp_path / ".ralph").mkdir()
    (tmp_path / ".ralph" / "holder.json").write_text('{"mode": "hook", "session": "theirs"}')
    modules = modules_after("hook", "stop", given='{"session_id": "mine"}', cwd=tmp_path)
    assert ours(modules) == HOOK_DOOR
    assert not modules & (HEAVY | {"click", "subprocess", "pathlib", "typing"})


def test_a_turn_without_a_claim_loads_nothing_to_check_or_commit(tmp_path: Path) -> None:
    """Most turns of a loop claim nothing, and a person waits for each."""
    made = box(tmp_path)
    made.begin()
    made.write("one.txt", "1")
    given = json.dumps(made.event(last_assistant_message="Half of it works."))
    modules = modules_after("hook", "stop", given=given, cwd=tmp_path)
    assert "ralphloop.hook.stop" in modules
    assert not modules & TOO_MUCH_FOR_A_TURN


def test_a_turn_with_checks_and_a_commit_loads_no_screen(tmp_path: Path) -> None:
    """A person waits for the answer."""
    made = box(tmp_path, settings='[checks]\ncommands = [["true"]]\n')
    made.begin()
    made.write("one.txt", "1")
    given = json.dumps(made.event(last_assistant_message=done()))
    modules = modules_after("hook", "stop", given=given, cwd=tmp_path)
    assert "US-001: Story 1" in made.git("log", "--format=%s")
    assert "ralphloop.hook.stop" in modules
    assert not modules & (HEAVY - EVENT_LOOP - {"msgspec", "sqlite3"} | {"click"})


@pytest.mark.parametrize("room", ["core", "proof", "readers"])
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
