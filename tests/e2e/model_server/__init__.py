"""A scripted model that speaks the wire formats of four providers, for tests with real CLIs."""

from __future__ import annotations

from tests.e2e.model_server.script import (
    ALWAYS,
    BadScript,
    Failure,
    Prices,
    Scene,
    ToolUse,
    Turn,
    Usage,
    edit,
    fail,
    read,
    say,
    scenes_of,
    shell,
    use,
    write,
)
from tests.e2e.model_server.server import ModelServer
from tests.e2e.model_server.stage import Exchange

__all__ = [
    "ALWAYS",
    "BadScript",
    "Exchange",
    "Failure",
    "ModelServer",
    "Prices",
    "Scene",
    "ToolUse",
    "Turn",
    "Usage",
    "edit",
    "fail",
    "read",
    "say",
    "scenes_of",
    "shell",
    "use",
    "write",
]
