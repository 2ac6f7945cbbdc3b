"""What every command that runs an agent over stories can be told, and the wish it becomes."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from ralphloop.cli.shared.options import (
    Command,
    complete_agent,
    dollars,
    duration,
    json_option,
    number,
)
from ralphloop.config.known_agents import shipped_agents
from ralphloop.errors import UsageError
from ralphloop.loop.prepare import Options


def setting_option(
    flag: str, setting: str, words: str, kind: Any = str
) -> Callable[[Command], Command]:
    return click.option(flag, setting.replace(".", "__"), type=kind, help=words)


_COMMON = (
    setting_option(
        "--max-iterations", "limits.max_iterations", "At most so many; 0: no limit.", number
    ),
    setting_option("--max-cost", "limits.max_cost_usd", "Dollars; 0: no limit.", dollars),
    setting_option(
        "--max-tokens", "limits.max_tokens", "Without cache reads; 0: no limit.", number
    ),
    setting_option("--max-time", "limits.max_time", "Wall clock, e.g. 8h; 0: no limit.", duration),
    click.option(
        "--until", "limits__until", metavar="HH:MM", help="End at that time, e.g. 07:00 or 7am."
    ),
    click.option(
        "--agent",
        "agent__name",
        type=str.lower,
        metavar="NAME",
        shell_complete=complete_agent,
        help=f"Which agent: {', '.join(shipped_agents())}.",
    ),
    setting_option("--model", "agent.model", "Which model the agent should use."),
    click.option("--allow-dirty", is_flag=True, help="Start with uncommitted changes."),
    click.option("--allow-red", is_flag=True, help="Start although a check fails already."),
    click.option("--no-wait", is_flag=True, help="End instead of waiting for a limit to reset."),
    click.option(
        "--trust", "trusted", is_flag=True, help="Trust this repository's commands for this run."
    ),
    click.option("--trust-pin", metavar="HASH", help="The same for exactly these: --trust=HASH."),
    click.option("-v", "--verbose", count=True, help="Also show every step of the agent."),
    click.option("-q", "--quiet", is_flag=True, help="Only results."),
    json_option("One event a line."),
)


def common_options(command: Command) -> Command:
    """What every command that runs an agent over stories can be told."""
    for option in reversed(_COMMON):
        command = option(command)
    return command


def options_of(wanted: Mapping[str, object], *, start: Path, session: str = "") -> Options:
    """What was asked for; a session asks with fewer of these words."""
    if wanted.get("prompt") and any(map(wanted.get, ("prd", "specs_dir", "only"))):
        raise UsageError("--prompt runs without stories", "Leave out --prd, --story and SPECS_DIR.")
    settings = {name.replace("__", "."): it for name, it in wanted.items() if "__" in name}
    given = {name: value for name, value in wanted.items() if name in Options.__struct_fields__}
    return msgspec.convert(
        {
            **given,
            "start": start,
            "session": session,
            "wait": not wanted.get("no_wait"),
            "trust": wanted.get("trust_pin") or ("1" if wanted.get("trusted") else ""),
            "flags": {name: value for name, value in settings.items() if value is not None},
        },
        Options,
    )
