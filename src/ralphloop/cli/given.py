"""What a person writes on the command line; `--help` shows the name of what reads it."""

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from ralphloop.text.durations import parse_duration

Pairs = Sequence[tuple[str, str]]
_SIZE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?) ?(B|KB|MB|GB|TB)?", re.IGNORECASE | re.ASCII)
_UNITS = {"": 1, "B": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3, "TB": 1000**4}
FILE = click.Path(path_type=Path)
Command = TypeVar("Command", bound=Callable[..., Any])


def duration(text: str) -> float:
    """As everywhere, but a bare number is nobody's hours: it would be seconds."""
    if text.strip().isdigit() and int(text):
        raise click.BadParameter(f"{text} of what? Say {text}h, {text}m or {text}s")
    try:
        return parse_duration(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def dollars(text: str) -> float:
    try:
        amount = float(text.strip().removeprefix("$").removesuffix("USD").replace(",", ""))
    except ValueError:
        amount = math.nan
    if not 0 <= amount < math.inf:
        raise click.BadParameter(f"{text!r} is no amount of dollars, such as 20 or $2.50")
    return amount


def number(text: str) -> int:
    try:
        found = int(text.replace(",", "").replace("_", ""))
    except ValueError:
        found = -1
    if found < 0:
        raise click.BadParameter(f"{text!r} is no whole number, such as 20; 0 means none")
    return found


def size(text: str) -> int:
    """`2GB`, `500 MB`, `1000`: a number of bytes."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise click.BadParameter(f"not a size: {text[:40]!r}; write it like 500MB or 2GB")
    return int(float(match[1]) * _UNITS[(match[2] or "").upper()])


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise click.BadParameter(f"expected KEY=VALUE, got {text!r}")
    return key.strip(), value.strip()


def json_option(words: str) -> Callable[[Command], Command]:
    return click.option("--json", "as_json", is_flag=True, help=words)


def pairs_option(flag: str, words: str) -> Callable[[Command], Command]:
    told = f"{words} Repeatable."
    name = "KEY=VALUE"
    return click.option(flag, "settings", multiple=True, type=_pair, metavar=name, help=told)


class DefaultGroup(click.Group):
    """A group that does the first of its commands, which looks, where nothing else is said."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or [next(iter(self.commands))])
