"""What a person writes on the command line, read the same way by every command."""

import math
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


def _duration(text: str) -> float:
    """As everywhere, but a bare number is nobody's hours: it would be seconds."""
    if text.strip().isdigit() and int(text):
        raise ValueError(f"{text} of what? Say {text}h, {text}m or {text}s")
    return parse_duration(text)


def _money(text: str) -> float:
    try:
        amount = float(text.strip().removeprefix("$").removesuffix("USD").replace(",", ""))
    except ValueError:
        amount = math.nan
    if not 0 <= amount < math.inf:
        raise ValueError(f"{text!r} is no amount of dollars, such as 20 or $2.50")
    return amount


def _count(text: str) -> int:
    try:
        number = int(text.replace(",", "").replace("_", ""))
    except ValueError:
        number = -1
    if number < 0:
        raise ValueError(f"{text!r} is no whole number, such as 20; 0 means none")
    return number


def json_option(words: str) -> Callable[[_F], _F]:
    """Print for programs instead of for people."""
    return click.option("--json", "as_json", is_flag=True, help=words)


DURATION = _written("duration", _duration)
MONEY = _written("dollars", _money)
COUNT = _written("number", _count)
SIZE = _written("size", parse_size)


class DefaultGroup(click.Group):
    """A group that looks where nothing else is said."""

    def __init__(self, *args: Any, default: str, **more: Any) -> None:
        super().__init__(*args, **more)
        self.default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or [self.default])


def pairs_option(flag: str, help_text: str) -> Callable[[_F], _F]:
    """An option that takes any number of KEY=VALUE pairs."""
    read, words = _written("key=value", _pair), f"{help_text} Repeatable."
    return click.option(flag, "settings", multiple=True, type=read, help=words)
