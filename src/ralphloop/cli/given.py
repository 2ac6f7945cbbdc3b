"""What a person writes on the command line, read the same way by every command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from ralphloop.housekeeping import parse_size
from ralphloop.text.durations import parse_duration

Pairs = Sequence[tuple[str, str]]


class _Written(click.ParamType):  # type: ignore[type-arg] # generic in newer versions only
    """A value with a reader of its own, whose words say what is wrong."""

    def __init__(self, name: str, read: Callable[[str], object]) -> None:
        self.name, self._read = name, read

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> object:
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"expected KEY=VALUE, got {text!r}")
    return key.strip(), value.strip()


DURATION = _Written("duration", parse_duration)
SIZE = _Written("size", parse_size)
PAIR = _Written("key=value", _pair)
