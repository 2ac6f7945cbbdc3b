"""The flags that this Claude Code knows, by its own `--help`.

Releases of a year differ in them, and an unknown one ends the start at once.  What can be done
without is left out, and what follows is said before the night.  A program is asked once for as
long as it is the same file; one whose answer lists no flags is taken for a newest one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from ralphloop.agents.programs import ask
from ralphloop.config.model import Safety
from ralphloop.errors import Finding, Level

_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]{1,60}")
_UPDATE = "update Claude Code: claude update, or npm install -g @anthropic-ai/claude-code"
_SETTINGS, _PROMPTS = "--settings", "--permission-prompts"
_TOOLS = "--tools"  # without it a question about the status block is asked with tools at hand
# What follows where it is left out.  `--max-turns` is in no help and known to all.
_OPTIONAL = {
    _PROMPTS: "what is not allowed is refused all the same, but the agent may try it again",
    "--max-budget-usd": "money is looked at between two starts only",
    "--include-partial-messages": "a long answer is silence until it ends",
    "--setting-sources": "settings.local.json counts too",
}

_answers: dict[tuple[str, int, int], str] = {}


def usage_of(program: str, env: Mapping[str, str]) -> str:
    """What its help says; empty where it cannot be asked."""
    try:
        found = os.stat(program)  # noqa: PTH116 - a path as text is all that is needed
    except OSError:
        return ""
    key = program, found.st_ino, found.st_mtime_ns
    if key not in _answers:
        answer = ask([program, "--help"], env)
        _answers[key] = answer.output if answer else ""
    return _answers[key]


def unknown_flags(usage: str) -> frozenset[str]:
    """The flags of ours that its help does not list."""
    known = set(_FLAG.findall(usage))
    return frozenset() if "--output-format" not in known else frozenset(_ours() - known)


def flag_problems(usage: str, version: str | None, safety: Safety) -> Iterator[Finding]:
    """What cannot be kept with this release, and what follows from what is left out."""
    unknown, name = unknown_flags(usage), f"claude {version or ''}".rstrip()
    if safety is Safety.MINIMAL:
        unknown -= {_SETTINGS, _PROMPTS}
    if _SETTINGS in unknown:
        message = f'safety = "{safety}" needs --settings, which {name} does not know'
        yield Finding(Level.ERROR, message, _UPDATE)
    for flag in sorted(unknown & _OPTIONAL.keys()):
        yield Finding(Level.WARNING, f"{name} does not know {flag}: {_OPTIONAL[flag]}", _UPDATE)


def _ours() -> set[str]:
    return {_SETTINGS, _TOOLS, *_OPTIONAL}
