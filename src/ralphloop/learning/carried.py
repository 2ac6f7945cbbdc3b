"""What a start is given of earlier learning: all that the loop itself needs to know of it."""

from __future__ import annotations

from ralphloop.core.model import Value


class Carried(Value, kw_only=True):
    """What one prompt carries, and what the agent reads besides."""

    text: str = ""
    ids: tuple[str, ...] = ()  # of patterns, in the prompt or in files the agent loads
    skills: tuple[str, ...] = ()  # names of skills the agent loads
    tokens: int = 0  # that the prompt is longer
    held_out: bool = False
