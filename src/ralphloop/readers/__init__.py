"""From the output of an agent to a `Response`: what cannot be read is noise, never an exception."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from ralphloop.core.model import Response
    from ralphloop.readers.stream import Reader

NAMES = ("auto", "text", "claude", "codex", "gemini", "opencode", "droid", "acp")
_CHUNK = 1 << 20


def reader_name(agent: object, form: object = None) -> str:
    """Which reader understands an agent: its own, or for a command the one its settings name."""
    name = form if agent == "command" else agent
    return str(name) if name in NAMES else "auto"


def reader_for(name: str) -> Reader:
    """A fresh reader; `auto` settles on one by the events it recognises."""
    from ralphloop.readers.base import Dialect
    from ralphloop.readers.stream import Reader

    if name == "text":
        return Reader((), Dialect())
    from ralphloop.readers.acp import Acp
    from ralphloop.readers.claude import Claude
    from ralphloop.readers.codex import Codex
    from ralphloop.readers.droid import Droid
    from ralphloop.readers.gemini import Gemini
    from ralphloop.readers.opencode import Opencode

    dialects: tuple[type[Dialect], ...] = (Acp, Opencode, Codex, Claude, Droid, Gemini)
    if name == "auto":
        return Reader(dialects, Dialect())
    for dialect in dialects:
        if dialect.name == name:
            return Reader((dialect,), dialect())
    raise ValueError(f"unknown reader {name!r}; known are {', '.join(NAMES)}")


def read(
    data: bytes,
    *,
    agent: str = "auto",
    exit_code: int | None = 0,
    stderr: str = "",
    now: datetime | None = None,
) -> Response:
    reader = reader_for(agent)
    for start in range(0, len(data), _CHUNK):
        reader.feed(data[start : start + _CHUNK])
    return reader.finish(exit_code=exit_code, stderr=stderr, now=now)
