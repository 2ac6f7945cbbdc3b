"""The commands of ours in a Claude Code session, also under a person's own short names."""

import os
from pathlib import Path

PREFIX = "ralph:"
COMMANDS_DIR = Path("commands")
WRITTEN_BY_US = b"<!-- written by `ralph plugin install` -->"


def is_short_command(name: str) -> bool:
    """True where the person's own command of this name is one that we wrote."""
    try:
        return WRITTEN_BY_US in (claude_home() / COMMANDS_DIR / f"{name}.md").read_bytes()
    except OSError:
        return False


def claude_home() -> Path:
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
