"""What Claude Code may do at each level of safety, as the settings file we hand to it.

The file goes by `--settings` from a directory of ours, never into the user's own settings; user
and project settings stay in force beside it.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from ralphloop.atomic import write_atomic
from ralphloop.config.model import Safety

_TOOLS = (
    *("Agent", "Edit", "Glob", "Grep", "LS", "MultiEdit", "NotebookEdit", "NotebookRead", "Read"),
    *("Skill", "Task", "TodoWrite", "Write"),
)
_NETWORK_TOOLS = ("WebFetch", "WebSearch")

# Work for a person (publishing, other machines, other rights) and what no story needs to read.
_DENIED = (
    *_NETWORK_TOOLS,
    *(
        f"Bash({command}:*)"
        for command in ("curl", "doas", "gh", "git push", "npm publish", "scp", "ssh", "su")
    ),
    *(f"Bash({command}:*)" for command in ("sudo", "twine upload", "wget")),
    *(f"Read(~/{place})" for place in (".aws/**", ".config/gh/**", ".gnupg/**", ".netrc")),
    *(f"Read(~/{place})" for place in (".npmrc", ".pypirc", ".ssh/**")),
    *("Read(**/.env)", "Read(**/.env.*)", "Edit(.ralph/**)", "Edit(.git/**)"),
)

_SANDBOX = {
    "enabled": True,
    "failIfUnavailable": True,
    "autoAllowBashIfSandboxed": True,
    "allowUnsandboxedCommands": False,
}


def settings_for(safety: Safety, *, sandboxed: bool) -> dict[str, object]:
    """The settings of `moderate` or `strict`; `sandboxed`: the machine around us is one."""
    if safety is not Safety.STRICT:
        return {"permissions": {"allow": ["Bash", *_TOOLS, *_NETWORK_TOOLS]}}
    if sandboxed:
        return {"permissions": {"allow": ["Bash", *_TOOLS], "deny": list(_DENIED)}}
    # Bash is let through by the sandbox alone: outside of it nothing runs.
    return {"permissions": {"allow": list(_TOOLS), "deny": list(_DENIED)}, "sandbox": _SANDBOX}


def write_settings(directory: Path, safety: Safety, *, sandboxed: bool) -> Path:
    """Put the settings file where the agent is told to look; unchanged files are not touched."""
    path = directory / f"claude-{safety}.json"
    settings = msgspec.json.encode(settings_for(safety, sandboxed=sandboxed))
    data = msgspec.json.format(settings, indent=2) + b"\n"
    try:
        if path.read_bytes() == data:
            return path
    except FileNotFoundError:
        directory.mkdir(parents=True, exist_ok=True)
    write_atomic(path, data, within=directory, durable=False)
    return path
