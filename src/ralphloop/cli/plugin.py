"""`ralph plugin`: put the Claude Code plugin where Claude Code can use it.

The plugin in the package calls `ralph`, which works wherever that is on PATH.  A copy made here
calls the very `ralph` that made it by its full path, so it also works from a virtual environment,
from pipx and uv, and with spaces in the path: hooks are argument lists, never a line for a shell.

Claude Code names a plugin's commands /ralph:ralph and so on.  `install` also gives them their short
names, as commands of the person's own, unless those names are taken.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path

import click

from ralphloop import __version__
from ralphloop.atomic import write_atomic
from ralphloop.cli import output
from ralphloop.errors import AgentUnavailable, RepositoryError
from ralphloop.proc.run import ourselves, run_command

PREFIX = "ralph:"
_NAME = "ralph@ralph"
_COMMANDS = Path("commands")
_WRITTEN_BY_US = b"<!-- written by `ralph plugin install` -->"
_HOOKS = Path("hooks/hooks.json")
_MANIFEST = Path(".claude-plugin/plugin.json")
_TIMEOUT_S = 120.0


@click.group()
def plugin() -> None:
    """Use ralph inside Claude Code: /ralph, /cancel-ralph, /ralph-status."""


@plugin.command()
def path() -> None:
    """Print the plugin's directory, for `claude --plugin-dir`."""
    output.emit_lines([str(_made())])


@plugin.command()
def install() -> None:
    """Add the plugin to Claude Code, for you, in every project."""
    place = _made()
    _tell_claude(["plugin", "marketplace", "add", str(place)], ["plugin", "install", _NAME])
    taken = [f"/{path.stem}" for path in _short_commands(place)]
    ralph = f"/{PREFIX}ralph" if "/ralph" in taken else "/ralph"
    output.emit_lines([f"Installed. In a new session: {ralph} --dry-run, then {ralph} ({place})"])
    if taken:
        output.note(f"{', '.join(taken)} of your own stay yours; ours begin with /{PREFIX}")


@plugin.command()
def uninstall() -> None:
    """Take the plugin out of Claude Code again."""
    _tell_claude(["plugin", "uninstall", _NAME])
    for path in _claude_home().joinpath(_COMMANDS).glob("*.md"):
        if is_short_command(path.stem):
            path.unlink()
    output.emit_lines(["Uninstalled. Runs and their journals stay where they are."])


def is_short_command(name: str) -> bool:
    """True where the person's own command of this name is one that we wrote."""
    try:
        return _WRITTEN_BY_US in (_claude_home() / _COMMANDS / f"{name}.md").read_bytes()
    except OSError:
        return False


def _short_commands(place: Path) -> list[Path]:
    """Give the plugin's commands their short names; returns those that are taken."""
    taken = []
    for file in sorted((place / _COMMANDS).glob("*.md")):
        short = _claude_home() / _COMMANDS / file.name
        if short.exists() and not is_short_command(file.stem):
            taken.append(short)
            continue
        with _writing(short.parent, "CLAUDE_CONFIG_DIR"):
            short.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(short, file.read_bytes() + b"\n" + _WRITTEN_BY_US + b"\n")
    return taken


def _claude_home() -> Path:
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")


def _tell_claude(*steps: list[str]) -> None:
    claude = shutil.which("claude")
    if claude is None:
        words = ", then ".join(f"/{' '.join(step)}" for step in steps)
        raise AgentUnavailable("claude is not on PATH", f"Say in a session: {words}")
    for step in steps:
        ended = run_command([claude, *step], timeout_s=_TIMEOUT_S)
        if ended.returncode != 0:
            raise AgentUnavailable(
                f"`claude {' '.join(step)}` failed: {ended.said[-500:]}",
                "Run that command to see more.",
            )


def _made() -> Path:
    """The plugin with this installation's own command in its hooks; made anew each time."""
    base = Path(os.environ.get("XDG_DATA_HOME", ""))
    home = base if base.is_absolute() else Path.home() / ".local" / "share"
    place = home / "ralph" / "claude-plugin"
    with _writing(place, "XDG_DATA_HOME"), as_file(files("ralphloop.plugin")) as source:
        for file in sorted(source.rglob("*")):
            if file.is_file() and file.suffix in (".json", ".md"):
                name = file.relative_to(source)
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                write_atomic(place / name, _own(name, file.read_bytes()))
    return place


@contextmanager
def _writing(place: Path, variable: str) -> Iterator[None]:
    """Say what to do where we may not write."""
    try:
        yield
    except OSError as error:
        raise RepositoryError(
            f"cannot write to {place}: {error.strerror or error}",
            f"Make the directory writable, or set {variable}.",
        ) from None


def _own(name: Path, content: bytes) -> bytes:
    """The hooks call this very installation, and the manifest has its version."""
    if name not in (_HOOKS, _MANIFEST):
        return content
    made = json.loads(content)
    if name == _MANIFEST:
        made["version"] = __version__
    else:
        script = Path(sys.executable).with_name("ralph")
        called = [str(script)] if os.access(script, os.X_OK) else ourselves()
        rules = [rule for event in made["hooks"].values() for rule in event]
        for handler in (handler for rule in rules for handler in rule["hooks"]):
            handler["command"], handler["args"] = called[0], [*called[1:], *handler["args"]]
    return (json.dumps(made, indent=2) + "\n").encode()
