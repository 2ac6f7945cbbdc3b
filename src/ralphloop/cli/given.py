"""What a person writes on the command line, read the same way by every command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from ralphloop.housekeeping import parse_size
from ralphloop.text.durations import parse_duration

Pairs = Sequence[tuple[str, str]]
_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., Any])


def _written(name: str, read: Callable[[str], _T]) -> Callable[[str], _T]:
    """A reader whose words say what is wrong with an option."""

    def convert(text: str) -> _T:
        try:
            return read(text)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    convert.__name__ = name  # as `--help` shows it
    return convert


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"expected KEY=VALUE, got {text!r}")
    return key.strip(), value.strip()


DURATION = _written("duration", parse_duration)
SIZE = _written("size", parse_size)


def pairs_option(flag: str, help_text: str) -> Callable[[_F], _F]:
    """An option that takes any number of KEY=VALUE pairs."""
    read, words = _written("key=value", _pair), f"{help_text} Repeatable."
    return click.option(flag, "settings", multiple=True, type=read, help=words)
