"""What a person writes on the command line; `--help` shows the name of what reads it."""

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from ralphloop.config.known_agents import known_agents, shipped_agents
from ralphloop.errors import RalphError
from ralphloop.project import find_project
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


def complete_agent(
    _ctx: click.Context, _param: click.Parameter, typed: str
) -> list[CompletionItem]:
    """The names of agents that begin with what was typed."""
    try:
        names = known_agents(find_project().root)
    except (OSError, RalphError):
        names = shipped_agents()
    return [CompletionItem(name) for name in names if name.startswith(typed)]


def complete_story(
    _ctx: click.Context, _param: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Ids of stories that begin with what was typed, in any case."""
    from ralphloop.night.look import look_at_list

    try:
        found = look_at_list(find_project()).stories
    except (OSError, RalphError):
        return []
    begun = typed.casefold()
    return [
        CompletionItem(it.story.id, help=it.story.title)
        for it in found
        if it.story.id.casefold().startswith(begun)
    ]


def complete_run(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[CompletionItem]:
    """The newest runs that begin with what was typed."""
    from ralphloop.night.look import reading

    try:
        with reading(find_project()) as journal:
            found = journal.runs()
    except (OSError, RalphError):
        return []
    return [CompletionItem(it.id, help=it.status) for it in found if it.id.startswith(typed)]


def complete_story_or_run(
    ctx: click.Context, param: click.Parameter, typed: str
) -> list[CompletionItem]:
    return [*complete_story(ctx, param, typed), *complete_run(ctx, param, typed)]


class DefaultGroup(click.Group):
    """A group that does the first of its commands, which looks, where nothing else is said."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_asked = bool(args) or ctx.resilient_parsing  # who completes has not said all yet
        return super().parse_args(ctx, args if is_asked else [next(iter(self.commands))])
