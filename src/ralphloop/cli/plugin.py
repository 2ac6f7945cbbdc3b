"""`ralph plugin`: put the Claude Code plugin where Claude Code can use it.

The plugin in the package calls `ralph`, which works wherever that is on PATH.  A copy made here
calls the very `ralph` that made it by its full path, so it also works from a virtual environment,
from pipx and uv, and with spaces in the path: hooks are argument lists, never a line for a shell.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import click

from ralphloop import __version__
from ralphloop.atomic import write_atomic
from ralphloop.cli import output
from ralphloop.errors import AgentUnavailable, RepositoryError

_NAME = "ralph@ralph"
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
    claude = shutil.which("claude")
    steps = (["plugin", "marketplace", "add", str(place)], ["plugin", "install", _NAME])
    if claude is None:
        raise AgentUnavailable(
            "claude is not on PATH",
            f"Say in a session: /plugin marketplace add {place}, then /plugin install {_NAME}",
        )
    for step in steps:
        _told(claude, step)
    output.emit_lines([f"Installed. In a new session: /ralph --dry-run, then /ralph ({place})"])


def _told(claude: str, step: list[str]) -> None:
    done = subprocess.run(
        [claude, *step],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[-500:]
        raise AgentUnavailable(
            f"`claude {' '.join(step)}` failed: {said}", "Run that command to see more."
        )


def _made() -> Path:
    """The plugin with this installation's own command in its hooks; made anew each time."""
    place = _home() / "ralph" / "claude-plugin"
    try:
        with as_file(files("ralphloop.plugin")) as source:
            for file in sorted(source.rglob("*")):
                if file.is_file() and file.suffix in (".json", ".md"):
                    _put(file.relative_to(source), file.read_bytes(), place)
    except OSError as error:
        raise RepositoryError(
            f"cannot write the plugin to {place}: {error.strerror or error}",
            "Make the directory writable, or set XDG_DATA_HOME.",
        ) from None
    return place


def _put(name: Path, content: bytes, place: Path) -> None:
    if name in (_HOOKS, _MANIFEST):
        made = _ours(json.loads(content)) if name == _HOOKS else _versioned(json.loads(content))
        content = (json.dumps(made, indent=2) + "\n").encode()
    (place / name).parent.mkdir(parents=True, exist_ok=True)
    write_atomic(place / name, content)


def _ours(hooks: dict[str, Any]) -> dict[str, Any]:
    command, *first = _command()
    rules = [rule for event in hooks["hooks"].values() for rule in event]
    for handler in (handler for rule in rules for handler in rule["hooks"]):
        handler["command"], handler["args"] = command, [*first, *handler["args"]]
    return hooks


def _versioned(manifest: dict[str, Any]) -> dict[str, Any]:
    return manifest | {"version": __version__}


def _command() -> list[str]:
    """How this very installation is called."""
    script = Path(sys.executable).with_name("ralph")
    return [str(script)] if os.access(script, os.X_OK) else [sys.executable, "-m", "ralphloop"]


def _home() -> Path:
    base = os.environ.get("XDG_DATA_HOME", "")
    return Path(base) if Path(base).is_absolute() else Path.home() / ".local" / "share"
