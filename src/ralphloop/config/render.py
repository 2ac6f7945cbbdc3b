"""Settings as text that can be read back: the lines of a `ralph.toml`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ralphloop.config.model import Config, Form, Setting

HIDDEN = "***"
_HOUR, _MINUTE = 3600, 60


def toml_line(setting: Setting, value: object) -> str:
    """`key = value`, as it would stand in its section."""
    if setting.form is Form.DURATION and isinstance(value, float):
        return f'{setting.key} = "{exact_duration(value)}"'
    return f"{setting.key} = {toml_value(value)}"


def toml_value(value: object) -> str:
    """One value in TOML, on one line."""
    if isinstance(value, str):
        return _toml_string(value)
    if isinstance(value, Mapping):
        pairs = (f"{_toml_string(key)} = {toml_value(item)}" for key, item in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, Sequence):
        return f"[{', '.join(toml_value(item) for item in value)}]"
    return json.dumps(value)  # numbers and booleans are written alike


def exact_duration(seconds: float) -> str:
    """`10h`, `1h30m`, `90.5s`: reads back as the same number of seconds."""
    if seconds != int(seconds):
        return f"{seconds:f}s".rstrip("0s").rstrip(".") + "s"
    hours, rest = divmod(int(seconds), _HOUR)
    minutes, left = divmod(rest, _MINUTE)
    parts = [(hours, "h"), (minutes, "m"), (left, "s")]
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0"


def _toml_string(text: str) -> str:
    # A JSON string is a TOML string, but TOML wants DEL escaped as well.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def storable(config: Config) -> dict[str, Any]:
    """The settings as they may be kept: what could be a secret is hidden."""
    plain: dict[str, Any] = msgspec.to_builtins(config)
    plain["agent"]["env"] = dict.fromkeys(config.agent.env, HIDDEN)
    if config.notify.webhook:
        plain["notify"]["webhook"] = HIDDEN
    return plain
