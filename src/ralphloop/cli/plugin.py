"""`ralph plugin`: put the plugin where Claude Code can use it.

The plugin in the package calls the `ralph` on PATH.  A copy made here calls the one that made it by
its full path, so it also works from a virtual environment and with spaces in the path: hooks are
argument lists, never a line for a shell.
"""

import json
import os
import shutil
import sys
from contextlib import suppress
from importlib.resources import as_file, files
from pathlib import Path

import click

from ralphloop import __version__
from ralphloop.atomic import write_atomic
from ralphloop.cli import output
from ralphloop.cli.shared.claude_commands import (
    COMMANDS_DIR,
    PREFIX,
    WRITTEN_BY_US,
    claude_home,
    is_short_command,
)
from ralphloop.errors import AgentUnavailable
from ralphloop.proc import programs
from ralphloop.proc.run import ourselves, run_command

_NAME = "ralph@ralph"
_HOOKS = Path("hooks/hooks.json")
_MANIFEST = Path(".claude-plugin/plugin.json")
_TIMEOUT_S = 120.0


@click.group()
def plugin() -> None:
    """Use ralph inside Claude Code: /ralph, /ralph-plan, /cancel-ralph, /ralph-status."""


@plugin.command()
def path() -> str:
    """Print the plugin's directory, for `claude --plugin-dir`."""
    return str(_made())


@plugin.command()
def install() -> None:
    """Add the plugin to Claude Code, for you, in every project."""
    place = _made()
    taken = list[str]()
    _tell_claude(["plugin", "marketplace", "add", str(place)], ["plugin", "install", _NAME])
    for file in sorted((place / COMMANDS_DIR).glob("*.md")):  # which get their short names, too
        short = claude_home() / COMMANDS_DIR / file.name
        if short.exists() and not is_short_command(file.stem):
            taken.append(f"/{file.stem}")
            continue
        write_atomic(short, file.read_bytes() + b"\n" + WRITTEN_BY_US + b"\n", parents=True)
    ralph = f"/{PREFIX}ralph" if "/ralph" in taken else "/ralph"
    output.emit_lines([f"Installed. In a new session: {ralph} --dry-run, then {ralph} ({place})"])
    if taken:
        output.note(f"{', '.join(taken)} of your own stay yours; ours begin with /{PREFIX}")


@plugin.command()
def uninstall() -> str:
    """Take the plugin out of Claude Code again, with everything that `install` made."""
    for path in claude_home().joinpath(COMMANDS_DIR).glob("*.md"):
        if is_short_command(path.stem):
            path.unlink()
    steps = (["plugin", "uninstall", _NAME], ["plugin", "marketplace", "remove", "ralph"])
    _tell_claude(*steps, may_be_gone=True)
    shutil.rmtree(plugin_directory(), ignore_errors=True)
    with suppress(OSError):  # somebody else keeps something there, or it is gone
        plugin_directory().parent.rmdir()
    return "Uninstalled. Runs and their journals stay where they are."


def _tell_claude(*steps: list[str], may_be_gone: bool = False) -> None:
    claude = programs.find("claude")
    if claude is None:
        words = ", then ".join(f"/{' '.join(step)}" for step in steps)
        raise AgentUnavailable("claude is not on PATH", f"Say in a session: {words}")
    for step in steps:
        ended = run_command([claude, *step], timeout_s=_TIMEOUT_S)
        if ended.returncode != 0 and not (may_be_gone and "not found" in ended.said.lower()):
            told = f"`claude {' '.join(step)}` failed: {ended.said[-500:]}"
            raise AgentUnavailable(told, "Run that command to see more.")


def _made() -> Path:
    """The plugin with this very installation in its hooks and manifest; made anew each time."""
    place = plugin_directory()
    script = Path(sys.executable).with_name("ralph")
    called = [str(script)] if os.access(script, os.X_OK) else ourselves()
    with as_file(files("ralphloop.plugin")) as source:
        for file in sorted(source.rglob("*")):
            if file.is_file() and file.suffix in (".json", ".md"):
                name = file.relative_to(source)
                content = file.read_bytes()
                made = json.loads(content) if name in (_HOOKS, _MANIFEST) else {}
                if name == _MANIFEST:
                    made["version"] = __version__
                rules = [rule for event in made.get("hooks", {}).values() for rule in event]
                for handler in (handler for rule in rules for handler in rule["hooks"]):
                    handler["command"], handler["args"] = called[0], [*called[1:], *handler["args"]]
                if made:
                    content = (json.dumps(made, indent=2) + "\n").encode()
                write_atomic(place / name, content, parents=True)
    return place


def plugin_directory() -> Path:
    """Where the copy for Claude Code is made."""
    base = Path(os.environ.get("XDG_DATA_HOME", ""))
    home = base if base.is_absolute() else Path.home() / ".local" / "share"
    return home / "ralph" / "claude-plugin"
