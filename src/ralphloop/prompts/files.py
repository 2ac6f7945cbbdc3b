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

    from ralphloop.stacks.detect import Check, Detected


def prompt_file(project: Detected, *, documents: tuple[str, ...] = ()) -> str:
    """PROMPT.md: project context, task instructions, and the mandatory status section."""
    return _rendered(
        "PROMPT.md.j2",
        project=project,
        documents=documents,
        instructions=DEFAULT_INSTRUCTIONS.replace("# How to work", "## Task instructions", 1),
        status_section=STATUS_SECTION,
    )


def config_file(
    *,
    agent: str,
    command: tuple[str, ...],
    keys: tuple[str, ...],
    checks: tuple[Check, ...],
    max_cost_usd: float,
    prd: str,
) -> str:
    """ralph.toml: what differs from the defaults, or matters."""
    return _rendered(
        "ralph.toml.j2",
        agent=agent,
        command=command,
        keys=keys,
        checks=checks,
        max_cost_usd=max_cost_usd,
        prd=prd,
    )


def sample_stories(project: Detected) -> str:
    """A small prd.json that shows what a story consists of."""
    return _rendered("prd.json.j2", name=project.name, description=project.description)


def _rendered(template: str, **values: Any) -> str:
    text = (files("ralphloop.prompts") / "templates" / template).read_text("utf-8")
    return _environment().from_string(text).render(**values)


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
    return environment
