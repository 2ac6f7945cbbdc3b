"""The files `ralph init` writes, rendered from templates that are data beside this module.

The templates are ours, the values come from the user's repository: the sandbox keeps a project's
description from being anything but text.  jinja2 is imported only here.
"""

from __future__ import annotations

import json
import shlex
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ralphloop.config.render import toml_value
from ralphloop.prompts.protocol import DEFAULT_INSTRUCTIONS, STATUS_SECTION

if TYPE_CHECKING:
    from jinja2.sandbox import SandboxedEnvironment


def rendered(name: str, **values: Any) -> str:
    """One of the files; its template says which values it needs."""
    template = files("ralphloop.prompts") / "templates" / f"{name}.j2"
    return _environment().from_string(template.read_text("utf-8")).render(**values)


def _environment() -> SandboxedEnvironment:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import SandboxedEnvironment

    environment = SandboxedEnvironment(
        autoescape=False,  # the results are Markdown, TOML and JSON, never HTML
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"toml": toml_value, "json": json.dumps, "command": shlex.join}
    environment.globals |= {
        "instructions": DEFAULT_INSTRUCTIONS.replace("# How to work", "## Task instructions", 1),
        "status_section": STATUS_SECTION,
    }
    return environment
